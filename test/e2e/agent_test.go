package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAgent gives the program one small task to do with a model that can call
// tools.
func TestAgent(t *testing.T) {
	env(t, "INSPAN_E2E_AGENT") // only where a model of a hub is to be had
	dir := t.TempDir()
	bin, work := filepath.Join(dir, "inspan"), filepath.Join(dir, "work")
	build := exec.Command("go", "build", "-o", bin, "./cmd/inspan")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	settings := "[providers.ollama]\nkind = \"ollama\"\nbase_url = \"" + env(t, "INSPAN_E2E_OLLAMA") + "\"\n"
	for path, text := range map[string]string{"settings/config.toml": settings, "work/note.txt": "The word is heron.\n"} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), bin, "run", "--mode", "auto", "--cwd", work, "--max-turns", "8",
		"--model", "ollama/"+env(t, tooled), "Read the file note.txt with a tool. Then answer with the one word that it names.")
	run.Env = append(os.Environ(), "INSPAN_CONFIG_DIR="+filepath.Join(dir, "settings"), "INSPAN_STATE_DIR="+filepath.Join(dir, "state"))
	out, err := run.Output()
	if err != nil || !strings.Contains(strings.ToLower(string(out)), "heron") {
		t.Errorf("%v: %s", err, out)
	}
}
