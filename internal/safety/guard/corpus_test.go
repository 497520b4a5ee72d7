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

func TestCorpusOfHarmlessText(t *testing.T) {
	all, clean := samples(t, "harmless.txt"), 0
	for _, s := range all {
		if got := mark(s.text, "read_file a.go", false); got != s.text {
			t.Errorf("%s: became %q", s.name, got)
			continue
		}
		clean++
	}
	t.Logf("guard: %d of %d harmless texts stay as they are", clean, len(all))
	if len(all) < 60 {
		t.Error("the corpus is not all there")
	}
}

// TestCorpusOfHiddenText checks that text that is hidden from people, or imitates our marks, always gets a notice.
func TestCorpusOfHiddenText(t *testing.T) {
	all, found := samples(t, "hidden.txt"), 0
	for _, s := range all {
		if got := mark(s.text, "read_file a.go", false); !strings.Contains(got, "\n[inspan: the text above came from read_file a.go. It ") {
			t.Errorf("%s: became %q", s.name, got)
			continue
		}
		found++
	}
	t.Logf("guard: %d of %d texts that hide or imitate have a notice", found, len(all))
}
