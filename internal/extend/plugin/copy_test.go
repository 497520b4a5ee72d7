package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSourceChanges checks that a folder which changes while it is copied is not taken. What it is like in between is
// seen from inside of the package only.
func TestSourceChanges(t *testing.T) {
	for _, tc := range []struct {
		change func(src, dst string) error
		want   string
	}{
		{func(_, _ string) error { return nil }, ""},
		{func(src, _ string) error { return os.WriteFile(filepath.Join(src, "a"), []byte("2"), 0o600) }, "it changed while it was copied"},
		{func(src, _ string) error { return os.WriteFile(filepath.Join(src, "b"), nil, 0o600) }, "it changed while it was copied"},
		{func(_, dst string) error { return os.WriteFile(filepath.Join(dst, "a"), []byte("2"), 0o600) }, "its copy differs from the source"},
		{func(_, dst string) error { return os.Remove(filepath.Join(dst, "a")) }, "its copy differs from the source"},
	} {
		src, dst := t.TempDir(), t.TempDir()
		if err := os.WriteFile(filepath.Join(src, "a"), []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
		from, err1 := os.OpenRoot(src)
		into, err2 := os.OpenRoot(dst)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		leaves, err := scan(from, into, false)
		if err == nil {
			err = tc.change(src, dst)
		}
		if err != nil {
			t.Fatal(err)
		}
		err = unchanged(from, into, digestOf(leaves))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%v, want %q", err, tc.want)
		}
		_ = from.Close()
		_ = into.Close()
	}
}

func FuzzManifest(f *testing.F) {
	f.Add(`{"name":"a","commands":["./x","y"],"hooks":{"Stop":[]},"mcpServers":"./m.json","author":{"name":"A"}}`)
	f.Add(`{"name":"a","skills":"../x","hooks":["a",{"b":1}]}`)
	f.Fuzz(func(t *testing.T, data string) {
		m, err := parseManifest([]byte(data))
		if err != nil {
			return
		}
		all := m.commands
		for _, list := range [][]string{m.agents, m.skills, m.tools} {
			all = append(all, list...)
		}
		for _, p := range append(m.hooks, m.servers...) {
			if p.inline == nil {
				all = append(all, p.path)
			}
		}
		for _, at := range all {
			if !filepath.IsLocal(filepath.FromSlash(at)) {
				t.Errorf("%q leads out", at)
			}
		}
		if !validName(m.name) {
			t.Errorf("%q is no name", m.name)
		}
	})
}

func FuzzSource(f *testing.F) {
	for _, text := range []string{
		"https://h/p#r:s", "ext::sh -c x", "git@h:p",
		"-u", "ssh://-oProxyCommand=x/y", "file:///x", "/a#-b", "a@b:-c",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSource(text)
		if err != nil || s.folder != "" {
			return
		}
		if s.url == "" || s.url[0] == '-' || s.ref != "" && s.ref[0] == '-' || s.sub != "" && !filepath.IsLocal(s.sub) {
			t.Errorf("%q: %+v", text, s)
		}
		if again, err := parseSource(s.text); err != nil || again != s {
			t.Errorf("%q is kept as %q, which is %+v, not %+v (%v)", text, s.text, again, s, err)
		}
	})
}
