package api

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"ndpip/dpdk"
)

// eal is what the hosts of this process share: DPDK's EAL can be started once. It is cleaned up with the last host, if
// a host has started it and none asked to keep it.
var ealUse struct {
	mu      sync.Mutex
	ours    bool
	keep    bool
	hosts   int
	devices map[string]bool // that hosts use
}

// find starts the EAL, or finds it running, and finds the port.
func (p *dpdkPort) find(c *Config) (uint16, error) {
	u := &ealUse
	u.mu.Lock()
	defer u.mu.Unlock()
	var args []string
	var device string
	var err error
	if c.Wire != "" {
		if args, device, err = dpdk.Wire(c.Wire, c.Server); err != nil {
			return 0, err
		}
	}
	own := false // the device goes when the host stops
	if dpdk.EalInitialized() {
		if device, own, err = plug(args, device); err != nil {
			return 0, &EnvError{"wire " + c.Wire, err}
		}
	} else if err := startEAL(c, args); err != nil {
		return 0, err
	} else {
		own = device != "" && !strings.HasPrefix(c.Wire, "pci:")
	}
	if u.ours {
		u.hosts++
		p.inEAL = true
		u.keep = u.keep || c.KeepEAL
	}
	if device == "" {
		return uint16(c.Port), nil
	}
	id, err := dpdk.PortByName(device)
	if err != nil {
		return 0, &EnvError{"port of " + c.Wire, err}
	}
	if u.devices == nil {
		u.devices = map[string]bool{}
	}
	u.devices[device] = true
	p.device, p.own = device, own
	return id, nil
}

func startEAL(c *Config, wire []string) error {
	args := wire
	if c.Wire != "" || len(c.EAL) == 0 {
		mb := 0
		if c.NoHuge {
			mb = megabytes(c)
		}
		args = append(dpdk.DefaultArgs(c.NoHuge, mb, "ndpip"+strconv.Itoa(os.Getpid())), args...)
	} else if c.NoHuge {
		args = append(args, "--no-huge", "-m", strconv.Itoa(megabytes(c)))
	}
	if _, err := dpdk.EalInit(append(args, c.EAL...)); err != nil {
		return &EnvError{"starting DPDK", err}
	}
	ealUse.ours = true
	return nil
}

// plug finds the device of a wire in an EAL that runs, or adds it; added says so. What another host uses already is
// passed over: net_memif0, net_memif1 …
func plug(args []string, device string) (name string, added bool, err error) {
	if device == "" {
		return "", false, nil
	}
	options, virtual := "", false
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, "--vdev="+device); ok {
			options, virtual = strings.TrimPrefix(v, ","), true
		}
	}
	if !virtual {
		if _, err := dpdk.PortByName(device); err == nil && !ealUse.devices[device] {
			return device, false, nil
		}
		return "", false, errors.New("DPDK runs already, and this device is not among its own, or is in use: " +
			"give it with the EAL's arguments (--allow), or open this host first")
	}
	kind := strings.TrimSuffix(device, "0")
	for i := range 32 {
		name := kind + strconv.Itoa(i)
		if ealUse.devices[name] {
			continue
		}
		if _, err := dpdk.PortByName(name); err == nil {
			return name, false, nil
		}
		return name, true, dpdk.VdevInit(name, options)
	}
	return "", false, fmt.Errorf("there are 32 devices %s0 to %s31 already", kind, kind)
}

// leaveEAL gives up the device, and with the last host the EAL.
func (p *dpdkPort) leaveEAL() error {
	u := &ealUse
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.devices, p.device)
	if p.inEAL {
		p.inEAL = false
		u.hosts--
		if u.hosts == 0 && !u.keep {
			u.ours = false
			return dpdk.EalCleanup()
		}
	}
	if p.own {
		p.own = false
		_ = dpdk.VdevUninit(p.device) // its port is closed: there is nothing left to fail
	}
	return nil
}
