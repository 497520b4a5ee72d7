package policy_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// copied are folders whose files are in the binary and come from elsewhere, with a description. Each holds its own
// licence.
var copied = map[string]string{
	"internal/view/markdown/lexers":    "lexers of github.com/alecthomas/chroma, changed (internal/view/markdown/lexers)",
	"internal/service/server/page/lit": "lit-html 3.3.3 (internal/service/server/page/lit)",
}

// systems are the systems that inspan is built for; each links some modules of its own.
var systems = []string{"linux", "darwin", "windows"}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)`)

// thirdParty holds the texts of licences. Its files have the paths of the modules that they came from.
const thirdParty = "third_party"

// A licence is one text, under which a part of the binary stands.
type licence struct {
	file  string // where it came from: the path of the module without its version, and that of the file in it
	users []string
}

// TestNotice keeps NOTICE and the texts in third_party equal to the licences of everything that is linked
// into the command or embedded in it. 'make notice' writes them.
func TestNotice(t *testing.T) {
	texts := map[string]*licence{}
	root := strings.TrimSpace(goCommand(t, "linux", "env", "GOROOT"))
	if !addLicences(t, texts, "the Go standard library and runtime", "go", root, root) {
		t.Skipf("SKIPPED: NOTICE is not checked, as %s has no licence file", root)
	}
	modules := linked(t)
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		dirs, found := modules[name], false
		module, _, _ := strings.Cut(name, " ")
		for _, dir := range dirs[1:] {
			found = addLicences(t, texts, name, module, dirs[0], dir) || found
		}
		if !found {
			t.Errorf("%s has no licence file in %s; it can't be linked", name, dirs[0])
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(copied)) {
		if !addLicences(t, texts, copied[dir], dir, dir, dir) {
			t.Errorf("%s has no licence file", dir)
		}
	}
	if *update {
		if err := os.RemoveAll(thirdParty); err != nil {
			t.Fatal(err)
		}
	}
	kept := map[string]bool{}
	for text, l := range texts {
		path := filepath.Join(thirdParty, filepath.FromSlash(l.file))
		if kept[path] {
			t.Errorf("%s would hold two licences", path)
		}
		kept[path] = true
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		golden(t, path, text+"\n")
	}
	err := filepath.WalkDir(thirdParty, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !kept[path] {
			t.Errorf("nothing that is linked is under %s; run: make notice", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "NOTICE", notice(slices.Collect(maps.Values(texts))))
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
func addLicences(t *testing.T, texts map[string]*licence, name, module, root, dir string) bool {
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
			within, err := filepath.Rel(root, dir)
			if err != nil {
				t.Fatal(err)
			}
			text := plain(string(raw))
			found = true
			if texts[text] == nil {
				texts[text] = &licence{file: path.Join(module, filepath.ToSlash(within), e.Name())}
			}
			if l := texts[text]; !slices.Contains(l.users, name) {
				l.users = append(l.users, name)
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

// notice is the document: each file of third_party, with the components under its text.
func notice(licences []*licence) string {
	var b strings.Builder
	b.WriteString("inspan\nCopyright 2026 The inspan authors\n\n" +
		"inspan is licensed under the Apache License, Version 2.0; see LICENSE.\n\n" +
		"The command contains the software below. Each line that begins with " + thirdParty + "\n" +
		"names the licence of the lines that follow it. 'make notice' writes this file.\n")
	slices.SortFunc(licences, func(a, b *licence) int { return strings.Compare(a.file, b.file) })
	for _, l := range licences {
		fmt.Fprintf(&b, "\n%s/%s\n", thirdParty, l.file)
		for _, name := range slices.Sorted(slices.Values(l.users)) {
			fmt.Fprintf(&b, "    %s\n", name)
		}
	}
	return b.String()
}
