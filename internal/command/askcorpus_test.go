package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAskCorpusKeepsToItsSources holds that the command opens what --source names and nothing else, and
// asks no model about what is not there.
func TestAskCorpusKeepsToItsSources(t *testing.T) {
	h := newHome(t, "http://127.0.0.1:1")
	for _, name := range []string{"docs", "other"} {
		if err := os.MkdirAll(filepath.Join(h.work, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(h.work, name, "a.txt"), []byte("one\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(source, opens string) string {
		out, _ := h.command(t.Context(), "ask-corpus", h.work, "--source", source, "--model", "script",
			`call: corpus_list {"sources":["`+opens+`"]}`+"\n"+
				`call: corpus_answer {"answer":"One.","evidence":[{"source":"`+opens+`/a.txt","from":0,"to":3,"quote":"one"}]}`).CombinedOutput()
		return string(out)
	}
	if out := ask("docs", "docs"); !strings.Contains(out, "| One.\n\n[1] docs/a.txt, line 1 (bytes 0-3)\n  > one\n") {
		t.Error(out)
	}
	if out := ask("docs", "other"); !strings.Contains(out, "other is not one of the sources") || strings.Contains(out, "| One.") {
		t.Error(out)
	}
	if out := ask("nix", "docs"); !strings.Contains(out, `source "nix": `) || strings.Contains(out, "turn") {
		t.Error(out)
	}
}
