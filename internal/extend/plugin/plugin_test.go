package plugin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/plugin"
)

func TestLife(t *testing.T) {
	s, src := store(t), put(t, t.TempDir(), full())
	p, err := s.Install(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "acme" || p.Version != "1.0.0" || p.Description != "Does all." ||
		p.Author != "Ann" || p.License != "MIT" || p.Homepage != "https://acme.example" ||
		p.Enabled || p.Broken || p.Source != src || len(p.Digest) != 64 || p.Dir != filepath.Join(s.Dir, "acme", p.Digest) || p.Problems != nil {
		t.Errorf("%+v", p)
	}
	refused(t, s.Enable(t.Context(), "acme", strings.Repeat("0", 64)), "has changed since you looked")
	refused(t, s.Enable(t.Context(), "acne", p.Digest), "did you mean acme?")
	if err := s.Enable(t.Context(), "acme", p.Digest); err != nil {
		t.Fatal(err)
	}
	again, err := s.Install(t.Context(), src)
	if err != nil || !again.Enabled || again.Digest != p.Digest {
		t.Errorf("%+v %v", again, err)
	}
	list, err := s.List(t.Context())
	if err != nil || len(list) != 1 || !list[0].Enabled {
		t.Errorf("%+v %v", list, err)
	}
	if err := s.Disable(t.Context(), "acme"); err != nil || get(t, s, "acme").Enabled {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(p.Dir, "scripts", "fmt.sh")); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info, err)
	}
	if err := s.Remove(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	refused(t, s.Remove(t.Context(), "acme"), `no plugin "acme"`)
	refused(t, s.Disable(t.Context(), "acme"), `no plugin "acme"`)
	empty(t, s)
}

func TestOneName(t *testing.T) {
	s, a, b := store(t), put(t, t.TempDir(), full()), put(t, t.TempDir(), full())
	p := install(t, s, a)
	_, err := s.Install(t.Context(), b)
	refused(t, err, "a plugin acme from "+a)
	put(t, a, map[string]string{"rules.txt": "Be rude."})
	_, err = s.Install(t.Context(), a)
	refused(t, err, "'inspan plugin update acme'")
	if now := get(t, s, "acme"); now.Digest != p.Digest || !now.Enabled {
		t.Errorf("%+v", now)
	}
	for _, name := range []string{"Acme", "", "a_b", "-a", "a-", "a--b", "a.b", "../a", strings.Repeat("a", 65), "é"} {
		_, err = s.Install(t.Context(), put(t, t.TempDir(), map[string]string{manifest: fmt.Sprintf(`{"name":%q}`, name)}))
		refused(t, err, "name: ")
	}
}

func TestUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		change map[string]string
		stays  bool
	}{
		"nothing": {nil, true},
		"a text": {map[string]string{
			"rules.txt":              "Be rude.",
			"skills/deploy/SKILL.md": "---\nname: deploy\ndescription: Ships.\nallowed-tools: Bash(touch:*)\n---\nShip.",
		}, true},
		"the version":   {map[string]string{manifest: `{"name":"acme","version":"2.0.0"}`}, true},
		"a new command": {map[string]string{"commands/new.md": "New."}, true},
		"what skills may": {map[string]string{"skills/deploy/SKILL.md": "---\nname: deploy\ndescription: Ships it.\nallowed-tools: Bash\n" +
			"---\nShip it."}, false},
		"a script":       {map[string]string{"scripts/fmt.sh*": "#!/bin/sh\nexit 1\n"}, false},
		"a new script":   {map[string]string{"skills/deploy/scripts/x.py": "1"}, false},
		"a text with #!": {map[string]string{"rules.txt": "#!/bin/sh\n"}, false},
		"an executable":  {map[string]string{"rules.txt*": "Be nice."}, false},
		"a tool":         {map[string]string{"tools/shout*": "#!/bin/sh\n"}, false},
		"a tool's text":  {map[string]string{"tools/whisper/notes.md": "x"}, false},
		"data":           {map[string]string{"data.json": "{}"}, false},
		"a hook": {
			map[string]string{"hooks/hooks.json": `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]}}`},
			false,
		},
		"a hook's reach": {map[string]string{"hooks/hooks.json": `{"hooks":{"PostToolUse":[{"matcher":"Edit","hooks":[{"type":"command",` +
			`"command":"${CLAUDE_PLUGIN_ROOT}/scripts/fmt.sh"}]}]}}`}, false},
		"a server": {map[string]string{".mcp.json": `{"mcpServers":{"db":{"url":"https://x.example"}}}`}, false},
		"a server's values": {map[string]string{".mcp.json": `{"mcpServers":{"db":{"command":"${CLAUDE_PLUGIN_ROOT}/db","args":["--port","1"],` +
			`"env":{"TOKEN":"hush","A":"c"}}}}`}, false},
		"hooks inside": {
			map[string]string{manifest: `{"name":"acme","hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]}}`},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, src := store(t), put(t, t.TempDir(), full())
			p := install(t, s, src)
			put(t, src, tc.change)
			was, now, err := s.Update(t.Context(), "acme")
			if err != nil || was.Digest != p.Digest || now.Enabled != tc.stays || (now.Digest == was.Digest) != (tc.change == nil) {
				t.Fatalf("%v\n%+v\n%+v", err, was, now)
			}
			after := get(t, s, "acme")
			if after.Enabled != tc.stays || after.Digest != now.Digest || after.Dir != now.Dir || after.Broken {
				t.Errorf("%+v", after)
			}
			if _, err := os.Stat(was.Dir); err != nil {
				t.Error("sessions may still use it: ", err)
			}
		})
	}
}

// TestNamedText checks that a text that a hook names counts as a part of what runs.
func TestNamedText(t *testing.T) {
	s := store(t)
	src := put(t, t.TempDir(),
		with(map[string]string{"hooks/hooks.json": `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"sh ` +
			`${CLAUDE_PLUGIN_ROOT}/rules.txt"}]}]}}`}))
	install(t, s, src)
	put(t, src, map[string]string{"rules.txt": "rm -rf /"})
	if _, now, err := s.Update(t.Context(), "acme"); err != nil || now.Enabled {
		t.Errorf("%+v %v", now, err)
	}
}

func TestUpdateAgain(t *testing.T) {
	s, src := store(t), put(t, t.TempDir(), full())
	first := install(t, s, src)
	put(t, src, map[string]string{"rules.txt": "2"})
	if _, _, err := s.Update(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	put(t, src, map[string]string{"rules.txt": "3"})
	if _, _, err := s.Update(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Join(s.Dir, "acme")); err != nil || len(entries) != 2 ||
		slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == first.Digest }) {
		t.Error(entries, err)
	}
	put(t, src, map[string]string{"rules.txt": "Be nice."})
	if _, now, err := s.Update(t.Context(), "acme"); err != nil || now.Digest != first.Digest || !now.Enabled {
		t.Error(now, err)
	}
	put(t, src, map[string]string{manifest: `{"name":"other"}`})
	_, _, err := s.Update(t.Context(), "acme")
	refused(t, err, "its name is now other")
	if err := os.RemoveAll(src); err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Update(t.Context(), "acme")
	refused(t, err, "update acme: ")
	if now := get(t, s, "acme"); !now.Enabled || now.Digest != first.Digest {
		t.Errorf("%+v", now)
	}
	_, _, err = s.Update(t.Context(), "nothing")
	refused(t, err, "no plugin")
}

func TestChangedCopies(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"a byte":       func(t *testing.T, dir string) { put(t, dir, map[string]string{"rules.txt": "Be Nice."}) },
		"a new file":   func(t *testing.T, dir string) { put(t, dir, map[string]string{"hooks/x": ""}) },
		"a bit":        func(t *testing.T, dir string) { put(t, dir, map[string]string{"rules.txt*": "Be nice."}) },
		"a .git":       func(t *testing.T, dir string) { put(t, dir, map[string]string{".git/config": "x"}) },
		"a file fewer": func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "rules.txt")) },
		"all of it":    func(t *testing.T, dir string) { remove(t, dir) },
		"a name": func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, "rules.txt"), filepath.Join(dir, "rules2.txt")); err != nil {
				t.Fatal(err)
			}
		},
		"a link to the same": func(t *testing.T, dir string) {
			remove(t, filepath.Join(dir, "rules.txt"))
			link(t, "same.txt", filepath.Join(dir, "rules.txt"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, src := store(t), put(t, t.TempDir(), full())
			p := install(t, s, src)
			if err := p.Check(); err != nil {
				t.Error(err)
			}
			change(t, p.Dir)
			refused(t, p.Check(), "has changed since its installation")
			list, err := s.List(t.Context())
			if err != nil || len(list) != 1 || !list[0].Broken || list[0].Enabled || len(list[0].Problems) != 1 || list[0].Digest != p.Digest {
				t.Fatalf("%+v %v", list, err)
			}
			if parts := list[0].Parts(); parts.Hooks != nil || parts.Skills != nil || parts.Runs != nil {
				t.Errorf("%+v", parts)
			}
			refused(t, s.Enable(t.Context(), "acme", p.Digest), "can't be enabled")
			if again, err := s.Install(t.Context(), src); err != nil || again.Broken || !again.Enabled || again.Digest != p.Digest {
				t.Errorf("it should be mended: %+v %v", again, err)
			}
			change(t, p.Dir)
			if _, now, err := s.Update(t.Context(), "acme"); err != nil || now.Broken || now.Enabled {
				t.Errorf("it should be mended and looked at: %+v %v", now, err)
			}
		})
	}
}

func remove(t *testing.T, at string) {
	t.Helper()
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Skip("no links here: ", err)
	}
}

func TestIndex(t *testing.T) {
	s, src := store(t), put(t, t.TempDir(), full())
	p := install(t, s, src)
	at := filepath.Join(s.Dir, "plugins.json")
	good, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                                   "is damaged",
		"{":                                  "is damaged",
		"[]":                                 "is damaged",
		"null":                               "its version is 0",
		`{"version":2,"plugins":[],"new":1}`: "later version",
		`{"version":1,"plugins":[],"x":1}`:   "unknown field",
		`{"version":1,"plugins":[]}{}`:       "something follows",
		strings.Replace(string(good), p.Digest, "../../../etc", 1):               "invalid digest",
		strings.Replace(string(good), `"acme"`, `"../acme"`, 1):                  "is not the name",
		strings.Replace(string(good), `"enabled"`, `"commit":"-x","enabled"`, 1): "invalid commit",
		strings.Replace(string(good), `"source": "`, `"source": "\n`, 1):         "an invalid source",
		strings.Replace(string(good), `[`, `[`+record(string(good))+`,`, 1):      "there twice",
	} {
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.List(t.Context())
		refused(t, err, want)
		refused(t, err, at)
		_, err = s.Install(t.Context(), put(t, t.TempDir(), map[string]string{manifest: `{"name":"b"}`}))
		refused(t, err, want)
		refused(t, s.Remove(t.Context(), "acme"), want)
		if now, err := os.ReadFile(at); err != nil || string(now) != text {
			t.Errorf("the index was changed: %q", now)
		}
		if _, err := os.Stat(p.Dir); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(at, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if now := get(t, s, "acme"); !now.Enabled {
		t.Errorf("%+v", now)
	}
	if err := os.Chmod(at, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = s.List(t.Context())
	refused(t, err, "can be changed by other users")
	remove(t, at)
	link(t, "elsewhere", at)
	_, err = s.List(t.Context())
	refused(t, err, "is not the file that inspan put there")
	_, err = (&plugin.Store{}).List(t.Context())
	refused(t, err, "no folder is set")
}

// record cuts the one record out of an index.
func record(text string) string {
	_, text, _ = strings.Cut(text, "[")
	text, _, _ = strings.Cut(text, "]")
	return text
}

// TestAtOnce checks that stores which work on one folder lose nothing.
func TestAtOnce(t *testing.T) {
	s := store(t)
	var all sync.WaitGroup
	for i := range 12 {
		src := put(t, t.TempDir(), map[string]string{manifest: fmt.Sprintf(`{"name":"p%d"}`, i)})
		all.Go(func() {
			mine := plugin.Store{Dir: s.Dir}
			p, err := mine.Install(t.Context(), src)
			if err == nil {
				err = mine.Enable(t.Context(), p.Name, p.Digest)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	list, err := s.List(t.Context())
	if err != nil || len(list) != 12 || slices.ContainsFunc(list, func(p plugin.Plugin) bool { return !p.Enabled || p.Broken }) {
		t.Errorf("%d %v", len(list), err)
	}
}

// TestLeftovers checks that files of killed processes are removed once no process owns them.
func TestLeftovers(t *testing.T) {
	s := store(t)
	put(t, s.Dir, map[string]string{".new-OLD/copy/x": "x", ".new-FRESH/copy/x": "x", "plugins.json.new-KILLED": "{", "kept.new-THEIRS": ""})
	if err := os.Chtimes(filepath.Join(s.Dir, ".new-OLD"), time.Time{}, time.Now().Add(-48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	install(t, s, put(t, t.TempDir(), map[string]string{manifest: `{"name":"acme"}`}))
	for name, stays := range map[string]bool{
		".new-OLD": false, ".new-FRESH": true,
		"plugins.json.new-KILLED": false, "kept.new-THEIRS": true,
	} {
		if _, err := os.Stat(filepath.Join(s.Dir, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestInlineServers checks that values in a manifest in place of a file count, down to the last one.
func TestInlineServers(t *testing.T) {
	server := func(value string) map[string]string {
		return map[string]string{manifest: `{"name":"a","mcpServers":{"s":{"command":"c","env":{"A":"` + value + `"}}}}`}
	}
	s, src := store(t), put(t, t.TempDir(), server("1"))
	install(t, s, src)
	put(t, src, server("2"))
	if _, now, err := s.Update(t.Context(), "a"); err != nil || now.Enabled {
		t.Errorf("%+v %v", now, err)
	}
}

// TestBrokenText checks that a copy which was tampered with is looked at again even where nothing in it runs.
func TestBrokenText(t *testing.T) {
	s, src := store(t), put(t, t.TempDir(), map[string]string{manifest: `{"name":"a"}`, "commands/x.md": "x"})
	p := install(t, s, src)
	put(t, p.Dir, map[string]string{"commands/x.md": "y"})
	if _, now, err := s.Update(t.Context(), "a"); err != nil || now.Enabled || now.Broken {
		t.Errorf("%+v %v", now, err)
	}
}
