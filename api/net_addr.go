package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// Package net over the stack: Net makes connections and listeners that Go programs take as they are (net/http, TLS, RPC).
//
//	Host.Net → Net.Listen → TCPListener.Accept → TCPConn      net.Listener, net.Conn
//	         → Net.DialContext, Dialer         → TCPConn
//	         → Net.ListenPacket, DialContext   → UDPConn      net.PacketConn, net.Conn
//
// They are safe for use by several goroutines, deadlines and Close included, as package net's are.

// Net is a host's network for Go programs.
type Net struct{ h *Host }

// Net gives the host's network.
func (h *Host) Net() *Net { return &Net{h} }

// resolve finds the address and port that a dialler or listener is given. Names are looked up by the system's resolver,
// over the kernel's network: the stack has no IPv6, so only IPv4 addresses count. An empty host is 0.0.0.0.
func resolve(ctx context.Context, network, address string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddrPort(address); err == nil {
		if !a.Addr().Unmap().Is4() {
			return netip.AddrPort{}, &net.AddrError{Err: "no IPv4 address", Addr: address}
		}
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, network, service)
	if err != nil {
		return netip.AddrPort{}, err
	}
	ip := netip.IPv4Unspecified()
	if host != "" {
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
		if err != nil {
			return netip.AddrPort{}, err
		}
		ip = ips[0].Unmap()
	}
	return netip.AddrPortFrom(ip, uint16(port)), nil
}

// transport says whether a network is TCP or UDP.
func transport(network string) (udp bool, err error) {
	switch network {
	case "tcp", "tcp4":
		return false, nil
	case "udp", "udp4":
		return true, nil
	}
	return false, net.UnknownNetworkError(network)
}

func netAddr(udp bool, a netip.AddrPort) net.Addr {
	switch {
	case !a.IsValid():
		return nil
	case udp:
		return net.UDPAddrFromAddrPort(a)
	}
	return net.TCPAddrFromAddrPort(a)
}

// fromNetAddr is the address in a net.Addr; zero for nil.
func fromNetAddr(a net.Addr) (netip.AddrPort, error) {
	switch a := a.(type) {
	case nil:
		return netip.AddrPort{}, nil
	case *net.TCPAddr:
		if a != nil {
			return v4(a.AddrPort()), nil
		}
	case *net.UDPAddr:
		if a != nil {
			return v4(a.AddrPort()), nil
		}
	default:
		return netip.AddrPort{}, &net.AddrError{Err: fmt.Sprintf("want a *net.TCPAddr or *net.UDPAddr, have a %T", a), Addr: a.String()}
	}
	return netip.AddrPort{}, nil
}

// v4 is an address without the wrapping of IPv4 in IPv6; what names no address is 0.0.0.0.
func v4(a netip.AddrPort) netip.AddrPort {
	ip := a.Addr().Unmap()
	if !ip.IsValid() {
		ip = netip.IPv4Unspecified()
	}
	return netip.AddrPortFrom(ip, a.Port())
}

// socketName is the local address, and peerName the remote one, of an open socket; zero if there is none.
func (h *Host) socketName(s *sock) netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.localAddr(s)
}

// endpoint is what connections and listeners have in common.
type endpoint struct {
	h             *Host
	s             *sock
	udp           bool
	local, remote net.Addr
}

func (e *endpoint) network() string {
	if e.udp {
		return "udp"
	}
	return "tcp"
}

// LocalAddr is the own address.
func (e *endpoint) LocalAddr() net.Addr { return e.local }

// RemoteAddr is the peer's address; nil: there is none.
func (e *endpoint) RemoteAddr() net.Addr { return e.remote }

// Fd is the descriptor, for options and epoll. It is the endpoint's still: closing it closes the endpoint.
func (e *endpoint) Fd() int { return e.s.fd }

// Close closes it; calls that wait end with net.ErrClosed.
func (e *endpoint) Close() error {
	if err := e.h.close(e.s); err != nil {
		return e.fail("close", err)
	}
	return nil
}

// fail makes a call's error one of package net's.
func (e *endpoint) fail(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	switch {
	case err == unix.EBADF || err == unix.ENETDOWN:
		err = net.ErrClosed
	case err == unix.EAGAIN:
		err = os.ErrDeadlineExceeded // by SO_RCVTIMEO or SO_SNDTIMEO
	default:
		var no unix.Errno
		if errors.As(err, &no) {
			err = os.NewSyscallError(op, no)
		}
	}
	return &net.OpError{Op: op, Net: e.network(), Source: e.local, Addr: e.remote, Err: err}
}
