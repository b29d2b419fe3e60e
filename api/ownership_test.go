package api

import (
	"testing"

	"golang.org/x/sys/unix"

	"ndpip/stack/link"
)

// A3: buffers that are freed twice, sent by who does not own them, or used after they were sent. Each is an error, and
// no buffer is lost by it, nor given back twice: the port in memory panics at that, and counts when the hosts stop.
func TestA3(t *testing.T) {
	a, b := linkHosts(t, Config{}, link.Config{})
	ca, cb := dial(t, a, b, unix.SOCK_NONBLOCK)
	alloc := func(n int, text string) []Buf {
		t.Helper()
		bufs := make([]Buf, n)
		if k, err := a.Alloc(ca, bufs); k != n || err != nil {
			t.Fatalf("allocated %d of %d: %v", k, n, err)
		}
		for i := range bufs {
			ok(t, bufs[i].Resize(len(text)))
			copy(bufs[i].Bytes(), text)
		}
		return bufs
	}
	void := func(what string, h *Host, fd int, bufs ...Buf) {
		t.Helper()
		for i := range bufs {
			if err := h.Free(fd, append([]Buf{}, bufs[i])); err != unix.EINVAL {
				t.Errorf("%s: Free gives %v", what, err)
			}
			if n, err := h.Send(fd, append([]Buf{}, bufs[i])); n != 0 || err != unix.EINVAL {
				t.Errorf("%s: Send gives %d, %v", what, n, err)
			}
		}
	}

	freed := alloc(2, "freed")
	was := append([]Buf{}, freed...)
	ok(t, a.Free(ca, freed))
	void("freed", a, ca, append(freed, was...)...)
	if was[0].Bytes() != nil || was[0].Resize(1) != unix.EINVAL || was[0].Offset(1) != unix.EINVAL {
		t.Error("a freed buffer can be used")
	}

	sent := alloc(1, "sent")
	was = append([]Buf{}, sent...)
	if n, err := a.Send(ca, sent); n != 1 || err != nil {
		t.Fatalf("Send gives %d, %v", n, err)
	}
	void("sent", a, ca, sent[0], was[0])
	if was[0].Bytes() != nil {
		t.Error("a sent buffer can be used")
	}

	theirs := alloc(1, "of another host")
	void("of another host", b, cb, theirs[0])
	if string(theirs[0].Bytes()) != "of another host" {
		t.Error("it is not its owner's any more")
	}
	ok(t, a.Free(ca, theirs))
	void("no buffer", a, ca, Buf{})

	var got [2]Buf
	n := 0
	eventually(t, func() bool {
		var err error
		n, err = b.Recv(cb, got[:])
		return err != unix.EAGAIN
	})
	if n != 1 || string(got[0].Bytes()) != "sent" {
		t.Fatalf("received %d buffers, %q", n, got[0].Bytes())
	}
	if n, err := b.Send(cb, append([]Buf{}, got[0])); n != 0 || err != unix.EINVAL {
		t.Errorf("sending a received buffer: %d, %v", n, err)
	}
	copied := got[0]
	ok(t, b.Free(cb, got[:1]))
	void("received and freed", b, cb, copied)

	// Of several, those in front of a bad one are sent, those behind it are the caller's.
	mixed := alloc(3, "good")
	mixed[1] = was[0]
	if n, err := a.Send(ca, mixed); n != 1 || err != nil && err != unix.EINVAL {
		t.Errorf("Send gives %d, %v", n, err)
	}
	if string(mixed[2].Bytes()) != "good" {
		t.Error("the buffer behind the bad one is not the caller's any more")
	}
	if err := a.Free(ca, mixed); err != unix.EINVAL {
		t.Errorf("Free of some that are none: %v", err)
	}
	if mixed[2].Bytes() != nil {
		t.Error("the good one was not freed")
	}
}
