//go:build race

package sim

// underRace says that the race detector is on. What one thread does alone takes ten times as long then and shows no more.
const underRace = true
