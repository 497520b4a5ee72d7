package sandbox_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/tool"
)

// goBuild is a script that builds without settings of the person, and prints the compiled packages.
const goBuild = "GOFLAGS= GOTOOLCHAIN=local go build -v ./..."

// warm makes a module in the workspace, and builds it as the person would, into their own cache.
func warm(t testing.TB, root, home, text string) (own string, vars []string) {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("no Go: ", err)
	}
	goroot := strings.TrimSpace(string(said))
	t.Setenv("GOCACHE", "")
	t.Setenv("XDG_CACHE_HOME", "")
	own = filepath.Join(home, ".cache", "go-build")
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.24\n", "m.go": text} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(goroot, "bin", "go"), "build", "-v", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOCACHE="+own, "GOFLAGS=", "GOTOOLCHAIN=local", "GOCACHEPROG=", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "m") {
		t.Fatalf("%v: %s", err, out)
	}
	return own, []string{"PATH=" + filepath.Join(goroot, "bin") + ":/usr/bin:/bin", "CGO_ENABLED=0", "GORACE=" + os.Getenv("GORACE")}
}

// TestFirstBuild: a box builds with the person's compiled packages, and can't change them.
func TestFirstBuild(t *testing.T) {
	env, home, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	own, vars := warm(t, env.Root, home, "package m\n\nfunc F() int { return 1 }\n")
	before := files(t, own)
	said, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	box := tool.Box{Level: tool.BoxWorkspace, Read: []string{strings.TrimSpace(string(said))}}
	for _, c := range []struct{ name, script, want string }{
		{"the first build compiles nothing", goBuild, ""},
		{"a cache of its own has no layer below", "GOCACHE=/tmp/other " + goBuild, "m"},
		{"what has changed is compiled", "sed -i s/1/2/ m.go && " + goBuild, "m"},
		{"and kept", goBuild, ""},
		{"without the program too", "GOCACHEPROG= " + goBuild, ""},
		{"another program is left alone", "GOCACHEPROG=/none " + goBuild + " 2>&1 | grep -o /none | head -n 1", "/none"},
		{"the person's cache can't be written", "for d in '" + own + "'/*; do touch $d/x || echo no; done 2>/dev/null | sort -u", "no"},
		{"nor the program", "echo x 2>/dev/null >/run/inspan-gocache || rm -f /run/inspan-gocache 2>/dev/null || echo no", "no"},
		{"nor be unmounted", "umount /run/inspan-gocache 2>/dev/null || echo no", "no"},
	} {
		code, out, _ := boxes.Run(t, env, box, c.script, vars...)
		if got := strings.TrimSpace(out); code != 0 || got != c.want {
			t.Errorf("%s: %d %q", c.name, code, got)
		}
	}
	if after := files(t, own); after != before {
		t.Errorf("the person's cache has changed:\n%s\n%s", before, after)
	}
}

// TestColdBuild: without compiled packages, the result says that a build takes long.
func TestColdBuild(t *testing.T) {
	env, home, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	own, vars := warm(t, env.Root, home, "package m\n\nfunc F() int { return 1 }\n")
	if err := os.RemoveAll(own); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	box := tool.Box{Level: tool.BoxWorkspace, Read: []string{strings.TrimSpace(string(said))}}
	for _, c := range []struct {
		script string
		told   int
	}{{"true", 0}, {goBuild, 1}, {goBuild, 0}} {
		if code, out, told := boxes.Run(t, env, box, c.script, vars...); code != 0 || len(told) != c.told {
			t.Errorf("%s: %d %s %q", c.script, code, out, told)
		}
	}
}

// files lists the content of a folder, with times and sizes.
func files(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			out.WriteString(path + info.ModTime().Format(time.RFC3339Nano) + info.Mode().String() + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// BenchmarkFirstBuild compares the first build of a workspace in a box with a later one. The person has built
// another before.
func BenchmarkFirstBuild(b *testing.B) {
	const program = "package main\n\nimport (\n\t\"fmt\"\n\t\"net/http\"\n)\n\nfunc main() { fmt.Println(http.Get(\"\")) }\n"
	var first, later time.Duration
	for range b.N {
		env, home, _ := boxes.New(b)
		_, vars := warm(b, env.Root, home, program)
		said, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
		if err != nil {
			b.Fatal(err)
		}
		box := tool.Box{Level: tool.BoxWorkspace, Read: []string{strings.TrimSpace(string(said))}}
		build := func() time.Duration {
			start := time.Now()
			if code, out, _ := boxes.Run(b, env, box, "GOFLAGS= GOTOOLCHAIN=local go build -buildvcs=false -o m . && rm m", vars...); code != 0 {
				b.Fatalf("%d %s", code, out)
			}
			return time.Since(start)
		}
		first += build()
		later += build()
	}
	b.ReportMetric(float64(first)/float64(later), "first/later")
	b.ReportMetric(float64(later.Milliseconds())/float64(b.N), "later-ms")
}
