package oracle

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
)

// TestGeneratedClients has clients that common generators make from the description of the API submit a task, answer
// its question and read its events.
func TestGeneratedClients(t *testing.T) {
	w := newWeb(t)
	dir, folder := t.TempDir(), filepath.Join(w.dir, "folder")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.at+"/api/v1/openapi.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.token())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", res.Status, err)
	}
	description := filepath.Join(dir, "openapi.json")
	if err := os.WriteFile(description, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	works := func(t *testing.T, program ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program[0], append(program[1:], "http://"+w.at, w.token(), folder)...)
		cmd.Env, cmd.Dir = append(os.Environ(), "PYTHONPATH="+filepath.Join(dir, "python")), dir
		out, err := cmd.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "completed generated done 3 not_found_error" {
			t.Errorf("%v: %s", err, out)
		}
		if err := os.Remove(filepath.Join(folder, "generated")); err != nil {
			t.Error(err)
		}
	}
	run := func(t *testing.T, program ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program[0], program[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	t.Run("TypeScript", func(t *testing.T) {
		modules := filepath.Join(testkit.Dir(t), "node_modules")
		program, err := os.ReadFile(filepath.Join("testdata", "generated.mts"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "generated.mts"), program, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		node := filepath.Join(modules, ".bin", "node22")
		run(t, node, filepath.Join(modules, "openapi-typescript", "bin", "cli.js"), description, "-o", "api.d.ts")
		run(t, node, filepath.Join(modules, "typescript", "bin", "tsc"), "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022",
			"--types", "node", "generated.mts")
		works(t, node, "generated.mjs")
	})
	t.Run("Python", func(t *testing.T) {
		const generator = "0.26.1"
		python := pythonWith(t, "openapi-"+generator, "import openapi_python_client", "openapi-python-client=="+generator)
		run(t, python, "-m", "openapi_python_client", "generate", "--path", description, "--output-path", filepath.Join(dir, "python"))
		program, err := filepath.Abs(filepath.Join("testdata", "generated.py"))
		if err != nil {
			t.Fatal(err)
		}
		works(t, python, program)
	})
}
