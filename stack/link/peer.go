package link

import "bytes"

// Peer is an end without a stack, in the hands of a test.
type Peer struct{ end *End }

// Peer gives the end to a test. The end should have no lane that receives, as each frame arrives once.
func (e *End) Peer() *Peer { return &Peer{e} }

// Inject sends a frame, whatever it contains, to the other end. The path does to it what it does to others. The frame
// is copied.
func (p *Peer) Inject(frame []byte) {
	p.end.link.mu.Lock()
	defer p.end.link.mu.Unlock()
	p.end.out.put(frame, 0, nil)
}

// Sent gives what the other end has sent and what has arrived here by now, and not been given before.
func (p *Peer) Sent() [][]byte {
	p.end.link.mu.Lock()
	defer p.end.link.mu.Unlock()
	var frames [][]byte
	for {
		f, ok := p.end.in.take(p.end.link.Now())
		if !ok {
			return frames
		}
		p.end.received(f.data)
		frames = append(frames, bytes.Clone(f.data))
		f.done()
	}
}
