package stack

// bind reserves a port for a socket with SO_REUSEADDR set or not, and returns it; port 0 asks for a free one. release
// ends it, with the same value of reuse. ok is false when the port is in use, or all are: EADDRINUSE.
//
// The rule is Linux's, for sockets of one address: a port with other users, connections included, may be bound only if
// all of them and this socket have SO_REUSEADDR, and none listens.
func (p *ports) bind(port uint16, reuse bool) (uint16, bool) {
	if port == 0 {
		return p.bindFree(reuse)
	}
	if u := p.at(port); u.users != 0 && (!reuse || u.strict != 0 || u.listen) {
		return 0, false
	}
	p.use(port, reuse, true)
	return port, true
}

// bindFree binds a port that nobody uses, from a random place on. When there is none, as with many connections, it
// takes one that is used by connections with chosen ports alone: a listener there does not get in their way.
func (p *ports) bindFree(reuse bool) (uint16, bool) {
	p.draws++
	from := p.low - p.base + uint32(p.random(2, p.draws)%uint64(p.n))
	any := func(uint16) bool { return true }
	i, ok := p.search(from, p.busy, nil, any)
	if !ok {
		i, ok = p.search(from, p.bound, nil, any)
	}
	if !ok {
		return 0, false
	}
	port := uint16(p.base + i)
	p.use(port, reuse, true)
	return port, true
}

// hold notes a connection that a listener on the port has accepted, with the listener's SO_REUSEADDR: it keeps the
// port in use when the listener is gone. release ends it.
func (p *ports) hold(port uint16, reuse bool) { p.use(port, reuse, true) }

// release ends a bind or hold.
func (p *ports) release(port uint16, reuse bool) { p.unuse(port, reuse, true) }

// listen notes that the socket which has bound the port listens. ok is false when another one does: EADDRINUSE.
func (p *ports) listen(port uint16) (ok bool) {
	u := p.at(port)
	if u.listen {
		return false
	}
	u.listen = true
	return true
}

// unlisten ends listen.
func (p *ports) unlisten(port uint16) { p.at(port).listen = false }

// at is who uses a port.
func (p *ports) at(port uint16) *portUse {
	page := &p.pages[port>>8]
	if *page == nil {
		*page = new([256]portUse)
	}
	return &(*page)[port&255]
}

func (p *ports) use(port uint16, reuse, bound bool) {
	u := p.at(port)
	if u.users++; !reuse {
		u.strict++
	}
	p.set(p.busy, port)
	if bound {
		u.bound++
		p.set(p.bound, port)
	}
}

func (p *ports) unuse(port uint16, reuse, bound bool) {
	u := p.at(port)
	if u.users--; !reuse {
		u.strict--
	}
	if bound {
		if u.bound--; u.bound == 0 {
			p.unset(p.bound, port)
		}
	}
	if u.users == 0 {
		p.unset(p.busy, port)
	}
}
