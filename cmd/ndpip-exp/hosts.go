package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"ndpip/cmd/internal/hosts"
)

// sshTime is how long one look at a host may take.
const sshTime = 30 * time.Second

// readHosts reads the value of --hosts: a file, or two hosts that describe themselves.
func readHosts(value string, ssh []string) (*hosts.Pair, error) {
	a, b, two := strings.Cut(value, ",")
	if !two {
		p, err := hosts.Read(value)
		if err != nil {
			return nil, usagef("--hosts: %w", err)
		}
		return p, nil
	}
	if a == "" || b == "" || strings.Contains(b, ",") {
		return nil, usagef("--hosts %s: want a file, or two destinations of ssh's with a comma between them", value)
	}
	var own [2]*hosts.Host
	for i, name := range []string{a, b} {
		text, err := ask(context.Background(), place{ssh: ssh, host: name}, "cat "+hosts.OwnFile)
		if err != nil {
			return nil, fmt.Errorf("--hosts: %w; a host describes itself in that file, or give one file that describes both (docs/hosts.toml)", err)
		}
		h, err := hosts.ParseOwn(name+":"+hosts.OwnFile, []byte(text))
		if err != nil {
			return nil, usagef("--hosts: %w", err)
		}
		h.SSH = name
		own[i] = h
	}
	p, err := hosts.Join(own[0], own[1])
	if err != nil {
		return nil, usagef("--hosts: %w", err)
	}
	return p, nil
}

// ask runs a script on a host and gives what it prints.
func ask(ctx context.Context, at place, script string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, sshTime)
	defer cancel()
	argv := at.shell(script)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	var fault bytes.Buffer
	cmd.Stderr = &fault
	out, err := cmd.Output()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("%s: no answer within %v", at.host, sshTime)
	case err != nil:
		return "", fmt.Errorf("%s: %w: %s", at.host, err, strings.Join(strings.Fields(fault.String()), " "))
	}
	return string(out), nil
}

// inspect looks at both hosts before the first run: whether the programs are there and the device is bound to the right
// driver; and it notes what the hosts are.
func (a *about) inspect(ctx context.Context) error {
	p := &a.Plan
	sender, err := look(ctx, p, &p.Hosts.Sender)
	if err != nil {
		return err
	}
	receiver, err := look(ctx, p, &p.Hosts.Receiver)
	a.Machine, a.Peer = sender, &receiver
	return err
}

// look asks one host.
func look(ctx context.Context, p *plan, h *hosts.Host) (machine, error) {
	var script strings.Builder
	for _, s := range p.Stacks {
		program := hostEnd(p, s, s, h, h).program
		fmt.Fprintf(&script, "command -v %s >/dev/null || echo missing=%s; ", quote(program), quote(program))
	}
	if h.PCI != "" {
		fmt.Fprintf(&script, "echo driver=$(basename \"$(readlink /sys/bus/pci/devices/%s/driver)\"); ", h.PCI)
	}
	script.WriteString(`echo kernel=$(uname -sr); echo cpus=$(nproc); echo dpdk=$(pkg-config --modversion libdpdk 2>/dev/null); ` +
		`sed -n 's/^model name[^:]*: */cpu=/p' /proc/cpuinfo | head -1; sed -n 's/^MemTotal: */memory=/p; s/^HugePages_Free: */huge=/p' /proc/meminfo`)
	text, err := ask(ctx, place{ssh: p.SSH, host: h.SSH}, script.String())
	if err != nil {
		return machine{}, err
	}
	said := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		said[name] = value
	}
	if name := said["missing"]; name != "" {
		return machine{}, fmt.Errorf("%s: there is no program %s: install it there, or set the field programs of the hosts' file", h.SSH, name)
	}
	if d := said["driver"]; h.Driver != "" && d != h.Driver {
		if d == "" {
			d = "no driver"
		}
		return machine{}, fmt.Errorf("%s: %s is bound to %s, not to %s: 'dpdk-devbind.py --bind %s %s' there binds it", h.SSH, h.PCI, d, h.Driver, h.Driver, h.PCI)
	}
	n, _ := strconv.Atoi(said["cpus"])
	return machine{CPU: said["cpu"], CPUs: n, Memory: said["memory"], Hugepages: said["huge"], Kernel: said["kernel"], DPDK: said["dpdk"]}, nil
}
