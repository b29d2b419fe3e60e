package stack

// Observe has f called after each turn that Run takes, on the worker's thread: busy says whether there was anything to
// do, and Now is the time at which the turn received. So the time between two calls of Now is that of one turn, and to
// look costs no clock of its own. f must be quick and must not block. nil ends it. Not while Run runs.
func (s *Stack) Observe(f func(busy bool)) { s.turns.observe = f }
