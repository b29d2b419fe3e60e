package main_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPcap has a transfer captured and read back by tcpdump: nothing is malformed, no checksum is wrong, and the segments are
// those of a connection from its SYN to the last ACK. Where tshark is installed, it reads the file, too.
func TestPcap(t *testing.T) {
	file, _ := randomFile(t, 100_000)
	capture := filepath.Join(t.TempDir(), "c.pcap")
	p := startPair(t, "--checksum software", "--out "+filepath.Join(t.TempDir(), "copy"), "--file "+file+" --pcap "+capture+" --pcap-max 10m")
	p.send.ends(0, 30*time.Second)
	p.recv.ends(0, 10*time.Second)
	require.Regexp(t, `c\.pcap: \d+ frames\n`, p.send.err.String())

	if _, err := exec.LookPath("tcpdump"); err != nil && os.Geteuid() != 0 {
		return // cmd/dev installs it, as root
	}
	out, err := exec.Command("tcpdump", "-nnvvr", capture).CombinedOutput()
	require.NoError(t, err, "%s", out)
	text := string(out)
	for _, bad := range []string{`\[\|`, `\bbad\b`, "incorrect", "truncated", "malformed", "invalid"} { // a checksum may be 0x9bad
		require.NotRegexp(t, bad, text)
	}
	var flags []string
	bytes := 0
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`> (10\.0\.0\.[12])\.\d+: Flags \[([A-Z.]+)\], cksum 0x\w+ \(correct\), (?:seq ([\d:]+), )?.*length (\d+)`).FindAllStringSubmatch(text, -1) {
		kind := m[2]
		if m[4] != "0" {
			kind = "text"
			if lo, hi, ok := strings.Cut(m[3], ":"); ok && !seen[m[3]] {
				seen[m[3]] = true
				bytes += number(t, hi) - number(t, lo)
			}
		}
		flags = append(flags, kind+map[string]string{"10.0.0.1": ">", "10.0.0.2": "<"}[m[1]])
	}
	require.Equal(t, 100_000, bytes, "no text is missing and none is twice")
	require.Regexp(t, `^S> S\.< \.> (text> |\.< )+F\.> (\.< )*F\.< \.>$`, strings.Join(flags, " "))

	if tshark, err := exec.LookPath("tshark"); err == nil {
		out, err := exec.Command(tshark, "-r", capture, "-Y", "_ws.malformed || tcp.analysis.lost_segment || tcp.checksum.status == 0",
			"-o", "tcp.check_checksum:TRUE").Output()
		require.NoError(t, err)
		require.Empty(t, string(out))
	}
}

func number(t *testing.T, s string) (n int) {
	t.Helper()
	for _, c := range s {
		require.True(t, c >= '0' && c <= '9', s)
		n = n*10 + int(c-'0')
	}
	return n
}

// TestMetrics reads what Prometheus would.
func TestMetrics(t *testing.T) {
	p := startPair(t, "", "--metrics 127.0.0.1:0", "--timeout 1")
	p.recv.says(&p.recv.err, "metrics at http://", startTime)
	url := regexp.MustCompile(`http://\S+`).FindString(p.recv.err.String())
	p.send.ends(0, 20*time.Second)
	answer, err := http.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Contains(t, answer.Header.Get("Content-Type"), "application/openmetrics-text")
	require.Regexp(t, `(?m)^ndpip_rx_payload_total\{host="10\.0\.0\.1"\} [1-9]\d+$`, string(text))
	require.True(t, strings.HasSuffix(string(text), "# EOF\n"))
	p.recv.terminate()
}
