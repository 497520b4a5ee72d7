package command

// The modules that the built binary links, and the work before main.

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
)

// BenchmarkInit reports the work of all packages before main, in bytes and milliseconds, because the runtime traces
// it. docs/BENCHMARKS.md has the time of a start.
func BenchmarkInit(b *testing.B) {
	bin := testkit.Command(b)
	bytesOfAll, clockOfAll, packages := 0, 0.0, 0
	for b.Loop() {
		cmd := exec.Command(bin, "version")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var trace bytes.Buffer
		cmd.Stderr = &trace
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		for line := range strings.Lines(trace.String()) {
			var path string
			var at, clock float64
			var size, allocs int
			if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &path, &at, &clock, &size, &allocs); err != nil {
				b.Errorf("%q: %v", line, err)
			}
			packages++
			bytesOfAll += size
			clockOfAll += clock
		}
	}
	b.ReportMetric(float64(packages)/float64(b.N), "packages")
	b.ReportMetric(float64(bytesOfAll)/float64(b.N), "bytes-before-main")
	b.ReportMetric(clockOfAll/float64(b.N), "ms-before-main")
}

// TestModulesAreDecided checks that every module in the binary has its row in the table of decisions.
func TestModulesAreDecided(t *testing.T) {
	t.Parallel()
	info, err := buildinfo.ReadFile(testkit.Command(t))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("../../../docs/decisions/005-dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	var decided []string
	for line := range strings.Lines(string(raw)) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			decided = append(decided, strings.FieldsFunc(cells[1], func(r rune) bool { return strings.ContainsRune(" (),", r) })...)
		}
	}
	if len(info.Deps) == 0 || len(decided) == 0 {
		t.Fatalf("%d modules, %d names decided", len(info.Deps), len(decided))
	}
	for _, dep := range info.Deps {
		if !covers(decided, strings.TrimPrefix(dep.Path, "github.com/")) {
			t.Errorf("%s is linked and has no row in docs/decisions/005-dependencies.md", dep.Path)
		}
	}
}

// covers reports whether a name in the list is the module or a package of it.
func covers(decided []string, module string) bool {
	for _, name := range decided {
		if name == module || strings.HasPrefix(name, module+"/") {
			return true
		}
	}
	return false
}

// offline is how the go command says that it could not ask for a module.
var offline = regexp.MustCompile(`dial tcp|no such host|connection refused|network is unreachable|i/o timeout|TLS handshake|disabled by GOPROXY=off|EOF|proxyconnect|50[234] `)

func TestGoModIsTidy(t *testing.T) {
	cmd := exec.Command("go", "mod", "tidy", "-diff")
	cmd.Dir = "../../.."
	var diff, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &diff, &errs
	err := cmd.Run()
	switch {
	case err == nil:
	case diff.Len() > 0:
		t.Errorf("run go mod tidy:\n%s", diff.Bytes())
	case offline.Match(errs.Bytes()):
		fmt.Fprintln(os.Stderr, "NOT CHECKED: whether go.mod is tidy, since the module proxy can't be reached")
		t.Skipf("the module proxy can't be reached:\n%s", errs.Bytes())
	default:
		t.Errorf("go mod tidy -diff: %v\n%s", err, errs.Bytes())
	}
}
