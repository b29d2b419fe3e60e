package api

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// infoBytes is struct tcp_info as C has it, which is how package unix lays it out.
func infoBytes(i *unix.TCPInfo) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(i)), unix.SizeofTCPInfo)
}
