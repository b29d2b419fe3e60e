package stack_test

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inlined are the functions that must be inlined where they are called, by package: each is called once per segment, or
// more often, and a call costs as much as what it does.
const inlined = `
	ndpip/dpdk  (*Lane).Take (*Lane).Queue (*Lane).Release (*Lane).TxRoom (*Lane).Exchange Frame.Bytes Bytes Pointer
	ndpip/ring  At Make Entry.Addr Entry.Len
	ndpip/tcp   Seq.Less Seq.LessEq Seq.Size (*Conn).AckWord (*Conn).Unread (*Conn).RxAt (*Conn).PutTx (*Conn).TxTail
	ndpip/tcp   (*Conn).Commit (*Conn).State (*Conn).Pending (*Conn).Want
	ndpip/stack (*spinlock).try (*spinlock).unlock (*conns).at (*Stack).touch wordsAt fold16 bswap16
	ndpip/stack/wire ParseEthernet ParseTCP EthDst (*IPv4).Src (*IPv4).Dst (*IPv4).Len (*IPv4).Proto PseudoHeader Fold
`

// TestInlining asks the compiler. When a function outgrows its budget, take what is seldom needed out of it into one of
// its own that is marked noinline; if the function has become another thing, measure before taking it off the list.
func TestInlining(t *testing.T) {
	if runtime.GOARCH == "386" || runtime.GOARCH == "arm" {
		t.Skip("the budgets are those of 64-bit machines")
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-gcflags=ndpip/...=-m", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)

	can := map[string]bool{}
	pkg := ""
	report := regexp.MustCompile(`: can inline (\S+)`)
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(line, "# "); ok {
			pkg = strings.TrimSpace(name)
		} else if m := report.FindStringSubmatch(line); m != nil {
			can[pkg+" "+m[1]] = true
		}
	}
	for line := range strings.Lines(inlined) {
		words := strings.Fields(line)
		for i := 1; i < len(words); i++ {
			if !can[words[0]+" "+words[i]] {
				t.Errorf("%s of %s is not inlined any more", words[i], words[0])
			}
		}
	}
}
