package hosts

import (
	"bytes"
	"fmt"
	"strings"
)

// Format writes both hosts as Parse reads them, with the defaults filled in.
func Format(p *Pair) []byte {
	var b bytes.Buffer
	for _, table := range []struct {
		name string
		h    *Host
	}{{"sender", &p.Sender}, {"receiver", &p.Receiver}} {
		fmt.Fprintf(&b, "[%s]\n", table.name)
		texts := table.h.texts()
		for _, f := range Fields {
			if s, ok := texts[f.Name]; !ok {
				fmt.Fprintf(&b, "%s = [%s]\n", f.Name, strings.Trim(strings.ReplaceAll(fmt.Sprint(table.h.Lcores), " ", ", "), "[]"))
			} else if *s != "" {
				fmt.Fprintf(&b, "%s = %q\n", f.Name, *s)
			}
		}
	}
	return b.Bytes()
}
