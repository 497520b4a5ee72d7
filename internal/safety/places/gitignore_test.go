package places_test

import (
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/inspan/inspan/internal/safety/places"
)

// files is the tree that all tests ask about. Directories end in a slash.
var files = strings.Fields(`
	a b foo bar a.o b.o foo.txt .hidden !bang #hash é [x] x]y back\slash UPPER -dash ^hat a.b.c
	dir/ dir/a dir/b dir/foo dir/a.o dir/foo.txt dir/.hidden
	dir/sub/ dir/sub/a dir/sub/b.o dir/sub/foo dir/sub/deep/ dir/sub/deep/a dir/sub/deep/foo.txt
	foo.d/ foo.d/x foo.d/foo foo.d/bar/ foo.d/bar/x foo.d/bar/foo
	build/ build/out build/keep build/a/ build/a/b build/a/build
	src/ src/build/ src/build/x src/a.o src/main.c`)

// world is a real repository with the tree, and the oracle over it.
type world struct{ dir string }

func newWorld(t *testing.T) *world {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	w := &world{dir: t.TempDir()}
	if out, err := exec.Command("git", "init", "-q", w.dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	all := append(slices.Clone(files), "trail ")
	for _, name := range all {
		full := filepath.Join(w.dir, name)
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(full, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(full), 0o755))
		must(t, os.WriteFile(full, nil, 0o644))
	}
	return w
}

func must(t interface{ Fatal(...any) }, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// git returns the paths that the real git ignores.
func (w *world) git(t interface{ Fatalf(string, ...any) }, names []string) []string {
	cmd := exec.Command("git", "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "-z", "--stdin")
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	cmd.Stdin = strings.NewReader(strings.Join(names, "\x00") + "\x00")
	out, err := cmd.Output()
	var exit *exec.ExitError // code 1: nothing is ignored
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("git check-ignore: %v", err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}

// ours returns the paths that the package ignores, walking down like a caller.
func ours(ignoreFiles map[string]string, names []string) []string {
	rules := map[string]*places.Ignores{}
	var rulesOf func(dir string) *places.Ignores
	rulesOf = func(dir string) *places.Ignores {
		if r, ok := rules[dir]; ok {
			return r
		}
		var r *places.Ignores
		if dir == "." {
			r = r.Add("", []byte(ignoreFiles[".git/info/exclude"]))
		} else {
			r = rulesOf(path.Dir(dir))
		}
		r = r.Add(dir, []byte(ignoreFiles[path.Join(dir, ".gitignore")]))
		rules[dir] = r
		return r
	}
	var ignored func(name string, isDir bool) bool
	ignored = func(name string, isDir bool) bool {
		if name == "." {
			return false
		}
		dir := path.Dir(name)
		return ignored(dir, true) || rulesOf(dir).Ignored(name, isDir)
	}
	var got []string
	for _, name := range names {
		if ignored(strings.TrimSuffix(name, "/"), slices.Contains(files, name+"/") || strings.HasSuffix(name, "/")) {
			got = append(got, name)
		}
	}
	return got
}

// compare holds both answers against each other for every file of the tree.
func (w *world) compare(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, ignoreFiles map[string]string,
) (checks int) {
	for name, text := range ignoreFiles {
		full := filepath.Join(w.dir, name)
		must(t, os.WriteFile(full, []byte(text), 0o644))
		defer os.Remove(full)
	}
	names := []string{"trail "}
	for _, name := range files {
		names = append(names, strings.TrimSuffix(name, "/"))
	}
	want, got := w.git(t, names), ours(ignoreFiles, names)
	if !slices.Equal(want, got) {
		t.Fatalf("ignore files %q (-git +ours):\n%s", ignoreFiles, cmp.Diff(want, got))
	}
	return len(names)
}

func TestKnownPatterns(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{
		"a", "*.o", "/a", "dir/a", "/dir/a", "dir/", "foo/", "foo.d/", "sub", "sub/", "*/a", "*/*/a",
		"**", "**/a", "**/foo", "/**/a", "a/**", "dir/**", "dir/**/a", "dir/**/", "**/sub/**", "dir/***/a", "dir**/a", "d**", "**o", "dir/**foo",
		"dir/**/**/a",
		"foo*", "f?o", "?", "??", "[ab]", "[!a]", "[^a]", "[a-c]", "[]x]", "[!]x]", "[[]x]", "[a", "[", "[]", "[a-", "[a-]", "[-d]*",
		"[[:alpha:]]", "[[:upper:]]*", "[![:alpha:]]*", "[[:nope:]]", "[[:alpha:]b]", "[\\]]*", "x[]]y", "[b-a]", "[/]", "dir[/]a", "dir?a",
		"\\!bang", "!bang", "\\#hash", "#hash", "back\\\\slash", "back\\slash", "a\\", "\\a", "\\*", "\\[x]", "\\[x\\]", "^hat", "-dash",
		"trail ", "trail\\ ", "a ", "a  ", "a\\ ", "a\t", " a", "  ", "/", "//", "!", "!/", "/dir//a", "dir//", "./a", "dir/./a", "dir/../a",
		"foo.d/*\n!foo.d/foo", "build/*\n!build/keep", "/build/\n!/build/keep", "*\n!*/\n!*.txt", "*\n!dir\n!dir/a", "*.o\n!b.o\n*.o", "!a\na",
		"a\n!a", "/*\n!/dir\n/dir/*\n!/dir/sub",
		"a\r\nb\r\n", "\xef\xbb\xbfa\nb", "a\nb", "é", "?", "[é]", "upper", "UPPER", "a.*", "*.b.*", "*.*.*", ".*", "!.hidden\n.*", "**/", "*/",
		"/*/", "src/*.c", "*.c", "deep/foo.txt", "sub/deep", "sub/deep/*",
	} {
		t.Run(strings.ReplaceAll(text, "/", "|"), func(t *testing.T) {
			w.compare(t, map[string]string{".gitignore": text})
		})
	}
}

func TestNested(t *testing.T) {
	w := newWorld(t)
	for _, set := range []map[string]string{
		{".gitignore": "*.o\nfoo", "dir/.gitignore": "!a.o\n/foo\n!sub/foo"},
		{".gitignore": "/dir/sub/", "dir/.gitignore": "!sub/", "dir/sub/.gitignore": "!a"},
		{".gitignore": "a", "dir/.gitignore": "!a", "dir/sub/.gitignore": "a"},
		{".git/info/exclude": "*.o\n!foo", ".gitignore": "!a.o\nfoo"},
		{".git/info/exclude": "build/", "build/.gitignore": "!*"},
		{"dir/.gitignore": "*", "dir/sub/.gitignore": "!*"},
		{"dir/.gitignore": "/sub\n**/deep", "dir/sub/.gitignore": "!deep/"},
		{"dir/.gitignore": ".gitignore\n/a\n/dir/a"},
	} {
		w.compare(t, set)
	}
}

// TestAgainstGit asks both about random patterns over the whole tree.
func TestAgainstGit(t *testing.T) {
	w := newWorld(t)
	atom := rapid.SampledFrom(strings.Split("a|b|foo|bar|dir|sub|deep|build|keep|src|.o|.txt|.d|*|*|**|?|[ab]|[!a]|[^f]|[a-f]|[[:alpha:]]|\\a|\\*|.|x|o", "|"))
	sep := rapid.SampledFrom([]string{"", "", "", "/", "/", "/**/"})
	line := rapid.Custom(func(t *rapid.T) string {
		text := rapid.SampledFrom([]string{"", "", "", "!", "/", "!/", "**/"}).Draw(t, "start")
		for i := range rapid.IntRange(1, 4).Draw(t, "atoms") {
			if i > 0 {
				text += sep.Draw(t, "sep")
			}
			text += atom.Draw(t, "atom")
		}
		return text + rapid.SampledFrom([]string{"", "", "", "/", "/*", "/**", " ", "\r"}).Draw(t, "end")
	})
	lines := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 1, 4).Draw(t, "lines"), "\n")
	})
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		set := map[string]string{".gitignore": lines.Draw(t, "top")}
		for _, name := range []string{"dir/.gitignore", "dir/sub/.gitignore", ".git/info/exclude"} {
			if rapid.IntRange(0, 3).Draw(t, name) == 0 {
				set[name] = lines.Draw(t, "more")
			}
		}
		checks += w.compare(t, set)
	})
	t.Logf("%d checks", checks)
}

func TestNoRules(t *testing.T) {
	var r *places.Ignores
	if r.Ignored("a", false) || r.Add("", []byte("# only a comment\n\n")) != nil {
		t.Error("no rules ignore something")
	}
}

// TestManyStars checks that a hostile pattern ends soon.
func TestManyStars(t *testing.T) {
	r := (*places.Ignores)(nil).Add("", []byte(strings.Repeat("*a", 50)+"b\n"+strings.Repeat("**/a/", 40)+"b"))
	if r.Ignored(strings.Repeat("a", 5000), false) || r.Ignored(strings.Repeat("a/", 2000)+"c", false) {
		t.Error("matched")
	}
}

func BenchmarkIgnored(b *testing.B) {
	r := (*places.Ignores)(nil).Add("", []byte("node_modules/\n*.o\n*.log\n/build\ndist\n*.py[co]\n.DS_Store\n**/tmp/*\n!keep\ncoverage/\n"))
	for b.Loop() {
		r.Ignored("internal/extend/tools/search_files.go", false)
	}
}
