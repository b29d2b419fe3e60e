// Package api is what applications use: sockets by descriptor, with the calls, options and errors that POSIX has, and
// the zero-copy calls beside them.
//
// A Host owns one port, its stack and its descriptors. Any goroutine may call any method; a descriptor may be used by
// one reader and one writer at a time. The fast way is one thread, locked (runtime.LockOSThread) and registered
// (PinThread), that polls with EpollWait.
//
// Errors of socket calls are golang.org/x/sys/unix.Errno values, those of Open *ConfigError or *EnvError.
package api
