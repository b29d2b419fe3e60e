//go:build cgo

package dpdk

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func init() {
	children["memif"] = memifChild
}

// memifChild is the other process: "server:PATH" or "client:PATH". It sends numbered frames and checks what arrives.
func memifChild(arg string) error {
	runtime.LockOSThread()
	role, path, _ := strings.Cut(arg, ":")
	args, dev, err := Wire("memif:"+path, role == "server")
	if err != nil {
		return err
	}
	if _, err := EalInit(append(testArgs(), args...)); err != nil {
		return err
	}
	if _, err := RegisterLcore(-1); err != nil {
		return err
	}
	pool, err := NewMempool("memif", 4095, 0, -1, -1)
	if err != nil {
		return err
	}
	id, err := PortByName(dev)
	if err != nil {
		return err
	}
	p, err := ConfigurePort(id, PortConf{RxPool: pool})
	if err != nil {
		return err
	}
	l, err := p.NewLane(0, 0, pool)
	if err != nil {
		return err
	}
	if err := startMemif(p); err != nil {
		return err
	}
	fmt.Println("up")
	f := flow{l: l}
	for f.err == nil {
		f.turn(OpYield)
	}
	return f.err
}

// startMemif starts a port whose server may still be coming.
func startMemif(p *Port) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := p.Start()
		if err == nil || !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// flow sends frames with a number, one after the other, and wants the peer's to be in order. A gap is what was in the
// rings when a peer was killed.
type flow struct {
	l    *Lane
	got  atomic.Uint64
	next uint64
	gaps int
	seq  uint64
	err  error
}

func (f *flow) turn(op Op) {
	l := f.l
	l.Exchange(op | OpFree | OpStock | OpRx)
	for i := range l.NRx {
		r := &l.Rx[i]
		n := binary.BigEndian.Uint64(r.Bytes())
		if r.Len != frameLen(n) || binary.BigEndian.Uint64(r.Bytes()[r.Len-8:]) != n {
			f.err = fmt.Errorf("frame %d of %d bytes is damaged", n, r.Len)
		}
		if n != f.next {
			f.gaps++
		}
		f.next = n + 1
		l.Release(r.Handle)
	}
	f.got.Add(uint64(l.NRx))
	for range min(32, l.TxRoom()) {
		b, ok := l.Take()
		if !ok {
			break
		}
		b.Len = frameLen(f.seq)
		binary.BigEndian.PutUint64(b.Bytes(), f.seq)
		binary.BigEndian.PutUint64(b.Bytes()[b.Len-8:], f.seq)
		l.Queue(b)
		f.seq++
	}
	l.Exchange(OpTx)
}

func frameLen(n uint64) uint32 { return 60 + uint32(n*37%1455) }

// memifPeer starts the other process and waits until its port has started.
func memifPeer(t *testing.T, arg string) *exec.Cmd {
	t.Helper()
	cmd := childCmd("memif", arg)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("the peer did not start: %q %v", line, err)
	}
	return cmd
}

// memifPort is our end, added to the running EAL.
func memifPort(t *testing.T, path string, server bool) (*Port, *flow) {
	t.Helper()
	args, name, err := Wire("memif:"+path, server)
	if err != nil {
		t.Fatal(err)
	}
	vdev := strings.TrimPrefix(args[len(args)-1], "--vdev="+name+",")
	if err := VdevInit(name, vdev); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := VdevUninit(name); err != nil {
			t.Error(err)
		}
	})
	id, err := PortByName(name)
	if err != nil {
		t.Fatal(err)
	}
	pool := newPool(t, 2047)
	p, err := ConfigurePort(id, PortConf{RxPool: pool, TxQueues: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	l := newLane(t, p, 0, 0, pool)
	return p, &flow{l: l}
}

// run takes turns on a thread of its own until the returned function is called.
func (f *flow) run(t *testing.T) (stop func()) {
	quit, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if _, err := RegisterLcore(-1); err != nil {
			t.Error(err)
			return
		}
		defer UnregisterLcore()
		for {
			select {
			case <-quit:
				return
			default:
				f.turn(0)
			}
		}
	}()
	return func() {
		close(quit)
		<-done
		if f.err != nil {
			t.Error(f.err)
		}
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}

// memifRounds is how often the peer is killed; more than the default for a longer look.
func memifRounds() int {
	n, err := strconv.Atoi(os.Getenv("NDPIP_DPDK_TEST_ROUNDS"))
	if err != nil {
		return 3
	}
	return n
}

// A server outlives the clients that are killed while both sides send as fast as they can.
func TestMemifClientKilled(t *testing.T) {
	sock := filepath.Join(t.TempDir(), "m")
	p, f := memifPort(t, sock, true)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if i := p.Info(); i.RxQueues != 1 || i.TxQueues != 1 || i.Driver != "net_memif" || i.LinkUp {
		t.Errorf("%+v", i)
	}
	stop := f.run(t)
	for range memifRounds() {
		peer := memifPeer(t, "client:"+sock)
		was := f.got.Load()
		eventually(t, "frames from the client", func() bool { return f.got.Load() > was+5000 })
		if !p.LinkUp() {
			t.Error("frames arrive and the link is down")
		}
		_ = peer.Process.Kill()
		_ = peer.Wait()
		eventually(t, "link down", func() bool { return !p.LinkUp() })
	}
	stop()
	if f.gaps > memifRounds() {
		t.Errorf("%d gaps in the order of frames, one for each peer is to be expected", f.gaps)
	}
	if n, sees := guardTurns(); !sees || n > uint64(100*memifRounds()) {
		t.Errorf("the interrupt thread worked %d times, seen coming: %v", n, sees)
	}
}

// A client outlives its servers, and Stop and Start connect it to the next one, with the lane in use meanwhile. Each
// server after the first finds the socket of a dead one.
func TestMemifServerKilled(t *testing.T) {
	sock := filepath.Join(t.TempDir(), "m")
	p, f := memifPort(t, sock, false)
	wantError(t, p.Start(), syscall.ECONNREFUSED, "server side must be running")
	stop := f.run(t)
	for range memifRounds() {
		peer := memifPeer(t, "server:"+sock)
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := startMemif(p); err != nil {
			t.Fatal(err)
		}
		was := f.got.Load()
		eventually(t, "frames from the server", func() bool { return f.got.Load() > was+5000 })
		_ = peer.Process.Kill()
		_ = peer.Wait()
		eventually(t, "link down", func() bool { return !p.LinkUp() })
	}
	stop()
}

// Stopping and starting our own side under load, the peer living on.
func TestMemifRestart(t *testing.T) {
	sock := filepath.Join(t.TempDir(), "m")
	memifPeer(t, "server:"+sock)
	p, f := memifPort(t, sock, false)
	stop := f.run(t)
	for range 5 {
		if err := startMemif(p); err != nil {
			t.Fatal(err)
		}
		was := f.got.Load()
		eventually(t, "frames from the server", func() bool { return f.got.Load() > was+500 })
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	stop()
}

// The driver's work on the interrupt thread waits for a burst to end. The burst is only claimed here: the lane's word
// for it is set by hand.
func TestMemifGuardWaitsForBurst(t *testing.T) {
	sock := filepath.Join(t.TempDir(), "m")
	p, f := memifPort(t, sock, true)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	peer := memifPeer(t, "client:"+sock)
	eventually(t, "link up", p.LinkUp)
	eventually(t, "frames from the client", func() bool { f.turn(0); return f.got.Load() > 100 })
	burst := inBurst(f.l)
	burst.Store(1)
	_ = peer.Process.Kill()
	_ = peer.Wait()
	time.Sleep(100 * time.Millisecond)
	if !p.LinkUp() {
		t.Error("the rings were taken away under a burst")
	}
	burst.Store(0)
	eventually(t, "link down", func() bool { return !p.LinkUp() })
	f.l.Exchange(OpFree)
}
