package command

// What the binary may weigh and cost before it does anything. These are
// budgets, not measurements: what depends on how busy the machine is, such as
// time, is measured by the benchmarks and held here only by what causes it.

import (
	"bufio"
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
)

func TestBinarySize(t *testing.T) {
	const most = 38_000_000 // for all that the binary is to be; 30 MiB were for the terminal alone
	info, err := os.Stat(testkit.Command(t))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > most {
		t.Errorf("the stripped binary has %d bytes, more than %d", info.Size(), most)
	}
}

// marks returns the functions of a program at which the linker gives up
// leaving out methods that nobody calls.
//
// Where a function that can be reached calls reflect.Value.Method or
// MethodByName with a name that is not a constant, the linker must keep every
// exported method of every type, since any could be meant. That adds megabytes
// at once and is usually the fault of a dependency (text/template is the known
// one). With -dumpdep the linker prints every edge it follows, and such a
// function with the mark <ReflectMethod>; it is the very flag that it goes by.
func marks(t *testing.T, dir string) []string {
	t.Helper()
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-dumpdep", "-o", os.DevNull, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%.2000s", err, out)
	}
	if !bytes.Contains(out, []byte("main.main")) {
		t.Fatalf("the linker printed no edges:\n%.2000s", out)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "<ReflectMethod>") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func TestMethodsNobodyCallsAreLeftOut(t *testing.T) {
	if found := marks(t, "../../cmd/inspan"); len(found) > 0 {
		t.Errorf("every exported method is linked, because of:\n%s", strings.Join(found, "\n"))
	}
}

// TestMarksAreFound proves that marks finds what it looks for.
func TestMarksAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module sample\n\ngo 1.26\n",
		"main.go": "package main\n\nimport (\n\t\"os\"\n\t\"reflect\"\n)\n\nfunc main() {\n" +
			"\treflect.ValueOf(os.Stdout).MethodByName(os.Args[0])\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found := marks(t, dir); len(found) == 0 {
		t.Error("a program that looks a method up by its name has no mark")
	}
}

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
