package stack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The order of the steps at the head of rest.go, as a model of all that can happen: one thread that sleeps, one that asks for
// things and takes turns of its own, and the port, each step of which may come between any two of another's. Atomics are
// sequentially consistent, so that there is nothing else. A state in which the sleeper sleeps, although there is something to do and
// nobody is about to wake it, is a wake-up that was lost.

// order is what the protocol says, and what it could say wrongly.
type order struct {
	lookFirst  bool // the sleeper looks before it says that it sleeps
	armLate    bool // the port is armed after the last look
	askFirst   bool // the other looks whether it sleeps before it has published
	forgetful  bool // a wake-up that comes before the sleep begins is forgotten
	silent     bool // who has taken a turn, and set a timer, wakes nobody
	portSilent bool // the port tells of frames only who sleeps already
}

// state is all there is; 0 in a counter of steps is the first.
type modelState struct {
	sleeper, other, port uint8 // where each is
	asks, frames, turns  uint8 // how often the other will still ask, the port get a frame, the other take a turn
	asleep, armed, token bool
	ask, frame, timer    bool // what there is to do
	lock                 uint8
	busy, knows          bool // the sleeper's last look has found something; it has seen the timer
	asked                bool // the other saw asleep before it published (askFirst)
}

const (
	sIdle  = iota // between two turns: looks, and if there is nothing begins to fall asleep
	sSay          // says that it sleeps
	sArm          // arms the port
	sLock         // takes the lock of the turn
	sFrame        // looks for a frame
	sAsk          // looks for what others ask
	sTimer        // looks for the next timer, and leaves the turn
	sSleep        // sleeps, unless there is a token
	sUp           // says that it does not sleep
	sOff          // disarms the port
)

// next gives the states that may follow, and who has moved.
func (o order) next(s modelState) (out []modelState, who []string) {
	add := func(name string, n modelState) {
		out, who = append(out, n), append(who, name)
	}
	n := s
	switch s.sleeper {
	case sIdle:
		switch {
		case s.frame || s.ask:
			n.frame, n.ask = false, false
		case o.lookFirst:
			n.sleeper = sLock
		default:
			n.sleeper = sSay
		}
		add("sleeper: between two turns", n)
	case sSay:
		n.asleep = true
		n.sleeper = sArm
		if o.lookFirst {
			n.sleeper = sSleep
		}
		add("sleeper: says that it sleeps", n)
	case sArm:
		n.armed, n.sleeper = true, sLock
		if o.armLate {
			n.sleeper = sSleep
		}
		add("sleeper: arms the port", n)
	case sLock:
		n.busy, n.knows = false, false
		switch {
		case s.lock != 0 && !o.lookFirst:
			n.sleeper = sUp // another thread takes a turn
		case s.lock == 0:
			n.lock, n.sleeper = 1, sFrame
		}
		if n != s {
			add("sleeper: takes the turn, or another has it", n)
		}
	case sFrame:
		n.busy, n.frame, n.sleeper = s.busy || s.frame, false, sAsk
		add("sleeper: looks for frames", n)
	case sAsk:
		n.busy, n.ask, n.sleeper = s.busy || s.ask, false, sTimer
		add("sleeper: looks for what is asked", n)
	case sTimer:
		n.knows, n.lock = s.timer, 0
		switch {
		case n.busy:
			n.sleeper = sUp
		case o.lookFirst:
			n.sleeper = sSay
		case o.armLate && !s.armed:
			n.sleeper = sArm
		default:
			n.sleeper = sSleep
		}
		add("sleeper: looks for timers", n)
	case sSleep:
		if s.token || s.knows { // a timer that it knows of ends the sleep
			n.token, n.sleeper = false, sUp
			add("sleeper: wakes up", n)
		}
	case sUp:
		n.asleep, n.sleeper = false, sOff
		if n.knows {
			n.timer, n.knows = false, false
		}
		add("sleeper: says that it is awake", n)
	case sOff:
		n.armed, n.sleeper = false, sIdle
		add("sleeper: disarms", n)
	}

	wake := func(n *modelState) {
		if !o.forgetful || s.sleeper == sSleep {
			n.token = true
		}
	}
	n = s
	switch s.other {
	case 0:
		if s.asks > 0 {
			n.asks--
			n.other = 1
			if o.askFirst {
				n.asked = s.asleep
			} else {
				n.ask = true
			}
			add("other: publishes", n)
		}
		if n = s; s.turns > 0 && s.lock == 0 {
			n.turns--
			n.lock, n.other = 2, 2
			add("other: takes a turn", n)
		}
	case 1:
		n.other = 0
		if o.askFirst {
			if n.ask = true; s.asked {
				wake(&n)
			}
		} else if s.asleep {
			wake(&n)
		}
		add("other: wakes who sleeps", n)
	case 2:
		n.timer, n.lock, n.other = true, 0, 3
		add("other: sets a timer and leaves the turn", n)
	case 3:
		n.other = 0
		if s.asleep && !o.silent {
			wake(&n)
		}
		add("other: wakes who sleeps, after its turn", n)
	}

	n = s
	switch s.port {
	case 0:
		if s.frames > 0 {
			n.frames--
			n.frame, n.port = true, 1
			add("port: gets a frame", n)
		}
	case 1:
		n.port = 0
		if s.armed && (!o.portSilent || s.sleeper == sSleep) {
			wake(&n)
		}
		add("port: tells who has armed it", n)
	}
	return out, who
}

// lost says whether nobody is about to do what there is to do: the others have told of it as they do, and the sleeper sleeps.
func (s modelState) lost() bool {
	told := s.other == 0 && s.port == 0
	return told && s.sleeper == sSleep && !s.token && !s.knows && (s.ask || s.frame || s.timer)
}

// explore goes through all states. It gives how many there are and the way to the first one that is lost, if any.
func (o order) explore() (states int, way []string) {
	type step struct {
		from modelState
		who  string
	}
	start := modelState{asks: 3, frames: 3, turns: 2}
	seen := map[modelState]step{start: {}}
	todo := []modelState{start}
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		if s.lost() {
			for s != start {
				way = append(way, seen[s].who)
				s = seen[s].from
			}
			slices.Reverse(way)
			return len(seen), way
		}
		out, who := o.next(s)
		for i, n := range out {
			if _, ok := seen[n]; !ok {
				seen[n] = step{s, who[i]}
				todo = append(todo, n)
			}
		}
	}
	return len(seen), nil
}

// TestRestModel finds no wake-up that is lost, and finds one in each order that is wrong.
func TestRestModel(t *testing.T) {
	states, way := order{}.explore()
	if way != nil {
		t.Errorf("a wake-up is lost:\n  %s", strings.Join(way, "\n  "))
	}
	t.Logf("%d states, none of them lost", states)
	for _, o := range []order{{lookFirst: true}, {armLate: true}, {askFirst: true}, {forgetful: true}, {silent: true}, {portSilent: true}} {
		states, way := o.explore()
		if way == nil {
			t.Errorf("%+v: none of %d states is lost", o, states)
			continue
		}
		t.Log(fmt.Sprintf("%+v, lost after %d steps:\n  ", o, len(way)) + strings.Join(way, "\n  "))
	}
}
