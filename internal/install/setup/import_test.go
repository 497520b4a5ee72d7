package setup_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/setup"
)

var update = flag.Bool("update", false, "write the reports anew")

// TestImport looks at trees as the documents of other agents describe them. Each archive has a home, a workspace, the
// report, and the written settings and commands. Looking changes nothing, and a second import writes nothing.
func TestImport(t *testing.T) {
	files, err := filepath.Glob("testdata/import/*.txtar")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d trees, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { importTree(t, file) })
	}
}

func importTree(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(home, "work")
	config := filepath.Join(home, ".config", "inspan")
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("INSPAN_CONFIG_DIR", config)
	t.Setenv("INSPAN_STATE_DIR", filepath.Join(home, ".state"))
	wanted := map[string]string{}
	var given []txtar.File
	for _, f := range archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "want/"); ok {
			wanted[name] = string(f.Data)
			continue
		}
		given = append(given, f)
		path := filepath.Join(home, filepath.FromSlash(f.Name))
		if target, ok := strings.CutPrefix(strings.TrimSpace(string(f.Data)), "LINK "); ok {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(target, path)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, path, strings.ReplaceAll(string(f.Data), "HOME", home))
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	look := func() (*setup.Import, string) {
		t.Helper()
		a, err := app.Load("")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range a.Providers.KeyVariables() {
			t.Setenv(name, "")
		}
		found, err := setup.Look(a, root, nil)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		found.Print(&b)
		return found, strings.ReplaceAll(b.String(), home, "HOME")
	}
	before := tree(t, home)
	found, report := look()
	if diff := cmp.Diff(before, tree(t, home)); diff != "" {
		t.Errorf("looking has changed something:\n%s", diff)
	}
	got := map[string]string{"report": report}
	if found.Pending() > 0 {
		if err := found.Write(); err != nil {
			t.Fatal(err)
		}
	}
	for path, data := range tree(t, config) {
		if !strings.HasSuffix(path, ".lock") {
			got[path] = strings.ReplaceAll(data, home, "HOME")
		}
	}
	if again, report := look(); again.Pending() > 0 {
		t.Errorf("the second time there is still something to write:\n%s", report)
	}
	if *update {
		archive.Files = given
		for _, name := range slices.Sorted(maps.Keys(got)) {
			archive.Files = append(archive.Files, txtar.File{Name: "want/" + name, Data: []byte(got[name])})
		}
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
}

// TestImportHuge checks that files that are too large, and folders with too many, cost little and are reported in a
// line each.
func TestImportHuge(t *testing.T) {
	a := home(t, "")
	at := os.Getenv("HOME")
	huge := strings.Repeat(" ", 2<<20)
	for _, path := range []string{".claude/settings.json", ".config/opencode/opencode.json", ".codex/config.toml", ".codex/prompts/a.md", ".gemini/settings.json"} {
		write(t, filepath.Join(at, path), huge)
	}
	for n := range 300 {
		write(t, filepath.Join(at, ".gemini", "commands", fmt.Sprintf("c%d.toml", n)), "prompt = \"x\"")
	}
	write(t, filepath.Join(at, ".claude.json"), `{"history": "`+huge+`", "mcpServers": {"docs": {"command": "true"}}}`)
	found, err := setup.Look(a, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	found.Print(&b)
	if !strings.Contains(b.String(), "MCP server docs") {
		t.Error("a state file of usual size is not read")
	}
	if n := strings.Count(b.String(), "it is longer than 1048576 bytes"); n != 5 || found.Pending() > 200 || b.Len() > 64<<10 {
		t.Errorf("%d files are too large, %d items to write\n%s", n, found.Pending(), b.String()[:1000])
	}
	if own, err := setup.Look(a, at, []string{"claude"}); err != nil || len(own.Items) != 3 { // the workspace is the home
		t.Errorf("%+v, %v", own, err)
	}
	for _, agents := range [][]string{{"codex"}, {"opencode"}} {
		only, err := setup.Look(a, t.TempDir(), agents)
		if err != nil || slices.ContainsFunc(only.Items, func(i setup.Item) bool { return !strings.EqualFold(i.Agent, agents[0]) }) {
			t.Errorf("%v: %+v, %v", agents, only, err)
		}
	}
}

// TestImportTellsNoKey checks that a report names no key that another agent keeps in its settings, and that no name of
// a file is taken over that can't be typed.
func TestImportTellsNoKey(t *testing.T) {
	a := home(t, "")
	at := os.Getenv("HOME")
	const key = "ghp_" + "Rk3vTq8ZbN1xYw7LcJ5mHd2PfSa9UeG4oKiM"
	write(t, filepath.Join(at, ".claude.json"), `{"mcpServers": {"h1": {"type": "http", "url": "https://bob:hunter2Zq9@m.example/x?token=`+key+`"}}}`)
	write(t, filepath.Join(at, ".claude", "settings.json"),
		`{"permissions": {"allow": ["Bash(curl -H \"Authorization: Bearer `+key+`\" https://m.example)"]}}`)
	write(t, filepath.Join(at, ".codex", "config.toml"),
		"model = \"m\"\nmodel_provider = \"p\"\n[model_providers.p]\nname = \"p\"\nbase_url = \"https://u:pw12345Zq@h.example/v1?key="+key+"\"\n")
	write(t, filepath.Join(at, ".codex", "prompts", "a\x1b[31m\nb.md"), "do it")
	found, err := setup.Look(a, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(found.Items, func(i setup.Item) bool { return strings.Contains(i.Path, "prompts") && i.Fate != setup.Ignored }) {
		t.Errorf("a name that nobody can type is taken over: %+v", found.Items)
	}
	var b strings.Builder
	found.Print(&b)
	for _, part := range []string{key, "hunter2Zq9", "pw12345Zq"} {
		if strings.Contains(b.String(), part) {
			t.Errorf("%s is told:\n%s", part, &b)
		}
	}
	if !strings.Contains(b.String(), "m.example") || !strings.Contains(b.String(), "model_providers.p base_url") {
		t.Errorf("not everything is told:\n%s", &b)
	}
}

// TestImportWritesNoKey checks that no secret of another agent gets into the settings: servers name a variable instead,
// and entries that can't are left out for that reason.
func TestImportWritesNoKey(t *testing.T) {
	a := home(t, "mode = \"ask\"\n")
	at := os.Getenv("HOME")
	const key = "ghp_" + "Rk3vTq8ZbN1xYw7LcJ5mHd2PfSa9UeG4oKiM"
	write(t, filepath.Join(at, ".codex", "config.toml"),
		"model = \"m\"\nmodel_provider = \"p\"\n"+
			"[mcp_servers.docs]\nurl = \"https://m.example/mcp\"\nhttp_headers = { Authorization = \"Bearer "+key+"\" }\n"+
			"[mcp_servers.run]\ncommand = \"run\"\nenv = { RUN_TOKEN = \""+key+"\" }\n"+
			"[mcp_servers.arg]\ncommand = \"arg\"\nargs = [\"--token="+key+"\"]\n"+
			"[mcp_servers.plain]\ncommand = \"true\"\n[model_providers.p]\nbase_url = \"https://u:pw12345Zq@h.example/v1\"\n")
	found, err := setup.Look(a, t.TempDir(), []string{"codex"})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	found.Print(&b)
	for _, want := range []string{
		"[mcp.servers.docs], which needs DOCS_AUTHORIZATION", "[mcp.servers.run], which needs RUN_TOKEN",
		"MCP server arg: it holds a secret", "base_url: it holds a secret",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	if err := found.Write(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(a.ConfigPath)
	if err != nil || strings.Contains(string(data), key) || strings.Contains(string(data), "pw12345Zq") ||
		!strings.Contains(string(data), `"Bearer ${DOCS_AUTHORIZATION}"`) || !strings.Contains(string(data), "plain") {
		t.Errorf("%s, %v", data, err)
	}
}

// tree is the files below a folder, by their paths.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return out
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}
