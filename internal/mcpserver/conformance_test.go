package mcpserver_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/gate"
)

var update = flag.Bool("update", false, "write down how the conformance suite ends")

// peers is the folder of programs that others have written.
func peers(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "../../scripts/peers").Output()
	if err != nil {
		why := err.Error()
		if e, ok := err.(*exec.ExitError); ok { //nolint:errorlint // it is what Output returns
			why = strings.TrimSpace(string(e.Stderr))
		}
		fmt.Fprintf(os.Stderr, "SKIPPED %s: %s\n", t.Name(), why)
		t.Skip(why)
	}
	return strings.TrimSpace(string(out))
}

// peer runs one of them and returns what it prints.
func peer(t *testing.T, within time.Duration, dir string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	bin := filepath.Join(dir, "node_modules", ".bin")
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "node22"), append([]string{filepath.Join(bin, args[0])}, args[1:]...)...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestConformance runs all scenarios of the official suite for servers, over our
// transport, behind our gate, with the fixtures that they want. A verdict of the suite
// may be about nothing, so what counts is how many checks of each scenario passed.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	dir := peers(t)
	both(t, func(t *testing.T, revision string) {
		h := newHouse(t, "ask")
		h.Extend(prepared, extended)
		url := h.listen(&gate.Gate{}) + "/mcp"
		out := t.TempDir()
		printed, err := peer(t, 4*time.Minute, dir, "conformance", "server", "--url", url, "--spec-version", revision, "--suite", "all", "-o", out)
		got := outcome(t, out)
		if got == "" {
			t.Fatalf("no results: %v\n%s", err, printed)
		}
		path := filepath.Join("testdata", "conformance-"+revision+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("got\n%s\nwant\n%s\n%s", got, want, printed)
		}
	})
}

// outcome lists scenarios with how many of their checks passed, and those that did not.
func outcome(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil {
		t.Fatal(err)
	}
	lines, stamp := map[string]string{}, regexp.MustCompile(`-\d{4}-\d\d-\d\dT.*`)
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var checks []struct{ ID, Status string }
		if err := json.Unmarshal(raw, &checks); err != nil {
			t.Fatal(err)
		}
		passed, others := 0, map[string]int{}
		for _, c := range checks {
			if c.Status == "SUCCESS" {
				passed++
			} else if c.Status != "INFO" {
				others[strings.ToLower(c.Status)+" "+c.ID]++
			}
		}
		scenario := strings.TrimPrefix(stamp.ReplaceAllString(filepath.Base(filepath.Dir(path)), ""), "server-")
		line := fmt.Sprintf("%-50s %d passed", scenario, passed)
		for _, other := range slices.Sorted(maps.Keys(others)) {
			line += fmt.Sprintf(", %d %s", others[other], other)
		}
		lines[scenario] = line + "\n"
	}
	var b strings.Builder
	for _, scenario := range slices.Sorted(maps.Keys(lines)) {
		b.WriteString(lines[scenario])
	}
	return b.String()
}
