package api

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"ndpip/stack/wire"
)

// filter chooses frames, or connections: what it names must all be so.
type filter struct {
	hosts []uint32
	ports []uint16
	flags uint8 // of these TCP flags, one is set
	proto uint8 // 0: any
	arp   bool
}

// filterWant is what ParseFilter takes.
const filterWant = `want words such as "host 10.0.0.2 port 80", of: host ADDRESS, port N, flags syn,fin,rst,psh,ack,urg, tcp, udp, icmp, arp`

var flagNames = map[string]uint8{"fin": 1, "syn": 2, "rst": 4, "psh": 8, "ack": 16, "urg": 32}

// parseFilter reads a filter. All words must hold; "and" between them may be left out.
func parseFilter(text string) (f filter, err error) {
	bad := func(what string) (filter, error) { return filter{}, fmt.Errorf("%q: %s", what, filterWant) }
	words := strings.Fields(text)
	for i := 0; i < len(words); i++ {
		word, next := words[i], ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch word {
		case "and":
			continue
		case "tcp":
			f.proto = wire.ProtoTCP
			continue
		case "udp":
			f.proto = wire.ProtoUDP
			continue
		case "icmp":
			f.proto = wire.ProtoICMP
			continue
		case "arp":
			f.arp = true
			continue
		case "host":
			a, err := netip.ParseAddr(next)
			if err != nil || !a.Is4() {
				return bad(word + " " + next)
			}
			f.hosts = append(f.hosts, wire.FromAddr(a))
		case "port":
			p, err := strconv.ParseUint(next, 10, 16)
			if err != nil {
				return bad(word + " " + next)
			}
			f.ports = append(f.ports, uint16(p))
		case "flags":
			for name := range strings.SplitSeq(next, ",") {
				if flagNames[name] == 0 {
					return bad(word + " " + next)
				}
				f.flags |= flagNames[name]
			}
		default:
			return bad(word)
		}
		i++
	}
	return f, nil
}

// all says whether the filter lets everything pass.
func (f *filter) all() bool {
	return len(f.hosts) == 0 && len(f.ports) == 0 && f.flags == 0 && f.proto == 0 && !f.arp
}

// ends says whether the addresses and ports of a packet or connection are those of the filter.
func (f *filter) ends(src, dst uint32, sport, dport uint16) bool {
	for _, h := range f.hosts {
		if h != src && h != dst {
			return false
		}
	}
	for _, p := range f.ports {
		if p != sport && p != dport {
			return false
		}
	}
	return true
}

// frame says whether a frame is to be kept.
func (f *filter) frame(b []byte) bool {
	const eth, ip = 14, 20
	be := binary.BigEndian
	if f.all() {
		return true
	}
	if len(b) < eth+ip {
		return false
	}
	if be.Uint16(b[12:]) == wire.TypeARP && len(b) >= eth+wire.ARPLen {
		return f.proto == 0 && f.flags == 0 && len(f.ports) == 0 && f.ends(be.Uint32(b[eth+14:]), be.Uint32(b[eth+24:]), 0, 0)
	}
	if f.arp || be.Uint16(b[12:]) != wire.TypeIPv4 {
		return false
	}
	proto, l4 := b[eth+9], eth+int(b[eth]&15)*4
	if f.proto != 0 && f.proto != proto {
		return false
	}
	var sport, dport uint16
	if (proto == wire.ProtoTCP || proto == wire.ProtoUDP) && len(b) >= l4+4 {
		sport, dport = be.Uint16(b[l4:]), be.Uint16(b[l4+2:])
	}
	if f.flags != 0 && (proto != wire.ProtoTCP || len(b) < l4+14 || b[l4+13]&f.flags == 0) {
		return false
	}
	return f.ends(be.Uint32(b[eth+12:]), be.Uint32(b[eth+16:]), sport, dport)
}
