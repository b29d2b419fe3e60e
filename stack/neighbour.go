package stack

import (
	"sync/atomic"

	"ndpip/dpdk"
	"ndpip/stack/wire"
)

// Times and limits of the neighbour cache. Times are ns.
const (
	neighRetry   = 1e9        // between two requests for one address: at most one a second, RFC 1122 2.3.2.1
	neighTries   = 3          // requests without an answer before an address counts as dead
	neighDead    = neighRetry // how long it does: no request is sent meanwhile
	neighConfirm = 30e9       // how long an answer holds, as REACHABLE_TIME of RFC 4861 section 10
	neighDefend  = 10e9       // least time between two defences of the own address, RFC 5227 section 2.4
	neighLook    = 1e9        // how often tick looks at the marks of use

	neighEntries = 4096 // dynamic entries
	neighFrames  = 1024 // frames that wait, in all
	neighEach    = 64   // frames that wait for one neighbour
	neighEachLow = 8    // the same while half of neighFrames wait, so that some are left for others
)

const (
	neighNone  = uint32(0) // the index of no entry and of no frame
	lruLinks   = 0         // the two lists that an entry may be in
	timerLinks = 1
)

// neighState is the state of an entry, in the spirit of RFC 4861 section 7.3.2. STALE is neighKnown past its time;
// DELAY is not needed.
type neighState uint8

const (
	neighUnused     neighState = iota // the entry is on the free list
	neighIncomplete                   // asked for by broadcast; frames wait
	neighKnown                        // the address is known; until says how long it is trusted
	neighProbing                      // known, and asked for confirmation by unicast
	neighFailed                       // nobody answered, lately
	neighStatic                       // configured: never changes, never asked for
)

// neighEntry is what is known of one neighbour.
type neighEntry struct {
	ip          uint32
	mac         wire.MAC // the last known; zero if there was none
	state       neighState
	tries       uint8  // requests sent in this state
	used        bool   // used since probing began
	until       int64  // known: trusted until then
	at          int64  // incomplete, probing, failed: when the next step is due
	first, last uint32 // frames that wait
	frames      int    // how many
	links       [2]struct{ prev, next uint32 }
}

// neighList is a list of entries through one of their links.
type neighList struct{ first, last uint32 }

// neighHeld is a frame that waits for its neighbour's address.
type neighHeld struct {
	frame dpdk.Frame
	next  uint32
}

// NeighbourCounters count what the neighbour cache did.
type NeighbourCounters struct {
	Requests  uint64 `help:"broadcast requests sent"`
	Probes    uint64 `help:"unicast requests sent"`
	Replies   uint64 `help:"requests for the own address answered"`
	Learnt    uint64 `help:"addresses that became known"`
	Moved     uint64 `help:"known neighbours whose MAC changed"`
	Failed    uint64 `help:"addresses that nobody answered for"`
	Evicted   uint64 `help:"entries that made room for others"`
	QueueFull uint64 `help:"frames refused by hold"`
	Conflicts uint64 `help:"packets of others that claim the own address"`
	BadSource uint64 `help:"packets with a sender that no neighbour can have"`
	Own       uint64 `help:"own packets that came back"`
	Static    uint64 `help:"packets that contradict a static entry"`
}

// neighbours is the ARP cache (RFC 826, RFC 1122 2.3.2): which MAC address an on-link address has. It belongs to the
// worker; time is an argument, and what there is to send is handed out in a neighOut. Only touch and the snapshot are
// for other threads as well.
//
// An address that is asked for is requested at once and then each second; after three requests without answer it has
// failed. A known one is trusted for 30 s after its last sign of life (a reply to us, or a request for us), and is
// probed by unicast when it is used after that. Sending goes on meanwhile.
type neighbours struct {
	route
	mac    wire.MAC
	max    int // dynamic entries
	count  NeighbourCounters
	index  map[uint32]uint32 // entry by IP address
	entry  []neighEntry      // [0] is none; then the static ones, then the dynamic
	free   uint32            // unused entries, by links[lruLinks].next
	fixed  int               // static entries
	idle   neighList         // dynamic entries without frames, the last used first
	full   neighList         // dynamic entries with frames
	timers neighList         // entries with a step due, the next first: all waits are equally long
	used   []atomic.Uint32   // by entry: used by some thread since tick last looked

	held     []neighHeld // [0] is none
	heldFree uint32
	heldN    int

	lookAt   int64 // when tick looks at used again
	defendAt int64 // when the own address may be defended again

	snap      atomic.Pointer[neighSnapshot]
	hashMul   uint64
	dirty     bool  // snap is out of date
	publishAt int64 // when it may be made anew
}

// neighConfig is what a cache is made with.
type neighConfig struct {
	mac     wire.MAC            // own
	net     wire.Net            // own address, and the network on the link
	gateway uint32              // for addresses that are not on the link; 0: none
	static  map[uint32]wire.MAC // never asked for
	secret  secret
	entries int // most dynamic entries; 0: 4096
}

func newNeighbours(cfg neighConfig) *neighbours {
	if cfg.entries == 0 {
		cfg.entries = neighEntries
	}
	static := make(map[uint32]bool, len(cfg.static))
	n := &neighbours{
		route:   route{net: cfg.net, gateway: cfg.gateway, static: static},
		mac:     cfg.mac,
		max:     cfg.entries,
		index:   make(map[uint32]uint32),
		entry:   make([]neighEntry, 1),
		used:    make([]atomic.Uint32, 1+len(cfg.static)+cfg.entries),
		held:    make([]neighHeld, 1),
		hashMul: cfg.secret[1] | 1,
	}
	for ip, mac := range cfg.static {
		static[ip] = true
		n.index[ip] = uint32(len(n.entry))
		n.entry = append(n.entry, neighEntry{ip: ip, mac: mac, state: neighStatic})
		n.fixed++
	}
	n.dirty = true
	n.publish(0)
	return n
}

// neighStatus is the outcome of resolve.
type neighStatus uint8

const (
	neighReady       neighStatus = iota // the MAC is known
	neighWait                           // it was asked for: hold the frame, or wait for out.known or out.failed
	neighUnreachable                    // nobody answered a moment ago: EHOSTUNREACH
)

// resolve gives the MAC of the next hop ip (see nextHop), to which something is about to be sent.
//
// ref is for touch: whoever keeps the MAC, as a connection does in its header template, calls touch when it sends. A
// connection whose segments time out does well to resolve anew.
func (n *neighbours) resolve(ip uint32, now int64, out *neighOut) (mac wire.MAC, ref uint32, st neighStatus) {
	i, ok := n.index[ip]
	if !ok {
		i = n.add(ip, out)
		n.pushFront(&n.idle, lruLinks, i)
		n.ask(i, now, out)
		return mac, i, neighWait
	}
	switch e := &n.entry[i]; e.state {
	case neighStatic:
		return e.mac, i, neighReady
	case neighKnown, neighProbing:
		n.use(i, now, out)
		return e.mac, i, neighReady
	case neighFailed:
		return mac, i, neighUnreachable
	case neighIncomplete, neighUnused:
	}
	return mac, i, neighWait
}

// known is the MAC of a neighbour, if it is known. It asks for nothing.
func (n *neighbours) known(ip uint32) (mac wire.MAC, ok bool) {
	e := &n.entry[n.index[ip]]
	ok = e.state == neighKnown || e.state == neighProbing || e.state == neighStatic
	return e.mac, ok
}

// hold keeps a frame until the MAC of ip is known, when it comes out in out.send, or until ip has failed, when it
// comes out in out.drop. It is called after resolve said neighWait. When it returns false there is no room: the frame
// stays the caller's.
func (n *neighbours) hold(ip uint32, f dpdk.Frame) bool {
	i := n.index[ip]
	e := &n.entry[i]
	limit := neighEach
	if n.heldN >= neighFrames/2 {
		limit = neighEachLow
	}
	if e.state != neighIncomplete || e.frames >= limit || n.heldN >= neighFrames {
		n.count.QueueFull++
		return false
	}
	h := n.heldFree
	if h == neighNone {
		h = uint32(len(n.held))
		n.held = append(n.held, neighHeld{})
	} else {
		n.heldFree = n.held[h].next
	}
	n.held[h] = neighHeld{frame: f}
	if e.frames == 0 {
		e.first = h
		n.unlink(&n.idle, lruLinks, i)
		n.pushFront(&n.full, lruLinks, i)
	} else {
		n.held[e.last].next = h
	}
	e.last = h
	e.frames++
	n.heldN++
	return true
}

// doubt is the advice of somebody who gets no answer by way of ip (RFC 1122 2.3.2.1 and 3.3.1.4): what is known is
// confirmed at its next use. A sign of life of the last second stands against it: then the fault lies elsewhere.
func (n *neighbours) doubt(ip uint32, now int64) {
	if e := &n.entry[n.index[ip]]; e.state == neighKnown && now-(e.until-neighConfirm) >= neighRetry {
		e.until = min(e.until, now)
	}
}

// touch notes that ref's neighbour is being sent to, so that it is confirmed from time to time. Any thread may call
// it. A ref that has been given to another neighbour since does no harm.
func (n *neighbours) touch(ref uint32) { markUsed(&n.used[ref]) }

// markUsed writes only when it changes something, so the line stays in every core's cache. The mark orders nothing.
func markUsed(u *atomic.Uint32) {
	if u.Load() == 0 {
		u.Store(1)
	}
}

// use is what the use of a known entry brings about.
func (n *neighbours) use(i uint32, now int64, out *neighOut) {
	e := &n.entry[i]
	e.used = true
	if n.idle.first != i {
		n.unlink(&n.idle, lruLinks, i)
		n.pushFront(&n.idle, lruLinks, i)
	}
	if e.state == neighKnown && now >= e.until {
		e.state, e.tries, e.used = neighProbing, 0, false
		n.request(i, e.mac, now, out)
	}
}

// ask starts over with broadcast requests.
func (n *neighbours) ask(i uint32, now int64, out *neighOut) {
	e := &n.entry[i]
	e.state, e.tries = neighIncomplete, 0
	n.request(i, wire.Broadcast, now, out)
}

// request sends one request for entry i, which is in no list of timers, and has it looked at a second later.
func (n *neighbours) request(i uint32, to wire.MAC, now int64, out *neighOut) {
	e := &n.entry[i]
	e.tries++
	n.wait(i, now+neighRetry)
	a := wire.ARP{Op: wire.ARPRequest, SenderMAC: n.mac, SenderIP: n.net.Addr, TargetIP: e.ip}
	if to == wire.Broadcast {
		n.count.Requests++
	} else {
		n.count.Probes++
		a.TargetMAC = to
	}
	out.arp = append(out.arp, neighARP{to, a})
}

// wait puts entry i at the end of the timers.
func (n *neighbours) wait(i uint32, at int64) {
	n.entry[i].at = at
	n.pushBack(&n.timers, timerLinks, i)
}

// stopTimer takes entry i out of the timers, if its state has one.
func (n *neighbours) stopTimer(i uint32) {
	switch n.entry[i].state {
	case neighIncomplete, neighProbing, neighFailed:
		n.unlink(&n.timers, timerLinks, i)
	case neighKnown, neighStatic, neighUnused:
	}
}

// tick takes the steps that are due. The worker calls it about every 100 ms, or at the time that deadline gives.
func (n *neighbours) tick(now int64, out *neighOut) {
	for i := n.timers.first; i != neighNone && n.entry[i].at <= now; i = n.timers.first {
		n.expire(i, now, out)
	}
	if now >= n.lookAt {
		n.lookAt = now + neighLook
		for i := 1 + n.fixed; i < len(n.entry); i++ {
			if n.used[i].Load() != 0 {
				n.used[i].Store(0)
				if st := n.entry[i].state; st == neighKnown || st == neighProbing {
					n.use(uint32(i), now, out)
				}
			}
		}
	}
}

// expire is the end of entry i's wait.
func (n *neighbours) expire(i uint32, now int64, out *neighOut) {
	n.unlink(&n.timers, timerLinks, i)
	e := &n.entry[i]
	switch {
	case e.state == neighIncomplete && e.tries < neighTries:
		n.request(i, wire.Broadcast, now, out)
	case e.state == neighIncomplete:
		n.giveUp(i, out)
		e.state = neighFailed
		n.wait(i, now+neighDead)
	case e.state == neighProbing && e.tries < neighTries:
		n.request(i, e.mac, now, out)
	case e.state == neighProbing && e.used:
		n.dirty = true
		n.ask(i, now, out)
	default: // probed in vain and not used since, or failed long enough ago
		n.dirty = n.dirty || e.state == neighProbing
		n.unlink(&n.idle, lruLinks, i)
		n.release(i)
	}
}

// deadline is when tick has something to do; ok is false when it has nothing but to look at the marks of use.
func (n *neighbours) deadline() (at int64, ok bool) {
	return n.entry[n.timers.first].at, n.timers.first != neighNone
}

// giveUp hands back what waits for entry i.
func (n *neighbours) giveUp(i uint32, out *neighOut) {
	n.count.Failed++
	out.failed = append(out.failed, n.entry[i].ip)
	n.takeHeld(i, func(f dpdk.Frame) { out.drop = append(out.drop, f) })
}

// takeHeld empties the queue of entry i, in order.
func (n *neighbours) takeHeld(i uint32, f func(dpdk.Frame)) {
	e := &n.entry[i]
	if e.frames == 0 {
		return
	}
	for h := e.first; h != neighNone; {
		next := n.held[h].next
		f(n.held[h].frame)
		n.held[h] = neighHeld{next: n.heldFree}
		n.heldFree = h
		h = next
	}
	n.heldN -= e.frames
	e.first, e.last, e.frames = neighNone, neighNone, 0
	n.unlink(&n.full, lruLinks, i)
	n.pushFront(&n.idle, lruLinks, i)
}
