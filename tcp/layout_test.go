package tcp

import (
	"testing"
	"unsafe"
)

// TestLayout pins the cache lines of a connection: each has one writer.
func TestLayout(t *testing.T) {
	var c Conn
	for _, f := range []struct {
		name   string
		offset uintptr
		line   uintptr
	}{
		{"Hdr", unsafe.Offsetof(c.Hdr), 0}, {"Stream", unsafe.Offsetof(c.Stream), 0},
		{"snd", unsafe.Offsetof(c.snd), 1}, {"txBase", unsafe.Offsetof(c.txBase), 1},
		{"edge", unsafe.Offsetof(c.edge), 2}, {"staged", unsafe.Offsetof(c.staged), 2},
		{"sndUna", unsafe.Offsetof(c.sndUna), 3},
	} {
		if f.offset/64 != f.line {
			t.Errorf("%s lies in line %d, not %d (offset %d)", f.name, f.offset/64, f.line, f.offset)
		}
	}
	if n := unsafe.Sizeof(c); n%64 != 0 {
		t.Errorf("a connection takes %d bytes, not a multiple of 64", n)
	}
}
