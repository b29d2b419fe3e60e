package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// nixNode is what the test of two machines makes of one of them, as far as it is looked at.
type nixNode struct {
	NDPIP struct {
		Device string `json:"device"`
	} `json:"ndpip"`
	Boot struct {
		KernelParams []string `json:"kernelParams"`
	} `json:"boot"`
	Environment struct {
		Etc map[string]struct{ Text string } `json:"etc"`
	} `json:"environment"`
	Systemd struct {
		Services map[string]struct {
			Script        string         `json:"script"`
			PreStop       string         `json:"preStop"`
			ServiceConfig map[string]any `json:"serviceConfig"`
		} `json:"services"`
	} `json:"systemd"`
}

// module looks at the two hosts that the test of virtual machines has, for whether they would work: each service's options
// are taken by its program, the file in which a host describes itself is read, and the device is bound and released.
func (n *nixRun) module() error {
	at, err := n.build("checks.x86_64-linux.vm")
	if err != nil {
		return err
	}
	var nodes map[string]nixNode
	if err := json.Unmarshal([]byte(readText(filepath.Join(at, "nodes.json"))), &nodes); err != nil {
		return err
	}
	file := ""
	for _, name := range []string{"receiver", "sender"} {
		node, ok := nodes[name]
		if !ok {
			return fmt.Errorf("the test has no machine %s", name)
		}
		if err := n.host(name, node); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		file += fmt.Sprintf("[%s]\nssh = \"root@%s\"\n%s", name, name, node.Environment.Etc["ndpip/host.toml"].Text)
	}
	hosts := filepath.Join(n.dir, "hosts.toml")
	if err := os.WriteFile(hosts, []byte(file), 0o644); err != nil {
		return err
	}
	return n.plan(hosts)
}

func (n *nixRun) host(name string, node nixNode) error {
	for _, want := range []string{"hugepages=", "isolcpus="} {
		if !strings.Contains(strings.Join(node.Boot.KernelParams, " "), want) {
			return fmt.Errorf("the kernel's command line has no %s", want)
		}
	}
	if err := n.bind(node); err != nil {
		return err
	}
	service := map[string]string{"receiver": "ndpip-recv", "sender": "ndpip-send"}[name]
	start, _ := node.Systemd.Services[service].ServiceConfig["ExecStart"].(string)
	// The device is not there, which is the environment's fault (1), while wrong options are the user's (2).
	start = strings.NewReplacer("--cpu 1", "--cpu 0", "--worker-cpu 2", "--worker-cpu 0", "/tmp/sent", filepath.Join(n.dir, "file")).Replace(start)
	p, err := n.d.start(n.ctx, job{argv: []string{"sh", "-c", "exec " + start}, env: []string{"XDG_RUNTIME_DIR=" + n.dir}})
	if err != nil {
		return err
	}
	err = p.wait()
	if p.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(p.tail(), node.NDPIP.Device) {
		return fmt.Errorf("want status 1 and a word on the device %s from %s; it is not there. Have: %w", node.NDPIP.Device, start, errors.Join(err, errors.New(p.tail())))
	}
	return nil
}

// bind runs the service's scripts on a folder in the place of /sys/bus/pci, and looks at what was written there.
func (n *nixRun) bind(node nixNode) error {
	s := node.Systemd.Services["ndpip-bind"]
	const bus = "/sys/bus/pci"
	sys := filepath.Join(n.dir, "pci")
	defer os.RemoveAll(sys)
	device, driver := filepath.Join(sys, "devices", node.NDPIP.Device), filepath.Join(sys, "drivers", "vfio-pci")
	if err := errors.Join(os.MkdirAll(device, 0o755), os.MkdirAll(driver, 0o755), os.Symlink(driver, filepath.Join(device, "driver"))); err != nil {
		return err
	}
	for _, c := range []struct{ script, override string }{{s.Script, "vfio-pci"}, {s.PreStop, ""}} {
		if !strings.Contains(c.script, bus) {
			return errNoScript
		}
		if err := n.d.run(n.ctx, job{argv: []string{"bash", "-euc", strings.ReplaceAll(c.script, bus, sys)}}); err != nil {
			return err
		}
		for file, want := range map[string]string{
			filepath.Join(device, "driver_override"): c.override,
			filepath.Join(driver, "unbind"):          node.NDPIP.Device,
			filepath.Join(sys, "drivers_probe"):      node.NDPIP.Device,
		} {
			if have := readText(file); have != want {
				return fmt.Errorf("%s has %q, want %q, after\n%s", file, have, want, indent(c.script))
			}
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}
