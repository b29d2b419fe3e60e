package link

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ndpip/dpdk"
	"ndpip/ring"
	"ndpip/stack/pcap"
	"ndpip/stack/wire"
)

func TestPcap(t *testing.T) {
	var file bytes.Buffer
	tap := pcap.New(&file)
	l := New(Config{AB: Path{Loss: 1}, BA: Path{Delay: 1500}})
	a, peer := l.A.NewLane(true), l.B.Peer()
	l.A.Tap(tap)
	sendOn(t, a, 0, []byte("lost on the way"))
	peer.Inject([]byte("received"))
	receiveOn(a)
	l.Advance(2 * time.Microsecond)
	receiveOn(a)
	l.A.Tap(nil)
	sendOn(t, a, 0, []byte("not recorded"))
	if tap.Err() != nil {
		t.Error(tap.Err())
	}
	want := []pcap.Record{{At: start, Frame: []byte("lost on the way")}, {At: start + 2*time.Microsecond, Frame: []byte("received")}}
	same := func(got []pcap.Record) bool {
		ok := len(got) == len(want)
		for i := range got {
			ok = ok && got[i].At == want[i].At && bytes.Equal(got[i].Frame, want[i].Frame)
		}
		return ok
	}
	b := file.Bytes()
	if got, err := pcap.Read(bytes.NewReader(b)); err != nil || !same(got) {
		t.Errorf("read %v, %v", got, err)
	}
	if h := "4d3cb2a1020004000000000000000000000004000100000001000000000000000f0000000f000000"; !strings.HasPrefix(hex.EncodeToString(b), h) {
		t.Errorf("the file starts with % x", b[:40])
	}

	// The other byte order, and times in microseconds.
	big := binary.BigEndian.AppendUint32(nil, 0xa1b2c3d4)
	big = append(big, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1)
	big = append(big, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 2, 'h', 'i')
	got, err := pcap.Read(bytes.NewReader(big))
	if err != nil || len(got) != 1 || got[0].At != 7*time.Second+9*time.Microsecond || string(got[0].Frame) != "hi" {
		t.Errorf("read %v, %v", got, err)
	}

	for text, bad := range map[string][]byte{
		"header is cut":    b[:23],
		"starts with":      append([]byte("GIF8"), b[4:]...),
		"link type 113":    append(append(bytes.Clone(b[:20]), 113, 0, 0, 0), b[24:]...),
		"record 0 is cut":  b[:39],
		"record 1 is cut":  b[:len(b)-1],
		"after its second": append(append(bytes.Clone(b[:28]), 0, 0xca, 0x9a, 0x3b), b[32:]...),
		"record 0 has":     append(append(bytes.Clone(b[:32]), 0xff, 0xff, 0xff, 0xff), b[36:]...),
	} {
		if _, err := pcap.Read(bytes.NewReader(bad)); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want an error about %q", err, text)
		}
	}
	full := pcap.New(failing{})
	full.Write(0, []byte("x"))
	if full.Err() == nil {
		t.Error("an error in writing is not kept")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func FuzzReadPcap(f *testing.F) {
	var file bytes.Buffer
	p := pcap.New(&file)
	p.Write(time.Second, []byte("frame"))
	f.Add(file.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		records, err := pcap.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		// What was read can be written, and reads the same.
		var again bytes.Buffer
		w := pcap.New(&again)
		for _, r := range records {
			w.Write(r.At, r.Frame)
		}
		got, err := pcap.Read(&again)
		if err != nil || len(got) != len(records) {
			t.Fatalf("%d records, %v, want %d", len(got), err, len(records))
		}
		for i, r := range got {
			if r.At != records[i].At || !bytes.Equal(r.Frame, records[i].Frame) {
				t.Fatalf("record %d is %v, want %v", i, r, records[i])
			}
		}
	})
}

const ipA, ipB = 0x0a000001, 0x0a000002

// segment is a TCP or UDP packet with data, its checksums left as a port that does them wants them.
func segment(proto uint8, data string) []byte {
	l4 := wire.TCPLen
	if proto == wire.ProtoUDP {
		l4 = wire.UDPLen
	}
	b := make([]byte, wire.EthLen+wire.IPv4Len+l4+len(data))
	n := wire.PutEthernet(b, wire.MAC{2}, wire.MAC{4}, wire.TypeIPv4)
	wire.PutIPv4(b[n:], ipA, ipB, proto, len(b)-n, 0)
	b[n+ipCheck], b[n+ipCheck+1] = 0, 0
	n += wire.IPv4Len
	copy(b[n+l4:], data)
	if proto == wire.ProtoUDP {
		wire.PutUDP(b[n:], 1, 2, len(b)-n, 0)
		wire.SetPartialCheck(b[n:], udpCheck, ipA, ipB, proto)
	} else {
		wire.PutTCP(b[n:], 1, 2, wire.TCPFields{Seq: 3}, 0)
		wire.SetPartialCheck(b[n:], tcpCheck, ipA, ipB, proto)
	}
	return b
}

func TestChecksumOffload(t *testing.T) {
	const tcp, udp = dpdk.TxIPSum | dpdk.TxTCPSum, dpdk.TxIPSum | dpdk.TxUDPSum
	const good, l4Bad = dpdk.RxIPGood | dpdk.RxL4Good, dpdk.RxIPGood | dpdk.RxL4Bad
	flip := func(at int) func([]byte) Verdict {
		return func(b []byte) Verdict { b[(at+len(b))%len(b)] ^= 1; return Pass }
	}
	noSum := func(b []byte) Verdict { b[40], b[41] = 0, 0; return Pass }
	for _, c := range []struct {
		frame  []byte
		flags  dpdk.Flags
		filter func([]byte) Verdict
		want   dpdk.Flags
	}{
		{segment(wire.ProtoTCP, "odd"), tcp, nil, good},
		{segment(wire.ProtoTCP, ""), tcp, nil, good},
		{segment(wire.ProtoUDP, "even"), udp, nil, good},
		{segment(wire.ProtoTCP, "odd"), tcp, flip(-1), l4Bad},
		{segment(wire.ProtoUDP, "even"), udp, flip(-1), l4Bad},
		{segment(wire.ProtoUDP, "even"), udp, noSum, dpdk.RxIPGood},
		{segment(wire.ProtoTCP, "odd"), tcp, flip(22), dpdk.RxIPBad | dpdk.RxL4Good}, // TTL
		{segment(wire.ProtoTCP, "odd"), dpdk.TxIPSum, nil, l4Bad},
		{segment(wire.ProtoTCP, "odd"), 0, nil, dpdk.RxIPBad | dpdk.RxL4Bad},
		{segment(wire.ProtoTCP, "odd"), tcp, flip(12), 0},              // not IPv4
		{segment(wire.ProtoTCP, "odd"), tcp, flip(14), 0},              // IP options
		{segment(wire.ProtoUDP, "even"), udp, flip(39), dpdk.RxIPGood}, // a length that cannot be
	} {
		l := New(Config{A: Port{TxChecksum: true}, B: Port{RxChecksum: true, Pad: 80}, AB: Path{Filter: c.filter}})
		a, b := l.A.NewLane(true), l.B.NewLane(true)
		sendOn(t, a, c.flags, c.frame)
		b.Exchange(dpdk.OpRx)
		if got := b.Rx[0].Flags; b.NRx != 1 || got != c.want {
			t.Errorf("flags %#x: received with %#x, want %#x", c.flags, got, c.want)
		}
	}

	// A datagram whose checksum comes out as 0.
	zero := segment(wire.ProtoUDP, "\x00\x00")
	binary.BigEndian.PutUint16(zero[42:], ^wire.Fold(wire.Sum(zero[34:], 0)))
	complete(zero, dpdk.TxUDPSum)
	if zero[40] != 0xff || zero[41] != 0xff {
		t.Errorf("checksum %x, want ffff", zero[40:42])
	}

	for text, f := range map[string]func(){
		"not IPv4":       func() { complete(make([]byte, 60), tcp) },
		"bad IPv4":       func() { complete(segment(wire.ProtoTCP, "")[:40], tcp) },
		"has to be 0":    func() { b := segment(wire.ProtoTCP, ""); b[24] = 1; complete(b, tcp) },
		"pseudo-header":  func() { b := segment(wire.ProtoTCP, ""); b[50] ^= 1; complete(b, tcp) },
		"both":           func() { complete(segment(wire.ProtoTCP, ""), tcp|udp) },
		"of protocol 17": func() { complete(segment(wire.ProtoTCP, ""), udp) },
	} {
		wantPanic(t, text, f)
	}
}

// Two ends with two threads each, as stacks with a worker have them: B's worker receives and hands the buffers to its
// application, which sends them back from a buffer of its own; A counts what returns.
func TestThreads(t *testing.T) {
	total := 20_000
	if testing.Short() {
		total = 4000
	}
	l := New(Config{Wall: true, AB: Path{Delay: time.Microsecond}, A: Port{Hold: true}})
	var stop atomic.Bool
	done := make(chan struct{}, 3)
	var acked atomic.Int64
	go func() { // A's application
		lane := l.A.NewLane(false)
		lane.Want = 8
		for n := 0; n < total; {
			lane.Exchange(dpdk.OpYield | dpdk.OpStock | dpdk.OpFree)
			for ; n < total && n < int(acked.Load())+200; n++ {
				f, ok := lane.Take()
				if !ok {
					break
				}
				f.Len = 60
				binary.LittleEndian.PutUint64(f.Bytes(), uint64(n))
				f.Flags = dpdk.TxRetain * dpdk.Flags(n&1)
				lane.Queue(f)
				if n&1 != 0 {
					lane.Release(f.Handle) // takes effect with OpFree, after the frame has been sent
				}
			}
			lane.Exchange(dpdk.OpTx)
		}
		lane.Exchange(dpdk.OpFree)
		l.A.FreeLane(lane)
		done <- struct{}{}
	}()
	frames := ring.New[dpdk.Frame](256)
	back := ring.New[dpdk.Handle](256)
	go func() { // B's worker
		lane := l.B.NewLane(true)
		for !stop.Load() || back.Len() > 0 {
			lane.Exchange(dpdk.OpYield | dpdk.OpFree | dpdk.OpRx)
			for i := range lane.Rx[:lane.NRx] {
				for !frames.Push(lane.Rx[i]) {
					runtime.Gosched()
				}
			}
			for h, ok := back.Pop(); ok; h, ok = back.Pop() {
				lane.Release(h)
			}
		}
		l.B.FreeLane(lane)
		done <- struct{}{}
	}()
	go func() { // B's application
		lane := l.B.NewLane(false)
		lane.Want = 8
		for n := 0; n < total; {
			lane.Exchange(dpdk.OpYield | dpdk.OpStock | dpdk.OpTx)
			for lane.NStock > 0 {
				in, ok := frames.Pop()
				if !ok {
					break
				}
				out, _ := lane.Take()
				out.Len = uint32(copy(out.Bytes(), in.Bytes()))
				lane.Queue(out)
				for !back.Push(in.Handle) {
					runtime.Gosched()
				}
				n++
			}
		}
		lane.Exchange(dpdk.OpTx)
		l.B.FreeLane(lane)
		done <- struct{}{}
	}()
	lane := l.A.NewLane(true) // A's worker
	deadline := time.Now().Add(30 * time.Second)
	for n := 0; n < total; {
		lane.Exchange(dpdk.OpYield | dpdk.OpFree | dpdk.OpRx)
		for i := range lane.Rx[:lane.NRx] {
			if got := binary.LittleEndian.Uint64(lane.Rx[i].Bytes()); got != uint64(n) {
				t.Fatalf("frame %d came back as %d", n, got)
			}
			lane.Release(lane.Rx[i].Handle)
			n++
		}
		acked.Store(int64(n))
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d came back", n, total)
		}
	}
	stop.Store(true)
	for range 3 {
		<-done
	}
	l.A.FreeLane(lane)
	if l.A.InUse() != 0 || l.B.InUse() != 0 {
		t.Errorf("%d and %d buffers in use at the end", l.A.InUse(), l.B.InUse())
	}
}
