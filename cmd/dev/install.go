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

// libraryVersion is what ndpip.pc says.
const libraryVersion = "0.1.0"

// installOptions are the options of the verb install.
type installOptions struct{ prefix, destdir, tags string }

func installVerb() verb {
	var o installOptions
	return verb{
		name: "install", what: "builds the C library and installs it with its headers and ndpip.pc", limit: 15 * time.Minute,
		flags: func(fs *flag.FlagSet) {
			fs.StringVar(&o.prefix, "prefix", "/usr/local", "install below this `FOLDER`")
			fs.StringVar(&o.destdir, "destdir", "", "put everything below `FOLDER`/PREFIX instead, for packages")
			fs.StringVar(&o.tags, "tags", "", "build with these `TAGS`")
		},
		run: func(ctx context.Context, d *dev, _ []string) error { return d.install(ctx, o) },
	}
}

// install builds libndpip.so and libndpip.a and puts them where pkg-config finds them.
func (d *dev) install(ctx context.Context, o installOptions) error {
	prefix, err := filepath.Abs(o.prefix)
	if err != nil {
		return err
	}
	if strings.ContainsAny(prefix, " \t\n") {
		return usagef("install: --prefix %q: pkg-config cannot have a folder with spaces", prefix)
	}
	if err := d.setUp(ctx, needsToBuild()); err != nil {
		return err
	}
	d.helpStatic(ctx)
	to := prefix
	if o.destdir != "" {
		to = filepath.Join(o.destdir, prefix)
	}
	lib, pc, include := filepath.Join(to, "lib"), filepath.Join(to, "lib", "pkgconfig"), filepath.Join(to, "include", "ndpip")
	for _, dir := range []string{pc, include} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("%w\n    mend: give another --prefix, or run this as a user who may write there", err)
		}
	}
	tmp, err := os.MkdirTemp("", "ndpip-install-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for _, l := range []struct{ file, mode, flags string }{
		{"libndpip.so", "c-shared", "-s -w -extldflags=-Wl,-soname,libndpip.so"},
		{"libndpip.a", "c-archive", ""},
	} {
		d.out.Status("building %s", l.file)
		out := filepath.Join(tmp, l.file)
		if err := d.run(ctx, d.goJob(10*time.Minute, "build", "-trimpath", "-tags="+o.tags, "-buildmode="+l.mode, "-ldflags="+l.flags, "-o", out, "./cmd/libndpip")); err != nil {
			return err
		}
		if err := replaceFile(out, filepath.Join(lib, l.file)); err != nil {
			return err
		}
	}
	headers, err := filepath.Glob(filepath.Join(d.root, "cmd", "libndpip", "include", "ndpip", "*.h"))
	if err != nil {
		return err
	}
	for _, h := range headers {
		if err := replaceFile(h, filepath.Join(include, filepath.Base(h))); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"ndpip.pc": ndpipPC, "ndpip-libs.pc": ndpipLibsPC} {
		text = strings.NewReplacer("@PREFIX@", prefix, "@VERSION@", libraryVersion, "@DPDK@", oldestDPDK).Replace(text)
		if err := os.WriteFile(filepath.Join(pc, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	d.out.Printf("installed in %s: lib/libndpip.so, lib/libndpip.a, lib/pkgconfig/ndpip.pc, include/ndpip", to)
	if o.destdir == "" {
		d.out.Printf("where your system does not look there by itself (ldconfig, as root, may do for the second):\n"+
			"    export PKG_CONFIG_PATH=%s LD_LIBRARY_PATH=%s", filepath.Join(prefix, "lib", "pkgconfig"), filepath.Join(prefix, "lib"))
	}
	return nil
}

// helpStatic sees to what DPDK's own "pkg-config --static" asks for and its package leaves out (seen on Debian 12). Without
// it everything else works.
func (d *dev) helpStatic(ctx context.Context) {
	if d.linksStatic(ctx) {
		return
	}
	const pkg = "libsystemd-dev"
	if d.uid == 0 && commandPath("apt-get") != "" && d.aptInstall(ctx, []string{pkg}) == nil && d.linksStatic(ctx) {
		return
	}
	d.out.Printf("note: pkg-config --static --libs libdpdk does not link here, so programs cannot be static; on Debian %s may be missing", pkg)
}

func (d *dev) linksStatic(ctx context.Context) bool {
	flags, err := d.output(ctx, job{argv: []string{"pkg-config", "--static", "--libs", "libdpdk"}})
	if err != nil {
		return false
	}
	dir, err := os.MkdirTemp("", "ndpip-install-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	src := filepath.Join(dir, "a.c")
	if os.WriteFile(src, []byte("int main(void) { return 0; }\n"), 0o644) != nil {
		return false
	}
	argv := append([]string{"gcc", "-o", filepath.Join(dir, "a"), src}, strings.Fields(flags)...)
	return d.run(ctx, job{argv: argv, limit: time.Minute}) == nil
}

// replaceFile copies a file. A library that a program has open is replaced and not written over.
func replaceFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

// Two files, as DPDK itself has them. With --static the archive stands before the shared library, which is asked for
// only as needed, and so is left out; DPDK's flags come last of all, as its archives have to.
const (
	ndpipPC = `prefix=@PREFIX@
libdir=${prefix}/lib
includedir=${prefix}/include

Name: ndpip
Description: TCP and UDP in user space, on DPDK
Version: @VERSION@
Requires: ndpip-libs = @VERSION@, libdpdk >= @DPDK@
Libs.private: -L${libdir} -l:libndpip.a -lresolv -pthread
Cflags: -I${includedir}
`
	ndpipLibsPC = `prefix=@PREFIX@
libdir=${prefix}/lib

Name: ndpip-libs
Description: a part of ndpip.pc; use that
Version: @VERSION@
Libs: -L${libdir} -Wl,--push-state,--as-needed -lndpip -Wl,--pop-state
`
)
