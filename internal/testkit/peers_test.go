package testkit_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
)

// ending is how a test ends before its end.
type ending struct{ skipped, failed string }

// part is a test whose end is looked at.
type part struct {
	testing.TB
	ctx context.Context
	ending
}

func (p *part) Helper()                  {}
func (p *part) Name() string             { return "TestPart" }
func (p *part) Context() context.Context { return p.ctx }
func (p *part) Skip(args ...any)         { p.skipped = fmt.Sprint(args...); panic(p) }
func (p *part) Fatal(args ...any)        { p.failed = fmt.Sprint(args...); panic(p) }
func (p *part) Fatalf(format string, args ...any) {
	p.failed = fmt.Sprintf(format, args...)
	panic(p)
}

func (p *part) Errorf(format string, args ...any) { p.failed += fmt.Sprintf(format, args...) }

// within runs a part and returns its outcome and its standard error.
func within(t *testing.T, run func(t testing.TB)) (end ending, said string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p, stderr := &part{ctx: t.Context()}, os.Stderr
	os.Stderr = file
	defer func() {
		os.Stderr = stderr
		if r := recover(); r != nil && r != any(p) {
			panic(r)
		}
		raw, err := os.ReadFile(file.Name())
		if err != nil {
			t.Error(err)
		}
		end, said = p.ending, string(raw)
	}()
	run(p)
	return end, said
}

// TestDir has a node that runs.
func TestDir(t *testing.T) {
	node := filepath.Join(testkit.Dir(t), "node_modules", ".bin", "node22")
	if out, err := exec.CommandContext(t.Context(), node, "-p", "6*7").CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "42" {
		t.Errorf("%s, %v", out, err)
	}
}

// TestNoDir skips a test where the programs can't be had, and fails it where scripts/peers
// has a flaw.
func TestNoDir(t *testing.T) {
	for name, tc := range map[string]struct {
		programs       []string
		skips, failure string
	}{
		"no shell":       {nil, `"sh"`, ""},
		"no npm":         {[]string{"sh", "dirname", "cksum", "cut"}, "no npm: install Node", ""},
		"a broken shell": {[]string{"sh"}, "", "scripts/peers: exit status "},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			for _, program := range tc.programs {
				path, err := exec.LookPath(program)
				if err == nil {
					err = os.Symlink(path, filepath.Join(bin, program))
				}
				if err != nil {
					t.Skip(err)
				}
			}
			t.Setenv("PATH", bin)
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			end, said := within(t, func(t testing.TB) { testkit.Dir(t) })
			if (end.skipped == "") != (tc.skips == "") || !strings.Contains(end.skipped, tc.skips) ||
				(end.failed == "") != (tc.failure == "") || !strings.Contains(end.failed, tc.failure) {
				t.Errorf("%+v", end)
			}
			if want := "SKIPPED TestPart: " + end.skipped + "\n"; tc.skips != "" && said != want || tc.skips == "" && said != "" {
				t.Errorf("said %q", said)
			}
		})
	}
}

// TestNowhere fails outside of the repository.
func TestNowhere(t *testing.T) {
	t.Chdir(t.TempDir())
	if end, _ := within(t, func(t testing.TB) { testkit.Dir(t) }); !strings.Contains(end.failed, "is not in the repository") {
		t.Errorf("%+v", end)
	}
}

func TestHold(t *testing.T) {
	dir, record := t.TempDir(), filepath.Join(t.TempDir(), "record.txt")
	hold := func(update bool) string {
		end, _ := within(t, func(t testing.TB) { testkit.Hold(t, dir, record, update, "what it printed") })
		return end.failed
	}
	if got := hold(true); !strings.Contains(got, "no results\nwhat it printed") {
		t.Errorf("of nothing: %q", got)
	}
	for path, text := range map[string]string{
		"server-tools-2026-01-02T03-04-05/checks.json": `[{"id":"a","status":"SUCCESS"},{"id":"b","status":"FAILURE"},{"id":"b",` +
			`"status":"FAILURE"},{"id":"c","status":"INFO"},{"id":"a","status":"WARNING"}]`,
		"auth/2025-03-26-basic-2026-01-02T03-04-05/checks.json": `[{"id":"a","status":"SUCCESS"},{"id":"b","status":"SUCCESS"}]`,
		"empty/checks.json":  `[]`,
		"empty/stdout.txt":   `no result`,
		"empty/other.json":   `{`,
		"a-long-name/x.json": `[{"id":"a","status":"FAILURE"}]`,
	} {
		put(t, filepath.Join(dir, path), text)
	}
	if got := hold(false); !strings.Contains(got, "record.txt") {
		t.Errorf("without a record: %q", got)
	}
	want := fmt.Sprintf("%-50s 2 passed\n%-50s 0 passed\n%-50s 1 passed, 2 failure b, 1 warning a\n",
		"auth/2025-03-26-basic", "empty", "tools")
	put(t, record, want)
	if got := hold(false); got != "" {
		t.Error(got)
	}
	put(t, record, "less")
	if got := hold(false); !strings.Contains(got, "want\nless\nwhat it printed") {
		t.Errorf("of something else: %q", got)
	}
	if got := hold(true) + hold(false); got != "" {
		t.Error(got)
	}
	if got, err := os.ReadFile(record); err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	put(t, filepath.Join(dir, "damaged", "checks.json"), `[`)
	if got := hold(false); !strings.Contains(got, "damaged/checks.json") {
		t.Error(got)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
