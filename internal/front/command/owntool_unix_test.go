//go:build unix

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/store"
)

// TestOwnTool runs a tool of the person's, with a file next to it, in every mode: the settings folder that contains it
// stays closed to the model.
func TestOwnTool(t *testing.T) {
	t.Parallel()
	h := newHome(t, "http://127.0.0.1:1")
	dir := filepath.Join(h.dir, "config", "tools", "greet")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	program := `#!/bin/sh
if [ "$1" = --describe ]; then
	echo '{"name":"greet","description":"Greets.","schema":{"type":"object"},"effects":{"EFFECT":true}}'
	exit
fi
cat "${0%/*}/words"
`
	secret := filepath.Join(dir, "words")
	if err := os.WriteFile(secret, []byte("hello from beside"), 0o600); err != nil {
		t.Fatal(err)
	}
	sums := map[string][]string{} // of the two versions
	for _, tt := range []struct{ effect, mode, allow string }{
		{"read", "plan", ""}, {"read", "ask", ""}, {"write", "auto", ""}, {"write", "ask", "greet"}, {"write", "yolo", ""},
	} {
		if err := os.WriteFile(filepath.Join(dir, "greet"), []byte(strings.ReplaceAll(program, "EFFECT", tt.effect)), 0o700); err != nil {
			t.Fatal(err)
		}
		args := []string{"run", "--model", "script", "--mode", tt.mode, "call: greet {}\ncall: read_file {\"path\":\"" + secret + "\"}"}
		if tt.mode != "yolo" { // in which commands read what they like
			args[len(args)-1] += "\nbash: cat " + secret
		}
		if tt.allow != "" {
			args = append(args[:len(args)-1], "--allow", tt.allow, args[len(args)-1])
		}
		out, _ := h.command(t.Context(), args...).CombinedOutput()
		if strings.Count(string(out), "hello from beside") != 1 || !strings.Contains(string(out), "denied read_file") {
			t.Errorf("%+v:\n%s", tt, out)
		}
		sums[tt.effect] = append(sums[tt.effect], h.ran(t, "greet"))
	}
	reads, writes := sums["read"], sums["write"]
	if reads[0] == "" || reads[0] != reads[1] || writes[0] == reads[0] || writes[0] != writes[1] {
		t.Errorf("the log tells the two versions apart by %v", sums)
	}
}

// ran is the digest of the files that a tool has run in the last session; empty if the log has none.
func (h home) ran(t *testing.T, name string) string {
	t.Helper()
	id, err := h.store().Resolve(t.Context(), "last")
	if err != nil {
		t.Fatal(err)
	}
	var spans transcript.Spans
	if err := spans.Read(store.Events(t.Context(), h.store(), id)); err != nil {
		t.Fatal(err)
	}
	for _, s := range spans.List() {
		if s.Kind == transcript.SpanCall && s.Name == name {
			return s.Sum
		}
	}
	return ""
}
