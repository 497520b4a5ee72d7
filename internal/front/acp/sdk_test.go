//go:build unix

package acp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"
)

// TestSDK has the official client drive the real program through whole sessions.
func TestSDK(t *testing.T) {
	peers := testkit.Dir(t)
	inspan := testkit.Command(t)
	root := workspace(t)
	cmd := exec.Command(filepath.Join(peers, "node_modules", ".bin", "node22"),
		"testdata/client.mjs", filepath.Join(peers, "node_modules"), inspan, root)
	cmd.Env = home(t, `model = "script/commands"`)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(out), "ok "); n < 15 {
		t.Errorf("it has seen only %d things", n)
	}
}

// workspace is a folder with a file and a slash command.
func workspace(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(root, "cart.go"), "package cart\n\nconst limit = 10\n")
	put(t, filepath.Join(root, ".inspan", "commands", "greet.md"),
		"---\ndescription: say hello\nargument-hint: who\n---\nsay: Hello $ARGUMENTS\n")
	return root
}

// home is the environment of a program with settings of its own and no keys.
func home(t *testing.T, settings string) []string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "config", "config.toml"), settings+"\n")
	return []string{
		"HOME=" + dir, "INSPAN_CONFIG_DIR=" + filepath.Join(dir, "config"), "INSPAN_STATE_DIR=" + filepath.Join(dir, "state"),
		"PATH=" + os.Getenv("PATH"), "NO_COLOR=1", "TMPDIR=" + t.TempDir(),
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestVSCode builds the extension for VS Code and has it drive the real program. The editor around it has as much of
// VS Code as the extension uses.
func TestVSCode(t *testing.T) {
	t.Parallel()
	peers := filepath.Join(testkit.Dir(t), "node_modules")
	inspan := testkit.Command(t)
	source, err := filepath.Abs(filepath.Join("..", "..", "..", "editors", "vscode"))
	if err != nil {
		t.Fatal(err)
	}
	extension := t.TempDir()
	for _, name := range []string{"package.json", "tsconfig.json", "media"} {
		if err := os.Symlink(filepath.Join(source, name), filepath.Join(extension, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(extension, "src"), os.DirFS(filepath.Join(source, "src"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(peers, filepath.Join(extension, "node_modules")); err != nil {
		t.Fatal(err)
	}
	node := filepath.Join(peers, ".bin", "node22")
	if out, err := exec.Command(node, filepath.Join(peers, "typescript", "bin", "tsc"), "-p", extension).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(node, "testdata/vscode.mjs", extension, inspan, workspace(t))
	cmd.Env = home(t, `model = "script/commands"`)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if n := strings.Count(string(out), "ok "); err != nil || n != 7 {
		t.Errorf("%v: it has seen %d things", err, n)
	}
}
