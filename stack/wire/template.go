package wire

// HeadersLen is the length of the Ethernet, IPv4 and TCP headers together, without options.
const HeadersLen = EthLen + IPv4Len + TCPLen

// Template is what all segments of one TCP connection have in common: their headers with 0 in the fields that change,
// and what those headers sum to. A segment's headers are then one copy and the changing fields. Its checksums are made
// from numbers at hand: reading back what was just written in smaller pieces makes the processor wait for the stores.
//
// A Template fits into one cache line. Segments with options, which only a SYN has, are put by the single functions.
type Template struct {
	hdr [HeadersLen]byte
	// Folded sums: of the IPv4 header, of the pseudo-header without its length, and of that and the two ports.
	ip, pseudo, ports uint16
}

// Where the fields that change stand in the frame.
const (
	atIPLen   = EthLen + 2 // total length, identification
	atIPCheck = EthLen + 10
	atPorts   = EthLen + IPv4Len
	atSeq     = atPorts + 4
	atAck     = atPorts + 8
	atWord    = atPorts + 12 // data offset, control bits, window
	atCheck   = atPorts + 16
)

// Init sets the template for segments from the first address and port to the second.
func (t *Template) Init(dstMAC, srcMAC MAC, src, dst uint32, srcPort, dstPort uint16) {
	*t = Template{}
	n := PutEthernet(t.hdr[:], dstMAC, srcMAC, TypeIPv4)
	n += PutIPv4(t.hdr[n:], src, dst, ProtoTCP, 0, 0)
	be.PutUint16(t.hdr[atIPCheck:], 0)
	PutTCP(t.hdr[n:], srcPort, dstPort, TCPFields{}, 0)
	pseudo := PseudoHeader(src, dst, ProtoTCP, 0)
	t.ip = Fold(Sum(t.hdr[EthLen:n], 0))
	t.pseudo = Fold(pseudo)
	t.ports = Fold(Sum(t.hdr[atPorts:atSeq], pseudo))
}

// SetDst changes the Ethernet address that the segments go to.
func (t *Template) SetDst(mac MAC) { copy(t.hdr[:], mac[:]) }

// Put writes the headers of a segment with n bytes of data, all checksums complete. data is the sum of the data, as Sum
// and CopySum give it. id is the identification of the IPv4 header (see PutIPv4).
func (t *Template) Put(b *[HeadersLen]byte, f TCPFields, id uint16, n int, data uint64) {
	w := t.put(b, f, id, n)
	s := uint64(t.ports) + uint64(TCPLen+n) + uint64(f.Seq) + uint64(f.Ack) + uint64(w) + uint64(Fold(data))
	be.PutUint16(b[atCheck:], ^fold(s))
}

// PutPartial is Put for a port that completes the TCP checksum: its field holds the sum of the pseudo-header, as
// dpdk.TxTCPSum asks. The checksum of the IPv4 header is complete, as asking for it would cost as much.
func (t *Template) PutPartial(b *[HeadersLen]byte, f TCPFields, id uint16, n int) {
	t.put(b, f, id, n)
	be.PutUint16(b[atCheck:], fold(uint64(t.pseudo)+uint64(TCPLen+n)))
}

func (t *Template) put(b *[HeadersLen]byte, f TCPFields, id uint16, n int) (word uint32) {
	*b = t.hdr
	total := uint32(IPv4Len + TCPLen + n)
	be.PutUint32(b[atIPLen:], total<<16|uint32(id))
	be.PutUint16(b[atIPCheck:], ^fold(uint64(t.ip)+uint64(total)+uint64(id)))
	word = f.word(TCPLen)
	be.PutUint32(b[atSeq:], f.Seq)
	be.PutUint32(b[atAck:], f.Ack)
	be.PutUint32(b[atWord:], word)
	return word
}
