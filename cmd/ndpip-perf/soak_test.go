package main_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// portLine is the last line that a program prints as JSON.
type portLine struct {
	Type                        string
	BuffersBefore               int `json:"buffers_before"`
	BuffersAfter                int `json:"buffers_after"`
	BuffersLeft                 int `json:"buffers_left"`
	Lost, Duplicated, Reordered uint64
}

// TestMemifFaults is 'go run ./cmd/dev soak' in short: connections come and go over a wire that loses, doubles and
// delays frames both ways. Every stream arrives as it was sent, and every buffer comes back.
func TestMemifFaults(t *testing.T) {
	file, sum := randomFile(t, 128<<10)
	p := startPair(t, "--sha256 --format json --loss 1% --duplicate 1% --reorder 1%", "--inline=false",
		"--fault-seed 2 --connections 12 --repeat 5 --file "+file)
	p.send.ends(0, 60*time.Second)
	p.recv.terminate()
	var streams [2]int
	for i, text := range []string{p.send.out.String(), p.recv.out.String()} {
		var port portLine
		for line := range strings.Lines(text) {
			var v struct {
				Type, SHA256 string
				Bytes        int
			}
			require.NoError(t, json.Unmarshal([]byte(line), &v), line)
			switch v.Type {
			case "stream":
				streams[i]++
				require.Equal(t, sum, v.SHA256, "stream %d of %d bytes", streams[i], v.Bytes)
			case "port":
				require.NoError(t, json.Unmarshal([]byte(line), &port), line)
			}
		}
		require.Equal(t, "port", port.Type)
		require.Equal(t, port.BuffersBefore, port.BuffersAfter, "buffers in use before the connections and after them")
		require.Zero(t, port.BuffersLeft, "buffers that did not come back")
		if i == 1 { // the sender receives ACKs alone, and so few that a fault may have happened to none
			require.Positive(t, port.Lost)
			require.Positive(t, port.Duplicated)
			require.Positive(t, port.Reordered)
		}
	}
	require.Equal(t, streams[0], streams[1])
	require.GreaterOrEqual(t, streams[0], 12)
	t.Logf("%d streams", streams[0])
}

// As text, the faults are told in a line at the end, and without faults there is no such line.
func TestMemifFaultsText(t *testing.T) {
	file, _ := randomFile(t, 128<<10)
	p := startPair(t, "", "--duplicate 50%", "--file "+file)
	p.send.ends(0, 30*time.Second)
	p.recv.says(&p.recv.out, "connections=0;", 5*time.Second)
	p.recv.terminate()
	require.Regexp(t, `(?m)^port: lost=0; duplicated=[1-9]\d*; reordered=0; buffers-left=0;$`, p.recv.out.String())
	require.NotContains(t, p.send.out.String(), "port:")
}
