package tcp

import "ndpip/ring"

// A sender of tiny segments could fill the receive ring, and the pool behind it, with a fraction of the window that it
// was offered. So once the ring is half full, small payloads are gathered: copied, one behind the other, into a buffer
// of the stack's own. With a ring of one entry per 512 bytes of window, its second half holds the rest of the window:
// there each entry, or each two on the average, has more than 1024 bytes. So a large payload is copied as well if it fits
// behind what was gathered, or small and large ones by turns would need twice as many entries.
//
// The buffer is handed on when it is full, or when the application has read down to half the ring; the application
// tells the worker so if it finds staged set (Consumed).

// GatherMax is the largest payload that is always copied. Gathering buffers have twice its size, or more.
const GatherMax = 1024

// RingPerBytes is the window that one entry of the receive ring answers for.
const RingPerBytes = 512

func (c *Conn) pushRx(handle, addr uintptr, n uint32) {
	*c.rxAt(c.rxNext) = ring.Make(handle, addr, int(n))
	c.rxNext++
	c.pend |= PendRead
}

// inputCrowded takes n bytes of text when the ring is half full.
func (c *Conn) inputCrowded(s *Segment, n, used uint32) Verdict {
	if n > GatherMax && (c.stageLen == 0 || uint32(c.stageLen)+n > uint32(c.stageCap)) {
		// Data behind what is gathered: that goes first. The two do not fit one buffer, so each stands for half of one.
		if c.stageLen != 0 {
			if used > c.rxMask-1 {
				return Bad
			}
			c.pushStage()
		} else if used > c.rxMask {
			return Bad
		}
		c.pushRx(s.Handle, s.Addr, n)
		c.rcvNxt += Seq(n)
		return Kept
	}
	if uint32(c.stageLen)+n > uint32(c.stageCap) {
		if c.stageLen != 0 {
			if used > c.rxMask {
				return Bad
			}
			c.pushStage()
		}
		return NoStage
	}
	ring.Copy(c.stageAddr+uintptr(c.stageLen), s.Addr, int(n))
	c.stageLen += uint16(n)
	c.rcvNxt += Seq(n)
	c.pend |= PendRead
	return Gathered
}

func (c *Conn) pushStage() {
	c.pushRx(c.stageHandle, c.stageAddr, uint32(c.stageLen))
	c.stageHandle, c.stageAddr, c.stageLen, c.stageCap = 0, 0, 0, 0
	c.pend |= pendPublish
}

// SetStage gives the connection an empty gathering buffer of size bytes, at least GatherMax. It has none.
func (c *Conn) SetStage(handle, addr uintptr, size uint32) {
	c.stageHandle, c.stageAddr, c.stageCap = handle, addr, uint16(min(size, ring.MaxLen))
}

// TakeStage takes the gathering buffer away; 0: there is none.
func (c *Conn) TakeStage() (handle uintptr) {
	handle = c.stageHandle
	c.stageHandle, c.stageLen, c.stageCap = 0, 0, 0
	return handle
}

// publishStage hands the gathered bytes on if the application has made room, and else asks it to say so.
func (c *Conn) publishStage() {
	roomy := func() bool { return c.rxNext-uint32(c.usr.Load()) <= c.rxMask/2 }
	if !roomy() {
		c.staged.Store(1) // before the second look: either we see its room, or it sees staged
		if !roomy() {
			return
		}
	}
	c.pushStage()
}
