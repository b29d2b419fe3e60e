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
	text, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	_, rest, _ = strings.Cut(text, `as root, "`)
	setUp, rest, _ := strings.Cut(rest, `", then "`)
	talk, _, ok := strings.Cut(rest, `"`)
	require.True(t, ok, "the README's program says how to set up the tap, and how to talk to it")

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
		out, _ := ns.Command(ctx, "sh", "-c", "echo hello | timeout 5 "+talk+" -N -w 3").CombinedOutput()
		answer = string(out)
	}
	require.Equal(t, "hello\n", answer)
	// curl knows no end of such a conversation but its time.
	require.Equal(t, "hello\n", ns.Run("sh", "-c", "(echo hello; sleep 0.5) | curl -s --max-time 2 telnet://10.1.0.1:7 || true"))
}
