package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// narHash is the hash that Nix gives a file or a folder: SHA-256 of its archive (NAR), in the form of an SRI. The archive
// holds names, contents, the executable bit and where links lead, and nothing else, so it is the same on every machine.
func narHash(path string) (string, error) {
	sum := sha256.New()
	n := narWriter{w: sum}
	n.words("nix-archive-1")
	n.node(path)
	if n.err != nil {
		return "", n.err
	}
	return "sha256-" + base64.StdEncoding.EncodeToString(sum.Sum(nil)), nil
}

// narWriter writes an archive: words, each with its length before it and zeros up to the next multiple of eight.
type narWriter struct {
	w   io.Writer
	err error // the first; nothing is written after it
}

func (n *narWriter) words(words ...string) {
	for _, s := range words {
		buf := binary.LittleEndian.AppendUint64(nil, uint64(len(s)))
		buf = append(buf, s...)
		buf = append(buf, make([]byte, -len(s)&7)...)
		if n.err == nil {
			_, n.err = n.w.Write(buf)
		}
	}
}

func (n *narWriter) node(path string) {
	st, err := os.Lstat(path)
	if err != nil {
		n.fail(err)
		return
	}
	n.words("(", "type")
	switch {
	case st.Mode().IsRegular():
		text, err := os.ReadFile(path)
		n.fail(err)
		n.words("regular")
		if st.Mode()&0o100 != 0 {
			n.words("executable", "")
		}
		n.words("contents", string(text))
	case st.Mode().Type() == os.ModeSymlink:
		target, err := os.Readlink(path)
		n.fail(err)
		n.words("symlink", "target", target)
	case st.IsDir():
		entries, err := os.ReadDir(path) // sorted by name, as the archive has to be
		n.fail(err)
		n.words("directory")
		for _, e := range entries {
			n.words("entry", "(", "name", e.Name(), "node")
			n.node(filepath.Join(path, e.Name()))
			n.words(")")
		}
	default:
		n.fail(fmt.Errorf("%s is neither a file nor a folder nor a link", path))
	}
	n.words(")")
}

func (n *narWriter) fail(err error) {
	if n.err == nil {
		n.err = err
	}
}
