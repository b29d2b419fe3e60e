package stack

// paged is an array that grows without moving or copying what it has: no pause however long it is, and pointers to
// its elements stay good. Element 0 is there but never given out, so that 0 can stand for none.
type paged[T any] struct {
	pages []*[pageLen]T
	n     uint32 // elements given out, and element 0
}

const pageLen = 4096

// at is element i, which add has given out, or 0.
func (p *paged[T]) at(i uint32) *T { return &p.pages[i/pageLen][i%pageLen] }

// add gives out the next element, which is zero.
func (p *paged[T]) add() (i uint32) {
	for p.n == 0 || int(p.n/pageLen) >= len(p.pages) {
		p.pages = append(p.pages, new([pageLen]T))
		p.n = max(p.n, 1)
	}
	i = p.n
	p.n++
	return i
}
