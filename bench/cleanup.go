package main

import "sync"

// cleanups are what has to be undone whatever happens: processes, network namespaces, files.
type cleanups struct {
	mu   sync.Mutex
	next int
	todo map[int]func()
}

// atEnd is done before the process ends, also when a time limit ends it.
var atEnd = cleanups{todo: map[int]func(){}}

// add keeps f for the end. The function that it returns does f now.
func (c *cleanups) add(f func()) (now func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.next
	c.next++
	c.todo[id] = f
	return func() {
		if c.take(id) {
			f()
		}
	}
}

func (c *cleanups) take(id int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.todo[id]
	delete(c.todo, id)
	return ok
}

// run does all that is left, the last first.
func (c *cleanups) run() {
	for {
		c.mu.Lock()
		last := -1
		var f func()
		for id, g := range c.todo {
			if id > last {
				last, f = id, g
			}
		}
		delete(c.todo, last)
		c.mu.Unlock()
		if f == nil {
			return
		}
		f()
	}
}
