// Package testkit has helpers of several tests: programs of other authors, the conformance suite of MCP, and
// the check that no goroutine is left behind. Only tests may import it.
package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unavailable is the exit code of scripts/peers if the programs are unavailable.
const unavailable = 3

// Dir returns the folder of the programs from npm, whose node_modules/.bin has them and node22 to run them
// with. If they are unavailable, the test is skipped with a loud message.
func Dir(t testing.TB) string {
	t.Helper()
	return run(t, "peers")
}

// Uv returns the folder of uv and uvx. If they are unavailable, the test is skipped as by Dir.
func Uv(t testing.TB) string {
	t.Helper()
	return run(t, "uv")
}

// Python finds a Python of version 3.12 or later, as required by Harbor and SWE-bench; empty if there is none.
// A name in PATH may be a mere pointer to one that is not installed, so each is tried.
func Python(ctx context.Context) string {
	names := []string{"python3", "python3.14", "python3.13", "python3.12"}
	if dir, err := os.UserHomeDir(); err == nil {
		more, _ := filepath.Glob(filepath.Join(dir, ".pyenv", "versions", "*", "bin", "python3"))
		names = append(names, more...)
	}
	for _, name := range names {
		cmd := exec.CommandContext(ctx, name, "-I", "-c", "import sys, json; print(json.dumps(sys.version_info[:2] >= (3, 12)))")
		out, err := cmd.Output()
		var ok bool
		if err == nil && json.Unmarshal(out, &ok) == nil && ok {
			return name
		}
	}
	return ""
}

// run returns the output of one of our scripts, a folder.
func run(t testing.TB, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(root(t), "scripts", script))
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	why := strings.TrimSpace(said.String())
	failed := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return strings.TrimSpace(string(out))
	case errors.Is(err, exec.ErrNotFound):
		why = err.Error()
	case !errors.As(err, &failed) || failed.ExitCode() != unavailable:
		t.Fatalf("scripts/%s: %v: %s", script, err, why)
	}
	fmt.Fprintf(os.Stderr, "SKIPPED %s: %s\n", t.Name(), why)
	t.Skip(why)
	return ""
}

// root returns the folder of the repository in which the test runs.
func root(t testing.TB) string {
	t.Helper()
	dir, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "scripts", "peers")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in the repository", dir)
		}
	}
}

// Hold compares the results of the conformance suite in a folder with the record of an earlier run, a file that
// update writes again: a line for each scenario, sorted, with how many of its checks passed, and those that did
// not. Said is the output of the suite, for people.
func Hold(t testing.TB, dir, record string, update bool, said string) {
	t.Helper()
	got := outcome(t, dir)
	if got == "" {
		t.Fatalf("no results\n%s", said)
	}
	if update {
		if err := os.WriteFile(record, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s\n%s", got, want, said)
	}
}

// outcome is empty if there are no results.
func outcome(t testing.TB, dir string) string {
	t.Helper()
	lines, stamp := map[string]string{}, regexp.MustCompile(`-\d{4}-\d\d-\d\dT.*`)
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil {
			return err
		}
		sum, err := summary(raw)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		scenario := strings.TrimPrefix(stamp.ReplaceAllString(strings.TrimSuffix(path, "/checks.json"), ""), "server-")
		lines[scenario] = fmt.Sprintf("%-50s %s\n", scenario, sum)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, scenario := range slices.Sorted(maps.Keys(lines)) {
		b.WriteString(lines[scenario])
	}
	return b.String()
}

// summary counts the checks of a scenario, without informational ones.
func summary(raw []byte) (string, error) {
	var checks []struct{ ID, Status string }
	if err := json.Unmarshal(raw, &checks); err != nil {
		return "", err
	}
	passed, others := 0, map[string]int{}
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			passed++
		case "INFO":
		default:
			others[strings.ToLower(c.Status)+" "+c.ID]++
		}
	}
	out := fmt.Sprintf("%d passed", passed)
	for _, other := range slices.Sorted(maps.Keys(others)) {
		out += fmt.Sprintf(", %d %s", others[other], other)
	}
	return out, nil
}
