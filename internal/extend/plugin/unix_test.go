//go:build unix

package plugin_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipes checks that a pipe without a writer blocks nothing.
func TestPipes(t *testing.T) {
	for _, at := range []string{"pipe", "hooks/hooks.json", ".claude-plugin/plugin.json"} {
		s, src := store(t), put(t, t.TempDir(), with(map[string]string{at: ""}))
		put(t, src, map[string]string{at: ""})
		remove(t, filepath.Join(src, filepath.FromSlash(at)))
		if err := syscall.Mkfifo(filepath.Join(src, filepath.FromSlash(at)), 0o644); err != nil {
			t.Skip("no pipes here: ", err)
		}
		_, err := s.Install(t.Context(), src)
		refused(t, err, "has "+at+" in it, which is not a file or a folder")
		empty(t, s)
	}
	s, pipe := store(t), filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Skip("no pipes here: ", err)
	}
	_, err := s.Install(t.Context(), pipe)
	refused(t, err, "is not a folder")
	p := install(t, s, put(t, t.TempDir(), full()))
	remove(t, p.Dir)
	if err := syscall.Mkfifo(p.Dir, 0o644); err != nil {
		t.Fatal(err)
	}
	if now := get(t, s, "acme"); !now.Broken {
		t.Errorf("%+v", now)
	}
}
