//go:build race

package stack_test

// underRace says that the race detector is on: its own memory grows, and what one thread does alone takes ten times as long.
const underRace = true
