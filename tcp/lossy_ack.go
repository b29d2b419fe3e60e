package tcp

// inputAckLossy is inputAck for the lossy profile: what the acknowledgement tells of losses, and what that does to the
// window.
func (c *Conn) inputAckLossy(p *Params, now int64, s *Segment) Verdict {
	l := c.loss()
	sacks := s.Opts != nil && s.Opts.Sacks > 0 && l.sackOK
	if sacks && l.memory == 0 {
		return NoQueue
	}
	una, wnd, full := c.sndUna, c.sndWnd, c.filled(l)
	trip := int64(0)
	if c.timedAt != 0 && c.timed.Less(s.Ack) {
		trip = now - c.timedAt
	}
	if v := c.inputAck(p, now, s); v != Done || c.state == Closed {
		return v
	}
	if una.Less(c.sndUna) {
		if trip != 0 {
			l.win.trip(trip)
		}
		c.acked(l, una, full, now)
	} else if !l.sackOK && s.Ack == una && s.Len == 0 && s.Flags&(SYN|FIN) == 0 && wnd == c.sndWnd && c.outstanding() > 0 {
		l.dups = min(l.dups+1, (c.outstanding()-1)/l.win.MSS) // a duplicate ACK (RFC 5681 2)
	}
	if sacks {
		had := l.sacked
		for _, b := range s.Opts.Sack[:s.Opts.Sacks] {
			c.sack(l, span{b[0], b[1]})
		}
		l.judge(c)
		if l.phase == repair && l.sacked > had {
			// The path carries segments, and a repair that is lost shows in what follows it (see respond). The timer is for
			// when nothing comes: a queue that has just grown would have it expire otherwise.
			c.rtoAt = now + c.interval(p)
		}
	}
	c.respond(p, l, now)
	return Done
}

// filled says whether the application has used what the congestion window gave it, so that more would be of use: nearly
// all of it, or half in slow start, where it doubles with the window.
func (c *Conn) filled(l *lossy) bool {
	edge := c.edge.Load()
	window := Seq(edge >> 32).Size(Seq(edge))
	room := c.sndNxt().Size(Seq(edge))
	slack := window / 8
	if l.win.Cwnd < l.win.Ssthresh {
		slack = window / 2
	}
	return c.cwnd <= c.sndWnd && room <= max(slack, int32(l.win.MSS))
}

// acked is what an acknowledgement of everything from una up to SND.UNA does.
func (c *Conn) acked(l *lossy, una Seq, full bool, now int64) {
	n := uint32(una.Size(c.sndUna))
	l.forward(una, c.sndUna)
	switch l.phase {
	case steady:
		l.dups = 0
		if full {
			controls[l.control].Acked(&l.win, n, now)
		}
	case repair:
		c.timedAt = 0
		switch {
		case l.recover.LessEq(c.sndUna):
			l.phase, l.dups, l.out, l.force = steady, 0, 0, false
		case l.sackOK:
		case n <= l.win.MSS && c.sndUna == l.repNxt:
			// It ends where the segment ended that was sent again: the next one was lost, too, or this peer keeps nothing that
			// comes early. To repair a segment for each round trip would take for ever then.
			c.startRtx()
		default:
			// A partial acknowledgement (RFC 6582 3.2): what lies there now is lost. All it tells of but the segment that was
			// repaired had sent a duplicate ACK.
			l.dups -= min(l.dups, (n-1)/l.win.MSS)
			l.force = true
			c.pend |= PendRtx
		}
	case goBack:
		if l.recover.LessEq(c.sndUna) {
			l.phase = steady
		}
		controls[l.control].Acked(&l.win, n, now)
	}
	if l.phase == steady {
		l.recover = maxSeq(l.recover, c.sndUna) // it never falls behind by half the sequence space
		l.lostEnd, l.repNxt, l.repMax = maxSeq(l.lostEnd, c.sndUna), c.sndUna, c.sndUna
	}
	if c.outstanding() == 0 {
		c.rest(l, now)
	}
}

// forward forgets what lies before una; it lay before old until now.
func (l *lossy) forward(old, una Seq) {
	gone := uint32(0)
	for l.spans.n > 0 {
		s := l.spans.at(0)
		if una.Less(s.end) {
			if s.start.Less(una) {
				gone += uint32(s.start.Size(una))
				s.start = una
			}
			break
		}
		gone += s.size()
		l.spans.cut(0, 1)
	}
	l.sacked -= gone
	if una.Less(l.repMax) {
		l.out -= min(uint32(old.Size(una))-gone, l.out)
	} else {
		l.out = 0
	}
	l.lost = 0
	if una.Less(l.lostEnd) {
		l.lost = uint32(una.Size(l.lostEnd)) // without selective acknowledgements; else judge knows better
	}
	if l.sackOK {
		l.judgeFrom(una)
	}
}

// sack takes a block of a selective acknowledgement.
func (c *Conn) sack(l *lossy, b span) {
	if b.start.Less(c.sndUna) {
		b.start = c.sndUna // the peer tells of a duplicate (RFC 2883), or is older than SND.UNA
	}
	if !b.start.Less(b.end) || c.sndNxt().Less(b.end) {
		return
	}
	// Bytes of it that are news: in all, and of those that were sent again.
	news, again := b.size(), uint32(max(b.start.Size(minSeq(b.end, l.repMax)), 0))
	first := find(&l.spans, b.start-1)
	k := first
	whole := b
	for ; k < l.spans.n; k++ {
		s := *l.spans.at(k)
		if b.end.Less(s.start) {
			break
		}
		from, to := maxSeq(b.start, s.start), minSeq(b.end, s.end)
		news -= uint32(max(from.Size(to), 0))
		again -= uint32(max(from.Size(minSeq(to, l.repMax)), 0))
		whole = span{minSeq(whole.start, s.start), maxSeq(whole.end, s.end)}
	}
	switch {
	case k > first:
		*l.spans.at(first) = whole
		l.spans.cut(first+1, k-first-1)
	case l.spans.full():
		return
	default:
		l.spans.insert(first, whole)
	}
	l.sacked += news
	l.out -= min(again, l.out)
}

func minSeq(a, b Seq) Seq {
	if a.Less(b) {
		return a
	}
	return b
}

// judge says what is lost: what is missing before three segments that have arrived (RFC 6675 4, IsLost).
func (l *lossy) judge(c *Conn) { l.judgeFrom(c.sndUna) }

func (l *lossy) judgeFrom(una Seq) {
	l.lost, l.lostEnd = 0, una
	behind := uint32(0)
	for k := l.spans.n; k > 0; k-- {
		s := l.spans.at(k - 1)
		if behind += s.size(); behind > (dupThresh-1)*l.win.MSS || l.spans.n-k+1 >= dupThresh {
			l.lostEnd = s.start
			l.lost = uint32(una.Size(s.start)) - (l.sacked - behind)
			return
		}
	}
}

// respond does what follows from what is known now: a repair begins, or goes on.
func (c *Conn) respond(p *Params, l *lossy, now int64) {
	lost := l.dups >= dupThresh
	if l.sackOK {
		lost = c.sndUna.Less(l.lostEnd)
	}
	switch {
	case l.phase == steady && lost && l.recover.LessEq(c.sndUna):
		c.startRepair(l, now)
		c.rtoAt = now + c.interval(p)
		c.pend |= PendTimer
	case l.phase == repair && l.sackOK && l.spans.n > 0 && c.sndUna.Less(l.repMax):
		l.lostAgain(c)
	}
	if l.holes(c) {
		c.pend |= PendRtx
	}
	c.setCwnd(l)
}
