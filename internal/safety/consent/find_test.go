package consent_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/safety/consent"
)

var update = flag.Bool("update", false, "write the golden file anew")

func TestHostileWorkspace(t *testing.T) {
	root, canary := hostile(t)
	var got strings.Builder
	for _, it := range find(t, root) {
		known := "known"
		if it.Digest == "" {
			known = "not known"
		}
		fmt.Fprintf(&got, "%s, %s, %s\n", it.Path, it.Kind, known)
		for _, line := range it.Runs {
			line, _, _ = strings.Cut(line, "path escapes") // the rest is the system's
			fmt.Fprintf(&got, "\t%s\n", strings.ReplaceAll(line, canary, "CANARY"))
		}
		if strings.Contains(strings.Join(it.Runs, ""), "s3cret") {
			t.Errorf("%s shows the value of a variable", it.Path)
		}
	}
	if *update {
		write(t, ".", "testdata/hostile.golden", got.String())
	}
	want, err := os.ReadFile("testdata/hostile.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found, _ := filepath.Glob(canary + "*"); len(found) > 0 {
		t.Errorf("something ran: %v", found)
	}
}

func TestFindNothing(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"an empty folder": {},
		"harmless": {
			"main.go": "", "AGENTS.md": "", ".claude/agents/a.md": "", ".claude/CLAUDE.md": "", ".claude/commands/x.md": "", ".inspan/notes.md": "",
			".inspan/.gitignore":  "",
			".inspan/memory/a.md": "", ".inspan/skills/a/SKILL.md": "", ".inspan/skills/b.MD": "", ".claude/skills/a/more/b.md": "",
		},
		"rules that tighten": {".inspan/config.toml": "# ours\nask = ['bash(make *)']\ndeny = [\"read(x)\"]\n"},
		"rules with a reason": {".inspan/config.toml": "[[rule]]\naction = 'deny'\nrule = 'bash(make deploy)'\nreason = 'no'\n" +
			"[[rule]]\naction = 'ask'\nrule = 'write'"},
		"no rules":                       {".inspan/config.toml": ""},
		"files in the place of folders":  {".inspan": "", ".claude": ""},
		"items of the folders below":     {"sub/.inspan/hooks/x.sh": "", "sub/.mcp.json": "{}"},
		"folders with nothing in them":   {".inspan/skills/x/y.md": "", ".inspan/tools/../x.md": ""},
		"names that only begin the same": {".inspanx/hooks/a.sh": "", ".mcp.json.bak": "{}", "x.mcp.json": ""},
	} {
		root := folder(t)
		for name, text := range files {
			write(t, root, name, text)
		}
		if items := find(t, root); len(items) > 0 {
			t.Errorf("%s: %v", name, paths(items))
		}
	}
	root := folder(t)
	if err := os.MkdirAll(filepath.Join(root, ".inspan/hooks/deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	if items := find(t, root); len(items) > 0 {
		t.Errorf("an empty folder of hooks: %v", paths(items))
	}
}

// TestWhatASingleFileMakes has files that are items by themselves.
func TestWhatASingleFileMakes(t *testing.T) {
	for name, text := range map[string]string{
		".inspan/config.toml":        "allow = ['bash(*)']",
		".inspan/Config.TOML":        "mode = 'yolo'",
		".inspan/config.toml/x":      "a folder",
		".inspan/HOOKS/x":            "",
		".inspan/hooks":              "a file",
		".inspan/hooks/x.md":         "",
		".inspan/Agents/x.md":        "",
		".inspan/mcp.json":           "{}",
		".inspan/new/thing.yaml":     "",
		".inspan/skills/x/run":       "",
		".inspan/skills/x/a/b/c.txt": "",
		".inspan/commands/x.sh":      "",
		".inspan/.env":               "",
		".mcp.json/x":                "a folder",
		".claude/settings.json":      "{}",
		".claude/skills/x.sh":        "",
	} {
		root := folder(t)
		write(t, root, name, text)
		if items := find(t, root); len(items) != 1 || items[0].Digest == "" {
			t.Errorf("%s: %v", name, paths(items))
		}
	}
	for _, text := range []string{ // rules that may do more than tighten
		"[[rule]]\naction = 'deny'\nrule = 'x'\n[[rule]]\naction = 'allow'\nrule = 'bash'", "[[rule]]\nrule = 'bash'",
		"[[rule]]\naction = 'deny'\nAction = 'allow'\nrule = 'bash'", "[rule]\naction = 'deny'", "rule = 'deny'", "[[Rule]]\naction = 'deny'",
		"[[rule]]\naction = 'deny'\n[[hook]]\ncommand = 'x'",
	} {
		root := folder(t)
		write(t, root, ".inspan/config.toml", text)
		if items := find(t, root); len(items) != 1 {
			t.Errorf("%s: %v", text, paths(items))
		}
	}
	for name, text := range map[string]string{ // broken ones are items as well
		".inspan/config.toml": "deny = [", ".mcp.json": "{", ".claude/settings.json": "\xff",
		".inspan/tools/x.toml": strings.Repeat("[", 100<<10),
	} {
		root := folder(t)
		write(t, root, name, text)
		items := find(t, root)
		if len(items) != 1 || items[0].Digest == "" || !strings.HasPrefix(items[0].Runs[0], "is not understood") {
			t.Errorf("%s: %v", name, items)
		}
	}
}

// TestNamesOfTheSystem checks that every spelling that the file system takes for .inspan is found.
func TestNamesOfTheSystem(t *testing.T) {
	root := folder(t)
	write(t, root, ".INSPAN/hooks/x.sh", "")
	write(t, root, ".Mcp.Json", "{}")
	_, err := os.Stat(filepath.Join(root, ".inspan"))
	want := 2
	if err != nil {
		want = 0 // nothing here would open them
	}
	if items := find(t, root); len(items) != want {
		t.Errorf("%v, want %d", paths(items), want)
	}
}

func TestNamedScripts(t *testing.T) {
	for _, tt := range []struct {
		name, file, text string
		named            []string
	}{
		{"first word", ".mcp.json", `{"command": "./s/a.sh --x"}`, []string{"s/a.sh"}},
		{"argument", ".mcp.json", `{"command": "node", "args": ["-r", "s/b.js"]}`, []string{"s/b.js"}},
		{"one argument", ".mcp.json", `{"command": "node", "args": "s/b.js"}`, []string{"s/b.js"}},
		{"option", ".mcp.json", `{"command": "node --require=s/b.js"}`, []string{"s/b.js"}},
		{"folder", ".mcp.json", `{"command": "sh a.sh", "cwd": "s"}`, []string{"s/a.sh"}},
		{"variable", ".claude/settings.json", `{"command": "$CLAUDE_PROJECT_DIR/s/a.sh; ${X}/s/b.js"}`, []string{"s/a.sh", "s/b.js"}},
		{"quoted variable", ".claude/settings.json", `{"command": "\"$CLAUDE_PROJECT_DIR\"/s/a.sh"}`, []string{"s/a.sh"}},
		{"quoted space", ".claude/settings.json", `{"command": "'s/c d' x"}`, []string{"s/c d"}},
		{"space in a word", ".mcp.json", `{"command": ["s/c d"]}`, []string{"s/c d"}},
		{"in a shell", ".mcp.json", `{"command": "sh", "args": ["-c", "cd x&&s/a.sh|s/b.js"]}`, []string{"s/a.sh", "s/b.js"}},
		{"absolute", ".mcp.json", `{"command": "ROOT/s/a.sh"}`, []string{"s/a.sh"}},
		{"not clean", ".mcp.json", `{"command": "x/../s/./a.sh"}`, []string{"s/a.sh"}},
		{"link", ".mcp.json", `{"command": "s/link"}`, []string{"s/link"}},
		{"link out", ".mcp.json", `{"command": "s/out"}`, []string{"s/out!"}},
		{"twice", ".mcp.json", `{"a": {"command": "s/a.sh"}, "b": {"command": "s/a.sh"}}`, []string{"s/a.sh"}},
		{"per system", ".mcp.json", `{"command": {"linux": "s/a.sh", "windows": "s/b.js"}}`, []string{"s/a.sh", "s/b.js"}},
		{"duplicate keys", ".mcp.json", `{"command": "s/a.sh", "Command": "s/b.js", "command": "x"}`, []string{"s/a.sh", "s/b.js"}},
		{"no program", ".mcp.json", `{"title": "s/a.sh", "command": "make test"}`, nil},
		{"outside", ".mcp.json", `{"command": "/bin/sh ../x ~/y s"}`, nil},
		{"an item already", ".inspan/tools/x.toml", "command = '.inspan/tools/x.toml'", nil},
		{"toml", ".inspan/config.toml", "[[hooks]]\ncommand = ['sh', 's/a.sh']", []string{"s/a.sh"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := folder(t)
			for _, name := range []string{"s/a.sh", "s/b.js", "s/c d"} {
				write(t, root, name, "")
			}
			link(t, "a.sh", filepath.Join(root, "s/link"))
			link(t, "/bin/sh", filepath.Join(root, "s/out"))
			write(t, root, tt.file, strings.ReplaceAll(tt.text, "ROOT", filepath.ToSlash(root)))
			items := find(t, root)
			got := slices.DeleteFunc(paths(items), func(p string) bool { return p == tt.file })
			if diff := cmp.Diff(tt.named, append([]string(nil), got...)); diff != "" || len(items) != len(tt.named)+1 {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRuns(t *testing.T) {
	for _, tt := range []struct {
		file, text string
		want       []string
	}{
		{".mcp.json", `{"mcpServers": {"a b": {"command": "npx", "args": ["-y", "two words", "", "$X"], "env": {"B": "1", "A": "2"}, "cwd": ` +
			`"x"}}}`, []string{
			"sets mcpServers", `mcpServers.a b: npx -y "two words" "" "$X" (environment B=1, A=2; in x)`,
		}},
		{
			".mcp.json", `{"s": {"command": "a", "hosts": ["x.example"], "read": ["/opt/a", "/opt/b"], "write": ["/srv/a"], "dir": "docs", "cwd": ` +
				`"/etc", "env": {"LEVEL": "${DATABASE_URL}", "A": "1"}}}`,
			[]string{"sets s", "s: a (may reach x.example; may read /opt/a, /opt/b; may change /srv/a; in docs; in /etc; environment " +
				"LEVEL=${DATABASE_URL}, A=1)"},
		},
		{".mcp.json", "\ufeff" + `{"s": {"command": "a" /* b */, "env": ["X=1", "Y"],},} // end`, []string{"sets s", "s: a (environment X=1, Y)"}},
		{".mcp.json", `{"command": "a", "command": "b"}`, []string{"sets command", "command: a", "command: b"}},
		{".mcp.json", `{"s": {"command": "a // b, ]"}}`, []string{"sets s", "s: a // b, ]"}},
		{".mcp.json", `{"command": "a\n\u202eb\u001b[2J\u3164"}`, []string{"sets command", `command: "a\n\u202eb\x1b[2J\u3164"`}},
		{".mcp.json", `{"a\nb": {"url": "http://x\n"}}`, []string{`sets "a\nb"`, `"a\nb".url: connects to "http://x\n"`}},
		{
			".mcp.json", strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000),
			[]string{"is not understood, so what it runs is not known: more than 64 values in one another"},
		},
		{
			".mcp.json", strings.Repeat(" ", 200<<10) + "{}",
			[]string{"is not understood, so what it runs is not known: it is longer than 131072 bytes"},
		},
		{".mcp.json", "{} {}", []string{"is not understood, so what it runs is not known: something follows its end"}},
		{".inspan/config.toml", "model = 'x'\n[providers.p]\nkey_command = 'pass x'\nbase_url = 'http://h'", []string{
			"sets model, providers", "model = x", "providers.p.base_url: connects to http://h", "providers.p.key_command: pass x",
		}},
		{
			".inspan/config.toml", "mode = 'yolo'\nallow = ['bash(rm *)', 'read(~/**)']\n[sandbox]\noff = true\n[[hook]]\non = 'stop'\ncommand = 'make'\nhosts = ['x.example']",
			[]string{
				"sets allow, hook, mode, sandbox", "allow = bash(rm *), read(~/**)", "hook: make (may reach x.example)", "hook.on = stop", "mode = yolo",
				"sandbox.off = true",
			},
		},
		{".inspan/tools/x", "", []string{".inspan/tools/x"}},
		{".inspan/notes.txt", "", nil},
	} {
		root := folder(t)
		write(t, root, tt.file, tt.text)
		if diff := cmp.Diff(tt.want, find(t, root)[0].Runs); diff != "" {
			t.Errorf("%s %.60s (-want +got):\n%s", tt.file, tt.text, diff)
		}
	}
}

func TestWeirdNames(t *testing.T) {
	root := folder(t)
	for _, name := range []string{
		"a\nb", "\x1b[2J", "\u202egpj.sh", "zero\u200bwidth",
		"filler\u3164", "bytes\xff", "fine \u00e4\u4e2d 'x'", `"quoted"`, "-rf", " ",
	} {
		if err := os.MkdirAll(filepath.Join(root, ".inspan/tools"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, ".inspan/tools", name), nil, 0o644); err != nil {
			t.Logf("not possible here: %q", name)
		}
		write(t, root, ".inspan/hooks/sub/"+strings.ToValidUTF8(name, "_"), "")
	}
	s := store(t)
	var good []consent.Item
	for _, it := range find(t, root) {
		for _, text := range append([]string{it.Path, it.Kind}, it.Runs...) {
			if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == 0x3164 }) {
				t.Errorf("%q can't be shown as it is", text)
			}
		}
		if it.Digest != "" {
			good = append(good, it)
		}
	}
	want := []string{".inspan/hooks/", ".inspan/tools/ ", `.inspan/tools/"quoted"`, ".inspan/tools/-rf", ".inspan/tools/fine \u00e4\u4e2d 'x'"}
	if diff := cmp.Diff(want, paths(good)); diff != "" {
		t.Errorf("can be trusted (-want +got):\n%s", diff)
	}
	trust(t, s, root, good)
	if r := review(t, s, root); len(r.Trusted) != len(good) {
		t.Errorf("trusted %v", paths(r.Trusted))
	}
}

func TestBounds(t *testing.T) {
	t.Run("bytes", func(t *testing.T) {
		root := folder(t)
		write(t, root, ".inspan/tools/most", strings.Repeat("x", 1<<20))
		write(t, root, ".inspan/tools/more", strings.Repeat("x", 1<<20+1))
		if diff := cmp.Diff([]string{".inspan/tools/more!", ".inspan/tools/most"}, paths(find(t, root))); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("entries", func(t *testing.T) {
		root := folder(t)
		for i := range 999 { // and hooks itself
			write(t, root, fmt.Sprintf(".inspan/hooks/%04d", i), "")
		}
		if diff := cmp.Diff([]string{".inspan/hooks/"}, paths(find(t, root))); diff != "" {
			t.Error(diff)
		}
		write(t, root, ".mcp.json", "{}")
		write(t, root, ".inspan/tools/x", "")
		write(t, root, ".inspan/skills/x/SKILL.md", "")
		items := find(t, root)
		if diff := cmp.Diff([]string{".inspan/hooks/!", ".inspan/skills/!", ".inspan/tools/!", ".mcp.json!"}, paths(items)); diff != "" {
			t.Error(diff)
		}
		for range 20 {
			if !cmp.Equal(find(t, root), items) {
				t.Fatal("not the same each time")
			}
		}
	})
	t.Run("depth", func(t *testing.T) {
		root := folder(t)
		write(t, root, ".inspan/hooks/"+strings.Repeat("d/", 19)+"x", "")
		if items := find(t, root); items[0].Digest == "" {
			t.Error(items)
		}
		write(t, root, ".inspan/hooks/"+strings.Repeat("d/", 20)+"x", "")
		if items := find(t, root); items[0].Digest != "" {
			t.Error(items)
		}
	})
	t.Run("words", func(t *testing.T) {
		root := folder(t)
		write(t, root, ".mcp.json", `{"command": "`+strings.Repeat("x ", 5000)+`"}`)
		if items := find(t, root); len(items) != 1 || items[0].Digest != "" {
			t.Error(paths(items))
		}
	})
}

func TestLinks(t *testing.T) {
	outside := folder(t)
	write(t, outside, "secret.json", `{"command": "never shown"}`)
	for name, tt := range map[string]struct{ target, at, want string }{
		"file outside":          {"OUT/secret.json", ".mcp.json", ".mcp.json!"},
		"relative, outside":     {"../../../../../../../../../../etc/hostname", ".inspan/tools/x", ".inspan/tools/x!"},
		"folder outside":        {"OUT", ".inspan", ".inspan!"},
		"hooks outside":         {"OUT", ".inspan/hooks", ".inspan/hooks!"},
		"skills outside":        {"OUT", ".claude/skills", ".claude/skills!"},
		"itself":                {"x", ".inspan/tools/x", ".inspan/tools/x!"},
		"nothing":               {"nothing", ".inspan/tools/x", ".inspan/tools/x!"},
		"folder above":          {"..", ".inspan/hooks/x", ".inspan/hooks/!"},
		"skill that is a link":  {"../../docs", ".inspan/skills/x", ".inspan/skills/x!"},
		"through a link inside": {"../../docs/out/secret.json", ".inspan/tools/x", ".inspan/tools/x!"},
		"file inside":           {"../../docs/a.md", ".inspan/tools/x", ".inspan/tools/x"},
	} {
		t.Run(name, func(t *testing.T) {
			root := folder(t)
			write(t, root, "docs/a.md", "")
			link(t, outside, filepath.Join(root, "docs/out"))
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, tt.at)), 0o755); err != nil {
				t.Fatal(err)
			}
			link(t, strings.ReplaceAll(tt.target, "OUT", outside), filepath.Join(root, tt.at))
			items := find(t, root)
			if diff := cmp.Diff([]string{tt.want}, paths(items)); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(fmt.Sprint(items), "never shown") {
				t.Error("content from outside was read")
			}
		})
	}
}

func TestFindErrors(t *testing.T) {
	root := folder(t)
	write(t, root, "file", "")
	for _, bad := range []string{"", filepath.Join(root, "file"), filepath.Join(root, "gone")} {
		if items, err := consent.Find(bad); err == nil {
			t.Errorf("%q: %v", bad, items)
		}
	}
}

func BenchmarkFindNothing(b *testing.B) {
	root := folder(b)
	for i := range 1000 {
		write(b, root, fmt.Sprintf("f%d.go", i), "")
	}
	for b.Loop() {
		if items, err := consent.Find(root); err != nil || len(items) > 0 {
			b.Fatal(items, err)
		}
	}
}

func BenchmarkFindHostile(b *testing.B) {
	root, _ := hostile(b)
	for b.Loop() {
		if _, err := consent.Find(root); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzSettings(f *testing.F) {
	for _, seed := range []string{
		`{"mcpServers": {"a": {"command": "x", "args": ["y"], "env": {"Z": "1"}}}}`, `{"hooks": {"X": [{"hooks": [{"command": "a b"}]}]}, // c` +
			"\n}", `[1,2,]`, `{"a":"\"//`, "/*", `{"url":"\u202e"}`,
		"[[hooks]]\ncommand = 'x'\ndeny = []", "a.b.c = 1", `{"command": {"a": "b"}, "cwd": "/", "args": [[[]]]}`,
	} {
		f.Add([]byte(seed))
	}
	root := f.TempDir()
	s := store(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{".mcp.json", ".claude/settings.json", ".inspan/config.toml"} {
			write(t, root, name, string(data))
		}
		items := find(t, root)
		if len(items) < 2 || !cmp.Equal(items, find(t, root)) {
			t.Fatalf("%d items, or not the same twice", len(items))
		}
		for _, it := range items {
			for _, line := range it.Runs {
				if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Fatalf("%s: %q can't be shown as it is", it.Path, line)
				}
			}
		}
		known := slices.DeleteFunc(items, func(it consent.Item) bool { return it.Digest == "" })
		if err := s.Trust(t.Context(), root, known); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Review(root, known); err != nil || len(r.Trusted) != len(known) {
			t.Fatalf("%v, %v", r, err)
		}
		if err := s.Distrust(t.Context(), root); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTeamMemory finds each file that agents are told of, and no temporary file of a writer.
func TestTeamMemory(t *testing.T) {
	root := folder(t)
	for name, text := range map[string]string{
		".inspan/memory/MEMORY.md": "- Push first.\n\n- \u202eX\n", ".inspan/memory/topics/a.md": "More.",
		".inspan/memory/topics/empty.md": " \n",
		".inspan/memory/README.md":       "", ".inspan/memory/MEMORY.md.new-ABC": "half", ".inspan/memory/topics/a.md.new-ABC": "half",
		".inspan/memory/.lock": "",
	} {
		write(t, root, name, text)
	}
	want := []consent.Item{
		consent.Remembered(".inspan/memory/MEMORY.md", []byte("- Push first.\n\n- \u202eX\n")),
		consent.Remembered(".inspan/memory/topics/a.md", []byte("More.")),
	}
	want[0].Runs = []string{"tells agents: - Push first.", `tells agents: "- \u202eX"`}
	want[1].Runs = []string{"tells agents: More."}
	if diff := cmp.Diff(want, find(t, root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// What a command line names is an item for that as well.
	write(t, root, ".inspan/mcp.json", `{"mcpServers":{"x":{"command":"sh","args":[".inspan/memory/topics/a.md"]}}}`)
	kinds := map[string]bool{}
	for _, it := range find(t, root) {
		if it.Path == ".inspan/memory/topics/a.md" {
			kinds[it.Kind] = true
		}
	}
	if !kinds[consent.Memory] || !kinds[consent.Server] {
		t.Error(kinds)
	}
}
