//go:build ndpipdebug

package api

import "sync/atomic"

// users counts who reads from a descriptor and who writes to it, to find programs that break the rule of one reader and
// one writer at a time. Calls of several readers still take turns, but who gets what is then nobody's to say.
type users struct{ n [2]atomic.Int32 }

func (u *users) begin(d side) {
	if u.n[d].Add(1) > 1 {
		panic([]string{
			"ndpip: two goroutines read from one descriptor at the same time; let one read, or give each a lock",
			"ndpip: two goroutines write to one descriptor at the same time; let one write, or give each a lock",
		}[d])
	}
}

func (u *users) end(d side) { u.n[d].Add(-1) }
