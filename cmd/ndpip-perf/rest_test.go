package main_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ndpip/cmd/internal/netns"
)

// With --rest a program that has nothing to do takes next to no CPU, and still answers.
func TestRestWithKernel(t *testing.T) {
	netns.Need(t)
	for _, inline := range []bool{false, true} {
		t.Run(fmt.Sprintf("inline %v", inline), func(t *testing.T) {
			ns := netns.New(t)
			w := &kernelWire{t, "tap:ndtap", "ndtap", ns, ns}
			recv := w.perf("recv", "--rest", "0.001", "--interval", "60", fmt.Sprintf("--inline=%v", inline))
			recv.listens()
			ping := func() string { return w.kernel.Run("ping", "-c", "1", "-W", "2", stackIP) }
			ping() // and both know each other's address
			const idle = 2 * time.Second
			time.Sleep(200 * time.Millisecond)
			before := cpuTime(t, recv.cmd.Process.Pid)
			time.Sleep(idle)
			used := cpuTime(t, recv.cmd.Process.Pid) - before
			answer := ping()
			t.Logf("%v of CPU time in %v; %s", used, idle, strings.Split(answer, "\n")[1])
			require.LessOrEqual(t, used, idle/100)
			require.Contains(t, answer, "1 received")
			// And it is awake when there is work.
			const size = 8 << 20
			sender := w.socat("SYSTEM:head -c "+strconv.Itoa(size)+" /dev/zero", "TCP:"+stackIP+":5001")
			sender.ends(0, 60*time.Second)
			recv.terminate()
			require.Contains(t, recv.out.String(), "bytes="+strconv.Itoa(size))
		})
	}
}

// cpuTime is what a process has used.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	ticks := 0
	for _, field := range f[11:13] { // utime and stime, in ticks of 10 ms
		n, err := strconv.Atoi(field)
		require.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
