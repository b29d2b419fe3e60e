//go:build ndpipdebug

package api

import (
	"strings"
	"testing"
	"time"

	"ndpip/stack/link"
)

// TestTwoReaders has a debug build find two readers of one descriptor.
func TestTwoReaders(t *testing.T) {
	a, b := linkHosts(t, Config{}, link.Config{})
	_, cb := dial(t, a, b, 0)
	go func() { _, _ = b.Read(cb, make([]byte, 1)) }()
	eventually(t, func() bool { return b.fds.get(cb).users.n[reading].Load() == 1 })
	time.Sleep(time.Millisecond)
	defer func() {
		if s, _ := recover().(string); !strings.Contains(s, "two goroutines read") {
			t.Errorf("%q", s)
		}
	}()
	_, _ = b.Read(cb, make([]byte, 1))
	t.Error("nobody has noticed")
}
