package stack

import (
	"math/bits"

	"ndpip/dpdk"
	"ndpip/ring"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// Receive coalescing: bursts come in runs of segments of one connection, and what the headers of a run have in common was
// checked with its first segment. SoftLRO merges such segments before the stack sees them; here they are handed on as they
// lie, neighbouring entries of the receive ring that are published at once, so that nothing is copied and nothing waits for
// a segment to come. There are three ways in:
//
//   - frame (input.go) takes a frame apart field by field: the first of a connection in a burst;
//   - run takes the plain next pieces that follow, over the heads of other frames: each of their headers is known
//     beforehand, word by word, and the connection is written once for all of them;
//   - next takes what is of the same flow and is not plain: the rest of its headers is looked at.

// flow is what the headers of the last segment's connection have in common, in five words.
type flow [5]uint64

// What does not count: the total length and the identification, DF and the time to live; the header checksum; the
// sequence number.
const (
	flowMask2 = 0xff00_ffbf_0000_0000
	flowMask3 = 0xffff_ffff_ffff_0000
	flowMask4 = 0x0000_ffff_ffff_ffff
)

func (p *flow) set(f *dpdk.Frame) {
	w := wordsAt(f.Addr)
	p[0], p[1], p[2], p[3], p[4] = w[0], w[1], w[2]&flowMask2, w[3]&flowMask3, w[4]&flowMask4
}

// is says whether a frame of at least hdrLen bytes belongs to the flow. The ports come first: that is where the frames of
// many connections differ.
func (p *flow) is(f *dpdk.Frame) bool {
	w := wordsAt(f.Addr)
	return p.ports(f) &&
		(w[0]^p[0])|(w[1]^p[1])|(w[2]&flowMask2^p[2])|(w[3]&flowMask3^p[3]) == 0 &&
		f.Flags&(dpdk.RxChained|dpdk.RxIPBad) == 0
}

// ports says whether a frame of at least hdrLen bytes has the flow's ports, where it has them.
func (p *flow) ports(f *dpdk.Frame) bool { return wordsAt(f.Addr)[4]&flowMask4 == p[4] }

// What word 5 holds in a segment of the fast path: a header without options, ACK, and PSH or not.
const (
	plainMask = (0xff | uint64(^tcp.PSH)<<8) << 48
	plainBits = (uint64(tcpLen/4<<4) | uint64(tcp.ACK)<<8) << 48
	pushBit   = uint64(tcp.PSH) << 56
)

// next is a frame of the last segment's flow that run did not take: Ethernet type, version, header length, fragment bits,
// protocol, addresses and ports are known to be good. It may bring news, options or something bad.
func (s *Stack) next(f *dpdk.Frame) (kept bool) {
	w := wordsAt(f.Addr)
	n := uint32(bits.ReverseBytes16(uint16(w[2])))
	if n < ipLen+tcpLen || ethLen+n > f.Len || w[5]&plainMask != plainBits || s.rxSum && !s.sumsOK(f, int(n)) {
		return s.frame(f) // which counts what is wrong
	}
	b := f.Bytes()
	l4 := b[ethLen+ipLen : ethLen+n]
	s.read(f, (*wire.TCP)(l4), len(l4), tcpLen)
	if counting {
		s.count.RxBytes += uint64(f.Len)
		s.count.RxSegments++
		if s.seg.Len == 0 {
			s.count.RxAcks++
		}
	}
	return s.feed(f, b, (*wire.IPv4)(b[ethLen:]), l4, s.lastKey, s.last)
}

// run takes those of the frames (at least one) that are the plain next pieces of the last segment's connection: of its flow,
// nothing but ACK and PSH, the sequence number that follows, text within the window, and neither ACK nor window is news.
// It ends at a frame with the flow's ports that is something else, which is next's. Frames with other ports are stepped over,
// as long as they are not more than those it takes; they come behind the run then, in their order. It gives what is left.
func (s *Stack) run(frames []dpdk.Frame) (left []dpdk.Frame) {
	if f := &frames[0]; f.Len < hdrLen || !s.flow.ports(f) {
		return frames
	}
	r := &s.ahead
	if !s.sure {
		if s.sure = s.last.Run(r); !s.sure {
			return frames
		}
	}
	most := min(int(r.Slots), s.room-s.tight)
	p0, p1, p2, p3, p4 := s.flow[0], s.flow[1], s.flow[2], s.flow[3], s.flow[4]
	tail := uint64(bits.ReverseBytes32(uint32(r.Ack)))<<16 | plainBits
	wnd := bits.ReverseBytes16(r.Wnd)
	seq, room := r.Seq, r.Room
	base, mask, index := r.Base, r.Mask, r.Index
	size := uint64(0)
	i, n, others := 0, 0, 0
	for ; i < len(frames) && n < most; i++ {
		f := &frames[i]
		if f.Len < hdrLen || f.Flags&(dpdk.RxChained|dpdk.RxIPBad) != 0 {
			break
		}
		w := wordsAt(f.Addr)
		if (w[4]^p4)&flowMask4 != 0 {
			if others >= n {
				break
			}
			frames[others] = *f
			others++
			continue
		}
		be := uint64(bits.ReverseBytes32(uint32(seq)))
		if (w[0]^p0)|(w[1]^p1)|(w[2]&flowMask2^p2)|(w[3]&flowMask3^p3)|(w[4]^(p4|be<<48))|(w[5]&^pushBit^(tail|be>>16)) != 0 ||
			*(*uint16)(dpdk.Pointer(f.Addr + 48)) != wnd {
			break
		}
		ip := uint32(bits.ReverseBytes16(uint16(w[2])))
		text := ip - (ipLen + tcpLen)
		if text-1 >= room || ethLen+ip > f.Len { // no text, or too much; or a header that says less than it takes
			break
		}
		if s.rxSum && !s.sumsOK(f, int(ip)) {
			break
		}
		*ring.At(base, mask, index+uint32(n)) = ring.Make(uintptr(f.Handle), f.Addr+hdrLen, int(text))
		n++
		seq += tcp.Seq(text)
		room -= text
		size += uint64(f.Len)
	}
	if n == 0 {
		return frames
	}
	r.Seq, r.Room = seq, room
	r.Slots -= uint32(n)
	r.Index += uint32(n)
	c := s.last
	c.Ran(r)
	s.rxHeld += uint64(n)
	s.room -= n
	if counting {
		s.count.RxBytes += size
		s.count.RxSegments += uint64(n)
		s.count.RxData += uint64(n)
		s.count.Runs++
		s.count.Coalesced += uint64(n)
	}
	if c.Linked&inBurst == 0 {
		if c.KeepIdle != 0 {
			c.Heard(s.now)
		}
		s.touch(c)
	}
	copy(frames[i-others:], frames[:others])
	return frames[i-others:]
}
