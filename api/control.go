package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process that has hosts can be looked at from outside, through a Unix socket. Who connects sends lines; each is a
// request, and is answered before the next is read:
//
//	look     one line: a ProcessView as JSON
//	sockets  a line for each socket, its host's address and a SocketView as JSON, and an empty line
//	metrics  OpenMetrics text, which ends with "# EOF"
//	capture SNAP FILTER  a capture, until the visitor hangs up; SNAP 0 keeps whole frames
//	trace FILTER         a line for each change of state of a connection, until the visitor hangs up
//
// Anything else is answered by a line "error: …".

// ProcessView is a process with its hosts, as seen from outside.
type ProcessView struct {
	PID     int        `json:"pid"`
	Program string     `json:"program"`
	Now     time.Time  `json:"now"` // when this was true, to the µs: two views give rates
	Hosts   []HostView `json:"hosts"`
}

// HostSocket is a socket with its host's address.
type HostSocket struct {
	Host string `json:"host"`
	SocketView
}

// controlEnv is the environment variable that stands for an empty Config.Control, also for C programs.
const controlEnv = "NDPIP_CONTROL"

const controlOff = "off"

// process is what the hosts of this process share.
var process processState

type processState struct {
	mu     sync.Mutex
	hosts  []*Host
	seen   []*Host // of these, the ones that may be looked at
	listen net.Listener
	path   string
}

// hosts are the open hosts of this process.
func hosts() []*Host {
	process.mu.Lock()
	defer process.mu.Unlock()
	return slices.Clone(process.hosts)
}

// enter makes a host known in its process, and opens the socket with the first that wants it. Where nobody has asked for a
// socket, it is no error that there can be none.
func enter(h *Host) error {
	p := &process
	p.mu.Lock()
	defer p.mu.Unlock()
	telemetry()
	path := h.cfg.Control
	if path == "" {
		path = os.Getenv(controlEnv)
	}
	asked := path != ""
	if path != controlOff && p.listen == nil {
		if err := p.open(path); err != nil && asked {
			return &EnvError{"the socket for ndpip-stat", err}
		}
	}
	p.hosts = append(p.hosts, h)
	if path != controlOff {
		p.seen = append(p.seen, h)
	}
	return nil
}

// leave forgets a host that is about to stop, and closes the socket with the last.
func leave(h *Host) {
	p := &process
	p.mu.Lock()
	defer p.mu.Unlock()
	is := func(o *Host) bool { return o == h }
	p.hosts, p.seen = slices.DeleteFunc(p.hosts, is), slices.DeleteFunc(p.seen, is)
	if len(p.seen) == 0 && p.listen != nil {
		p.listen.Close()
		_ = os.Remove(p.path)
		p.listen = nil
	}
}

// ControlDir is where this user's processes have their sockets: /run/ndpip for root, or else ndpip in XDG_RUNTIME_DIR, or
// else /tmp/ndpip-UID.
func ControlDir() string {
	if os.Geteuid() == 0 {
		return "/run/ndpip"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "ndpip")
	}
	return fmt.Sprintf("/tmp/ndpip-%d", os.Geteuid())
}

// open listens. The file is this user's alone from the moment that it is there.
func (p *processState) open(path string) error {
	if path == "" {
		dir := ControlDir()
		if err := ownDir(dir); err != nil {
			return err
		}
		path = filepath.Join(dir, strconv.Itoa(os.Getpid())+".sock")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := clearSocket(path); err != nil {
		return err
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		cerr := c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), 0o600) }) // Linux: the mode that bind makes the file with
		return errors.Join(err, cerr)
	}}
	l, err := lc.Listen(context.Background(), "unix", path)
	if err != nil {
		return err
	}
	p.listen, p.path = l, path
	go serve(l)
	return nil
}

// ownDir makes a directory that nobody else can put anything into, or finds it so.
func ownDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !st.IsDir() || !ok || int(sys.Uid) != os.Geteuid() || st.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s: want a directory of this user that others cannot write to", dir)
	}
	return nil
}

// clearSocket removes a socket that nobody listens on: its process was killed.
func clearSocket(path string) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s is there and is no socket: give another path", path)
	}
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return fmt.Errorf("%s: another process listens there: give another path", path)
	}
	return os.Remove(path)
}

func serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // closed
		}
		go converse(c)
	}
}

// converse answers one visitor until it leaves.
func converse(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(io.LimitReader(c, 1<<20))
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		if len(words) > 0 && words[0] == "capture" {
			captureTo(c, in, words[1:])
			return
		}
		if len(words) > 0 && words[0] == "trace" {
			traceTo(c, in, strings.Join(words[1:], " "))
			return
		}
		out := bufio.NewWriterSize(c, 64<<10)
		answer(words, out)
		_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second)) // one that does not read is left
		if out.Flush() != nil {
			return
		}
	}
}

// captureTo sends a capture of all hosts until the visitor leaves.
func captureTo(c net.Conn, in io.Reader, words []string) {
	conf := CaptureConfig{}
	if len(words) > 0 {
		var err error
		if conf.Snap, err = strconv.Atoi(words[0]); err != nil {
			fmt.Fprintf(c, "error: %q: want how many bytes to keep of a frame\n", words[0])
			return
		}
		conf.Filter = strings.Join(words[1:], " ")
	}
	p, err := startCapture(hasty{c}, conf, seen())
	if err != nil {
		fmt.Fprintf(c, "error: %v\n", err)
		return
	}
	_, _ = io.Copy(io.Discard, in)
	_, _ = p.Stop()
}

// traceTo sends what changes of connections' states until the visitor leaves.
func traceTo(c net.Conn, in io.Reader, filter string) {
	var mu sync.Mutex
	for _, h := range seen() {
		stop, err := h.Trace(filter, func(s StateChange) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintln(hasty{c}, s)
		})
		if err != nil {
			fmt.Fprintf(c, "error: %v\n", err)
			return
		}
		defer stop()
	}
	_, _ = io.Copy(io.Discard, in)
}

// hasty is a connection that gives up on a visitor who does not read.
type hasty struct{ net.Conn }

func (h hasty) Write(b []byte) (int, error) {
	_ = h.SetWriteDeadline(time.Now().Add(time.Second))
	return h.Conn.Write(b)
}

// seen are the hosts that may be looked at.
func seen() []*Host {
	process.mu.Lock()
	defer process.mu.Unlock()
	return slices.Clone(process.seen)
}

func answer(words []string, w *bufio.Writer) {
	seen := seen()
	if len(words) != 1 {
		words = []string{""}
	}
	enc := json.NewEncoder(w)
	switch words[0] {
	case "look":
		_ = enc.Encode(look(seen))
	case "sockets":
		for _, h := range seen {
			h.Sockets(func(s SocketView) { _ = enc.Encode(HostSocket{h.Addr().String(), s}) })
		}
		_ = w.WriteByte('\n')
	case "metrics":
		_ = WriteMetrics(w, seen...)
	default:
		fmt.Fprintln(w, "error: want look, sockets, metrics, capture or trace")
	}
}

// look looks at hosts of this process.
func look(seen []*Host) ProcessView {
	v := ProcessView{PID: os.Getpid(), Program: filepath.Base(os.Args[0])}
	for _, h := range seen {
		v.Hosts = append(v.Hosts, h.Look())
	}
	v.Now = time.Now()
	return v
}
