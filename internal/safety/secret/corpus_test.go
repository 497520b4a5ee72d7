package secret_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/secret"
)

// sample is a text of the corpus. In stored texts, ¦ splits anything that might be taken for a real secret, and « »
// enclose the parts that must go.
type sample struct {
	name, text string
	secrets    []string
	near       string // a text without a secret that looks much alike, after a line --
}

func corpus(t testing.TB, file string) (out []sample) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(strings.ReplaceAll("\n"+string(raw), "¦", ""), "\n## ") {
		name, text, _ := strings.Cut(part, "\n")
		if name == "" {
			continue
		}
		s := sample{name: name}
		text, s.near, _ = strings.Cut(text, "\n--\n")
		for piece := range strings.SplitSeq(text, "«") {
			if hidden, open, ok := strings.Cut(piece, "»"); ok {
				s.secrets = append(s.secrets, hidden)
				piece = hidden + open
			}
			s.text += piece
		}
		out = append(out, s)
	}
	return out
}

// shows reports whether a text still holds part of a secret: any eight bytes
// that are not the same in every secret of its kind.
func shows(text, hidden string) bool {
	const n = 8
	for i := min(12, max(0, len(hidden)-n)); i+n <= len(hidden); i++ {
		if strings.Contains(text, hidden[i:i+n]) {
			return true
		}
	}
	return strings.Contains(text, hidden)
}

func TestCorpus(t *testing.T) {
	all, found := 0, 0
	formats := corpus(t, "formats.txt")
	for _, s := range append(corpus(t, "secrets.txt"), formats...) {
		var v secret.Vault
		got := v.Redact(s.text)
		for _, hidden := range s.secrets {
			all++
			if shows(got, hidden) {
				t.Errorf("%s: still there in %q", s.name, got)
				continue
			}
			found++
		}
		if again := v.Redact(got); again != got {
			t.Errorf("%s: %q became %q the second time", s.name, got, again)
		}
		if back := v.Resolve(got); back != s.text {
			t.Errorf("%s: came back as %q", s.name, back)
		}
		// The text around a secret must stay readable.
		if kept := len(s.text) - len(strings.Join(s.secrets, "")); len(got) < kept {
			t.Errorf("%s: too much went: %q", s.name, got)
		}
	}
	alike, touched := corpus(t, "lookalikes.txt"), 0
	for _, s := range formats {
		if len(s.secrets) == 0 || s.near == "" {
			t.Errorf("%s: no pair of a text with a secret and one without", s.name)
		}
		alike = append(alike, sample{name: s.name, text: s.near})
	}
	for _, s := range alike {
		var v secret.Vault
		if got := v.Redact(s.text); got != s.text {
			touched++
			t.Errorf("%s: %q became %q", s.name, s.text, got)
		}
	}
	t.Logf("secret: recall %d of %d, look-alikes touched %d of %d", found, all, touched, len(alike))
	if found*100 < all*99 || all < 530 || len(alike) < 470 {
		t.Errorf("recall %d of %d is under 99 in 100, or the corpus is too small", found, all)
	}
}

// TestFind checks the names and positions of the findings.
func TestFind(t *testing.T) {
	for _, s := range slices.Concat(corpus(t, "secrets.txt"), corpus(t, "lookalikes.txt"), corpus(t, "formats.txt")) {
		all := secret.Find(s.text)
		first, ok := new(secret.Finder).First(s.text)
		if ok != (len(all) > 0) || ok && first != all[0] {
			t.Errorf("%s: the first is %v, of all %v", s.name, first, all)
		}
		end := 0
		for _, f := range all {
			if f.Start < end || f.End <= f.Start || f.End > len(s.text) || f.What == "" {
				t.Errorf("%s: %v", s.name, all)
			}
			end = f.End
		}
	}
}

// TestStream checks that a stream gives the same result as the whole text, wherever it is cut.
func TestStream(t *testing.T) {
	sweep(t)
	for _, s := range slices.Concat(corpus(t, "secrets.txt"), corpus(t, "lookalikes.txt"), corpus(t, "formats.txt")) {
		var v secret.Vault
		v.Add("AN_ENTRY", "zq-known/value+77")
		v.Add("OVER_A_PLACEHOLDER", "secret:9] end")
		text := s.text + "\nzq-known/value+77 and enEta25vd24vdmFsdWUrNzc= [secret:9] end"
		want := v.Redact(text)
		for i := range len(text) + 1 {
			if got := stream(t, &v, text[:i], text[i:]); got != want {
				t.Fatalf("%s cut at %d (%q): %q, want %q", s.name, i, text[max(0, i-10):i], got, want)
			}
		}
		var bytes []string
		for i := range len(text) {
			bytes = append(bytes, text[i:i+1])
		}
		if got := stream(t, &v, bytes...); got != want {
			t.Errorf("%s byte by byte: %q, want %q", s.name, got, want)
		}
	}
}

func stream(t interface{ Fatal(...any) }, v *secret.Vault, pieces ...string) string {
	var b strings.Builder
	w := v.Writer(&b)
	for _, p := range pieces {
		if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestMixtures checks the rules of the package for pieces of the corpus in any order, which meet where no text of it
// does.
func TestMixtures(t *testing.T) {
	sweep(t)
	var pieces []string
	for _, s := range slices.Concat(corpus(t, "secrets.txt"), corpus(t, "lookalikes.txt"), corpus(t, "formats.txt")) {
		pieces = append(pieces, s.text)
	}
	pieces = append(pieces, "zq-known/value+77", "enEta25vd24vdmFsdWUrNzc=", "=", ":", "\"", "'", "[", "]", "\\n", "\n", " ", "password",
		"token", "Bearer ", "example", "Cookie: ", "-----BEGIN PRIVATE KEY-----", "[secret:", "https://a:")
	r := rand.New(rand.NewPCG(11, 7))
	for range 4000 {
		text := ""
		for range 2 + r.IntN(5) {
			p := pieces[r.IntN(len(pieces))]
			if r.IntN(2) == 0 {
				from := r.IntN(len(p))
				p = p[from : from+r.IntN(len(p)-from+1)]
			}
			text += p
		}
		var v secret.Vault
		v.Add("AN_ENTRY", "zq-known/value+77")
		got := v.Redact(text)
		if again := v.Redact(got); again != got {
			t.Fatalf("%q became %q, then %q", text, got, again)
		}
		if back := v.Resolve(got); back != text && !strings.Contains(text, "[secret:") {
			t.Fatalf("%q came back as %q", text, back)
		}
		got = v.Redact(text) // now that it knows what there is
		i := r.IntN(len(text) + 1)
		j := i + r.IntN(len(text)-i+1)
		if streamed := stream(t, &v, text[:i], text[i:j], text[j:]); streamed != got {
			t.Fatalf("%q in pieces: %q, want %q", text, streamed, got)
		}
	}
}
