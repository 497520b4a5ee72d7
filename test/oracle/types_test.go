package oracle

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
)

// recorder is a transport that keeps the JSON of successful answers.
type recorder struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

// RoundTrip implements [http.RoundTripper].
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || resp.StatusCode/100 != 2 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil || !json.Valid(body) {
		return resp, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return resp, json.NewEncoder(&r.lines).Encode(map[string]any{"method": req.Method, "path": req.URL.Path, "body": json.RawMessage(body)})
}

// typed compares a server's answers with the types of the official SDK for TypeScript, by the methods that return them.
// Fields that the types don't have are errors too.
func (r *recorder) typed(t *testing.T) {
	programs := testkit.Dir(t)
	dir := t.TempDir()
	modules := filepath.Join(programs, "node_modules")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	write("recorded.jsonl", r.lines.String())
	write("package.json", `{"type": "module"}`)
	write("tsconfig.json", `{"compilerOptions": {"strict": true, "noEmit": true, "skipLibCheck": true, "target": "es2022",
		"module": "nodenext", "moduleResolution": "nodenext", "types": []}, "files": ["answers.ts"]}`)
	node := filepath.Join(modules, ".bin", "node22")
	run := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), node, args...)
		cmd.Dir = dir
		return cmd.CombinedOutput()
	}
	script, err := filepath.Abs(filepath.Join("testdata", "types.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	said, err := run(script, filepath.Join(modules, "@anthropic-ai", "sdk"), "recorded.jsonl", "answers.ts")
	var found struct {
		Methods, Unknown []string
		Values           int
	}
	if err != nil || json.Unmarshal(said, &found) != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if len(found.Methods) < 60 || len(found.Unknown) > 0 {
		t.Errorf("only %d methods of the SDK were answered, and it has none for %v", len(found.Methods), found.Unknown)
	}
	if said, err := run(filepath.Join(modules, "typescript", "bin", "tsc"), "-p", "."); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	t.Logf("%d answers to %d methods", found.Values, len(found.Methods))
}
