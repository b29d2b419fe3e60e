package stack

import (
	"ndpip/dpdk"
	"ndpip/stack/wire"
)

// input takes an ARP packet that was received, in the order of RFC 826, "Packet Reception": learn, then answer.
//
// An entry is changed by any packet of its neighbour, also one that is not for us: so a host that moves or fails over
// is followed. It is made only by a request for the own address: that host is about to send.
func (n *neighbours) input(a wire.ARP, now int64, out *neighOut) {
	forUs := a.TargetIP == n.net.Addr
	switch {
	case a.SenderMAC == n.mac:
		n.count.Own++
		return
	case a.SenderMAC.Group() || a.SenderMAC.IsZero():
		n.count.BadSource++
		return
	case a.SenderIP == n.net.Addr:
		n.conflict(now, out)
		return
	case a.SenderIP == 0: // a probe for a conflict (RFC 5227 section 2.1.1): answered, not learnt
	case n.net.BadSource(a.SenderIP):
		n.count.BadSource++
		return
	default:
		n.learn(a, forUs, now, out)
	}
	if forUs && a.Op == wire.ARPRequest {
		n.count.Replies++
		out.arp = append(out.arp, neighARP{a.SenderMAC, wire.ARP{Op: wire.ARPReply, SenderMAC: n.mac, SenderIP: n.net.Addr,
			TargetMAC: a.SenderMAC, TargetIP: a.SenderIP}})
	}
}

// conflict is a packet of another host that claims the own address. The claim is answered by an announcement, but
// not more often than every 10 s, or two hosts would go on for ever (RFC 5227 section 2.4 c).
func (n *neighbours) conflict(now int64, out *neighOut) {
	n.count.Conflicts++
	if now >= n.defendAt {
		n.defendAt = now + neighDefend
		n.announce(out)
	}
}

// announce tells all hosts where the own address is (RFC 5227 section 2.3), for when the port comes up.
func (n *neighbours) announce(out *neighOut) {
	out.arp = append(out.arp, neighARP{wire.Broadcast,
		wire.ARP{Op: wire.ARPRequest, SenderMAC: n.mac, SenderIP: n.net.Addr, TargetIP: n.net.Addr}})
}

// learn takes the sender of a packet into the cache, if it belongs there.
func (n *neighbours) learn(a wire.ARP, forUs bool, now int64, out *neighOut) {
	i, ok := n.index[a.SenderIP]
	if !ok {
		// Whoever asks for us may soon send, but it may as well be one of a flood of forged senders: until it is used
		// for the first time it is the next to go.
		if forUs && a.Op == wire.ARPRequest && n.net.OnLink(a.SenderIP) {
			i = n.add(a.SenderIP, out)
			n.pushBack(&n.idle, lruLinks, i)
			n.know(i, a.SenderMAC, now+neighConfirm, out)
		}
		return
	}
	e := &n.entry[i]
	// What is said to us shows that both ways work (RFC 4861 section 7.3.1). What is said to all may be trusted for its
	// address, which is confirmed when it is used.
	until := now
	if forUs {
		until += neighConfirm
	}
	switch e.state {
	case neighStatic:
		if a.SenderMAC != e.mac {
			n.count.Static++
		}
	case neighKnown, neighProbing:
		if a.SenderMAC != e.mac {
			n.count.Moved++
			n.stopTimer(i)
			n.know(i, a.SenderMAC, until, out)
		} else if forUs {
			n.stopTimer(i)
			e.state, e.until = neighKnown, until
		}
	case neighIncomplete, neighFailed:
		n.stopTimer(i)
		n.know(i, a.SenderMAC, until, out)
	case neighUnused:
	}
}

// know is the moment in which the MAC of entry i, which waits for nothing any more, becomes known or changes.
func (n *neighbours) know(i uint32, mac wire.MAC, until int64, out *neighOut) {
	e := &n.entry[i]
	if e.state != neighKnown && e.state != neighProbing {
		n.count.Learnt++
	}
	out.known = append(out.known, neighNews{e.ip, e.mac, mac})
	e.mac, e.state, e.until = mac, neighKnown, until
	n.takeHeld(i, func(f dpdk.Frame) { out.send = append(out.send, neighFrame{f, mac}) })
	n.dirty = true
}
