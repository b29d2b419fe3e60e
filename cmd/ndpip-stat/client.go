package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"ndpip/api"
	"ndpip/cmd/internal/cli"
)

// client talks to a process through its socket (see api.Config.Control).
type client struct {
	net.Conn
	in *bufio.Reader
}

// patience is how long a process may take to answer: its worker may be stopped, or wait for a CPU.
const patience = 10 * time.Second

// dial connects to a process by its number, or by the path of its socket.
func dial(who string) (*client, error) {
	path := who
	if who == "" {
		var err error
		if path, err = onlyOne(); err != nil {
			return nil, err
		}
	} else if _, err := strconv.Atoi(who); err == nil {
		path = ""
		for _, p := range sockets() {
			if filepath.Base(p) == who+".sock" {
				path = p
			}
		}
		if path == "" {
			return nil, fmt.Errorf("process %s has no socket in %s: it does not run the stack, belongs to another user, or has it elsewhere "+
				"(then give its path)", who, strings.Join(dirs(), ", "))
		}
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		return nil, gone(path, err)
	}
	return &client{c, bufio.NewReaderSize(c, 64<<10)}, nil
}

func gone(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: nobody listens there; its process has been killed", path)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%s: only its own user and root may look", path)
	}
	return err
}

// dirs are where sockets may be: this user's, and for root those of all.
func dirs() []string {
	all := []string{api.ControlDir()}
	if os.Geteuid() == 0 {
		for _, pattern := range []string{"/run/user/*/ndpip", "/tmp/ndpip-*"} {
			more, _ := filepath.Glob(pattern)
			all = append(all, more...)
		}
	}
	return all
}

func sockets() (all []string) {
	for _, dir := range dirs() {
		found, _ := filepath.Glob(filepath.Join(dir, "*.sock"))
		all = append(all, found...)
	}
	return all
}

// alive are the sockets with somebody behind them.
func alive() (all []*client, paths []string) {
	for _, path := range sockets() {
		if c, err := net.Dial("unix", path); err == nil {
			all = append(all, &client{c, bufio.NewReaderSize(c, 64<<10)})
			paths = append(paths, path)
		}
	}
	return all, paths
}

func onlyOne() (string, error) {
	clients, paths := alive()
	for _, c := range clients {
		c.Close()
	}
	switch len(paths) {
	case 0:
		return "", fmt.Errorf("no process runs the stack: there is no socket in %s", strings.Join(dirs(), ", "))
	case 1:
		return paths[0], nil
	}
	var who []string
	for _, p := range paths {
		who = append(who, strings.TrimSuffix(filepath.Base(p), ".sock"))
	}
	return "", cli.Usagef("several processes run the stack: give one of %s ('%s list' shows them)", strings.Join(who, ", "), program)
}

func (c *client) ask(request string) error {
	_ = c.SetDeadline(time.Now().Add(patience))
	_, err := io.WriteString(c, request+"\n")
	return err
}

// line reads a line of the answer, without its end.
func (c *client) line() (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the process has ended")
		}
		return "", err
	}
	line = strings.TrimSuffix(line, "\n")
	if why, bad := strings.CutPrefix(line, "error: "); bad {
		return "", fmt.Errorf("the process answers: %s", why)
	}
	return line, nil
}

func (c *client) look() (v api.ProcessView, err error) {
	if err = c.ask("look"); err != nil {
		return v, err
	}
	line, err := c.line()
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal([]byte(line), &v)
}

func (c *client) sockets() (all []api.HostSocket, err error) {
	if err = c.ask("sockets"); err != nil {
		return nil, err
	}
	for {
		line, err := c.line()
		if err != nil || line == "" {
			return all, err
		}
		var s api.HostSocket
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
}

func (c *client) copyMetrics(w io.Writer) error {
	if err := c.ask("metrics"); err != nil {
		return err
	}
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		fmt.Fprintln(w, line)
		if line == "# EOF" {
			return nil
		}
	}
}

// capture copies a capture until ^C, or until the process ends.
func (c *client) capture(w io.Writer, o *options, stop *cli.Stop) error {
	if st, err := os.Stdout.Stat(); err == nil && st.Mode()&os.ModeCharDevice != 0 {
		return cli.Usagef("a capture is no text: send it to a file, or through a pipe, as in '%s capture | tcpdump -nr -'", program)
	}
	return c.follow(w, fmt.Sprintf("capture %d %s", o.snap, o.filter), stop)
}

// follow copies an answer that has no end, until ^C.
func (c *client) follow(w io.Writer, request string, stop *cli.Stop) error {
	if err := c.ask(request); err != nil {
		return err
	}
	_ = c.SetDeadline(time.Time{})
	if head, err := c.in.Peek(7); err == nil && string(head) == "error: " {
		_, err := c.line()
		return err
	}
	go func() {
		<-stop.Done()
		_ = c.Conn.(*net.UnixConn).CloseWrite() // the process sends what it still has, and hangs up
	}()
	_, err := io.Copy(w, c.in)
	return err
}

// list shows the processes that run the stack.
func list(w io.Writer, format string) error {
	clients, paths := alive()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if format == "table" {
		fmt.Fprintln(t, "PID\tPROGRAM\tHOST\tWIRE\tSOCKET")
	}
	for i, c := range clients {
		v, err := c.look()
		c.Close()
		if err != nil {
			continue // it has just ended
		}
		if format == "json" {
			if err := json.NewEncoder(w).Encode(v); err != nil {
				return err
			}
			continue
		}
		for _, h := range v.Hosts {
			fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\n", v.PID, v.Program, h.Addr, h.Wire, paths[i])
		}
	}
	return t.Flush()
}
