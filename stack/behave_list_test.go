package stack_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// behaviours is what users of other stacks of this kind reported as broken, one line each, and what was asked for. Each
// has a test named after it, here or with package api: TestW1 and what follows, as TestW1Fin.
var behaviours = []struct{ name, what string }{
	{"W1", "the window closes, and the update that opens it is lost"},
	{"W2", "the receive buffer is full, then the peer's FIN arrives"},
	{"W3", "an ACK moves the right edge of the window to the left"},
	{"W4", "100,000 segments of one byte, and a slow reader"},
	{"W5", "the application stops reading for 10 s in a bulk transfer"},
	{"W6", "window scales that the peer offers: 20, 14, 0, none"},
	{"W7", "initial sequence numbers 0xFFFFFF00, 64 MiB each way"},
	{"L1", "a segment is lost, duplicate ACKs come"},
	{"L2", "a round trip of 5 µs and 1 % loss for 60 s"},
	{"L3", "our FIN is lost; both FINs cross"},
	{"L4", "the SYN, or the SYN and ACK, is lost"},
	{"L5", "frames duplicated, reordered and corrupted for 60 s"},
	{"L6", "a receiver that delays its ACKs"},
	{"C1", "connect to a closed port"},
	{"C2", "segments for our closed port"},
	{"C3", "RST and SYN in and out of the window"},
	{"C4", "either side half-closes"},
	{"C5", "close with unread data, or SO_LINGER 0"},
	{"C6", "the peer vanishes after our FIN"},
	{"C7", "100,000 connections one after the other; TIME-WAIT"},
	{"C8", "more clients than the backlog, and nobody accepts"},
	{"C9", "a flood of 1,000,000 SYNs"},
	{"C10", "listen twice, bind to a port in use, bind to port 0"},
	{"C11", "1,000 connects before the first turn"},
	{"C12", "a connection and a listener on one port"},
	{"N1", "packets to a host that ARP has not resolved"},
	{"N2", "the peer's MAC changes, entries grow old, static ones, the gateway"},
	{"N3", "checksums by the port and in software"},
	{"N4", "1,000,000 malformed frames"},
	{"N5", "the application holds all buffers"},
	{"N6", "ping, a closed UDP port, ICMP errors"},
	{"N7", "a datagram larger than the MTU allows"},
	{"N8", "an MTU of 9000 against 1500, and against 9000"},
	{"A2", "zero-copy sending into a full window"},
	{"A3", "buffers freed twice, or sent by who does not own them"},
	{"A8", "one byte written leaves at once"},
	{"A9", "writes and reads of every length"},
	{"A10", "connect, close, and connect again at once"},
}

// TestBehaviours checks that each behaviour has a test.
func TestBehaviours(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	api, err := filepath.Glob("../api/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	test := regexp.MustCompile(`(?m)^func Test([A-Z][0-9]+)[A-Z]?[A-Za-z]*\(t \*testing\.T\)`)
	for _, f := range append(files, api...) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range test.FindAllStringSubmatch(string(text), -1) {
			found[m[1]]++
		}
	}
	n := 0
	for _, b := range behaviours {
		if found[b.name] == 0 {
			t.Errorf("%s (%s) has no test", b.name, b.what)
		}
		n += found[b.name]
	}
	t.Logf("%d tests of behaviours", n)
	if !testing.Short() { // the test run adds up what is counted, and only its first run is not short
		t.Logf("counted %d behaviours", len(behaviours))
	}
}
