package tcp

// Seq is a sequence number. Comparisons are modulo 2^32 (RFC 9293 3.4), so they hold for numbers less than 2^31 apart.
type Seq uint32

// Less says whether a comes before b.
func (a Seq) Less(b Seq) bool { return int32(a-b) < 0 }

// LessEq says whether a comes before b or is b.
func (a Seq) LessEq(b Seq) bool { return int32(a-b) <= 0 }

// Size is the number of sequence units from a up to b; negative when b comes before a.
func (a Seq) Size(b Seq) int32 { return int32(b - a) }

// InWindow says whether a lies in [start, start+size).
func (a Seq) InWindow(start Seq, size uint32) bool { return uint32(a-start) < size }
