//go:build !race

package stack_test

const underRace = false
