package places_test

import (
	_ "embed"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/places"
)

//go:embed testdata/paths.txt
var paths string

func here() places.Map {
	return places.Map{
		Root: "/w", Home: "/home/ann", Settings: "/home/ann/.config/inspan", State: []string{"/home/ann/.local/state/inspan"},
		Open: []string{"/w/testdata/*.pem", "/home/ann/.local/**"},
	}
}

// TestCorpus counts wrongly opened and needlessly closed paths.
func TestCorpus(t *testing.T) {
	rank := map[string]int{"plain": 0, "guarded": 1, "frozen": 2, "secret": 3}
	rows, open, closed := 0, 0, 0
	for line := range strings.Lines(paths) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != 3 {
			t.Fatalf("row %q", line)
		}
		rows++
		path := strings.ReplaceAll(cells[2], "␣", "\u200c")
		for name, m := range map[string]places.Map{"indexed": here().Indexed(), "slow": here()} {
			got := m.Of(path)
			guard := string(got.Guard)
			if guard == "" {
				guard = "plain"
			}
			if guard != cells[0] || string(got.Zone) != cells[1] {
				t.Errorf("%s, %s: %s %s (it %s), want %s %s", name, path, guard, got.Zone, got.Why, cells[0], cells[1])
			}
			if (got.Why == "") != (got.Guard == places.Plain) {
				t.Errorf("%s: no reason for %s", path, guard)
			}
			if rank[guard] < rank[cells[0]] {
				open++
			}
			if rank[guard] > rank[cells[0]] {
				closed++
			}
		}
	}
	t.Logf("places: %d paths, wrongly open %d, needlessly closed %d", rows, open, closed)
	if rows < 150 {
		t.Error("the corpus was not read")
	}
}

// TestKnownAgrees checks that places listed by path get the same verdict, and that nothing opens inspan's own files.
func TestKnownAgrees(t *testing.T) {
	m := here()
	m.Open = []string{"/**"}
	for _, k := range m.Known() {
		if got := here().Of(k.Path + "/below").Guard; got != k.Guard &&
			!strings.HasPrefix(k.Path, "/home/ann/.local") && got != places.Secret && k.Guard != places.Guarded {
			t.Errorf("%s: %s below, %s itself", k.Path, got, k.Guard)
		}
		ours := strings.Contains(k.Path, "/inspan")
		if got := m.Of(k.Path); (got.Guard == places.Plain) == ours {
			t.Errorf("%s: %q although everything was declared public", k.Path, got.Guard)
		}
	}
}

// TestAlso checks that further folders are as the workspace is, and that what is sensitive stays so there.
// TestNamesDecide holds that boxes, which look at names with [places.Named], find every guarded or secret path of the
// corpus in a workspace: at the path itself, or at a folder above it.
func TestNamesDecide(t *testing.T) {
	names := places.Map{}.Indexed()
	for line := range strings.Lines(paths) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 || fields[0] != "guarded" && fields[0] != "secret" || !strings.HasPrefix(fields[2], "/w/") {
			continue
		}
		path, found := filepath.Clean(fields[2]), false
		for at := path; at != "/w" && at != "/"; at = filepath.Dir(at) {
			key := places.Named(at)
			if at != path {
				key += "/x"
			}
			found = found || names.Of("/x/"+key).Guard != places.Plain
		}
		if !found {
			t.Errorf("%s is %s, and no name of it says so", path, fields[0])
		}
	}
}

func TestAlso(t *testing.T) {
	m := here()
	m.Also = []string{"/home/ann/lib"}
	for path, want := range map[string]places.Zone{
		"/home/ann/lib": places.Workspace, "/home/ann/lib/a/b.go": places.Workspace, "/home/ann/library": places.Elsewhere,
		"/w/a": places.Workspace,
	} {
		if got := m.Of(path); got.Zone != want || got.Guard != places.Plain {
			t.Errorf("%s: %+v", path, got)
		}
	}
	for path, want := range map[string]places.Guard{
		"/home/ann/lib/.env": places.Secret, "/home/ann/lib/.git/hooks/pre-commit": here().Of("/home/ann/x/.git/hooks/pre-commit").Guard,
	} {
		if got := m.Of(path).Guard; got != want || got == places.Plain {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// TestApart checks that a session has only its own part of a folder where others work, even if everything was declared
// public, in mode yolo, and if its workspace is above.
func TestApart(t *testing.T) {
	m := places.Map{Root: "/srv/tasks/a", Also: []string{"/srv/tasks/also"}, Apart: []string{"/srv/tasks"}, Open: []string{"/**"}}
	above, itself := m, m
	above.Root, itself.Root = "/srv", "/srv/tasks"
	for path, open := range map[string]bool{
		"/srv/tasks": false, "/srv/tasks/b": false, "/srv/tasks/b/x.go": false, "/srv/tasks/A/x.go": false, "/SRV/tasks/b": false,
		"/srv/tasks/a": true, "/srv/tasks/a/x.go": true, "/srv/tasks/also/x": true, "/srv/tasks/ab": false,
		"/srv/tasksx": true, "/srv": true,
	} {
		for name, m := range map[string]places.Map{"own": m, "indexed": m.Indexed(), "unguarded": m.Unguarded()} {
			if got := m.Of(path).Guard; (got == places.Plain) != open || !open && got != places.Secret {
				t.Errorf("%s, %s: %q, open should be %t", name, path, got, open)
			}
		}
		for name, m := range map[string]places.Map{"above": above, "itself": itself} {
			m.Also = nil
			if got := m.Of(path).Guard; got != places.Secret && strings.HasPrefix(path, "/srv/tasks/") {
				t.Errorf("%s, %s: %q", name, path, got)
			}
		}
	}
	if !m.Over("/srv") || m.Over("/srv/tasks/a") || !m.Opens("/srv/tasks", "/srv/tasks/a/x") || m.Opens("/srv/tasks", "/srv/tasks/b") {
		t.Error("it is not told what is open")
	}
}

// TestHomeIsWorkspace checks that files of a home folder that run by themselves are never changed, even if the home
// folder or a parent is the workspace.
func TestHomeIsWorkspace(t *testing.T) {
	for _, root := range []string{"/home/ann", "/home", "/", "/home/ann/src/project", "/elsewhere"} {
		m := places.Map{Root: root, Home: "/home/ann", Programs: []string{
			"/home/ann/mine/bin",
			"/home/ann/src/project/.venv/bin", "/home/ann",
		}}.Indexed()
		for _, name := range []string{
			".bash_completion", ".bashrc.d/x", ".oh-my-zsh/oh-my-zsh.sh", ".zinit/x", ".config/starship.toml", ".fzf.bash", ".config/zsh/.zshrc",
			".lessfilter", ".nvm/nvm.sh", ".pyenv/shims/python",
			".rbenv/shims/ruby", ".asdf/asdf.sh", ".sdkman/bin/sdkman-init.sh", ".cargo/env", ".cargo/bin/x", "go/bin/x", ".bun/bin/bun",
			".deno/bin/x", ".volta/bin/node", ".local/share/pnpm/x",
			".local/lib/python3.12/site-packages/usercustomize.py", ".local/share/uv/python/x", ".ipython/profile_default/startup/x.py",
			".jupyter/jupyter_notebook_config.py", ".pdbrc", ".node_modules/x.js",
			".gradle/init.gradle", ".gradle/init.d/x.gradle", ".gradle/caches/x.jar", ".m2/repository/x.jar", ".m2/extensions.xml",
			".sbt/1.0/plugins/x.sbt", ".lein/profiles.clj", ".bazelrc", ".config/go/env",
			".config/i3/config", ".config/sway/config", ".config/hypr/hyprland.conf", ".local/share/dbus-1/services/x.service", ".config/dconf/user",
			".config/plasma-workspace/env/x.sh",
			".emacs.el", ".config/helix/config.toml", ".local/share/nvim/site/x.lua", ".config/bat/config", ".gdbearlyinit",
			".docker/cli-plugins/docker-x", ".config/k9s/plugins.yaml", ".subversion/config",
			".ghc/ghci.conf", ".iex.exs", ".rspec", ".octaverc", ".julia/config/startup.jl", ".muttrc", ".config/mpv/scripts/x.lua",
			"miniconda3/bin/python", "mine/bin/x", "go/pkg/mod/x/y.go",
		} {
			if at := m.Of("/home/ann/" + name); at.Guard != places.Frozen {
				t.Errorf("root %s: %s is %q", root, name, at.Guard)
			}
		}
		for _, name := range []string{
			"notes.txt", "src/project/main.go", "src/project/go/bin/x",
			"src/project/.venv/lib/x.py", "Documents/bin/x", ".config/unknown/x", ".cache/x",
		} {
			if at := m.Of("/home/ann/" + name); at.Guard != places.Plain {
				t.Errorf("root %s: %s is %q", root, name, at.Guard)
			}
		}
	}
	moved := places.Map{Root: "/home/ann", Home: "/home/ann", Moved: map[string]string{".config": "/home/ann/set", ".docker": "/srv/docker"}}
	for path, want := range map[string]places.Guard{
		"/home/ann/set/fish/x.fish": places.Frozen, "/home/ann/set/gh/hosts.yml": places.Secret, "/home/ann/.config/fish/x.fish": places.Frozen,
		"/srv/docker/config.json": places.Secret, "/srv/docker/cli-plugins/x": places.Frozen,
		"/home/ann/settings/fish": places.Plain,
	} {
		if at := moved.Of(path); at.Guard != want {
			t.Errorf("%s is %q", path, at.Guard)
		}
	}
	inside := places.Map{Root: "/home/ann/sdk/project", Home: "/home/ann", Programs: []string{"/home/ann/sdk/project/bin", "/home/ann/sdk"}}
	for _, path := range []string{"/home/ann/sdk/project/main.c", "/home/ann/sdk/project/bin/x"} {
		if at := inside.Of(path); at.Guard != places.Plain || at.Zone != places.Workspace {
			t.Errorf("%s: %+v", path, at)
		}
	}
}

func TestOver(t *testing.T) {
	for folder, want := range map[string]bool{
		"/": true, "/home/ann": true, "/home": true,
		"/w": false, "/home/ann/src": false, "/home/ann/.ssh": false, "/etc": true,
	} {
		if got := here().Over(folder); got != want {
			t.Errorf("%s: %v", folder, got)
		}
	}
}

func TestEmptyMapKnowsNobody(t *testing.T) {
	shared := here()
	shared.Shared, shared.Open = []string{"/home/ann/.local/state/inspan/plugins"}, []string{"/**"}
	for path, want := range map[string]places.Guard{
		"/home/ann/.local/state/inspan/plugins": places.Frozen, "/home/ann/.local/state/inspan/plugins/a/serve.sh": places.Frozen,
		"/home/ann/.local/state/inspan/plugins/a/.env": places.Secret,
		"/home/ann/.local/state/inspan/pluginsx":       places.Secret, "/home/ann/.local/state/inspan": places.Secret,
		"/home/ann/.local/state/inspan/sessions/x": places.Secret,
	} {
		if got := shared.Of(path); got.Guard != want {
			t.Errorf("%s: %q, want %q", path, got.Guard, want)
		}
		if got := shared.Opens("/home/ann/.local/state/inspan", path); got != strings.HasPrefix(path+"/", "/home/ann/.local/state/inspan/plugins/") {
			t.Errorf("%s: shared: %t", path, got)
		}
	}
	for path, want := range map[string]places.Guard{
		"/w/.env": places.Secret, "/home/ann/.bashrc": places.Guarded, "/a": places.Plain,
		"": places.Plain, "relative": places.Plain, "/etc/shadow": places.Secret,
	} {
		if got := (places.Map{}).Of(path); got.Guard != want || got.Zone == places.Workspace {
			t.Errorf("%q: %q in %s", path, got.Guard, got.Zone)
		}
	}
}

func FuzzOf(f *testing.F) {
	for line := range strings.Lines(paths) {
		f.Add(line)
	}
	m := here().Indexed()
	f.Fuzz(func(t *testing.T, path string) {
		got := m.Of(path)
		if upper := m.Of(strings.ToUpper(path)); strings.HasPrefix(path, "/w/") &&
			got.Guard == places.Secret && upper.Guard == places.Plain && ascii(path) {
			t.Errorf("%q is open in capitals", path)
		}
	})
}

func ascii(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0
}

func BenchmarkOf(b *testing.B) {
	m := here().Indexed()
	for b.Loop() {
		m.Of("/w/internal/some/folder/deep/file.go")
	}
}

// TestSteers checks which names of files programs look for.
func TestSteers(t *testing.T) {
	for name, want := range map[string]bool{
		"report.txt": false, "a/b/report.md": false, "package.json": true, "a/package.json": true, ".npmrc": true, "a/.git/config": true,
		"node_modules/x/index.js": true, "package.json/x": false, "CLAUDE.md": true,
	} {
		if got := places.Steers(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
