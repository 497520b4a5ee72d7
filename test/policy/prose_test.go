package policy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// riddles are shapes that a reader stumbles over, each with a replacement. "There is not a file" is plain English,
// "it is not a file" is not.
var riddles = []struct {
	shape  *regexp.Regexp
	advice string
}{
	{regexp.MustCompile(`(?i)\bwhoever\b`), "name the actor"},
	{regexp.MustCompile(`(?i)\bcan't be had\b|\bisn't to be had\b`), `say "is down" or "is unavailable"`},
	{regexp.MustCompile(`(?i)(^|[^e]|[^r]e)\s(is|are) no (file|folder|command|tool|kind|plugin|skill|text|terminal|model|place|check|checks|name)\b`), `say "is not a ..."`},
	{regexp.MustCompile(`(?m)(^|[.:;] )What (a|an|it|is|was|the|they|you|he|we|inspan|has|can't|can|does|goes|must|should|takes|asks)\b[^?|]*\.`), "begin with the actor"},
	{regexp.MustCompile(`(?i)\bin the place of\b`), `say "instead of"`},
	{regexp.MustCompile(`(?i)\bwhat is (meant|to be done)\b`), "name the thing"},
}

// badFence is a fence of code that was wrapped like prose.
var badFence = regexp.MustCompile("(?m)^ *```[^`\n]* [^`\n]*$|^[^`\n]+```$")

// TestProse holds documents and help texts to the rules of CONTRIBUTING.md that
// a program can check.
func TestProse(t *testing.T) {
	for _, path := range documents(t) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		if line := badFence.FindString(text); line != "" {
			t.Errorf("%s: more than a language stands beside a fence: %s", path, line)
		}
		unriddled(t, path, proseOf(text))
	}
}

// TestLinksLeadSomewhere checks that each link from a document to a file of the repository finds it.
func TestLinksLeadSomewhere(t *testing.T) {
	decisions, err := filepath.Glob("docs/decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(documents(t), decisions...) {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)\s]*)?\)`).FindAllStringSubmatch(proseOf(string(raw)), -1) {
			found++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s has a link to %s, which is not there", page, m[1])
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d links were found", found)
	}
}

// TestHelpTexts checks the texts of the command to the same rules.
func TestHelpTexts(t *testing.T) {
	paths, err := filepath.Glob("internal/front/command/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			found++
			unriddled(t, path, text)
			return true
		})
	}
	if found < 500 {
		t.Errorf("only %d texts were found in the command", found)
	}
}

// TestRiddlesAreFound proves that the shapes match their examples, and leave plain sentences alone.
func TestRiddlesAreFound(t *testing.T) {
	for text, want := range map[string]bool{
		"Whoever spawned it decides.":                                true,
		"A model that can't be had is waited for.":                   true,
		"It is no file.":                                             true,
		"It ends. What it costs counts.":                             true,
		"What takes long can do without a terminal.":                 true,
		"If a provider is down, inspan retries.":                     false,
		"It is not a file, and there is no other copy.":              false,
		"There is no file of that name.":                             false,
		"The port is no longer open.":                                false,
		"What is it? A file.":                                        false,
		"The list names what inspan reads, and the file is no more.": false,
	} {
		got := slices.ContainsFunc(riddles, func(r struct {
			shape  *regexp.Regexp
			advice string
		},
		) bool {
			return r.shape.MatchString(text)
		})
		if got != want {
			t.Errorf("%q is a riddle: %v", text, got)
		}
	}
}

func unriddled(t *testing.T, where, text string) {
	t.Helper()
	for _, r := range riddles {
		if found := r.shape.FindString(text); found != "" {
			t.Errorf("%s says %q; %s", where, found, r.advice)
		}
	}
}

// documents are the documents that people write: EVENTS.md is made from comments, and decisions stay as they were
// written.
func documents(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("docs/*.md")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d documents: %v", len(paths), err)
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return filepath.Base(p) == "EVENTS.md" })
	issues, err := filepath.Glob("docs/known-issues/*.md")
	if err != nil || len(issues) == 0 {
		t.Fatalf("%d pages of known issues: %v", len(issues), err)
	}
	return append(append(paths, issues...), "README.md", "AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
}

// proseOf blanks everything that is not prose: blocks of code and pictures of screens. Tables stay, because their
// words are read too.
func proseOf(text string) string {
	lines := strings.Split(text, "\n")
	code := false
	for i, line := range lines {
		fence := strings.HasPrefix(line, "```")
		if fence || code || strings.HasPrefix(line, "    ") && !strings.HasPrefix(strings.TrimSpace(line), "-") {
			lines[i] = ""
		}
		if fence {
			code = !code
		}
	}
	return strings.Join(lines, "\n")
}
