package ring

import (
	"math"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

func TestEntry(t *testing.T) {
	for _, addr := range []uintptr{0, 1, 0x7fff_ffff_ffff, 1<<48 - 1} {
		for _, n := range []int{0, 1, 1514, MaxLen} {
			e := Make(42, addr, n)
			if e.Handle != 42 || e.Addr() != addr || e.Len() != n {
				t.Errorf("Make(42, %#x, %d) holds %d, %#x, %d", addr, n, e.Handle, e.Addr(), e.Len())
			}
			if !Fits(addr) {
				t.Errorf("Fits(%#x) is false", addr)
			}
		}
	}
	for _, addr := range []uintptr{1 << 48, math.MaxUint64} {
		if Fits(addr) {
			t.Errorf("Fits(%#x) is true", addr)
		}
	}
}

func TestAt(t *testing.T) {
	var s Slab
	const n = 8
	base := s.Get(n)
	for i := uint32(math.MaxUint32 - 3); i != 4; i++ { // eight indices across the wrap
		*At(base, n-1, i) = Make(uintptr(i&(n-1)), 0x1000, int(i&0xff))
	}
	for i := range uint32(n) {
		if e := At(base, n-1, i+n*5); e.Handle != uintptr(i) {
			t.Errorf("entry %d holds handle %d", i, e.Handle)
		}
		if got := uintptr(i)*EntrySize + base; *At(got, 0, 7) != *At(base, n-1, i) {
			t.Errorf("entry %d is not at %#x", i, got)
		}
	}
	runtime.KeepAlive(&s)
}

func TestCopy(t *testing.T) {
	a, b := []byte("packet memory"), make([]byte, 13)
	at := func(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
	Copy(at(b), at(a)+7, 6)
	Copy(at(b)+6, at(a), 0)
	if string(b[:7]) != "memory\x00" {
		t.Errorf("%q", b)
	}
}

func TestSlabReuse(t *testing.T) {
	var s Slab
	a, b := s.Get(100), s.Get(128)
	if a%64 != 0 || b%64 != 0 || a == b {
		t.Fatalf("bases %#x and %#x", a, b)
	}
	if st := s.Stats(); st.InUse != 2*128*EntrySize || st.Held != chunkEntries*EntrySize {
		t.Errorf("two rings in use: %+v", st)
	}
	s.Put(a, 100)
	if c := s.Get(65); c != a {
		t.Errorf("got %#x, want the ring that came back, %#x", c, a)
	}
	s.Put(a, 65)
	s.Put(b, 128)
	if st := s.Stats(); st.InUse != 0 {
		t.Errorf("all came back: %+v", st)
	}
	mustPanic(t, "Put of more than was given", func() { s.Put(a, 128) })
	mustPanic(t, "Get(0)", func() { s.Get(0) })
	mustPanic(t, "Get of too many", func() { s.Get(MaxEntries + 1) })
}

// Rings of all sizes never overlap, and the memory of a size is used again instead of growing.
func TestSlabModel(t *testing.T) {
	var s Slab
	type held struct {
		base    uintptr
		entries uint32
		mark    uintptr
	}
	var live []held
	rnd := rand.New(rand.NewPCG(7, 8))
	check := func(h held) {
		for i := range h.entries {
			if At(h.base, h.entries-1, i).Handle != h.mark {
				t.Fatalf("ring %#x of %d: entry %d was overwritten", h.base, h.entries, i)
			}
		}
	}
	var want uint64
	for mark := range uintptr(3000) {
		if len(live) > 0 && rnd.IntN(2) == 0 {
			i := rnd.IntN(len(live))
			check(live[i])
			s.Put(live[i].base, live[i].entries)
			want -= uint64(live[i].entries) * EntrySize
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			continue
		}
		h := held{entries: MinEntries << rnd.IntN(9), mark: mark + 1}
		if mark == 1500 {
			h.entries = 4 * chunkEntries
		}
		h.base = s.Get(h.entries)
		for i := range h.entries {
			At(h.base, h.entries-1, i).Handle = h.mark
		}
		want += uint64(h.entries) * EntrySize
		live = append(live, h)
		if mark%500 == 0 {
			runtime.GC()
		}
	}
	for _, h := range live {
		check(h)
	}
	if st := s.Stats(); st.InUse != want || st.Held < want {
		t.Errorf("%+v, want %d bytes in use", st, want)
	}

	held0 := s.Stats().Held
	for _, h := range live {
		s.Put(h.base, h.entries)
	}
	for i := range live {
		live[i].base = s.Get(live[i].entries)
	}
	if got := s.Stats().Held; got != held0 {
		t.Errorf("the same rings once more: %d bytes held, before %d", got, held0)
	}
}

func TestSlabTwoThreads(t *testing.T) {
	var s Slab
	var wg sync.WaitGroup
	for g := range uintptr(2) {
		wg.Go(func() {
			for i := range 2000 {
				n := uint32(MinEntries) << (i % 4)
				base := s.Get(n)
				for k := range n {
					At(base, n-1, k).Handle = g
				}
				for k := range n {
					if At(base, n-1, k).Handle != g {
						t.Errorf("ring %#x is in use twice", base)
						return
					}
				}
				s.Put(base, n)
			}
		})
	}
	wg.Wait()
	if st := s.Stats(); st.InUse != 0 || st.Held != chunkEntries*EntrySize {
		t.Errorf("at the end: %+v", st)
	}
}

// These are called per segment; if the compiler stops inlining one of them, it should be seen here.
func TestInlining(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the compiler")
	}
	out, err := exec.Command("go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	can := map[string]bool{}
	for _, m := range regexp.MustCompile(`can inline (\S+)`).FindAllStringSubmatch(string(out), -1) {
		can[m[1]] = true
	}
	for _, f := range strings.Fields("Make Fits Entry.Addr Entry.Len At Copy") {
		if !can[f] {
			t.Errorf("%s is not inlined any more", f)
		}
	}
}

func BenchmarkSlab(b *testing.B) {
	var s Slab
	for b.Loop() {
		s.Put(s.Get(512), 512)
	}
}
