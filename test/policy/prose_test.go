package policy_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
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

// habits are shapes that read as translated where they are frequent. Admired Go code has about 3, 1, 0, 2, 0 and 0 of
// them in 10,000 words of comments.
var habits = map[string]*regexp.Regexp{
	"clause with what":  regexp.MustCompile(`(?i)\bwhat (a|an|it|is|was|the|they|you|he|we|has|can|does|comes|goes|must|should)\b`),
	"whoever, somebody": regexp.MustCompile(`(?i)\b(whoever|nobody|somebody)\b`),
	"goes on":           regexp.MustCompile(`(?i)\bgo(es)? on\b`),
	"those that":        regexp.MustCompile(`(?i)\bthose (that|which|who)\b`),
	"is told":           regexp.MustCompile(`(?i)\b(is|are) told\b`),
	"beside":            regexp.MustCompile(`(?i)\bbeside\b`),
}

// neverRight is what no comment may say.
var neverRight = regexp.MustCompile(`(?i)\bthe how manieth\b|\bwhoever\b`)

// TestComments prints how often the habits occur in 10,000 words of comments, in all and in the ten packages with
// most of them (run it with -v). It fails only for what is never right: a count in a whole package is a reason to
// read it, not a rule.
func TestComments(t *testing.T) {
	type count struct {
		words int
		found map[string]int
	}
	all, by := count{found: map[string]int{}}, map[string]count{}
	for _, s := range sources(t) {
		c, known := by[s.dir]
		if !known {
			c.found = map[string]int{}
		}
		for _, group := range s.file.Comments {
			text := group.Text()
			if wrong := neverRight.FindString(text); wrong != "" {
				t.Errorf("%s: a comment says %q; name the actor, or the position", s.path, wrong)
			}
			n := len(strings.Fields(text))
			c.words, all.words = c.words+n, all.words+n
			for habit, shape := range habits {
				n := len(shape.FindAllString(text, -1))
				c.found[habit], all.found[habit] = c.found[habit]+n, all.found[habit]+n
			}
		}
		by[s.dir] = c
	}
	rate := func(c count) (sum float64, line string) {
		for _, habit := range slices.Sorted(maps.Keys(habits)) {
			r := float64(c.found[habit]) / float64(max(c.words, 1000)) * 10_000
			sum, line = sum+r, line+fmt.Sprintf("  %s %.1f", habit, r)
		}
		return sum, line
	}
	_, line := rate(all)
	t.Logf("%d words:%s", all.words, line)
	dirs := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		ra, _ := rate(by[a])
		rb, _ := rate(by[b])
		return cmp.Compare(rb, ra)
	})
	for _, dir := range dirs[:10] {
		_, line := rate(by[dir])
		t.Logf("%s, %d words:%s", dir, by[dir].words, line)
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
