package api

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Dialer makes connections from a host; see net.Dialer. Only Host is needed.
type Dialer struct {
	Host      *Host
	Timeout   time.Duration // for one Dial; 0: none but the protocol's
	Deadline  time.Time     // zero: none
	LocalAddr net.Addr      // *net.TCPAddr or *net.UDPAddr; nil: chosen
	// KeepAlive is the silence after which a probe is sent; 0: none are. (Package net sends them by default.)
	KeepAlive time.Duration
}

// Dial connects to "host:port" on "tcp" or "udp".
func (n *Net) Dial(network, address string) (net.Conn, error) {
	return n.DialContext(context.Background(), network, address)
}

// DialTimeout is Dial within a time.
func (n *Net) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	return (&Dialer{Host: n.h, Timeout: timeout}).Dial(network, address)
}

// DialContext is Dial until a context ends. It fits http.Transport.
func (n *Net) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return (&Dialer{Host: n.h}).DialContext(ctx, network, address)
}

// Dial connects to "host:port" on "tcp" or "udp".
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext is Dial until a context ends; the connection outlives it.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	e := &endpoint{h: d.Host}
	var err error
	if e.udp, err = transport(network); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	if d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Timeout)
		defer cancel()
	}
	if !d.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, d.Deadline)
		defer cancel()
	}
	to, err := resolve(ctx, network, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	e.remote = netAddr(e.udp, to)
	if err := d.connect(ctx, e, to); err != nil {
		if e.s != nil {
			_ = d.Host.close(e.s)
		}
		return nil, e.fail("dial", err)
	}
	if !e.udp {
		return newTCPConn(e.h, e.s), nil
	}
	e.local = netAddr(true, e.h.socketName(e.s))
	return &UDPConn{*e}, nil
}

// connect makes the socket of e and connects it.
func (d *Dialer) connect(ctx context.Context, e *endpoint, to netip.AddrPort) (err error) {
	h, typ := d.Host, unix.SOCK_STREAM
	if e.udp {
		typ = unix.SOCK_DGRAM
	}
	if err := ctx.Err(); err != nil {
		return ended(err)
	}
	if e.s, err = h.socket(unix.AF_INET, typ, 0); err != nil {
		return err
	}
	local, err := fromNetAddr(d.LocalAddr)
	if err != nil {
		return err
	}
	if local.IsValid() {
		if err := h.Bind(e.s.fd, local); err != nil {
			return os.NewSyscallError("bind", err)
		}
	}
	if d.KeepAlive > 0 && !e.udp {
		c := TCPConn{endpoint: *e}
		if err := errors.Join(c.SetKeepAlivePeriod(d.KeepAlive), c.SetKeepAlive(true)); err != nil {
			return err
		}
	}
	// The end of the context is a deadline that is over.
	stop := context.AfterFunc(ctx, func() { e.s.setLimit(writing, time.Unix(1, 0)) })
	err = h.connect(e.s, to)
	if !stop() {
		return ended(ctx.Err())
	}
	if err != nil {
		return os.NewSyscallError("connect", err)
	}
	return nil
}

// ended is the error of a dial that its context has ended.
func ended(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return os.ErrDeadlineExceeded
	}
	return err
}
