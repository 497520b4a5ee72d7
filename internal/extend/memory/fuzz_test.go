package memory_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/extend/memory"
)

// FuzzRoundTrip checks that whatever people write, reading it never fails, an entry that is added is there, all other
// bytes stay, and it can be taken out again.
func FuzzRoundTrip(f *testing.F) {
	for _, text := range []string{
		"", "\n", "- a\n- b", "# x\r\n\r\n- a\r\n  more\r\n\r\nprose", "```\n- a\n", "<!--\n- a\n", "\ufeff- a\n", "- [fact] a <!-- id=x source=\"y\" untrusted -->\n- b <!-- id=x -->\n",
		"- a <!-- source=\"\\\" -->", "-\ta\n\n\tb\n", "- \xff\x00\u202e\n", "- <!-- -->\n", "- [fact]\n", "* a\n~~~\n- b\n~~~\n", "- a <!-- supersedes=,, expires=1 -->",
	} {
		f.Add(text, "new text")
	}
	f.Fuzz(func(t *testing.T, text, added string) {
		dir := t.TempDir()
		path := filepath.Join(dir, "MEMORY.md")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := &memory.Store{Dirs: map[memory.Scope]string{memory.User: dir}, Now: now}
		if _, err := s.Index(); err != nil {
			t.Fatal(err)
		}
		e, err := s.Add(t.Context(), memory.User, memory.Entry{Text: added}, "")
		if err != nil {
			if after, _ := os.ReadFile(path); string(after) != text {
				t.Fatalf("%v, and yet the file changed", err)
			}
			return
		}
		x, err := s.Index()
		if err != nil || !slices.ContainsFunc(x.Entries, func(l memory.Listed) bool { return l.ID == e.ID && l.Text == e.Text && l.Kind == memory.Fact }) {
			t.Fatalf("%+v is not in %+v, %v", e, x, err)
		}
		if prompt := x.Text(); strings.Count(prompt, "\n") > len(x.Entries)+5 {
			t.Fatalf("an entry takes several lines:\n%s", prompt)
		}
		if _, err := s.Remove(t.Context(), memory.User, e.ID); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(path)
		if err != nil || !slices.Contains([]string{text, text + "\n", text + "\r\n"}, string(after)) && text != "" {
			t.Fatalf("%q became %q, %v", text, after, err)
		}
	})
}
