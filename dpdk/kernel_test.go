//go:build cgo

package dpdk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

func init() {
	children["kernel"] = kernelChild
	children["tap signal"] = tapSignalChild
}

// TestKernelPeer lets the Linux kernel send datagrams to a port and wants them back, for each driver that shares a wire
// with it. The child has a network namespace of its own, so nothing of the machine's network is touched.
func TestKernelPeer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: network namespaces, taps and packet sockets")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs the ip command (package iproute2)")
	}
	for _, wire := range []string{"tap:ndpip0", "af_packet:v0", "af_xdp:v0"} {
		t.Run(wire, func(t *testing.T) {
			out, err := child(t, "kernel", wire, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET})
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Log(strings.TrimSpace(out))
		})
	}
}

var (
	kernelIP = net.IPv4(10, 77, 0, 1).To4()
	portIP   = net.IPv4(10, 77, 0, 2).To4()
)

func ip(args string) error {
	out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %v: %s", args, err, out)
	}
	return nil
}

func kernelChild(wire string) error {
	runtime.LockOSThread()
	kind, name, _ := strings.Cut(wire, ":")
	peer := name // the kernel's end
	if kind != "tap" {
		peer = "v1"
		for _, c := range []string{"link add v0 type veth peer name v1", "link set v0 up", "link set v1 up"} {
			if err := ip(c); err != nil {
				return err
			}
		}
	}
	args, dev, err := Wire(wire, false)
	if err != nil {
		return err
	}
	if _, err := EalInit(append(testArgs(), args...)); err != nil {
		return err
	}
	if _, err := RegisterLcore(-1); err != nil {
		return err
	}
	pool, err := NewMempool("kernel", 4095, 0, -1, -1)
	if err != nil {
		return err
	}
	id, err := PortByName(dev)
	if err != nil {
		return err
	}
	p, err := ConfigurePort(id, PortConf{RxPool: pool, RxQueues: 1, TxQueues: 2, Offload: true, Promiscuous: true})
	if err != nil {
		return err
	}
	if largest := p.Info().MaxMTU; kind == "tap" {
		_, err := ConfigurePort(id, PortConf{RxPool: pool, MTU: largest + 1})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("range of 68 to %d", largest)) {
			return fmt.Errorf("an MTU above the largest: %v", err)
		}
	}
	if err := p.Start(); err != nil {
		return err
	}
	info := p.Info()
	fmt.Printf("%+v\n", info)
	l, err := p.NewLane(0, 1, pool)
	if err != nil {
		return err
	}
	for _, c := range []string{"link set " + peer + " up", "addr add 10.77.0.1/24 dev " + peer} {
		if err := ip(c); err != nil {
			return err
		}
	}
	done := make(chan error, 1)
	go func() { done <- kernelTalks() }()
	e := echo{l: l, mac: info.MAC, tx: info.TxOffload, seen: map[Flags]int{}}
	for {
		select {
		case err := <-done:
			stats, serr := p.Stats()
			fmt.Printf("%+v %v, flags seen %v, echoed %d, sent %d\n", stats, serr, e.seen, e.udp, l.TxSent)
			if err == nil {
				err = p.Close()
			}
			// net_af_xdp keeps what was in its fill ring when it is closed.
			if err == nil && pool.InUse() != 0 && kind != "af_xdp" {
				err = fmt.Errorf("%d buffers are still out of the pool", pool.InUse())
			}
			if err == nil {
				err = EalCleanup()
			}
			return err
		default:
			e.turn()
		}
	}
}

// kernelTalks sends datagrams by the kernel's stack and wants each back. It must run in the process's namespace, which
// all threads share here.
func kernelTalks() error {
	c, err := net.DialUDP("udp", &net.UDPAddr{IP: kernelIP}, &net.UDPAddr{IP: portIP, Port: 7})
	if err != nil {
		return err
	}
	buf := make([]byte, 2000)
	for i, n := range []int{1, 18, 100, 1000, 1472} {
		msg := bytes.Repeat([]byte{byte(i + 1)}, n)
		deadline := time.Now().Add(5 * time.Second)
		for {
			if _, err := c.Write(msg); err != nil {
				return err
			}
			_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
			m, err := c.Read(buf)
			if err == nil && bytes.Equal(buf[:m], msg) {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("no echo of %d bytes: %v", n, err)
			}
		}
	}
	return nil
}

// echo answers ARP requests and sends datagrams back to where they came from.
type echo struct {
	l    *Lane
	mac  [6]byte
	tx   Flags // checksums that the port fills in
	seen map[Flags]int
	udp  int
}

func (e *echo) turn() {
	l := e.l
	l.Exchange(OpYield | OpFree | OpRx)
	for i := range l.NRx {
		f := l.Rx[i]
		if e.answer(&f) {
			l.Queue(f)
		} else {
			l.Release(f.Handle)
		}
	}
	l.Exchange(OpTx)
}

func (e *echo) answer(f *Frame) bool {
	b := f.Bytes()
	if len(b) < 42 {
		return false
	}
	switch binary.BigEndian.Uint16(b[12:]) {
	case 0x0806:
		if binary.BigEndian.Uint16(b[20:]) != 1 || !bytes.Equal(b[38:42], portIP) {
			return false
		}
		b[21] = 2
		copy(b[32:42], b[22:32])
		copy(b[22:], e.mac[:])
		copy(b[28:], portIP)
		f.Flags = 0
	case 0x0800:
		if b[23] != 17 || !bytes.Equal(b[30:34], portIP) {
			return false
		}
		e.seen[f.Flags]++
		e.udp++
		e.answerUDP(f, b)
	default:
		return false
	}
	copy(b[:6], b[6:12])
	copy(b[6:12], e.mac[:])
	return true
}

// answerUDP turns a datagram round. Where the port fills in checksums, it has to: they are spoilt here on purpose.
func (e *echo) answerUDP(f *Frame, b []byte) {
	var src [6]byte
	copy(src[:4], b[26:30])
	copy(b[26:30], b[30:34])
	copy(b[30:34], src[:4])
	copy(src[:2], b[34:36])
	copy(b[34:36], b[36:38])
	copy(b[36:38], src[:2])
	f.Flags = 0
	if e.tx&TxIPSum != 0 {
		f.Flags |= TxIPSum
		b[24], b[25] = 0, 0
	}
	b[40], b[41] = 0, 0 // no checksum
	if e.tx&TxUDPSum != 0 {
		f.Flags |= TxUDPSum
		sum := 17 + uint32(binary.BigEndian.Uint16(b[38:]))
		for i := 26; i < 34; i += 2 {
			sum += uint32(binary.BigEndian.Uint16(b[i:]))
		}
		sum = sum>>16 + sum&0xffff
		binary.BigEndian.PutUint16(b[40:], uint16(sum>>16+sum))
	}
}

// net_tap takes a real-time signal, if there is one that nobody handles: in a program there is none, because Go handles
// them all, but in a C program that Go is a library of. Its handler must run on the signal stack.
func TestTapSignal(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: taps")
	}
	out, err := child(t, "tap signal", "", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET})
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func tapSignalChild(string) error {
	const sig = 50
	var act struct{ handler, flags, restorer, mask uintptr }
	sigaction := func(in, out unsafe.Pointer) {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, uintptr(in), uintptr(out), 8, 0, 0)
	}
	sigaction(unsafe.Pointer(&act), nil) // the default: nobody handles it
	args, _, err := Wire("tap:ndpip0", false)
	if err != nil {
		return err
	}
	if _, err := EalInit(append(testArgs(), args...)); err != nil {
		return err
	}
	sigaction(nil, unsafe.Pointer(&act))
	const onStack = 0x08000000
	return want(act.handler > 1 && act.flags&onStack != 0, "the handler of signal %d: %#x, flags %#x", sig, act.handler, act.flags)
}
