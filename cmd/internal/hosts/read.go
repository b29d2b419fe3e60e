package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maxCPU is the highest number of a CPU.
const maxCPU = 4095

// Read reads the file that describes both hosts.
func Read(file string) (*Pair, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, text)
}

// Parse reads the description of both hosts. name is the file's, for errors.
func Parse(name string, text []byte) (*Pair, error) {
	d := document{name: name, text: text}
	p := new(Pair)
	if err := d.decode(p); err != nil {
		return nil, err
	}
	for table, h := range map[string]*Host{"sender": &p.Sender, "receiver": &p.Receiver} {
		if err := d.consistent(table, h); err != nil {
			return nil, err
		}
	}
	return p, d.together(p)
}

// ParseOwn reads the description that a host has of itself. Its field ssh may be left out.
func ParseOwn(name string, text []byte) (*Host, error) {
	d := document{name: name, text: text}
	h := new(Host)
	if err := d.decode(h); err != nil {
		return nil, err
	}
	if h.SSH == "" {
		h.SSH = name
	}
	return h, d.consistent("", h)
}

// Join makes a pair of two hosts that describe themselves.
func Join(sender, receiver *Host) (*Pair, error) {
	p := &Pair{*sender, *receiver}
	return p, document{name: sender.SSH + ", " + receiver.SSH}.together(p)
}

// document is a text with its name.
type document struct {
	name string
	text []byte
	keys map[string]unstable.Position
}

// fault is an error at a line and column. Line 0 is none.
func (d document) fault(line, column int, format string, args ...any) error {
	at := d.name
	if line > 0 {
		at = fmt.Sprintf("%s:%d:%d", at, line, column)
	}
	return fmt.Errorf("%s: "+format, append([]any{at}, args...)...)
}

// decode reads the text into a struct, and says in one line what is wrong with it.
func (d *document) decode(into any) error {
	in := toml.NewDecoder(bytes.NewReader(d.text))
	in.DisallowUnknownFields()
	err := in.Decode(into)
	var unknown *toml.StrictMissingError
	var bad *toml.DecodeError
	switch {
	case err == nil:
		d.keys = keys(d.text)
		return nil
	case errors.As(err, &unknown):
		first := &unknown.Errors[0]
		line, column := first.Position()
		name := strings.Join(first.Key(), ".")
		return d.fault(line, column, "%s is no field: want %s", name, known(into, first.Key()))
	case errors.As(err, &bad):
		line, column := bad.Position()
		if field, want := d.field(bad); want != "" {
			return d.fault(line, column, "%s: want %s", field, want)
		}
		return d.fault(line, column, "%s", strings.TrimPrefix(bad.Error(), "toml: "))
	}
	return d.fault(0, 0, "%w", err)
}

// known lists what may stand where a key does that is none.
func known(into any, key toml.Key) string {
	if _, both := into.(*Pair); both && (len(key) < 2 || key[0] != "sender" && key[0] != "receiver") {
		return "the tables [sender] and [receiver]"
	}
	var names []string
	for _, f := range Fields {
		names = append(names, f.Name)
	}
	return "one of " + strings.Join(names, ", ")
}

// field is the field whose value is wrong, and what it takes.
func (d document) field(bad *toml.DecodeError) (name, want string) {
	key := bad.Key()
	if len(key) == 0 {
		return "", ""
	}
	return strings.Join(key, "."), wants(key[len(key)-1])
}

func wants(field string) string {
	for _, f := range Fields {
		if f.Name == field {
			return f.Want
		}
	}
	return ""
}

// consistent checks the values and that nothing is missing. table is "" for a host's own file.
func (d document) consistent(table string, h *Host) error {
	full := func(field string) string { return strings.TrimPrefix(table+"."+field, ".") }
	missing := func(field string) error {
		return d.at(table, "%s is missing: want %s", full(field), wants(field))
	}
	bad := func(field string) error { return d.at(full(field), "%s: want %s", full(field), wants(field)) }
	texts := h.texts()
	for _, f := range Fields {
		if s := texts[f.Name]; s != nil && (*s != "" || d.has(full(f.Name))) && !right[f.Name](*s) {
			return bad(f.Name)
		}
	}
	switch {
	case h.SSH == "":
		return missing("ssh")
	case h.Address == "":
		return missing("address")
	case h.PCI == "" && h.Wire == "":
		return missing("pci")
	case h.PCI != "" && h.Wire != "":
		return d.at(full("wire"), "%s and %s name one port each: leave one of them out", full("pci"), full("wire"))
	case h.Driver != "" && h.PCI == "":
		return d.at(full("driver"), "%s is that of a PCI device: give %s, or leave it out", full("driver"), full("pci"))
	case len(h.Lcores) == 0 && !d.has(full("lcores")):
		return missing("lcores")
	case len(h.Lcores) == 0 || len(h.Lcores) > 2 || len(h.Lcores) == 2 && h.Lcores[0] == h.Lcores[1],
		slices.ContainsFunc(h.Lcores, func(cpu int) bool { return cpu < 0 || cpu > maxCPU }):
		return bad("lcores")
	}
	h.complete()
	return nil
}

// together checks one host against the other.
func (d document) together(p *Pair) error {
	s, r := netip.MustParsePrefix(p.Sender.Address), netip.MustParsePrefix(p.Receiver.Address)
	switch {
	case s.Addr() == r.Addr():
		return d.at("receiver.address", "receiver.address %s is the sender's too: want one of its own for each", r.Addr())
	case s.Masked() != r.Masked():
		return d.at("receiver.address", "receiver.address %s and sender.address %s are on different networks: want two of one", r, s)
	case p.Sender.LinuxAddress == p.Receiver.LinuxAddress:
		return d.at("receiver.linux_address", "receiver.linux_address %s is the sender's too: want one of its own for each", p.Receiver.LinuxAddress)
	}
	return nil
}

// at is a fault at a field or table, by its full name.
func (d document) at(name, format string, args ...any) error {
	p := d.keys[name]
	return d.fault(p.Line, p.Column, format, args...)
}

func (d document) has(name string) bool {
	_, ok := d.keys[name]
	return ok
}

// keys finds where each field and table of a document begins. The document has been decoded, so it is well formed.
func keys(text []byte) map[string]unstable.Position {
	found := make(map[string]unstable.Position)
	var p unstable.Parser
	enter := func(above string, it unstable.Iterator) (name string) {
		for name = above; it.Next(); {
			name = strings.TrimPrefix(name+"."+string(it.Node().Data), ".")
			if _, ok := found[name]; !ok {
				found[name] = p.Shape(it.Node().Raw).Start
			}
		}
		return name
	}
	var visit func(above string, n *unstable.Node)
	visit = func(above string, n *unstable.Node) {
		name := enter(above, n.Key())
		if v := n.Value(); v.Kind == unstable.InlineTable {
			for it := v.Children(); it.Next(); {
				visit(name, it.Node())
			}
		}
	}
	table := ""
	for p.Reset(text); p.NextExpression(); {
		switch n := p.Expression(); n.Kind {
		case unstable.Table:
			table = enter("", n.Key())
		case unstable.KeyValue:
			visit(table, n)
		}
	}
	return found
}
