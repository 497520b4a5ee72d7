package command

// Checks of the built binary: how much it allocates before main, and which modules it links. The
// benchmarks measure time, which depends on how busy the machine is.

import (
	"bufio"
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

// TestInitIsSmall holds what is done before main in bytes and allocations,
// which are the same on every machine. On the machine this was written on, the
// whole took 1.2 ms and 430 KB; the budgets are those of about 5 ms for the
// whole and 1 ms for a package of ours.
func TestInitIsSmall(t *testing.T) {
	const mostOfAll, mostOfOurs = 1 << 20, 400 << 10
	cmd := exec.Command(testkit.Command(t), "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	bytesOfAll, clockOfAll, packages := 0, 0.0, 0
	lines := bufio.NewScanner(&trace)
	for lines.Scan() {
		var path string
		var at, clock float64
		var size, allocs int
		if _, err := fmt.Sscanf(lines.Text(), "init %s @%f ms, %f ms clock, %d bytes, %d allocs",
			&path, &at, &clock, &size, &allocs); err != nil {
			t.Errorf("%q: %v", lines.Text(), err)
		}
		packages++
		bytesOfAll += size
		clockOfAll += clock
		if (path == "main" || strings.HasPrefix(path, "github.com/inspan/")) && size > mostOfOurs {
			t.Errorf("%s: init takes %d bytes and %v ms", path, size, clock)
		}
	}
	t.Logf("%d packages, %d bytes, %.2f ms", packages, bytesOfAll, clockOfAll)
	if packages < 10 || bytesOfAll > mostOfAll {
		t.Errorf("%d packages take %d bytes before main, more than %d:\n%s", packages, bytesOfAll, mostOfAll, trace.Bytes())
	}
}

// TestModulesAreDecided holds that every module in the binary has its row in
// the table of decisions.
func TestModulesAreDecided(t *testing.T) {
	info, err := buildinfo.ReadFile(testkit.Command(t))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("../../docs/decisions/005-dependencies.md")
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
	cmd.Dir = "../.."
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
