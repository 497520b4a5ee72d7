package policy_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// copied are folders whose files are in the binary and came from elsewhere,
// with what they are. Each holds its own licence.
var copied = map[string]string{
	"internal/markdown/lexers": "lexers of github.com/alecthomas/chroma, changed (internal/markdown/lexers)",
	"internal/server/page/lit": "lit-html 3.3.3 (internal/server/page/lit)",
}

// systems are those that inspan is built for; each links some modules of its own.
var systems = []string{"linux", "darwin", "windows"}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)`)

// TestNotice keeps NOTICE equal to the licences of everything that is linked
// into the command or embedded in it. 'make notice' writes it.
func TestNotice(t *testing.T) {
	users := map[string][]string{} // licence text: those that are under it
	root := strings.TrimSpace(goCommand(t, "linux", "env", "GOROOT"))
	if !addLicences(t, users, "the Go standard library and runtime", root, root) {
		t.Skipf("SKIPPED: NOTICE is not checked, as %s has no licence file", root)
	}
	for name, dirs := range linked(t) {
		found := false
		for _, dir := range dirs[1:] {
			found = addLicences(t, users, name, dirs[0], dir) || found
		}
		if !found {
			t.Errorf("%s has no licence file in %s; it can't be linked", name, dirs[0])
		}
	}
	for dir, name := range copied {
		if !addLicences(t, users, name, dir, dir) {
			t.Errorf("%s has no licence file", dir)
		}
	}
	golden(t, "NOTICE", notice(users))
}

// linked returns the modules that the command links on any system, as "path
// version": the root of the module and the folders of its linked packages.
func linked(t *testing.T) map[string][]string {
	t.Helper()
	modules := map[string][]string{}
	for _, system := range systems {
		out := goCommand(t, system, "list", "-e", "-tags", "grpcnotrace", "-deps",
			"-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}|{{.Dir}}|{{$.Dir}}{{end}}{{end}}", "./cmd/inspan")
		for line := range strings.Lines(out) {
			fields := strings.Split(strings.TrimSpace(line), "|")
			switch {
			case len(fields) != 3:
			case fields[1] == "" || fields[2] == "":
				t.Skipf("SKIPPED: NOTICE is not checked, as the module cache lacks %s for %s; run: go mod download", fields[0], system)
			case modules[fields[0]] == nil:
				modules[fields[0]] = fields[1:]
			case !slices.Contains(modules[fields[0]], fields[2]):
				modules[fields[0]] = append(modules[fields[0]], fields[2])
			}
		}
	}
	return modules
}

func goCommand(t *testing.T, system string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %v: %v", args, err)
	}
	return string(out)
}

// addLicences notes the licence files of dir and of the folders above it, up to
// the root of its module.
func addLicences(t *testing.T, users map[string][]string, name, root, dir string) bool {
	t.Helper()
	found := false
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() || !licenceFile.MatchString(e.Name()) {
				continue
			}
			raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			text := plain(string(raw))
			found = true
			if !slices.Contains(users[text], name) {
				users[text] = append(users[text], name)
			}
		}
		if dir == root || len(dir) <= len(root) {
			return found
		}
		dir = filepath.Dir(dir)
	}
}

// plain makes texts that differ in blanks alone the same.
func plain(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimRight(line, " \t\r\n"))
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// notice is the document: each text once, below those that are under it.
func notice(users map[string][]string) string {
	var b strings.Builder
	b.WriteString("inspan\nCopyright 2026 The inspan authors\n\n" +
		"inspan is licensed under the Apache License, Version 2.0; see LICENSE.\n\n" +
		"The command contains the software below, under the licences that follow it.\n" +
		"'make notice' writes this file.\n")
	texts := slices.SortedFunc(maps.Keys(users), func(a, b string) int {
		slices.Sort(users[a])
		slices.Sort(users[b])
		return cmp.Or(slices.Compare(users[a], users[b]), strings.Compare(a, b))
	})
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n", strings.Repeat("=", 80))
		for _, name := range users[text] {
			fmt.Fprintf(&b, "%s\n", name)
		}
		fmt.Fprintf(&b, "%s\n\n%s\n", strings.Repeat("-", 80), text)
	}
	return b.String()
}
