package stack

import (
	"sync/atomic"

	"ndpip/tcp"
)

// chunk is how many connections are allocated at a time; their place is id / chunk, id % chunk.
const chunk = 1 << chunkBits

const chunkBits = 8

// conns holds all connections. They have no Go pointers and never move; id 0 is none. Owned by the worker.
type conns struct {
	chunks []*[chunk]tcp.Conn
	free   []uint32 // ids to be used again, the last freed first: its lines are warm
	used   int

	// shown is chunks for the application's threads: the worker stores it anew before any id of a new chunk can reach them.
	shown atomic.Pointer[[]*[chunk]tcp.Conn]
}

func (t *conns) at(id uint32) *tcp.Conn { return &t.chunks[id>>chunkBits][id&(chunk-1)] }

// of is at for the application's threads.
func (t *conns) of(id uint32) *tcp.Conn { return &(*t.shown.Load())[id>>chunkBits][id&(chunk-1)] }

// get gives an empty connection.
func (t *conns) get() *tcp.Conn {
	if len(t.free) == 0 {
		base := uint32(len(t.chunks)) << chunkBits
		t.chunks = append(t.chunks, new([chunk]tcp.Conn))
		shown := t.chunks
		t.shown.Store(&shown)
		for i := uint32(chunk); i > 0; i-- {
			if id := base + i - 1; id != 0 {
				t.free = append(t.free, id)
			}
		}
	}
	id := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	t.used++
	c := t.at(id)
	c.Reset(id)
	return c
}

func (t *conns) put(c *tcp.Conn) {
	t.free = append(t.free, c.ID)
	t.leave(c)
}

// leave is put for a block that is kept elsewhere; again gives it out once more, with its rings.
func (t *conns) leave(c *tcp.Conn) {
	c.ID = 0
	t.used--
}

func (t *conns) again(id uint32) *tcp.Conn {
	c := t.at(id)
	c.Reuse(id)
	t.used++
	return c
}

// each calls f for every connection that is in use: in the table, or closed and not yet let go of.
func (t *conns) each(f func(c *tcp.Conn)) {
	for _, ch := range t.chunks {
		for i := range ch {
			if c := &ch[i]; c.ID != 0 {
				f(c)
			}
		}
	}
}
