//go:build !ndpip_nocount

package stack

// counting says that what is counted per segment and per turn is compiled in. The tag ndpip_nocount leaves it out, to
// measure what it costs.
const counting = true
