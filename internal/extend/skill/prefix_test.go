package skill_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/extend/skill"
)

func TestPrefix(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"a", "b"} {
		if err := os.MkdirAll(filepath.Join(dir, n), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, n, "SKILL.md"), []byte("---\nname: "+n+"\ndescription: x\n---\nSee ${CLAUDE_PLUGIN_ROOT}/x"),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	l := &skill.Library{Folders: []skill.Folder{
		{Path: dir, Source: "plugin p", Prefix: "p:", Only: []string{"b"}, Root: "/R"},
		{Path: dir, Source: "user"},
	}}
	list, warn := l.List()
	if len(list) != 3 || list[2].Name != "p:b" || len(list[2].Problems) > 0 || warn != nil {
		t.Errorf("%+v %q", list, warn)
	}
	text, s, err := l.Invoke("p:b", "")
	if err != nil || s.Name != "p:b" || !strings.Contains(text, "See /R/x") {
		t.Error(text, err)
	}
	if c, err := l.Cost("p:b"); err != nil || c.Index.Tokens == 0 {
		t.Error(err)
	}
}
