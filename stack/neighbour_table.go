package stack

import (
	"ndpip/dpdk"
	"ndpip/stack/wire"
)

// neighOut is what the neighbour cache asks of its owner. The calls append; the owner acts on it, in the order of the
// fields, and calls reset.
type neighOut struct {
	known  []neighNews  // addresses that became known or changed: bring header templates up to date
	arp    []neighARP   // packets to send
	send   []neighFrame // frames that waited and are now to be sent, in this order; their destination is to be filled in
	drop   []dpdk.Frame // frames that waited in vain: release them
	failed []uint32     // addresses that nobody answers for: EHOSTUNREACH to those who wait
}

// neighNews says that ip is at mac. It was at old before; zero: never known. old may equal mac: then the neighbour was
// lost sight of for a while, and whoever waits for it still has to be told.
type neighNews struct {
	ip       uint32
	old, mac wire.MAC
}

// neighARP is an ARP packet and the Ethernet address that it goes to.
type neighARP struct {
	to  wire.MAC
	arp wire.ARP
}

// neighFrame is a frame and the Ethernet address that it goes to.
type neighFrame struct {
	frame dpdk.Frame
	to    wire.MAC
}

// put writes the packet as a whole frame and returns its length.
func (a *neighARP) put(b []byte) int {
	n := wire.PutEthernet(b, a.to, a.arp.SenderMAC, wire.TypeARP)
	return n + wire.PutARP(b[n:], a.arp)
}

func (o *neighOut) reset() {
	o.known, o.arp, o.send, o.drop, o.failed = o.known[:0], o.arp[:0], o.send[:0], o.drop[:0], o.failed[:0]
}

// add makes an entry for ip, whose state and place in the idle list the caller sets.
func (n *neighbours) add(ip uint32, out *neighOut) (i uint32) {
	if len(n.index)-n.fixed >= n.max {
		n.evict(out)
	}
	i = n.free
	if i == neighNone {
		i = uint32(len(n.entry))
		n.entry = append(n.entry, neighEntry{})
	} else {
		n.free = n.entry[i].links[lruLinks].next
	}
	n.entry[i] = neighEntry{ip: ip}
	n.used[i].Store(0)
	n.index[ip] = i
	return i
}

// release gives back entry i, which is in no list any more.
func (n *neighbours) release(i uint32) {
	delete(n.index, n.entry[i].ip)
	n.entry[i] = neighEntry{}
	n.entry[i].links[lruLinks].next = n.free
	n.free = i
}

// evict frees the entry that was not used for longest. Those with frames are spared while there is another; so is,
// once, one that a thread has marked as used since.
func (n *neighbours) evict(out *neighOut) {
	i := n.idle.last
	for i != neighNone && n.used[i].Load() != 0 {
		n.used[i].Store(0)
		n.unlink(&n.idle, lruLinks, i)
		n.pushFront(&n.idle, lruLinks, i)
		i = n.idle.last
	}
	if i == neighNone {
		i = n.full.last
	}
	n.count.Evicted++
	if n.entry[i].state == neighIncomplete {
		n.giveUp(i, out)
	} else {
		n.dirty = true
	}
	n.stopTimer(i)
	n.unlink(&n.idle, lruLinks, i)
	n.release(i)
}

func (n *neighbours) pushFront(l *neighList, k int, i uint32) {
	n.entry[i].links[k].prev, n.entry[i].links[k].next = neighNone, l.first
	if l.first != neighNone {
		n.entry[l.first].links[k].prev = i
	} else {
		l.last = i
	}
	l.first = i
}

func (n *neighbours) pushBack(l *neighList, k int, i uint32) {
	n.entry[i].links[k].prev, n.entry[i].links[k].next = l.last, neighNone
	if l.last != neighNone {
		n.entry[l.last].links[k].next = i
	} else {
		l.first = i
	}
	l.last = i
}

func (n *neighbours) unlink(l *neighList, k int, i uint32) {
	e := n.entry[i].links[k]
	if e.prev != neighNone {
		n.entry[e.prev].links[k].next = e.next
	} else {
		l.first = e.next
	}
	if e.next != neighNone {
		n.entry[e.next].links[k].prev = e.prev
	} else {
		l.last = e.prev
	}
}
