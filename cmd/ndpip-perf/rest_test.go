package main_test

import (
	"fmt"
	"os"
	"path/filepath"
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
			recv := w.perf("recv", "--rest", "0.001", "--interval", "60", "--sha256", fmt.Sprintf("--inline=%v", inline))
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
			require.Less(t, used, idle/50) // 0.7 % on a quiet machine
			require.Contains(t, answer, "1 received")
			// And it is awake when there is work.
			const size = 8 << 20
			sender := w.socat("SYSTEM:head -c "+strconv.Itoa(size)+" /dev/zero", "TCP:"+stackIP+":5001")
			sender.ends(0, 60*time.Second)
			recv.says(&recv.out, "; bytes="+strconv.Itoa(size), 10*time.Second)
			recv.terminate()
		})
	}
}

// cpuTime is what a process's threads have used, to the nanosecond: ticks are too coarse for sleepers.
func cpuTime(t *testing.T, pid int) (sum time.Duration) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	require.NoError(t, err)
	require.NotEmpty(t, tasks)
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that has ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		require.NoError(t, err)
		sum += time.Duration(ns)
	}
	return sum
}
