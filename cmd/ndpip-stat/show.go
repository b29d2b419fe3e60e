package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"ndpip/api"
)

// show is one view of a process, again and again. It keeps what it saw last, for the rates.
type show struct {
	c       *client
	o       *options
	view    api.ProcessView
	sockets map[socketKey]api.HostSocket
	at      time.Time // of sockets
	clear   bool      // the screen, before each view
}

type socketKey struct{ host, proto, local, remote string }

func keyOf(s *api.HostSocket) socketKey {
	return socketKey{s.Host, s.Proto, s.Local.String(), s.Remote.String()}
}

func newShow(c *client, o *options) (*show, error) {
	s := &show{c: c, o: o}
	st, err := os.Stdout.Stat()
	s.clear = o.live && o.format == "table" && err == nil && st.Mode()&os.ModeCharDevice != 0
	if !s.rates() {
		return s, nil
	}
	if o.view == "sockets" {
		_, err = s.takeSockets()
		return s, err
	}
	s.view, err = c.look()
	return s, err
}

// rates says whether the view has rates, so that it takes two looks.
func (s *show) rates() bool { return s.o.view == "summary" || s.o.view == "sockets" }

// next looks and shows.
func (s *show) next(w io.Writer) error {
	var b strings.Builder
	var err error
	if s.o.view == "sockets" {
		err = s.showSockets(&b)
	} else {
		err = s.showProcess(&b)
	}
	if err != nil {
		return err
	}
	text := b.String()
	if s.clear {
		text = "\x1b[H\x1b[2J" + text
	}
	_, err = io.WriteString(w, text)
	return err
}

// socketRates is a socket with what it moves, in bits of payload per second.
type socketRates struct {
	api.HostSocket
	In  float64 `json:"in_bps"`
	Out float64 `json:"out_bps"` // as far as it is acknowledged
}

// takeSockets looks at the sockets and compares them with what they were.
func (s *show) takeSockets() ([]socketRates, error) {
	all, err := s.c.sockets()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	seconds := now.Sub(s.at).Seconds()
	old := s.sockets
	s.sockets, s.at = make(map[socketKey]api.HostSocket, len(all)), now
	out := make([]socketRates, len(all))
	for i := range all {
		r := socketRates{HostSocket: all[i]}
		k := keyOf(&all[i])
		if was, ok := old[k]; ok {
			r.In = 8 * float64(r.Received-was.Received) / seconds // both wrap
			r.Out = 8 * float64(r.Acked-was.Acked) / seconds
		}
		s.sockets[k] = all[i]
		out[i] = r
	}
	slices.SortStableFunc(out, func(a, b socketRates) int {
		return strings.Compare(a.Host+a.Proto+a.Local.String()+a.Remote.String(), b.Host+b.Proto+b.Local.String()+b.Remote.String())
	})
	return out, nil
}

func (s *show) showSockets(w io.Writer) error {
	all, err := s.takeSockets()
	if err != nil {
		return err
	}
	if s.o.format == "json" {
		enc := json.NewEncoder(w)
		for i := range all {
			if err := enc.Encode(&all[i]); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PROTO\tSTATE\tRECV-Q\tSEND-Q\tLOCAL\tPEER\tRTT\tRTO\tSND-WND\tRCV-WND\tMSS\tIN\tOUT\tNOTES")
	for i := range all {
		v := &all[i]
		peer, more := v.Remote.String(), notes(&v.HostSocket)
		if !v.Remote.Addr().IsValid() || v.Remote.Addr().IsUnspecified() {
			peer = "*"
		}
		if v.Proto == "udp" || v.State == "LISTEN" {
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t\t\t\t\t\t\t\t%s\n", v.Proto, v.State, v.RecvQ, v.SendQ, v.Local, peer, more)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\n", v.Proto, v.State, v.RecvQ, v.SendQ, v.Local, peer,
			span(v.RTT), span(v.RTO), v.SndWnd, v.RcvWnd, v.MSS, rate(v.In, "b/s"), rate(v.Out, "b/s"), more)
	}
	return t.Flush()
}

// notes are what is out of the ordinary with a socket.
func notes(v *api.HostSocket) string {
	var n []string
	add := func(when bool, format string, a ...any) {
		if when {
			n = append(n, fmt.Sprintf(format, a...))
		}
	}
	add(v.Retries > 0, "resent %d times", v.Retries)
	add(v.State == "ESTABLISHED" && v.SndWnd == 0, "the peer's window is closed")
	add(v.State == "ESTABLISHED" && v.RcvWnd == 0, "the window is closed: the application does not read")
	add(v.Orphan, "closed by the application")
	add(v.Half > 0, "%d coming up", v.Half)
	add(v.Dropped > 0, "%d dropped", v.Dropped)
	add(v.Timer > 0, "timer %s", span(v.Timer))
	return strings.Join(n, ", ")
}

// span writes a time in µs.
func span(us float64) string {
	switch {
	case us == 0:
		return "-"
	case us < 1000:
		return fmt.Sprintf("%.0fµs", us)
	case us < 1e6:
		return fmt.Sprintf("%.1fms", us/1e3)
	}
	return fmt.Sprintf("%.1fs", us/1e6)
}

// rate writes a number per second with a prefix of the SI.
func rate(x float64, unit string) string {
	for _, p := range []struct {
		least float64
		sign  string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if x >= p.least {
			return fmt.Sprintf("%.2f %s%s", x/p.least, p.sign, unit)
		}
	}
	return fmt.Sprintf("%.0f %s", x, unit)
}
