package stack

import "ndpip/dpdk"

// Tap is shown every frame that passes between the stack and its port: those received before the stack looks at them, those
// sent just before the port gets them. It is called on the threads of worker and applications, at the same time too; the
// frames are to be read until it returns. What they hold of checksums may be left for the port to fill in, as their flags
// say.
type Tap func(frames []dpdk.Frame, sent bool)

// SetTap sets the stack's tap; nil takes it away. When it returns, the former one is not called any more.
func (s *Stack) SetTap(t Tap) {
	s.do(func() { s.tap, s.tapped = t, 0 })
	a := &s.app
	a.lock.lock()
	a.tap, a.tapped = t, 0
	a.lock.unlock()
}

// A lane's list of frames may keep some that the port did not take. tapped is how many of those it begins with were shown
// already.

// tapWorker shows what the worker is about to send.
func (s *Stack) tapWorker() {
	if from := min(s.tapped, s.w.NTx); from < s.w.NTx {
		s.tap(s.w.Tx[from:s.w.NTx], true)
	}
}

// tapOut is the same for the application's lane. Under the lock.
func (a *appSide) tapOut() {
	if from := min(a.tapped, a.lane.NTx); from < a.lane.NTx {
		a.tap(a.lane.Tx[from:a.lane.NTx], true)
	}
}
