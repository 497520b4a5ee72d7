package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/world/sandbox"
)

// boxing is an installation whose commands run in boxes.
func boxing(t *testing.T, settings string) *app.App {
	t.Helper()
	load(t, settings)
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{Self: "/proc/self/exe"})
	if err != nil {
		t.Fatal(err)
	}
	if !env.Walls.Read || !env.Walls.Workspace {
		t.Skip(env.Walls.Why)
	}
	a, err := app.Load("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestFoldersOfASession checks that a session uses further folders like its workspace, with its tools and in its boxes,
// and that its log knows them.
func TestFoldersOfASession(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ws", "one", "two", "three", "other"} {
		if err := os.Mkdir(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("one", filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(top, name) }
	a := boxing(t, "folders = ['"+at("two")+"', '/none/such']")
	var warned string
	warn := func(text string) { warned += text }
	o := app.Options{Model: "script", Mode: "auto", Unattended: true, Folders: []string{at("link")}}
	writes := func(name string) []string {
		return []string{`bash {"command":"cd ` + at(name) + ` && echo a >a && cat a"}`, `write_file {"path":"` + at(name) + `/b","content":"b\n"}`}
	}
	fine := func(when, name string, ended []event.Ended, want bool) {
		t.Helper()
		for _, e := range ended {
			if went := e.Outcome == event.OutcomeOK && (e.Exit == nil || *e.Exit == 0); went != want {
				t.Errorf("%s, in %s: %s", when, name, e.Parts.Text())
			}
		}
		for _, file := range []string{"a", "b"} {
			if _, err := os.Stat(filepath.Join(at(name), file)); (err == nil) != want {
				t.Errorf("%s, %s in %s: %v", when, file, name, err)
			}
			_ = os.Remove(filepath.Join(at(name), file))
		}
	}
	host := a.Host(o, warn)
	s, err := host.New(t.Context(), at("ws"))
	id := s.ID()
	ended := results(t, s, err, append(append(writes("one"), writes("two")...), writes("other")...)...)
	fine("at first", "one", ended[:2], true)
	fine("at first", "two", ended[2:4], true)
	fine("at first", "other", ended[4:], false)
	if got := ended[4]; strings.Join(got.Ways, " ") != "--add-dir "+at("other") ||
		!strings.Contains(got.Parts.Text(), "[the sandbox closed "+at("other")+", which is outside the workspace; --add-dir "+at("other")+" opens it") {
		t.Errorf("a command that finds a folder closed says %q, %q", got.Ways, got.Parts.Text())
	}
	if got, want := ended[5].Parts.Text(), "--allow 'write("+at("other")+"/b)' (allow in the settings) would let it run, or --add-dir "+at("other"); !strings.Contains(got, want) {
		t.Errorf("a tool that finds a folder closed says %q, not %q", got, want)
	}
	if !strings.Contains(warned, "/none/such does not exist") {
		t.Errorf("of a folder of the settings that is gone a person is told %q", warned)
	}
	s, err = a.Host(app.Options{Unattended: true, Folders: []string{at("three")}}, warn).Open(t.Context(), id)
	ended = results(t, s, err, append(writes("one"), writes("three")...)...)
	fine("resumed", "one", ended[:2], true)
	fine("resumed", "three", ended[2:], true)
	s, err = a.Host(app.Options{Unattended: true}, warn).Fork(t.Context(), id, 0)
	if got, want := strings.Join(s.Status().Folders, " "), at("two")+" "+at("one")+" "+at("three"); got != want {
		t.Errorf("a fork has %s, not %s", got, want)
	}
	ended = results(t, s, err, append(writes("three"), `spawn_agent {"task":"call: write_file {\"path\":\"`+at("one")+`/b\",\"content\":\"b\"}"}`)...)
	fine("forked", "three", ended[:2], true)
	if _, err := os.Stat(at("one") + "/b"); err != nil {
		t.Errorf("an agent that works for it: %v, %s", err, ended[2].Parts.Text())
	}
	log, err := host.Sessions().Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	prompt := ""
	for e, err := range log.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b, is := e.Body.(event.Added); is {
			prompt += b.Text
		}
	}
	if want := "\n- " + at("two") + "\n- " + at("one"); !strings.Contains(prompt, want) {
		t.Errorf("the prompt is %q, without %q", prompt, want)
	}
	for path, want := range map[string]string{
		"/": "can't be opened as a whole", "/tmp": "can't be opened as a whole", at("none"): "does not exist", at("ws") + "/../link/../one": "",
		a.StateDir: "a session can't use", "/etc/passwd": "is not a folder",
	} {
		if _, err := a.Folder(path); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := a.Host(app.Options{Model: "script", Folders: []string{at("none")}}, warn).New(t.Context(), at("ws")); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
