package policy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDoors checks that the table of doors in docs/SECURITY.md has each door, with tests.
func TestDoors(t *testing.T) {
	_, table, _ := strings.Cut(pageOfSecurity(t), "\n### Each door\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := map[string]int{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| ") && len(cells) == 5 {
			rows[strings.Trim(cells[0], "| ")] = len(testNames(cells[4]))
		}
	}
	for _, door := range []string{
		"terminal (`inspan`)", "`inspan run`", "`attach`, `send`, `logs`, `stop`", "server API", "web page", "Managed Agents", "A2A", "ACP",
		"MCP server", "workers", "webhooks, incoming", "webhooks, outgoing", "AgentCore",
	} {
		if rows[door] < 2 {
			t.Errorf("%d tests hold the door %s", rows[door], door)
		}
	}
}

// TestTestsInSecurity fails if docs/SECURITY.md names a test that does not exist. A test may be named with its package.
func TestTestsInSecurity(t *testing.T) {
	names := testNames(pageOfSecurity(t))
	if len(names) < 100 {
		t.Fatalf("only %d tests were found", len(names))
	}
	have := tests(t)
	for _, name := range names {
		if !have[name] {
			t.Errorf("docs/SECURITY.md names %s, which does not exist", name)
		}
	}
	for _, made := range []string{"TestNoSuchPromise", "tui.TestWhoWorks"} {
		if have[made] {
			t.Errorf("%s exists", made)
		}
	}
}

func pageOfSecurity(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("docs/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// testNames returns the tests that a text names in backticks.
func testNames(text string) (names []string) {
	for _, found := range regexp.MustCompile("`((?:[a-z0-9]+\\.)?(?:Test|Fuzz)[A-Z]\\w*)`").FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// tests returns every test and fuzz test, by its name, and by that with the folder of its package.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	heads := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		code, err := os.ReadFile(path)
		for _, found := range heads.FindAllStringSubmatch(string(code), -1) {
			out[found[1]], out[filepath.Base(filepath.Dir(path))+"."+found[1]] = true, true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
