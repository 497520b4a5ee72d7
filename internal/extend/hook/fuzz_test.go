package hook_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/tool"
)

func FuzzReadClaude(f *testing.F) {
	files, err := filepath.Glob("testdata/wild/*.txtar")
	if err != nil || len(files) < 8 {
		f.Fatal("no files", err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		_, text, _ := strings.Cut(string(raw), ".json --\n")
		text, _, _ = strings.Cut(text, "\n-- ")
		if _, _, err := hook.ReadClaude([]byte(text), name); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		hooks, notes, err := hook.ReadClaude(data, "x")
		if err != nil && (len(hooks) > 0 || len(notes) > 0) {
			t.Errorf("an error and %v, %v", hooks, notes)
		}
		for _, c := range hooks {
			if err := c.Check(); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
		}
		for _, n := range notes {
			if !strings.HasPrefix(n, "x: ") {
				t.Errorf("note %q", n)
			}
		}
	})
}

// parrot answers every request with the same.
type parrot []byte

func (p parrot) Do(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(p))}, nil
}

// FuzzAnswer checks that no answer breaks anything, and that its result is fit for the log.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"action":"deny","reason":"r","args":{"a":1},"text":"t"}`, `{"text":"\u001b[1mx","result":"y"}`, "plain", "\xff", `{"args":null}`,
		`{"continue":false,"stopReason":"s","decision":"block","reason":"r"}`,
		`{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"file_path":"/b","edits":[1]},"additionalContext":"c"}}`,
		`{"hookSpecificOutput":{"permissionDecision":"ask","updatedInput":{"old_string":1,"timeout":1e999,"todos":[{"content":[]}]}}}`,
		`{"hookSpecificOutput":{"updatedToolOutput":[{"text":"a"}]}}`,
	} {
		for i := range uint8(40) {
			f.Add([]byte(seed), i)
		}
	}
	names := []string{"bash", "edit_file", "todo", "mcp__x"}
	f.Fuzz(func(t *testing.T, answer []byte, which uint8) {
		moments := tool.Moments()
		m, name := moments[int(which)%len(moments)], names[int(which/16)%len(names)]
		p := tool.Point{Moment: m, Root: "/w"}
		if m == tool.BeforeCall || m == tool.AfterCall {
			p.Call = &tool.Call{
				Name: name,
				Args: json.RawMessage(`{"path":"a","edits":[{"old_string":"x"}],"timeout":3,"items":[{"text":"a","state":"open"}]}`),
			}
		}
		for _, claude := range []bool{false, true} {
			s := &hook.Set{Env: tool.Env{HTTP: parrot(answer)}, Hooks: []hook.Config{{On: m, URL: "https://example.com", Claude: claude}}}
			out, err := s.At(t.Context(), p)
			if err != nil && (out.Action != tool.Abstain || out.Text != "" || out.Args != nil || out.Result != nil) {
				t.Errorf("an answer that can't be understood brought %+v", out)
			}
			if out.Args != nil && (!json.Valid(out.Args) || bytes.TrimSpace(out.Args)[0] != '{' || m != tool.BeforeCall) {
				t.Errorf("args %q", out.Args)
			}
			if !utf8.ValidString(out.Text+out.Reason) || strings.ContainsAny(out.Text+out.Reason, "\x1b\x00\r") {
				t.Errorf("text %q, reason %q", out.Text, out.Reason)
			}
			if out.Action == tool.Deny && out.Reason == "" {
				t.Error("denied without a reason")
			}
		}
	})
}
