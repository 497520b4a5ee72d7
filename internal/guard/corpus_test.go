package guard

import (
	"embed"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

//go:embed testdata/*.txt
var corpora embed.FS

type sample struct{ name, text string }

// samples reads a corpus: blocks under "== name" lines. \u{X} stands for a
// character, \tag{...} and \vs{...} for text hidden in tag characters and in
// variation selectors.
func samples(t testing.TB, file string) []sample {
	t.Helper()
	raw, err := corpora.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	escape := regexp.MustCompile(`\\(u|tag|vs)\{([^}]*)\}`)
	var out []sample
	for block := range strings.SplitSeq("\n"+string(raw), "\n== ") {
		name, text, ok := strings.Cut(block, "\n")
		if !ok {
			continue
		}
		text = escape.ReplaceAllStringFunc(text, func(s string) string {
			m := escape.FindStringSubmatch(s)
			if m[1] == "u" {
				r, err := strconv.ParseUint(m[2], 16, 32)
				if err != nil {
					t.Fatal(err)
				}
				return string(rune(r))
			}
			return smuggle(m[1], m[2])
		})
		out = append(out, sample{name, text})
	}
	return out
}

func smuggle(how, text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		switch {
		case how == "tag":
			b.WriteRune(0xe0000 + rune(c))
		case c < 16:
			b.WriteRune(0xfe00 + rune(c))
		default:
			b.WriteRune(0xe0100 + rune(c) - 16)
		}
	}
	return b.String()
}

func kinds(signs []Sign) string {
	var list []string
	for _, s := range signs {
		list = append(list, s.Kind)
	}
	return strings.Join(list, " ")
}

func TestCorpusOfInjections(t *testing.T) {
	all, found := samples(t, "injections.txt"), 0
	for _, s := range all {
		if len(Suspicious(s.text)) > 0 {
			found++
			continue
		}
		t.Errorf("%s: no sign in %q", s.name, s.text)
	}
	t.Logf("guard: %d of %d injections have signs", found, len(all))
	if len(all) < 60 {
		t.Error("the corpus is not all there")
	}
}

func TestCorpusOfHarmlessText(t *testing.T) {
	all, clean := samples(t, "harmless.txt"), 0
	for _, s := range all {
		signs := Suspicious(s.text)
		if len(signs) == 0 {
			clean++
		}
		for _, sign := range signs {
			t.Errorf("%s: sign %s %q", s.name, sign.Kind, sign.Text)
		}
		if seen, smuggled := reveal(s.text); seen != s.text || smuggled {
			t.Errorf("%s: changed to %q", s.name, seen)
		}
	}
	t.Logf("guard: %d of %d harmless texts have none", clean, len(all))
	if len(all) < 60 {
		t.Error("the corpus is not all there")
	}
}

// TestCorpusAboutInjections holds what happens with text about injections: one
// that quotes a live sentence has signs, as a model can't tell a quotation from
// an order either; one that only speaks about them has none.
func TestCorpusAboutInjections(t *testing.T) {
	want := map[string]string{
		"a quoted attack":    "override",
		"a table of attacks": "override persona",
		"a test of a filter": "override",
	}
	for _, s := range samples(t, "about.txt") {
		if got := kinds(Suspicious(s.text)); got != want[s.name] {
			t.Errorf("%s: signs %q, want %q", s.name, got, want[s.name])
		}
	}
}
