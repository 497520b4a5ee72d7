package plugin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/extend/plugin"
)

func TestBadFolders(t *testing.T) {
	deep := strings.Repeat("d/", 22) + "x"
	for name, tc := range map[string]struct {
		files map[string]string
		links map[string]string
		want  string
	}{
		"a link out":         {full(), map[string]string{"rules2.txt": "../../../../../../etc/passwd"}, "rules2.txt in it, which leads out"},
		"an absolute link":   {full(), map[string]string{"skills/x": "/etc"}, "skills/x in it, which leads out"},
		"a link nowhere":     {full(), map[string]string{"x": "nowhere"}, "nowhere"},
		"a link to a folder": {full(), map[string]string{"x": "skills"}, "does not lead to a file"},
		"a link to git's": {
			with(map[string]string{".git/config": "secret"}),
			map[string]string{"x": ".git/config"},
			"leads into git's own files",
		},
		"a link to itself":     {full(), map[string]string{"x": "x"}, "link x in it"},
		"names in two cases":   {with(map[string]string{"Rules.TXT": "x"}), nil, "both Rules.TXT and rules.txt"},
		"folders in two cases": {with(map[string]string{"SKILLS/x": "x"}), nil, "both SKILLS and skills"},
		"a hidden name":        {with(map[string]string{"a\u202eb": "x"}), nil, "invisible"},
		"no UTF-8":             {with(map[string]string{"a\xff": "x"}), nil, "invisible"},
		"a backslash":          {with(map[string]string{`a\b`: "x"}), nil, "not portable"},
		"too deep":             {with(map[string]string{deep: "x"}), nil, "nested more than 20 deep"},
		"a long path":          {with(map[string]string{strings.Repeat(strings.Repeat("a", 100)+"/", 3) + "x": "x"}), nil, "a path of"},
		"no plugin":            {map[string]string{"x": "x"}, nil, "it is not a plugin"},
		"a marketplace":        {map[string]string{".claude-plugin/marketplace.json": "{}", "commands/x.md": "x"}, nil, "a marketplace, not a plugin, and offers no"},
		"a broken marketplace": {map[string]string{".claude-plugin/marketplace.json": "{", "commands/x.md": "x"}, nil, "a marketplace, not a plugin, and its"},
		"broken JSON":          {map[string]string{manifest: "{"}, nil, "is not understood"},
		"a list":               {map[string]string{manifest: "[]"}, nil, "is not understood"},
		"no name":              {map[string]string{manifest: "{}"}, nil, "name: "},
		"a name that is none":  {map[string]string{manifest: `{"name":1}`}, nil, "name: it is not text"},
		"a long manifest":      {map[string]string{manifest: strings.Repeat(" ", 257<<10) + `{"name":"a"}`}, nil, "more than 262,144 bytes"},
		"no manifest":          {map[string]string{"commands/x.md": "x"}, nil, "can't be the name of a plugin"},
		"hooks are broken":     {with(map[string]string{"hooks/hooks.json": "{"}), nil, "hooks can't be read"},
		"servers are broken":   {with(map[string]string{".mcp.json": `{"mcpServers":1}`}), nil, "servers can't be read"},
		"hooks are missing":    {with(map[string]string{manifest: `{"name":"a","hooks":"./h.json"}`}), nil, "h.json: "},
	} {
		t.Run(name, func(t *testing.T) {
			s, src := store(t), filepath.Join(t.TempDir(), "A")
			put(t, src, tc.files)
			for at, to := range tc.links {
				link(t, to, filepath.Join(src, filepath.FromSlash(at)))
			}
			_, err := s.Install(t.Context(), src)
			refused(t, err, tc.want)
			empty(t, s)
		})
	}
}

func TestBadPaths(t *testing.T) {
	for _, field := range []string{"commands", "agents", "skills", "tools", "hooks", "mcpServers"} {
		for _, value := range []string{
			`"../x"`, `"/etc/passwd"`, `"./a/../../x"`, `""`,
			`["./commands","../x"]`, `"a\\..\\x"`, `"C:/x"`, `1`, `[1]`, `[["x"]]`, `"a\u0000b"`, `true`,
		} {
			_, err := store(t).Install(t.Context(), put(t, t.TempDir(),
				map[string]string{manifest: fmt.Sprintf(`{"name":"a",%q:%s}`, field, value)}))
			refused(t, err, field+": ")
		}
	}
	_, err := store(t).Install(t.Context(), put(t, t.TempDir(), map[string]string{manifest: `{"name":"a","commands":{"x":1}}`}))
	refused(t, err, "not a path or a list")
}

// TestInnerLinks checks that a link to a file of the folder becomes a file.
func TestInnerLinks(t *testing.T) {
	s, src := store(t), put(t, t.TempDir(), full())
	link(t, "../rules.txt", filepath.Join(src, "skills", "rules.txt"))
	p := install(t, s, src)
	info, err := os.Lstat(filepath.Join(p.Dir, "skills", "rules.txt"))
	if err != nil || !info.Mode().IsRegular() {
		t.Error(info, err)
	}
}

func TestBounds(t *testing.T) {
	const text = `{"name":"a"}`
	s, src := store(t), put(t, t.TempDir(), map[string]string{manifest: text, "big": ""})
	for i := range plugin.MaxFiles - 3 {
		if err := os.WriteFile(filepath.Join(src, fmt.Sprintf("f%d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	big := filepath.Join(src, "big")
	resize := func(n int) {
		if err := os.Truncate(big, int64(n)); err != nil {
			t.Fatal(err)
		}
	}
	resize(plugin.MaxBytes - len(text) + 1)
	_, err := s.Install(t.Context(), src)
	refused(t, err, "more than 50 MiB")
	resize(plugin.MaxBytes - len(text))
	if _, err := s.Install(t.Context(), src); err != nil {
		t.Error(err)
	}
	resize(1)
	put(t, src, map[string]string{"one-more": ""})
	_, err = s.Install(t.Context(), src)
	refused(t, err, "more than 5,000 files")
}

func TestLayouts(t *testing.T) {
	for name, tc := range map[string]struct {
		files   map[string]string
		dir     string
		want    string
		problem string
	}{
		"ours first": {map[string]string{
			".inspan-plugin/plugin.json": `{"name":"ours"}`, manifest: `{"name":"theirs"}`,
			"plugin.json": `{"name":"plain"}`,
		}, "x", "ours", ""},
		"theirs": {
			map[string]string{manifest: "\ufeff" + `{"name":"theirs","author":"Ann"}`, "plugin.json": `{"name":"plain"}`},
			"x", "theirs", "",
		},
		"plain": {map[string]string{"plugin.json": `{"name":"plain"}`}, "x", "plain", ""},
		"none":  {map[string]string{"skills/a/SKILL.md": "---\ndescription: x\n---\nx"}, "by-folder.git", "by-folder", ""},
		"more": {
			map[string]string{manifest: `{"name":"a","lspServers":{},"description":"x\ny\u202e"}`},
			"x", "a",
			"lspServers of its plugin.json means nothing here",
		},
		"LFS": {
			map[string]string{manifest: `{"name":"a"}`, "big": "version https://git-lfs.github.com/spec/v1\noid x"},
			"x", "a", "big is a pointer to a file",
		},
		"submodules": {map[string]string{manifest: `{"name":"a"}`, ".gitmodules": ""}, "x", "a", "submodules"},
	} {
		t.Run(name, func(t *testing.T) {
			s := store(t)
			p := install(t, s, put(t, filepath.Join(t.TempDir(), tc.dir), tc.files))
			if p.Name != tc.want || (p.Problems == nil) != (tc.problem == "") || !strings.Contains(strings.Join(p.Problems, ""), tc.problem) ||
				strings.ContainsAny(p.Description, "\n\u202e") {
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestMarketplace lists the plugins of a marketplace, each with the command that installs it.
func TestMarketplace(t *testing.T) {
	s, src := store(t), filepath.Join(t.TempDir(), "my market")
	put(t, src, map[string]string{
		"plugins/docs/agents/writer.md": "---\nname: writer\ndescription: writes\n---\nWrite.\n",
		".claude-plugin/marketplace.json": "\ufeff" + `{"name":"m","metadata":{"pluginRoot":"./plugins"},"plugins":[
			{"name":"docs","source":"./docs","description":"Writes\ndocs"},
			{"name":"hub","source":{"source":"github","repo":"ann/hub","ref":"v2"}},
			{"name":"part","source":{"source":"git-subdir","url":"https://example.com/all.git","path":"a/part","sha":"` + strings.Repeat("a", 40) + `"}},
			{"name":"packed","source":{"source":"npm","package":"packed"}},
			{"name":"out","source":"../../out"},
			{"name":"odd","source":{"source":"url","url":"file:///etc"}},
			{"name":"whole","source":".."}]}`,
	})
	_, err := s.Install(t.Context(), src)
	refused(t, err, "a marketplace")
	for _, want := range []string{
		"offers 7 plugins", "docs: Writes docs\n    inspan plugin install '" + filepath.Join(src, "plugins", "docs") + "'",
		"inspan plugin install 'https://github.com/ann/hub#v2'",
		"inspan plugin install 'https://example.com/all.git#" + strings.Repeat("a", 40) + ":a/part'",
		"packed\n    can't be installed: it comes from npm", "out\n    can't be installed", "odd\n    can't be installed",
		"whole\n    can't be installed: it is the whole repository",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	empty(t, s)
	if _, err := s.Install(t.Context(), filepath.Join(src, "plugins", "docs")); err != nil {
		t.Errorf("what it names can't be installed: %v", err)
	}
}
