package link

// fifo is a queue that uses its memory again.
type fifo[T any] struct {
	items []T
	head  int
}

func (q *fifo[T]) len() int  { return len(q.items) - q.head }
func (q *fifo[T]) first() *T { return &q.items[q.head] }

func (q *fifo[T]) push(v T) {
	if q.head > 64 && 2*q.head > len(q.items) {
		q.items = q.items[:copy(q.items, q.items[q.head:])]
		q.head = 0
	}
	q.items = append(q.items, v)
}

func (q *fifo[T]) pop() T {
	v := q.items[q.head]
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return v
}

// flights is a binary heap by time of arrival. It is written out because container/heap allocates for each element, and
// a link should not disturb those who count allocations.
type flights []flight

func (s flights) before(i, j int) bool {
	return s[i].at < s[j].at || s[i].at == s[j].at && s[i].seq < s[j].seq
}

func (s *flights) push(f flight) {
	*s = append(*s, f)
	h := *s
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.before(i, up) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (s *flights) pop() flight {
	h := *s
	f := h[0]
	last := len(h) - 1
	h[0], h[last] = h[last], flight{}
	h = h[:last]
	*s = h
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h.before(child, least) {
				least = child
			}
		}
		if least == i {
			return f
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
