// Command plot draws one picture as PNG and SVG. It reads what to draw as JSON from standard input, and knows nothing of
// experiments; it is a module of its own so that what it needs to draw is not the library's to need.
//
//	plot FILE.png FILE.svg … <picture.json
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "plot: %v\n", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("give the files to write, ending in .png or .svg")
	}
	var p picture
	in := json.NewDecoder(os.Stdin)
	in.DisallowUnknownFields()
	if err := in.Decode(&p); err != nil {
		return fmt.Errorf("standard input: %w; want one picture as JSON", err)
	}
	if err := p.check(); err != nil {
		return err
	}
	for _, name := range files {
		if err := p.write(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
