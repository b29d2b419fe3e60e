// Package pcap writes and reads captures of Ethernet frames in the format that tcpdump and Wireshark share.
package pcap

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
	nano     = 0xa1b23c4d
	micro    = 0xa1b2c3d4
	ethernet = 1

	// SnapLen is the most that is kept of a frame.
	SnapLen = 1 << 18
)

// Header is what a file begins with.
func Header() []byte {
	b := binary.LittleEndian.AppendUint32(nil, nano)
	b = append(b, 2, 0, 4, 0) // version 2.4
	b = append(b, make([]byte, 8)...)
	b = binary.LittleEndian.AppendUint32(b, SnapLen)
	return binary.LittleEndian.AppendUint32(b, ethernet)
}

// Append appends the record of a frame of which at most snap bytes are kept. at is the time since 1970, or on whatever
// clock.
func Append(b []byte, at time.Duration, frame []byte, snap int) []byte {
	n := min(len(frame), snap)
	b = binary.LittleEndian.AppendUint32(b, uint32(at/time.Second))
	b = binary.LittleEndian.AppendUint32(b, uint32(at%time.Second))
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frame)))
	return append(b, frame[:n]...)
}

// RecordLen is how much longer a record is than what it keeps of the frame.
const RecordLen = 16

// Writer writes frames. It may be used from several threads.
type Writer struct {
	mu  sync.Mutex
	w   io.Writer
	err error
	buf []byte
}

// New starts a capture: it writes the file's header.
func New(w io.Writer) *Writer {
	p := &Writer{w: w}
	_, p.err = w.Write(Header())
	return p
}

// Write adds a frame that was seen at a time. After an error it does nothing more, see Err.
func (p *Writer) Write(at time.Duration, frame []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	p.buf = Append(p.buf[:0], at, frame, SnapLen)
	_, p.err = p.w.Write(p.buf)
}

// Err is the first error that the writer gave, or nil.
func (p *Writer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Record is a frame of a capture.
type Record struct {
	At    time.Duration
	Frame []byte
}

// Read reads a capture of Ethernet frames, to be injected again. With an error it gives the records before it.
func Read(r io.Reader) ([]Record, error) {
	var h [24]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, fmt.Errorf("not a capture file: its header is cut short: %w", err)
	}
	var order binary.ByteOrder = binary.LittleEndian
	if m := binary.BigEndian.Uint32(h[:]); m == nano || m == micro {
		order = binary.BigEndian
	}
	unit := time.Nanosecond
	switch m := order.Uint32(h[:]); m {
	case nano:
	case micro:
		unit = time.Microsecond
	default:
		return nil, fmt.Errorf("not a capture file: it starts with %#08x, not with %#08x or %#08x", m, nano, micro)
	}
	if t := order.Uint32(h[20:]) & 0xffff; t != ethernet {
		return nil, fmt.Errorf("a capture of link type %d: only Ethernet (%d) can be read", t, ethernet)
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
		if n > SnapLen {
			return records, fmt.Errorf("record %d has %d bytes: at most %d can be", len(records), n, SnapLen)
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			return records, fmt.Errorf("record %d is cut short: %w", len(records), err)
		}
		records = append(records, Record{at, b})
	}
}
