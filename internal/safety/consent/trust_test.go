package consent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/safety/consent"
)

// paths of items, and of those without a digest with a ! behind.
func paths(items []consent.Item) []string {
	var out []string
	for _, it := range items {
		if it.Digest == "" {
			it.Path += "!"
		}
		out = append(out, it.Path)
	}
	return out
}

// sample is a small workspace with an item of each kind.
func sample(t testing.TB) string {
	t.Helper()
	root := folder(t)
	for name, text := range map[string]string{
		".inspan/config.toml":           "mode = 'yolo'",
		".inspan/hooks/a.sh":            "echo a",
		".inspan/hooks/b.sh":            "echo b",
		".inspan/tools/one.toml":        "command = 'scripts/run it'",
		".inspan/agents/x.md":           "An agent.",
		".inspan/plugins/p/plugin.json": "{}",
		".inspan/skills/s/SKILL.md":     "Run it.",
		".inspan/skills/s/run.py":       "pass",
		".inspan/skills/text/SKILL.md":  "Text.",
		".mcp.json":                     `{"mcpServers": {"m": {"command": "sh", "args": ["scripts/m.sh"]}}}`,
		".claude/settings.json":         `{"hooks": {}}`,
		".claude/skills/c/x.js":         "1",
		"scripts/m.sh":                  "echo m",
		"scripts/other.sh":              "echo other",
		"main.go":                       "package main",
	} {
		write(t, root, name, text)
	}
	return root
}

func trust(t testing.TB, s *consent.Store, root string, items []consent.Item) {
	t.Helper()
	if err := s.Trust(t.Context(), root, items); err != nil {
		t.Fatal(err)
	}
}

func review(t testing.TB, s *consent.Store, root string) consent.Review {
	t.Helper()
	r, err := s.Review(root, find(t, root))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTrustIsForExactlyThisContent(t *testing.T) {
	for name, tt := range map[string]struct {
		change       func(t *testing.T, root string)
		new, changed []string
	}{
		"nothing":         {func(*testing.T, string) {}, nil, nil},
		"no item":         {func(t *testing.T, root string) { write(t, root, "main.go", "package other") }, nil, nil},
		"text of a skill": {func(t *testing.T, root string) { write(t, root, ".inspan/skills/text/SKILL.md", "Other.") }, nil, nil},
		"one byte": {
			func(t *testing.T, root string) { write(t, root, ".inspan/hooks/a.sh", "echo b") },
			nil,
			[]string{".inspan/hooks/"},
		},
		"one byte of a file": {
			func(t *testing.T, root string) { write(t, root, ".inspan/config.toml", "mode = 'yola'") },
			nil,
			[]string{".inspan/config.toml"},
		},
		"text beside a script": {
			func(t *testing.T, root string) { write(t, root, ".inspan/skills/s/SKILL.md", "Run it twice.") },
			nil,
			[]string{".inspan/skills/s/"},
		},
		"a script that is named": {func(t *testing.T, root string) { write(t, root, "scripts/m.sh", "evil") }, nil, []string{"scripts/m.sh"}},
		"a script that is not":   {func(t *testing.T, root string) { write(t, root, "scripts/other.sh", "evil") }, nil, nil},
		"a named script appears": {func(t *testing.T, root string) { write(t, root, "scripts/run", "evil") }, []string{"scripts/run"}, nil},
		"added":                  {func(t *testing.T, root string) { write(t, root, ".inspan/hooks/c.sh", "") }, nil, []string{".inspan/hooks/"}},
		"added deep": {
			func(t *testing.T, root string) { write(t, root, ".inspan/hooks/x/y/z", "") },
			nil,
			[]string{".inspan/hooks/"},
		},
		"removed": {func(t *testing.T, root string) { remove(t, root, ".inspan/hooks/b.sh") }, nil, []string{".inspan/hooks/"}},
		"renamed in a folder": {
			func(t *testing.T, root string) { rename(t, root, ".inspan/hooks/b.sh", ".inspan/hooks/0.sh") },
			nil,
			[]string{".inspan/hooks/"},
		},
		"names exchanged": {func(t *testing.T, root string) {
			rename(t, root, ".inspan/hooks/a.sh", ".inspan/hooks/x")
			rename(t, root, ".inspan/hooks/b.sh", ".inspan/hooks/a.sh")
			rename(t, root, ".inspan/hooks/x", ".inspan/hooks/b.sh")
		}, nil, []string{".inspan/hooks/"}},
		"a name as part of the content": {func(t *testing.T, root string) {
			remove(t, root, ".inspan/hooks/b.sh")
			write(t, root, ".inspan/hooks/a.sh", "echo ab.shecho b")
		}, nil, []string{".inspan/hooks/"}},
		"renamed item": {
			func(t *testing.T, root string) { rename(t, root, ".inspan/tools/one.toml", ".inspan/tools/two.toml") },
			[]string{".inspan/tools/two.toml"},
			nil,
		},
		"moved item": {
			func(t *testing.T, root string) { rename(t, root, ".inspan/agents/x.md", ".inspan/hooks/x.md") },
			nil,
			[]string{".inspan/hooks/"},
		},
		"link to the same content": {func(t *testing.T, root string) {
			rename(t, root, ".inspan/hooks/a.sh", "scripts/a.sh")
			link(t, "../../scripts/a.sh", filepath.Join(root, ".inspan/hooks/a.sh"))
		}, nil, []string{".inspan/hooks/"}},
		"file linked to the same content": {func(t *testing.T, root string) {
			rename(t, root, ".mcp.json", "mcp.json")
			link(t, "mcp.json", filepath.Join(root, ".mcp.json"))
		}, nil, []string{".mcp.json"}},
		"link out of the workspace": {func(t *testing.T, root string) {
			outside := folder(t)
			write(t, outside, "a.sh", "echo a")
			remove(t, root, ".inspan/hooks/a.sh")
			link(t, filepath.Join(outside, "a.sh"), filepath.Join(root, ".inspan/hooks/a.sh"))
		}, nil, []string{".inspan/hooks/!"}},
		"folder linked": {func(t *testing.T, root string) {
			rename(t, root, ".inspan", "inspan")
			link(t, "inspan", filepath.Join(root, ".inspan"))
		}, []string{".inspan!"}, nil},
		"file in place of a folder": {func(t *testing.T, root string) {
			if err := os.RemoveAll(filepath.Join(root, ".inspan/plugins/p")); err != nil {
				t.Fatal(err)
			}
			write(t, root, ".inspan/plugins/p", "{}")
		}, []string{".inspan/plugins/p"}, nil},
		"text that becomes a program": {
			func(t *testing.T, root string) { chmod(t, filepath.Join(root, ".inspan/skills/text/SKILL.md"), 0o755) },
			[]string{".inspan/skills/text/"},
			nil,
		},
		"text that becomes a script": {
			func(t *testing.T, root string) { write(t, root, ".inspan/skills/text/SKILL.md", "#!/bin/sh\n") },
			[]string{".inspan/skills/text/"},
			nil,
		},
		"too big": {
			func(t *testing.T, root string) { write(t, root, ".mcp.json", strings.Repeat(" ", 1<<20+1)) },
			nil,
			[]string{".mcp.json!"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, root := store(t), sample(t)
			all := find(t, root)
			trust(t, s, root, all)
			tt.change(t, root)
			r := review(t, s, root)
			if diff := cmp.Diff(tt.new, paths(r.New)); diff != "" {
				t.Errorf("new:\n%s", diff)
			}
			if diff := cmp.Diff(tt.changed, paths(r.Changed)); diff != "" {
				t.Errorf("changed:\n%s", diff)
			}
			if len(r.Trusted)+len(r.New)+len(r.Changed) != len(find(t, root)) {
				t.Error("an item is missing")
			}
			for _, it := range r.Changed {
				if before := all[slices.IndexFunc(all, func(old consent.Item) bool { return old.Path == it.Path })].Digest; it.Before != before ||
					before == "" {
					t.Errorf("%s: before %q, want %q", it.Path, it.Before, before)
				}
			}
			if same := consent.Sum(find(t, root)) == consent.Sum(all); same != (len(tt.new)+len(tt.changed) == 0) {
				t.Errorf("the sum stayed the same: %v", same)
			}
		})
	}
}

func remove(t testing.TB, root, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(root, name)); err != nil {
		t.Fatal(err)
	}
}

func rename(t testing.TB, root, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(root, from), filepath.Join(root, to)); err != nil {
		t.Fatal(err)
	}
}

func TestTrustIsForThisRoot(t *testing.T) {
	s, root := store(t), sample(t)
	trust(t, s, root, find(t, root))
	child := filepath.Join(root, "child")
	twin := sample(t)
	if err := os.CopyFS(child, os.DirFS(twin)); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]string{"a folder below": child, "a copy elsewhere": twin} {
		if r := review(t, s, other); len(r.Trusted) > 0 || len(r.New) != len(find(t, root)) {
			t.Errorf("%s: %d trusted, %d new", name, len(r.Trusted), len(r.New))
		}
	}
	alias := filepath.Join(t.TempDir(), "alias")
	link(t, root, alias)
	if r := review(t, s, alias); len(r.New)+len(r.Changed) > 0 {
		t.Errorf("another name of the root: %v", paths(r.New))
	}
	trust(t, s, child, find(t, child))
	if err := s.Distrust(t.Context(), alias); err != nil {
		t.Fatal(err)
	}
	if r := review(t, s, root); len(r.Trusted) > 0 {
		t.Errorf("still trusted: %v", paths(r.Trusted))
	}
	if r := review(t, s, child); len(r.New) > 0 {
		t.Errorf("distrust of the folder above took %v", paths(r.New))
	}
}

func TestTwoBranches(t *testing.T) {
	s, root := store(t), folder(t)
	at := func(text string) []consent.Item {
		write(t, root, ".mcp.json", text)
		return find(t, root)
	}
	first, second := at("{}"), at("{ }")
	trust(t, s, root, first)
	trust(t, s, root, second)
	if at("{}"); len(review(t, s, root).Trusted) != 1 {
		t.Error("the first branch is asked about again")
	}
	trust(t, s, root, first)
	if at("[]"); review(t, s, root).Changed[0].Before != first[0].Digest {
		t.Error("not the digest that was agreed to last")
	}
}

func TestTrustRefuses(t *testing.T) {
	digest := strings.Repeat("0", 64)
	for name, it := range map[string]consent.Item{
		"no digest":      {Path: "a", Runs: []string{"can't be trusted: too long"}},
		"no hexadecimal": {Path: "a", Digest: strings.Repeat("x", 64)},
		"short":          {Path: "a", Digest: "00"},
		"no path":        {Digest: digest},
		"outside":        {Path: "../a", Digest: digest},
		"absolute":       {Path: "/a", Digest: digest},
		"not clean":      {Path: "a//b", Digest: digest},
		"bytes":          {Path: "a\xff", Digest: digest},
	} {
		s, root := store(t), folder(t)
		if err := s.Trust(t.Context(), root, []consent.Item{{Path: "good", Digest: digest}, it}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if r, err := s.Review(root, []consent.Item{{Path: "good", Digest: digest}, it}); err != nil || len(r.Trusted) > 0 {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	s := store(t)
	if err := s.Trust(t.Context(), filepath.Join(folder(t), "gone"), nil); err == nil {
		t.Error("a root that is not there was trusted")
	}
	if err := s.Distrust(t.Context(), ""); err == nil {
		t.Error("no root was distrusted")
	}
}

func TestDamagedTrustTrustsNothing(t *testing.T) {
	s, root := store(t), sample(t)
	trust(t, s, root, find(t, root))
	write(t, s.Dir, "trust.json", "{")
	chmod(t, filepath.Join(s.Dir, "trust.json"), 0o600)
	r, err := s.Review(root, find(t, root))
	if err == nil || !strings.Contains(err.Error(), "trust.json") || len(r.Trusted) > 0 {
		t.Errorf("%v, %v", r, err)
	}
}

func TestSum(t *testing.T) {
	root := sample(t)
	items := find(t, root)
	sum := consent.Sum(items)
	if len(sum) != 64 || !consent.Named(items, sum) {
		t.Errorf("sum %q", sum)
	}
	back := slices.Clone(items)
	slices.Reverse(back)
	if consent.Sum(append(back, back[0])) != sum || !cmp.Equal(find(t, root), items) {
		t.Error("the order matters")
	}
	if !slices.IsSortedFunc(items, func(a, b consent.Item) int { return strings.Compare(a.Path, b.Path) }) {
		t.Errorf("not in order: %v", paths(items))
	}
	if consent.Named(items[1:], sum) || consent.Named(nil, sum) || consent.Sum(nil) == "" {
		t.Error("a part has the sum of all")
	}
	unknown := append(slices.Clone(items), consent.Item{Path: "x"})
	if consent.Sum(unknown) != "" || consent.Named(unknown, "") || consent.Named(unknown, sum) {
		t.Error("content that is not known was named")
	}
}

// TestSumOfWhatChanged checks that a sum that no longer matches says what has changed.
func TestSumOfWhatChanged(t *testing.T) {
	s, root := store(t), t.TempDir()
	write(t, root, ".inspan/workflows/a.yaml", "name: a")
	write(t, root, ".inspan/workflows/b.yaml", "name: b")
	sum := consent.Sum(find(t, root))
	if r, err := s.ReviewRunning(root, sum); err != nil || len(r.Trusted) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	write(t, root, ".inspan/workflows/b.yaml", "name: c")
	const want = ".inspan/workflows/b.yaml changed since --trust was compared, so nothing of this folder may run any more: review it with 'inspan trust'"
	if r, err := s.ReviewRunning(root, sum); err == nil || err.Error() != want || len(r.Trusted) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := store(t).ReviewRunning(root, sum); err == nil || strings.Contains(err.Error(), "changed") {
		t.Errorf("where nothing was compared before: %v", err)
	}
	write(t, root, ".inspan/workflows/b.yaml", "name: b")
	if _, err := s.ReviewRunning(root, sum); err != nil {
		t.Error(err)
	}
}
