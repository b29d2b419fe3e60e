//go:build ndpip_nocount

package stack

const counting = false
