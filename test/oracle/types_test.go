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

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/testkit"
)

// recorder is a transport that keeps the JSON of successful answers, and that of each event of a stream.
type recorder struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

// RoundTrip implements [http.RoundTripper].
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || resp.StatusCode/100 != 2 {
		return resp, err
	}
	body := &recorded{ReadCloser: resp.Body}
	switch kind := resp.Header.Get("Content-Type"); {
	case strings.HasPrefix(kind, "application/json"):
		body.over = func() { r.add(req, body.read.Bytes()) }
	case strings.HasPrefix(kind, "text/event-stream"):
		body.over = func() {
			for line := range bytes.Lines(body.read.Bytes()) {
				if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
					r.add(req, data)
				}
			}
		}
	default:
		return resp, nil
	}
	resp.Body = body
	return resp, nil
}

func (r *recorder) add(req *http.Request, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = json.NewEncoder(&r.lines).Encode(map[string]any{"method": req.Method, "path": req.URL.Path, "body": json.RawMessage(body)}) // or it was cut
}

// recorded is a body that keeps the bytes that were read. It calls over once, when it is closed.
type recorded struct {
	io.ReadCloser
	read bytes.Buffer
	over func()
	once sync.Once
}

func (b *recorded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Write(p[:n])
	return n, err
}

func (b *recorded) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(b.over)
	return err
}

// unanswered are the methods of the SDK, among those of the resources that the server has, whose answers have no type:
// downloads, and those that the server refuses.
func unanswered() []string {
	return []string{"Credentials.mcpOAuthValidate", "Files.download", "Resources.update", "Versions.download"}
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
	if newest() {
		npm := exec.CommandContext(t.Context(), "npm", "install", "--prefix", dir, "--no-fund", "--no-audit", "--ignore-scripts", "@anthropic-ai/sdk@latest")
		if out, err := npm.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	} else if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
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
	said, err := run(script, filepath.Join(dir, "node_modules", "@anthropic-ai", "sdk"), "recorded.jsonl", "answers.ts")
	var found struct {
		Methods, Unanswered, Unknown []string
		Values                       int
	}
	if err != nil || json.Unmarshal(said, &found) != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if len(found.Unknown) > 0 {
		t.Errorf("the SDK has no method for %v", found.Unknown)
	}
	if diff := cmp.Diff(unanswered(), found.Unanswered); diff != "" {
		t.Errorf("the methods without an answer in JSON are others (+):\n%s", diff)
	}
	if said, err := run(filepath.Join(modules, "typescript", "bin", "tsc"), "-p", "."); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	t.Logf("%d answers to %d methods:\n%s", found.Values, len(found.Methods), strings.Join(found.Methods, "\n"))
}
