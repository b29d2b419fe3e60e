package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testbed is two hosts that are this machine, with a script in the place of ssh.
type testbed struct{ dir, file, ssh string }

func newTestbed(t *testing.T) testbed {
	b := testbed{dir: t.TempDir()}
	b.ssh, b.file = filepath.Join(b.dir, "ssh"), filepath.Join(b.dir, "hosts.toml")
	write := func(name, text string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(name, []byte(text), mode))
	}
	write(b.ssh, "#!/bin/sh\necho \"$1\" >>"+b.dir+"/asked\nshift\nexec sh -c \"$*\"\n", 0o700)
	write(b.file, strings.ReplaceAll(`
[sender]
ssh = "root@alpha"
address = "10.0.0.1/24"
pci = "0000:3b:00.0"
lcores = [0, 1]
linux_address = "127.0.0.1"
programs = "DIR"

[receiver]
ssh = "root@beta"
address = "10.0.0.2/24"
mac = "02:00:00:00:00:02"
wire = "af_xdp:eth1"
lcores = [0]
linux_address = "127.0.0.2"
programs = "DIR"
`, "DIR", b.dir), 0o600)
	// A stack of others: it prints the lines of ndpip-perf as text, and notes who it is.
	write(filepath.Join(b.dir, "other"), "#!/bin/sh\necho $$ \"$@\" >>"+b.dir+"/ran\nwhile :; do echo 'pps=10; bps=8000; connections=1;'; sleep 0.05; done\n", 0o700)
	return b
}

// exp runs the program.
func (b testbed) exp(args string) (status int, out, fault string) {
	runtime.LockOSThread() // the programs end with the thread that starts them
	defer runtime.UnlockOSThread()
	var o, f bytes.Buffer
	status = run(append(strings.Fields(args), "--hosts", b.file, "--ssh", b.ssh), &o, &f)
	return status, o.String(), f.String()
}

func TestDryRun(t *testing.T) {
	b := newTestbed(t)
	status, out, fault := b.exp("exp1 --dry-run --stacks ndpip,linux --runs 2 --bidir")
	require.Zero(t, status, fault)
	require.NoFileExists(t, filepath.Join(b.dir, "asked"))
	for _, want := range []string{
		"look at root@alpha: programs\n",
		"ndpip → ndpip, MSS 64, 1 connection (pci, af_xdp), 2 runs of 3 s\n",
		"receiver, root@beta: " + b.dir + "/ndpip-perf recv --mss 64 --burst 32 --cpu 0 --bidir --format json --interval 0.1 --wire af_xdp:eth1 --mbufs 8192 --checksum auto --bind-ip 10.0.0.2/24 --inline\n",
		"--wire pci:0000:3b:00.0 --mbufs 8192 --checksum auto --bind-ip 10.0.0.1/24 --arp 10.0.0.2=02:00:00:00:00:02 --worker-cpu 1\n",
		"ndpip → linux, MSS 64, 1 connection (pci, kernel)",
		"sender, root@alpha: " + b.dir + "/linux-perf send --mss 1460 --burst 32 --cpu 0 --connections 1 --connect-ip 127.0.0.2 --bidir --format json --interval 0.1 --connect-timeout 30 --bind-ip 127.0.0.1\n",
	} {
		require.Contains(t, out, want)
	}
	status, out, fault = b.exp("exp2 --dry-run --f-stack /opt/f-stack --mtcp /opt/mtcp")
	require.Zero(t, status, fault)
	require.Equal(t, 9*4, strings.Count(out, " → "))
	require.Contains(t, out, "sender, root@alpha: /opt/f-stack send --mss 1460 --burst 32 --cpu 0 --connections 4096 --connect-ip 10.0.0.2 --bind-ip 10.0.0.1\n")
}

func TestWrongHosts(t *testing.T) {
	b := newTestbed(t)
	text, err := os.ReadFile(b.file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(b.file, bytes.Replace(text, []byte("lcores"), []byte("cores"), 1), 0o600))
	status, _, fault := b.exp("exp1")
	require.Equal(t, statusUsage, status)
	require.Contains(t, fault, "hosts.toml:6:1: sender.cores is no field: want one of ssh, address,")

	// Two hosts by name describe themselves; these two do not.
	var out, err2 bytes.Buffer
	require.Equal(t, statusFault, run([]string{"exp1", "--hosts", "a,b", "--ssh", b.ssh}, &out, &err2))
	require.Contains(t, err2.String(), "a: exit status 1: cat: /etc/ndpip/host.toml: ")
}

// The stacks of others over two hosts: all pairs are measured, and no program is left behind.
func TestForeign(t *testing.T) {
	b := newTestbed(t)
	dir := filepath.Join(b.dir, "results")
	args := "sweep --stacks f-stack,mtcp --mtcp " + b.dir + "/other --runs 1 --time 2 --warmup 1 --paper=false --plots=false --out " + dir
	status, _, fault := b.exp(args + " --f-stack " + b.dir + "/none")
	require.Equal(t, statusFault, status)
	require.Contains(t, fault, "root@alpha: there is no program "+b.dir+"/none")
	status, out, fault := b.exp(args + " --f-stack " + b.dir + "/other")
	require.Zero(t, status, fault)
	for _, pair := range []string{"f-stack → f-stack", "f-stack → mtcp", "mtcp → f-stack", "mtcp → mtcp"} {
		require.Regexp(t, `(?m)^`+pair+` .* 0\.000008 `, out)
	}
	ran, err := os.ReadFile(filepath.Join(b.dir, "ran"))
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(ran), " recv "))
	require.Contains(t, string(ran), " send --mss 1460 --burst 32 --cpu 0 --connections 1 --connect-ip 10.0.0.2 --bind-ip 10.0.0.1\n")
	for line := range strings.Lines(string(ran)) {
		pid, _, _ := strings.Cut(line, " ")
		require.NoDirExists(t, "/proc/"+pid, line)
	}
	asked, err := os.ReadFile(filepath.Join(b.dir, "asked"))
	require.NoError(t, err)
	require.Contains(t, string(asked), "root@beta\n")
}

// The kernel's stack over two hosts, both ways; the figures of the programs come with their summaries.
func TestTwoHosts(t *testing.T) {
	b := newTestbed(t)
	text, err := exec.Command("go", "build", "-o", filepath.Join(b.dir, "linux-perf"), "../linux-perf").CombinedOutput()
	require.NoError(t, err, string(text))
	dir := filepath.Join(b.dir, "results")
	status, out, fault := b.exp("sweep --stacks linux --bidir --runs 1 --time 0.5 --warmup 0.2 --plots=false --out " + dir)
	require.Zero(t, status, fault)
	require.Contains(t, out, "back, Gb/s")
	st, err := openStore(dir)
	require.NoError(t, err)
	defer st.close()
	require.NoError(t, st.complete())
	r := st.results[0]
	require.Empty(t, r.Note)
	require.Positive(t, r.BackBPS)
	require.Positive(t, r.Sender.CPU)
	require.Positive(t, r.Recv.RSS)
	require.NotEmpty(t, st.about.Peer.Kernel)
}
