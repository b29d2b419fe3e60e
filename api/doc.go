// Package api is what applications use: sockets by descriptor, with the calls, options and errors that POSIX and Linux
// have; calls beside them that do not copy; an epoll equivalent; and package net's interfaces on top. docs/api.md has all
// of it in tables, with what differs from Linux.
//
//	Open → Host → Socket, Bind, Listen, Accept, Connect, Read, Write, Close …     by descriptor
//	            → Alloc, Send, Recv, Free                                        packet buffers (Buf)
//	            → EpollCreate, EpollCtl, EpollWait
//	            → Net → Listen, Dial …                                           net.Listener, net.Conn, net.PacketConn
//
// A Host owns one port, its stack and its descriptors. Any goroutine may call any method; a descriptor may be used by
// one reader and one writer at a time (a build with the tag ndpipdebug panics when it sees two). The fast way is one
// thread, locked (runtime.LockOSThread) and registered (PinThread), that polls with EpollWait.
//
// Errors of socket calls are golang.org/x/sys/unix.Errno values, but for os.ErrDeadlineExceeded; those of Open are
// *ConfigError or *EnvError.
package api
