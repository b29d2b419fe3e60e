package api

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ndpip/dpdk"
	"ndpip/stack/link"
	"ndpip/stack/pcap"
	"ndpip/stack/wire"
)

// captured is a frame in short: who sends, flags, length of the text.
func captured(t *testing.T, b []byte, from byte) string {
	t.Helper()
	h, drop := wire.ParseIPv4(b[14:], true)
	require.Equal(t, wire.OK, drop)
	l4 := b[34 : 14+h.Len()]
	require.EqualValues(t, wire.Good, wire.Fold(wire.Sum(l4, wire.PseudoHeader(h.Src(), h.Dst(), h.Proto(), len(l4)))), "checksum")
	s := "< "
	if byte(h.Src()) == from {
		s = "> "
	}
	for i, name := range "FSRPAU" {
		if l4[13]&(1<<i) != 0 {
			s += string(name)
		}
	}
	if n := len(l4) - int(l4[12]>>4)*4; n > 0 {
		s += " text"
	}
	return s
}

func TestCapture(t *testing.T) {
	a, b := linkHosts(t, Config{Inline: true, Checksum: ChecksumSoftware}, link.Config{})
	var file, heads bytes.Buffer
	c, err := a.Capture(&file, CaptureConfig{Filter: "tcp"})
	require.NoError(t, err)
	ends, err := b.Capture(&heads, CaptureConfig{Filter: "host 10.0.0.1 and flags syn,fin", Snap: 54})
	require.NoError(t, err)
	ca, cb := connected(t, a, b, nil)
	_, err = a.Write(ca, make([]byte, 5000))
	require.NoError(t, err)
	buf := make([]byte, 8192)
	eventually(t, func() bool {
		n, _ := b.Read(cb, buf)
		a.poll()
		return n > 0
	})
	require.NoError(t, a.Close(ca))
	eventually(t, func() bool {
		a.poll()
		n, err := b.Read(cb, buf)
		return n == 0 && err == nil
	})
	require.NoError(t, b.Close(cb))
	for range 10 {
		a.poll()
		b.poll()
	}
	stats, err := c.Stop()
	require.NoError(t, err)
	require.Zero(t, stats.Lost)
	require.EqualValues(t, file.Len(), stats.Bytes)
	records, err := pcap.Read(&file)
	require.NoError(t, err)
	require.Len(t, records, int(stats.Frames))
	var seen []string
	for i, r := range records {
		seen = append(seen, captured(t, r.Frame, 1))
		require.InDelta(t, time.Now().Unix(), r.At.Seconds(), 60)
		require.True(t, i == 0 || records[i-1].At <= r.At)
	}
	text := strings.Join(seen, ", ")
	require.Regexp(t, `^> S, < SA, > A, (> P?A text, ){4}(< A, )*> FA, (< A, )*< FA, > A$`, text)

	_, err = ends.Stop()
	require.NoError(t, err)
	records, err = pcap.Read(&heads)
	require.NoError(t, err)
	require.Len(t, records, 4, "SYN and FIN, of each side")
	for _, r := range records {
		require.LessOrEqual(t, len(r.Frame), 54)
	}
	require.NoError(t, a.Stop())
	_, err = c.Stop()
	require.NoError(t, err, "once more, after the host")
}

// A capture ends at its bound, with its host, and when the writer fails; and the stack goes on.
func TestCaptureEnds(t *testing.T) {
	a, b := linkHosts(t, Config{Inline: true}, link.Config{})
	var short bytes.Buffer
	bound, err := a.Capture(&short, CaptureConfig{Bytes: 200})
	require.NoError(t, err)
	failing, err := a.Capture(failingWriter{}, CaptureConfig{})
	require.NoError(t, err)
	var whole bytes.Buffer
	running, err := a.Capture(&whole, CaptureConfig{})
	require.NoError(t, err)
	connected(t, a, b, nil)
	s, err := bound.Stop()
	require.NoError(t, err)
	require.True(t, s.Full)
	require.LessOrEqual(t, short.Len(), 200)
	_, err = failing.Stop()
	require.ErrorContains(t, err, "disk full")
	require.NoError(t, a.Stop())
	_, err = running.Stop()
	require.NoError(t, err)
	records, err := pcap.Read(&whole)
	require.NoError(t, err)
	require.Contains(t, captured(t, records[len(records)-1].Frame, 1), "> R", "Stop resets what is open")

	for text, want := range map[string]string{
		"host": `"host "`, "host ::1": `"host ::1"`, "port x": `"port x"`, "flags bla": `"flags bla"`, "bla": `"bla": want words such as`,
	} {
		_, err := b.Capture(&short, CaptureConfig{Filter: text})
		require.ErrorContains(t, err, want)
	}
	_, err = b.Capture(&short, CaptureConfig{Snap: 5})
	require.Error(t, err)
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestFilter(t *testing.T) {
	frame := func(proto, flags byte) []byte {
		b := make([]byte, 60)
		wire.PutEthernet(b, wire.MAC{2}, wire.MAC{3}, wire.TypeIPv4)
		wire.PutIPv4(b[14:], 0x0a000001, 0x0a000002, proto, 46, 0)
		b[34], b[35], b[36], b[37], b[47] = 0, 80, 0x9c, 0x40, flags
		return b
	}
	arp := make([]byte, 60)
	wire.PutEthernet(arp, wire.MAC{2}, wire.MAC{3}, wire.TypeARP)
	arp[28], arp[31], arp[38], arp[41] = 10, 1, 10, 2
	for text, want := range map[string]string{
		"": "tcp udp arp", "tcp": "tcp", "udp": "udp", "arp": "arp", "icmp": "", "host 10.0.0.1": "tcp udp arp", "host 10.0.0.1 host 10.0.0.2": "tcp udp arp",
		"host 10.0.0.3": "", "port 80": "tcp udp", "port 40000 and tcp": "tcp", "port 81": "", "flags syn": "tcp", "flags fin,rst": "", "flags fin,syn": "tcp",
	} {
		f, err := parseFilter(text)
		require.NoError(t, err)
		var got []string
		for _, c := range []struct {
			name string
			b    []byte
		}{{"tcp", frame(wire.ProtoTCP, 2)}, {"udp", frame(wire.ProtoUDP, 0)}, {"arp", arp}} {
			if f.frame(c.b) {
				got = append(got, c.name)
			}
			for n := range c.b {
				f.frame(c.b[:n]) // nothing is read that is not there
			}
		}
		require.Equal(t, want, strings.Join(got, " "), text)
	}
}

// The checksum that is left to the port is filled in.
func TestCaptureSums(t *testing.T) {
	b := make([]byte, 60)
	wire.PutIPv4(b[14:], 0x0a000001, 0x0a000002, wire.ProtoTCP, 45, 0)
	copy(b[54:], "hello")
	pseudo := wire.PseudoHeader(0x0a000001, 0x0a000002, wire.ProtoTCP, 25)
	sum := wire.Fold(pseudo)
	b[50], b[51] = byte(sum>>8), byte(sum)
	to := bytes.Clone(b)
	fillSums(to, b, dpdk.TxTCPSum)
	require.EqualValues(t, wire.Good, wire.Fold(wire.Sum(to[34:59], pseudo)))
	fillSums(to[:40], b, dpdk.TxTCPSum) // cut short in front of it
}

// ndpip-stat's capture, through the control socket.
func TestControlCapture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.sock")
	a, b := linkHosts(t, Config{Inline: true, Control: path}, link.Config{})
	c, err := net.Dial("unix", path)
	require.NoError(t, err)
	_, err = c.Write([]byte("capture 0 flags syn\n"))
	require.NoError(t, err)
	head := make([]byte, len(pcap.Header()))
	eventually(t, func() bool {
		a.tapMu.Lock()
		defer a.tapMu.Unlock()
		return len(a.taps) == 1
	})
	connected(t, a, b, nil)
	_, err = io.ReadFull(c, head)
	require.NoError(t, err)
	require.Equal(t, pcap.Header(), head)
	frame := make([]byte, 16+62)
	_, err = io.ReadFull(c, frame)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	eventually(t, func() bool {
		a.tapMu.Lock()
		defer a.tapMu.Unlock()
		return len(a.taps) == 0
	})
}
