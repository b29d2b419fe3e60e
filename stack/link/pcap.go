package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// The format of a capture file (https://ietf-opsawg-wg.github.io/draft-ietf-opsawg-pcap), with times in nanoseconds.
// Files are written in little-endian order and read in either.
const (
	pcapNano     = 0xa1b23c4d
	pcapMicro    = 0xa1b2c3d4
	pcapEthernet = 1
	pcapSnapLen  = 1 << 18
)

// Pcap writes frames in the format that tcpdump and Wireshark read. It may be used from several threads, also as the
// tap of several ends.
type Pcap struct {
	mu  sync.Mutex
	w   io.Writer
	err error
	buf []byte
}

// NewPcap starts a capture: it writes the file's header.
func NewPcap(w io.Writer) *Pcap {
	p := &Pcap{w: w}
	b := binary.LittleEndian.AppendUint32(nil, pcapNano)
	b = append(b, 2, 0, 4, 0) // version 2.4
	b = append(b, make([]byte, 8)...)
	b = binary.LittleEndian.AppendUint32(b, pcapSnapLen)
	b = binary.LittleEndian.AppendUint32(b, pcapEthernet)
	_, p.err = w.Write(b)
	return p
}

// Write adds a frame that was seen at a time of the link's clock. After an error it does nothing more, see Err.
func (p *Pcap) Write(at time.Duration, frame []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	n := min(len(frame), pcapSnapLen)
	b := binary.LittleEndian.AppendUint32(p.buf[:0], uint32(at/time.Second))
	b = binary.LittleEndian.AppendUint32(b, uint32(at%time.Second))
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frame)))
	p.buf = append(b, frame[:n]...)
	_, p.err = p.w.Write(p.buf)
}

// Err is the first error that the writer gave, or nil.
func (p *Pcap) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Record is a frame of a capture.
type Record struct {
	At    time.Duration
	Frame []byte
}

// ReadPcap reads a capture of Ethernet frames, to be injected again. With an error it gives the records before it.
func ReadPcap(r io.Reader) ([]Record, error) {
	var h [24]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, fmt.Errorf("not a capture file: its header is cut short: %w", err)
	}
	var order binary.ByteOrder = binary.LittleEndian
	if m := binary.BigEndian.Uint32(h[:]); m == pcapNano || m == pcapMicro {
		order = binary.BigEndian
	}
	unit := time.Nanosecond
	switch m := order.Uint32(h[:]); m {
	case pcapNano:
	case pcapMicro:
		unit = time.Microsecond
	default:
		return nil, fmt.Errorf("not a capture file: it starts with %#08x, not with %#08x or %#08x", m, pcapNano, pcapMicro)
	}
	if t := order.Uint32(h[20:]) & 0xffff; t != pcapEthernet {
		return nil, fmt.Errorf("a capture of link type %d: only Ethernet (%d) can be read", t, pcapEthernet)
	}
	var records []Record
	for {
		var h [16]byte
		if _, err := io.ReadFull(r, h[:]); errors.Is(err, io.EOF) {
			return records, nil
		} else if err != nil {
			return records, fmt.Errorf("record %d is cut short: %w", len(records), err)
		}
		at := time.Duration(order.Uint32(h[4:])) * unit
		if at >= time.Second {
			return records, fmt.Errorf("record %d is %v after its second: less than 1s can be", len(records), at)
		}
		at += time.Duration(order.Uint32(h[:])) * time.Second
		n := order.Uint32(h[8:])
		if n > pcapSnapLen {
			return records, fmt.Errorf("record %d has %d bytes: at most %d can be", len(records), n, pcapSnapLen)
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			return records, fmt.Errorf("record %d is cut short: %w", len(records), err)
		}
		records = append(records, Record{at, b})
	}
}
