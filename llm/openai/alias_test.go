package openai

import (
	"regexp"
	"strings"
	"testing"

	"github.com/inspan/inspan/llm/internal/wire"
)

// TestAliasesTaken checks that a replacement never collides with an existing name, whichever comes first.
func TestAliasesTaken(t *testing.T) {
	for _, rule := range []func(string) string{idUpTo40, idUpTo64, nineLetters, wire.ToolName} {
		foreign := strings.Repeat("functions.read:", 9)
		for _, order := range [][]string{{foreign, rule(foreign)}, {rule(foreign), foreign}} {
			table := wire.NewAliases(rule)
			a, b := table.Theirs(order[0]), table.Theirs(order[1])
			if a == b || a != table.Theirs(order[0]) || b != table.Theirs(order[1]) {
				t.Errorf("%q and %q become %q and %q", order[0], order[1], a, b)
			}
			if a != rule(order[0]) {
				t.Errorf("the first of %q is %q: it depends on what comes later", order, a)
			}
		}
	}
}

func FuzzAliases(f *testing.F) {
	f.Add("call_1\ncall_2\nfunctions.read:0\n\n\xff")
	f.Add(strings.Repeat("x", 41) + "\n" + strings.Repeat("x", 42) + "\nabcdefghi\nabcdefgh-")
	rules := map[string]struct {
		rule func(string) string
		good *regexp.Regexp
	}{
		"40":   {idUpTo40, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)},
		"64":   {idUpTo64, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)},
		"nine": {nineLetters, regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)},
		"name": {wire.ToolName, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)},
	}
	f.Fuzz(func(t *testing.T, in string) {
		for name, r := range rules {
			table := wire.NewAliases(r.rule)
			back := map[string]string{}
			for _, s := range strings.Split(in, "\n") {
				alias := table.Theirs(s)
				if !r.good.MatchString(alias) {
					t.Fatalf("%s: %q becomes %q", name, s, alias)
				}
				if known, ok := back[alias]; ok && known != s {
					t.Fatalf("%s: %q and %q become %q", name, known, s, alias)
				}
				back[alias] = s
				if table.Ours(alias) != s {
					t.Fatalf("%s: %q does not come back from %q", name, s, alias)
				}
			}
		}
	})
}
