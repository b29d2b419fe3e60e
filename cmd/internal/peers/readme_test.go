package peers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ndpip/cmd/internal/netns"
)

// TestReadmeEcho takes the program and the commands of the README as they stand there, and nc and curl to it.
func TestReadmeEcho(t *testing.T) {
	netns.Need(t)
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(readme), "```go\n")
	require.True(t, ok)
	text, rest, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	_, rest, ok = strings.Cut(rest, "\n```\n")
	require.True(t, ok)
	talk, _, _ := strings.Cut(rest, "```")
	lines := strings.Split(strings.TrimSpace(talk), "\n")
	require.Len(t, lines, 3, "how to set up the tap, curl and nc stand behind the program")
	setUp, curl, nc := lines[0], lines[1], lines[2]

	dir := t.TempDir()
	src, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "echo")
	require.NoError(t, os.WriteFile(src, []byte(text), 0o600))
	build := exec.Command("go", "build", "-o", program, src)
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	ns := netns.New(t)
	ctx := t.Context()
	echo := ns.Command(ctx, program)
	require.NoError(t, echo.Start())
	defer func() {
		_ = echo.Process.Kill()
		_ = echo.Wait()
	}()
	ns.Appears("tap0", 30*time.Second)
	ns.Run("sh", "-c", setUp)
	var answer string
	for end := time.Now().Add(20 * time.Second); answer != "hello\n" && time.Now().Before(end); {
		out, _ := ns.Command(ctx, "sh", "-c", "echo hello | timeout 5 "+nc+" -N -w 3").CombinedOutput()
		answer = string(out)
	}
	require.Equal(t, "hello\n", answer)
	// curl knows no end of such a conversation but its time.
	require.Regexp(t, `(?m)^GET / HTTP/1\.1\r\nHost: 10\.1\.0\.1:7\r\n`, ns.Run("sh", "-c", curl+" || true"))
}
