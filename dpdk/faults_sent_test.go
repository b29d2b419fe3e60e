package dpdk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// refuser is a port that takes at most three frames at a time, and counts them.
type refuser struct {
	counter
	took int
}

func (r *refuser) Exchange(b *Block, op Op) {
	if op&OpTx != 0 {
		n := min(b.NTx, 3)
		r.took += int(n)
		for _, f := range b.Tx[:n] {
			if f.Flags&TxRetain == 0 {
				r.free = append(r.free, f.Handle)
			}
		}
		b.NTx = uint32(copy(b.Tx[:], b.Tx[n:b.NTx]))
	}
	r.counter.Exchange(b, op)
}

// TestSentLoss loses a tenth of what is sent: each frame once, however often the port refuses it; and every buffer that is
// the port's comes back.
func TestSentLoss(t *testing.T) {
	r := &refuser{counter: *newCounter()}
	all := len(r.free)
	l := NewLane(&Block{RxMax: 32, Want: 8}, r)
	counts := l.Inject(Faults{SentLoss: 0.1, Seed: 1})
	const n = 20000
	sent, kept := 0, 0
	for sent < n || l.NTx > 0 {
		l.Exchange(OpStock)
		for i := 0; i < 8 && sent < n && l.TxRoom() > 0; i++ {
			f, ok := l.Take()
			if !ok {
				break
			}
			f.Flags = 0
			if sent%2 == 0 {
				f.Flags = TxRetain
				kept++
			}
			l.Queue(f)
			if f.Flags&TxRetain != 0 {
				r.free = append(r.free, f.Handle) // the sender's own reference
			}
			sent++
		}
		l.Exchange(OpTx | OpFree)
	}
	lost := int(counts().Lost)
	require.Equal(t, n, r.took+lost)
	require.InDelta(t, n/10, lost, n/100)
	for l.NStock > 0 {
		f, _ := l.Take()
		l.Release(f.Handle)
	}
	l.Exchange(OpFree)
	require.Len(t, r.free, all)
}
