package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// vendorHashFile holds the hash of the Go modules that the flake builds with.
var vendorHashFile = filepath.Join(".nix", "vendor-hash")

func vendorHashVerb() verb {
	return verb{
		name: "vendorhash", what: "writes the hash of the Go modules, which the Nix flake wants, to .nix/vendor-hash", limit: 5 * time.Minute,
		flags: func(*flag.FlagSet) {},
		run: func(ctx context.Context, d *dev, _ []string) error {
			hash, err := d.vendorHash(ctx)
			if err != nil {
				return err
			}
			file := filepath.Join(d.root, vendorHashFile)
			if strings.TrimSpace(readText(file)) == hash {
				d.out.Printf("%s: %s already", vendorHashFile, hash)
				return nil
			}
			d.out.Printf("%s: %s", vendorHashFile, hash)
			return os.WriteFile(file, []byte(hash+"\n"), 0o644)
		},
	}
}

// vendorHash is the hash of the folder vendor as "go mod vendor" makes it, which is what nixpkgs' buildGoModule fetches
// and checks. A tree that has the folder already, as one without network may, is believed: the go command refuses one
// that does not fit go.mod.
func (d *dev) vendorHash(ctx context.Context) (string, error) {
	if dir := filepath.Join(d.root, "vendor"); isFile(filepath.Join(dir, "modules.txt")) {
		return narHash(dir)
	}
	tmp, err := os.MkdirTemp("", "ndpip-vendor-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "vendor")
	if err := d.run(ctx, d.goJob(4*time.Minute, "mod", "vendor", "-o", dir)); err != nil {
		return "", fmt.Errorf("%w\n    mend: go mod tidy, or go mod download with a network", err)
	}
	return narHash(dir)
}
