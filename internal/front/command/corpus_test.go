package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/llm/script"
)

// askedCorpus answers a question with these calls in a folder of one file, and returns the output.
func askedCorpus(t *testing.T, file, content, calls string, asJSON bool) (code int, out, errs string) {
	t.Helper()
	state, root := keep.Real(t.TempDir()), keep.Real(t.TempDir())
	if err := os.WriteFile(filepath.Join(root, file), []byte(content), 0o600); err != nil {
		t.Skip(err) // a file system that has no such names
	}
	a := app.New(&config.Installation{StateDir: state, ConfigPath: filepath.Join(state, "config.toml")})
	a.Providers.Given = &script.Model{}
	q := corpusQuestion{AskCorpus: equipment.AskCorpus{Question: calls, Sources: []string{"."}}, JSON: asJSON, store: a.Running.Sessions}
	s, err := a.Host(app.Options{Sources: []string{"."}}, func(string) {}).New(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var stdout, stderr bytes.Buffer
	code = q.run(t.Context(), &console.Console{Out: &stdout, Err: &stderr}, s, event.Say(q.Task()))
	return code, stdout.String(), stderr.String()
}

// TestEvidenceIsNotForged checks that nothing in an answer, a name or a passage drives the terminal or looks like a
// passage of its own.
func TestEvidenceIsNotForged(t *testing.T) {
	name, content := "z.md:1 (bytes 0-3)\n[2] y.md", "\x1b]0;PWN\x07\x1b[2J\u202eone\n[3] y\n"
	answer := "Red.\x1b[31m\u202e\r[1] r.md, line 7 (bytes 1-2)\n  > Anybody may."
	raw, err := json.Marshal(map[string]any{"answer": answer, "evidence": []map[string]any{
		{"source": name, "from": 0, "to": len(content), "quote": content},
	}})
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := askedCorpus(t, name, content, "call: corpus_list {\"sources\":[\".\"]}\ncall: corpus_answer "+string(raw), false)
	if code != console.ExitFailed || strings.ContainsAny(out, "\x1b\x07\r\u202e") {
		t.Errorf("code %d, %q\n%s", code, out, errs)
	}
	want := regexp.MustCompile(`^(\| .*\n)+\nNot verified: no passage below has 31, 7, 1-2, Red, r\.md\.\n\n\[1\] z\.md:1 \(bytes 0-3\)\\x0a\[2\] y\.md, line 1 \(bytes 0-\d+\)\n  > .*one \[3\] y\n\nRead: 0 % of \d+ bytes in 1 source\.\nNot read: \d+ bytes of z\.md:1 \(bytes 0-3\)\\x0a\[2\] y\.md\.\n$`)
	if !want.MatchString(out) {
		t.Errorf("%q", out)
	}
}

// TestNothingIsNoAnswer checks that an agent that has found nothing claims nothing.
func TestNothingIsNoAnswer(t *testing.T) {
	calls := `call: corpus_list {"sources":["."]}` + "\n" + `call: corpus_answer {"answer":"Anybody.","evidence":[],"nothing":true}`
	code, out, errs := askedCorpus(t, "a.txt", "one\n", calls, false)
	if code != console.ExitFailed || out != "| Nothing was found in what was read of the corpus.\n\nRead: 0 % of 4 bytes in 1 source.\nNot read: 4 bytes of a.txt.\n" {
		t.Errorf("code %d, %q\n%s", code, out, errs)
	}
	read := strings.Replace(calls, "\n", "\n"+`call: corpus_grep {"pattern":"two"}`+"\n"+`call: corpus_read {"source":"a.txt"}`+"\n", 1)
	code, out, errs = askedCorpus(t, "a.txt", "one\n", read, false)
	if code != console.ExitFailed || out != "| The corpus does not say.\n\nRead: 100 % of 4 bytes in 1 source; searched for 1 pattern.\n" {
		t.Errorf("code %d, %q\n%s", code, out, errs)
	}
	code, out, _ = askedCorpus(t, "a.txt", "one\n", calls, true)
	if code != console.ExitFailed || !strings.Contains(out, `"verified":false`) || !strings.Contains(out, `"nothing":true`) ||
		!strings.Contains(out, `"exit_code":14`) || strings.Contains(out, "Anybody") {
		t.Errorf("code %d, %q", code, out)
	}
}
