package api

import (
	"encoding/binary"
	"io"
	"slices"
	"sync"
	"time"

	"ndpip/dpdk"
	"ndpip/stack/pcap"
	"ndpip/stack/wire"
)

// CaptureConfig says what a capture keeps.
type CaptureConfig struct {
	// Filter chooses frames, such as "host 10.0.0.2 port 80 flags syn,fin,rst"; "": all.
	Filter string
	Snap   int   // bytes that are kept of a frame; 0: all
	Bytes  int64 // the capture ends when it would become longer than this; 0: no bound
}

// Capture writes what passes between hosts and their ports, as tcpdump and Wireshark read it.
//
// While it runs, every burst passes a lock and is copied, which costs some hundred ns a frame; a goroutine writes. When the
// writer is too slow, frames are left out and counted. Without a capture it costs one comparison per burst.
type Capture struct {
	f     filter
	snap  int
	bytes int64
	hosts []*Host
	w     io.Writer
	more  chan struct{} // there is something to write
	ended chan struct{} // the goroutine has
	once  sync.Once
	quit  chan struct{}

	mu    sync.Mutex // for the length of a burst's copying, and of swapping the buffers
	buf   []byte
	stats CaptureStats
	over  bool // bytes are reached, or the writer has failed
	err   error
}

// CaptureStats are what a capture has kept, and what it would have kept had the writer been faster.
type CaptureStats struct {
	Frames, Lost uint64
	Bytes        int64
	Full         bool // the bound of its length has ended it
}

const captureBuf = 4 << 20 // what may wait for the writer

// Capture writes the host's frames to w, from now on until Stop (of the capture, or of the host).
func (h *Host) Capture(w io.Writer, c CaptureConfig) (*Capture, error) {
	return startCapture(w, c, []*Host{h})
}

func startCapture(w io.Writer, c CaptureConfig, of []*Host) (*Capture, error) {
	f, err := parseFilter(c.Filter)
	if err != nil {
		return nil, &ConfigError{"Filter", err.Error()}
	}
	if c.Snap == 0 {
		c.Snap = pcap.SnapLen
	}
	if c.Snap < 14 || c.Bytes < 0 {
		return nil, &ConfigError{"Snap", "want at least the 14 bytes of an Ethernet header, and a bound of the length that is not negative"}
	}
	p := &Capture{f: f, snap: min(c.Snap, pcap.SnapLen), bytes: c.Bytes, hosts: of, w: w, more: make(chan struct{}, 1), ended: make(chan struct{}),
		quit: make(chan struct{}), buf: append(make([]byte, 0, captureBuf), pcap.Header()...)}
	p.stats.Bytes = int64(len(p.buf))
	go p.write()
	for _, h := range of {
		h.tapping(func(all []*Capture) []*Capture { return append(all, p) })
	}
	return p, nil
}

// Stop ends the capture; what was seen until now is written. It may be called more than once.
func (p *Capture) Stop() (CaptureStats, error) {
	p.once.Do(func() {
		for _, h := range p.hosts {
			h.tapping(func(all []*Capture) []*Capture {
				return slices.DeleteFunc(all, func(o *Capture) bool { return o == p })
			})
		}
		close(p.quit)
	})
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats, p.err
}

// tapping changes the captures of a host.
func (h *Host) tapping(change func([]*Capture) []*Capture) {
	h.tapMu.Lock()
	defer h.tapMu.Unlock()
	h.taps = change(slices.Clone(h.taps))
	if len(h.taps) == 0 {
		h.st.SetTap(nil)
		return
	}
	taps := h.taps // never changed: the next change makes another
	h.st.SetTap(func(frames []dpdk.Frame, sent bool) {
		for _, p := range taps {
			p.see(frames, sent)
		}
	})
}

// endCaptures stops all captures of a host that stops.
func (h *Host) endCaptures() {
	h.tapMu.Lock()
	taps := h.taps
	h.tapMu.Unlock()
	for _, p := range taps {
		_, _ = p.Stop() // who has started it asks again
	}
}

// see takes a burst. It runs on the threads of the stack.
func (p *Capture) see(frames []dpdk.Frame, sent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Duration(time.Now().UnixNano())
	for i := range frames {
		b := frames[i].Bytes()
		if p.over || !p.f.frame(b) {
			continue
		}
		n := pcap.RecordLen + min(len(b), p.snap)
		switch {
		case p.bytes > 0 && p.stats.Bytes+int64(n) > p.bytes:
			p.over, p.stats.Full = true, true
			return
		case len(p.buf)+n > cap(p.buf):
			p.stats.Lost++
			continue
		}
		p.buf = pcap.Append(p.buf, now, b, p.snap)
		if sent {
			fillSums(p.buf[len(p.buf)-n+pcap.RecordLen:], b, frames[i].Flags)
		}
		p.stats.Frames++
		p.stats.Bytes += int64(n)
	}
	if len(p.buf) > 0 {
		select {
		case p.more <- struct{}{}:
		default:
		}
	}
}

// fillSums fills in the TCP or UDP checksum that is left to the port, in a copy of the frame that may be cut short.
func fillSums(to, b []byte, flags dpdk.Flags) {
	const eth, ip = 14, 20
	at := eth + ip + 16
	if flags&dpdk.TxUDPSum != 0 {
		at = eth + ip + 6
	} else if flags&dpdk.TxTCPSum == 0 {
		return
	}
	if len(to) < at+2 {
		return
	}
	h := (*wire.IPv4)(b[eth:])
	l4 := b[eth+ip : eth+h.Len()]
	// The field holds the sum of the pseudo-header already.
	sum := ^wire.Fold(wire.Sum(l4, 0))
	if sum == 0 && flags&dpdk.TxUDPSum != 0 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(to[at:], sum)
}

// write hands what was taken to the writer, which may be slow.
func (p *Capture) write() {
	defer close(p.ended)
	spare := make([]byte, 0, captureBuf)
	for last := false; !last; {
		select {
		case <-p.more:
		case <-p.quit:
			last = true
		}
		p.mu.Lock()
		spare, p.buf = p.buf, spare[:0]
		p.mu.Unlock()
		if len(spare) == 0 {
			continue
		}
		if _, err := p.w.Write(spare); err != nil {
			p.mu.Lock()
			if p.err == nil {
				p.err, p.over = err, true
			}
			p.mu.Unlock()
		}
	}
}
