package api

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/stack"
	"ndpip/stack/wire"
)

// StateChange is a change of a connection's state.
type StateChange struct {
	Time          time.Time      `json:"time"`
	Local, Remote netip.AddrPort `json:"-"`
	From, To      string         `json:"-"` // names of RFC 9293; CLOSED for what is new
	Why           error          `json:"-"` // of an end that was not orderly, such as ECONNRESET; nil: none
}

func (c StateChange) String() string {
	s := fmt.Sprintf("%s %s %s %s -> %s", c.Time.Format("15:04:05.000000"), c.Local, c.Remote, c.From, c.To)
	if c.Why != nil {
		s += ": " + c.Why.Error()
	}
	return s
}

// tracePace is how often changes are taken from the worker, and traceMost how many of them are told each time: the rest is
// counted.
const (
	tracePace = 10 * time.Millisecond
	traceMost = 64
)

// Trace calls f for each change of state of the connections that a filter chooses, such as "host 10.0.0.2 port 80"; "all" is
// every one. f runs on a goroutine of its own, a little later, and is told of 6400 changes a second at most; of several
// changes within one burst it sees the last. stop ends the trace, and says how many changes f was not told of. A host has
// one trace at a time: another is EBUSY.
func (h *Host) Trace(filter string, f func(StateChange)) (stop func() (missed uint64), err error) {
	if filter == "all" {
		filter = ""
	}
	match, err := parseFilter(filter)
	if err != nil {
		return nil, &ConfigError{"Filter", err.Error()}
	}
	if !h.tracing.CompareAndSwap(false, true) {
		return nil, unix.EBUSY
	}
	t := stack.NewTrace(match.ends)
	h.st.SetTrace(t)
	done, ended := make(chan struct{}), make(chan struct{})
	missed := uint64(0)
	go func() {
		defer close(ended)
		var got [traceMost]stack.Change
		for last := false; !last; {
			select {
			case <-done:
				last = true
			case <-time.After(tracePace):
			}
			told := false
			for n := t.Take(got[:]); n > 0; n = t.Take(got[:]) {
				if told && !last {
					missed += uint64(n)
					continue
				}
				told = true
				for _, c := range got[:n] {
					f(h.stateChange(c))
				}
			}
		}
	}()
	var once sync.Once
	return func() uint64 {
		once.Do(func() {
			h.st.SetTrace(nil)
			close(done)
			<-ended
			missed += h.st.TraceLost(t)
			h.tracing.Store(false)
		})
		return missed
	}, nil
}

func (h *Host) stateChange(c stack.Change) StateChange {
	o := StateChange{Time: h.since.Add(time.Duration(c.At)), Local: netip.AddrPortFrom(wire.ToAddr(c.Laddr), c.Lport),
		Remote: netip.AddrPortFrom(wire.ToAddr(c.Raddr), c.Rport), From: c.From.String(), To: c.To.String()}
	if c.Why != 0 {
		o.Why = c.Why
	}
	return o
}
