package text_test

import (
	"os/exec"
	"testing"

	"github.com/inspan/inspan/internal/text"
)

// TestWord holds that a shell reads a word as it was meant.
func TestWord(t *testing.T) {
	for word, want := range map[string]string{"/a/b-c.d": "/a/b-c.d", "": "''", "a b": "'a b'", "network(x)": "'network(x)'", "it's": `'it'\''s'`, "~": "'~'", "a\nb": "'a\nb'"} {
		if got := text.Word(word); got != want {
			t.Errorf("%q is written %q, not %q", word, got, want)
		}
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+text.Word(word)).Output(); err == nil && string(out) != word {
			t.Errorf("a shell reads %q as %q", word, out)
		}
	}
}
