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

// TestPcap has a transfer captured and read back by tcpdump and tshark: nothing is malformed, no checksum is wrong, and the
// segments are those of a connection from its SYN to the last ACK.
func TestPcap(t *testing.T) {
	file, _ := randomFile(t, 100_000)
	capture := filepath.Join(t.TempDir(), "c.pcap")
	p := startPair(t, "--checksum software", "--out "+filepath.Join(t.TempDir(), "copy"), "--file "+file+" --pcap "+capture+" --pcap-max 10m")
	p.send.ends(0, 30*time.Second)
	p.recv.ends(0, 10*time.Second)
	require.Regexp(t, `c\.pcap: \d+ frames\n`, p.send.err.String())

	t.Run("tcpdump", func(t *testing.T) {
		if _, err := exec.LookPath("tcpdump"); err != nil && os.Geteuid() != 0 {
			t.Skip("tcpdump is not installed; cmd/dev does that as root")
		}
		text := output(t, "tcpdump", "-nnvvr", capture)
		for _, bad := range []string{`\[\|`, `\bbad\b`, "incorrect", "truncated", "malformed", "invalid"} { // a checksum may be 0x9bad
			require.NotRegexp(t, bad, text)
		}
		var kinds []string
		bytes := 0
		seen := map[string]bool{}
		for _, m := range regexp.MustCompile(`> 10\.0\.0\.([12])\.\d+: Flags \[([A-Z.]+)\], cksum 0x\w+ \(correct\), (?:seq ([\d:]+), )?.*length (\d+)`).FindAllStringSubmatch(text, -1) {
			kinds = append(kinds, kindOf(m[1], m[2], m[4]))
			if lo, hi, ok := strings.Cut(m[3], ":"); ok && !seen[m[3]] {
				seen[m[3]] = true
				bytes += number(t, hi) - number(t, lo)
			}
		}
		require.Equal(t, 100_000, bytes, "no text is missing and none is twice")
		require.Regexp(t, wholeLife, strings.Join(kinds, " "))
	})
	t.Run("tshark", func(t *testing.T) {
		if _, err := exec.LookPath("tshark"); err != nil {
			t.Skip("tshark is not installed")
		}
		require.Empty(t, output(t, "tshark", "-r", capture, "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-Y",
			"_ws.malformed || tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment || tcp.checksum.status != Good || ip.checksum.status != Good"))
		var kinds []string
		for line := range strings.Lines(output(t, "tshark", "-r", capture, "-Y", "tcp", "-T", "fields", "-E", "separator=,",
			"-e", "ip.dst", "-e", "tcp.flags.str", "-e", "tcp.len")) {
			f := strings.Split(strings.TrimSpace(line), ",")
			flags := strings.NewReplacer("·", "", "A", ".").Replace(f[1])
			if ack := strings.Replace(flags, ".", "", 1); ack != flags {
				flags = ack + "." // tcpdump has it last
			}
			kinds = append(kinds, kindOf(strings.TrimPrefix(f[0], "10.0.0."), flags, f[2]))
		}
		require.Regexp(t, wholeLife, strings.Join(kinds, " "))
	})
}

// wholeLife is a connection from its SYN to the last ACK, in the words of kindOf.
const wholeLife = `^S> S\.< \.> (text> |\.< )+F\.> (\.< )*F\.< \.>$`

// kindOf says what a segment is to the host 10.0.0.to: its flags as tcpdump writes them, or text.
func kindOf(to, flags, length string) string {
	if length != "0" {
		flags = "text"
	}
	return flags + map[string]string{"1": ">", "2": "<"}[to]
}

func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	var trouble strings.Builder
	cmd.Stderr = &trouble
	out, err := cmd.Output()
	require.NoError(t, err, trouble.String())
	return string(out)
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
