package secret_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/secret"
)

// unseen are pieces that may stand inside a secret without taking it away.
func unseen() map[string]string {
	return map[string]string{
		"zero width space": "\u200b", "word joiner": "\u2060", "joiner": "\u200d", "byte order": "\ufeff", "soft hyphen": "\u00ad",
		"right to left": "\u200f", "override": "\u202e", "isolate": "\u2066", "selector": "\ufe0f", "selector of Chinese": "\U000e0101",
		"Mongolian selector": "\u180b", "tag": "\U000e0041", "invisible times": "\u2062", "filler": "\u3164", "line separator": "\u2028",
		"carriage return": "\r", "NUL": "\x00", "backspace": "\b", "delete": "\x7f", "escape of C1": "\u009b",
		"colour": "\x1b[31m", "colours of grep": "\x1b[01;31m\x1b[K", "of tput": "\x1b(B\x1b[m", "cursor": "\x1b[2;5H",
		"24 bits": "\x1b[0m\x1b[38;2;255;100;255m\x1b[48;2;255;255;255m", "many": strings.Repeat("\u200b", 20),
		"JSON": `\u200b\u001B[31m`, "JSON in JSON": `\\u200b`, "of Python": `\x1b[0m`, "of echo": `\e[1m\033[1;32m`,
		"caret": "^@", "carets": "^M^[[31m^H", "quote": "'",
		"double quote": `"`, "quotes": `""''`, "backslash": `\`, "next line": "\\\n", "next line of Windows": "\\\r\n",
		"several": "\u200b\x1b[m'\\\n\u00ad",
	}
}

// spread puts a piece between the characters of a value, n times or as often as it can.
func spread(value, piece string, n int) string {
	var b strings.Builder
	for i, r := range value {
		if i > 0 && n > 0 && r != '\n' && i != len(value)/3 {
			b.WriteString(piece)
			n--
		}
		b.WriteRune(r)
	}
	return b.String()
}

// TestSpellings checks that known values are found with invisible or shell-removed characters inside: in plain and in
// other forms, in whole texts and in streams.
func TestSpellings(t *testing.T) {
	sweep(t)
	n := 0
	for name, piece := range unseen() {
		for i, value := range values()[:5] {
			if len(piece) > 12 && i == 1 {
				continue // its quotes make too many gaps of it
			}
			for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)), hex.EncodeToString([]byte(value))} {
				for _, often := range []int{1, 1 << 20} {
					if often > 1 && form != value {
						continue
					}
					n++
					v := vault(t, values()...)
					odd := spread(form, piece, often)
					checkSpelling(t, v, fmt.Sprintf("%s in %q", name, form), "« "+odd+" »", fmt.Sprint("the value of NAME_", i))
				}
			}
		}
	}
	t.Log(n, "spellings of a known value")
}

// checkSpelling holds that the middle of a text is a secret, and nothing else.
func checkSpelling(t *testing.T, v *secret.Vault, name, text, what string) {
	t.Helper()
	got := v.Redact(text)
	if !regexp.MustCompile(`^« (\[secret:[a-z0-9.]+\]=*) »$`).MatchString(got) {
		t.Errorf("%s: %q became %q", name, text, got)
		return
	}
	if back := v.Resolve(got); back != text {
		t.Errorf("%s: %q came back as %q", name, text, back)
	}
	if again := v.Redact(got); again != got {
		t.Errorf("%s: %q became %q", name, got, again)
	}
	if is := v.What(got[strings.Index(got, "[") : strings.Index(got, "]")+1]); !strings.HasPrefix(is, what) {
		t.Errorf("%s is %q, want %q", name, is, what)
	}
	for i := 0; i <= len(text); i += 1 + len(text)/25 {
		if streamed := stream(t, v, text[:i], text[i:]); streamed != got {
			t.Errorf("%s cut at %d: %q, want %q", name, i, streamed, got)
			return
		}
	}
	bytes := make([]string, len(text))
	for i := range bytes {
		bytes[i] = text[i : i+1]
	}
	if streamed := stream(t, v, bytes...); streamed != got {
		t.Errorf("%s byte by byte: %q, want %q", name, streamed, got)
	}
}

// TestSpellingsOfShells checks how shells and languages write a value, and that the text around it stays.
func TestSpellingsOfShells(t *testing.T) {
	const value = "hunterzq77"
	for text, want := range map[string]string{
		`echo hunter"zq"77`:                                  `echo [1]`,
		`echo 'hun'terzq77`:                                  `echo '[1]`,
		`echo "hunter"'zq77';`:                               `echo "[1]';`,
		`echo hun\terzq77`:                                   `echo [1]`,
		"echo hunter\\\nzq77 x":                              "echo [1] x",
		`x = "hunter" "zq77"`:                                `x = "hunter" "zq77"`,
		"\x1b[1mhunter\x1b[0mzq77\x1b[0m ok":                 "\x1b[1m[1]\x1b[0m ok",
		"hunterzq7\u200b7\u200b.":                            "[1]\u200b.",
		"h\x00u\x00n\x00t\x00e\x00r\x00z\x00q\x007\x007\x00": "[1]\x00",
		`'hunterzq77'`:                                       `'[1]'`,
		`hunter'zq77hunterzq'77`:                             `[1][1]`,
		`huhunter'zq77`:                                      `hu[1]`,
		`hunterzq'hunter'zq77`:                               `hunterzq'[1]`,
	} {
		v := vault(t, value)
		got := v.Redact(text)
		if seen := regexp.MustCompile(`\[secret:[a-z0-9.]+\]`).ReplaceAllString(got, "[1]"); seen != want {
			t.Errorf("%q became %q, want %q", text, seen, want)
		}
		if back := v.Resolve(got); back != text {
			t.Errorf("%q came back as %q", text, back)
		}
	}
}

// TestSpellingsThatAreNone checks texts that are not taken for a secret: those that only share letters with one, and
// those that a person reads differently.
func TestSpellingsThatAreNone(t *testing.T) {
	for _, text := range []string{
		"hunter zq77", "hunter\nzq77", "hunter\tzq77", "hunter\\ zq77", "hunterzq7\u200b", "hunter'zq'7", "hunter'zQ77",
		"hunter\u2800zq77", "hunter\u00a0zq77", "hunter" + strings.Repeat("\u200b", 40) + "zq77", "hunter\x1b[31zq77x", "hunter\u0301zq77",
		`'password' "pass'word"`, "it's a hunter's 'zq' 77", "hunter+'zq77'", `"hunter", "zq77"`, "hunter\x1b[secret:zq77",
	} {
		v := vault(t, "hunterzq77", `"password"`)
		if got := v.Redact(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestValuesWithGaps checks that a value that contains quotes or invisible characters is found without them, unless the
// rest is too short or too common.
func TestValuesWithGaps(t *testing.T) {
	v := vault(t, `it's-a-"key"-77`, "zero\u200bwidth-88", "\x1b[31mcolour-99", `a'b'c'd'e'f'`)
	for text, want := range map[string]bool{
		`it's-a-"key"-77`: true, `its-a-key-77`: true, `it\'s-a-\"key\"-77`: true, `'it'"'"'s-a-"key"-77'`: true, "its-a-\u200bkey-77": true,
		"zerowidth-88": true, "colour-99": true, "col\u200bour-99": true, "abcdef": false, "a'b'c'd'e'f": false, `a'b'c'd'e'f'`: true,
	} {
		got := v.Redact(text)
		if strings.Contains(got, "[secret:") != want || v.Resolve(got) != text || v.Redact(got) != got {
			t.Errorf("%q became %q, and that %q", text, got, v.Resolve(got))
		}
	}
}

// TestPlaceholdersOfSpellings checks that spellings have placeholders of their own, which the next run derives again
// and does not confuse.
func TestPlaceholdersOfSpellings(t *testing.T) {
	key := []byte("a key of this test")
	first, later := &secret.Vault{Key: key}, &secret.Vault{Key: key}
	first.Add("NAME", "first-known-1")
	later.Add("OTHER", "second-known-2")
	later.Add("NAME", "first-known-1")
	text := "first-\u200bknown-1 first-known-1 first'-known-1"
	got := first.Redact(text)
	if want := "[secret:ucr5wfcp.oiw4] [secret:ucr5wfcp] [secret:ucr5wfcp.xso6]"; got != want {
		t.Errorf("%q", got)
	}
	if back := later.Resolve(got); back != strings.Replace(got, "[secret:ucr5wfcp]", "first-known-1", 1) {
		t.Errorf("before it is seen: %q", back)
	}
	if again := later.Redact(text); again != got || later.Resolve(got) != text {
		t.Errorf("in a later run: %q, %q", again, later.Resolve(again))
	}
	if what := later.What("[secret:ucr5wfcp.oiw4]"); what != "the value of NAME with other characters inside" {
		t.Errorf("it is %q", what)
	}
}

// TestManySpellings checks that a vault keeps a bounded number of spellings. Later ones are removed too, and stand for
// nothing rather than for something else.
func TestManySpellings(t *testing.T) {
	v := vault(t, "hunterzq77", "second-known-2")
	for i := range 200 {
		odd := "hunter" + strings.Repeat("\u200b", i%15+1) + "z" + strings.Repeat("'", i/15+1) + "q77"
		got := v.Redact("<" + odd + ">")
		if strings.Contains(got, "q77") {
			t.Fatalf("%d: %q", i, got)
		}
		if back := v.Resolve(got); (back == "<"+odd+">") != (i < 64) || i >= 64 && back != got {
			t.Fatalf("%d: %q came back as %q", i, got, back)
		}
	}
	if got := v.Resolve(v.Redact("second-\u200bknown-2 hunterzq77")); got != "second-\u200bknown-2 hunterzq77" {
		t.Errorf("%q", got)
	}
}

// TestNothingUnseenStays checks, for texts of all kinds with secrets in all spellings, that no secret remains when all
// invisible characters are removed.
func TestNothingUnseenStays(t *testing.T) {
	sweep(t)
	r := rand.New(rand.NewPCG(20, 1))
	known := []string{
		"kT7vQ2mXw9", "gehëim-wachtwoord-è", "sleutel 🔑/漢字 123", "p@ss/w0rd+<&>=", "aaaaaaab",
		strings.Repeat("Long3r.", 40),
	}
	var pieces []string
	for _, p := range unseen() {
		pieces = append(pieces, p)
	}
	around := []string{"word ", "kT7", "\n", "aaaa", `"`, `\`, "'", "\x1b[0m", "[", "[secret:", "[secret:1]", "\u200b", " 漢字", "Long3r.", "€", "\xe2\x80"}
	v := vault(t, known...)
	for range 3000 {
		var b strings.Builder
		for range 1 + r.IntN(3) {
			for range r.IntN(3) {
				b.WriteString(around[r.IntN(len(around))])
			}
			for i, c := range known[r.IntN(len(known))] {
				if i > 0 && r.IntN(3) == 0 {
					b.WriteString(pieces[r.IntN(len(pieces))])
				}
				b.WriteRune(c)
			}
		}
		all := b.String()
		got := v.Redact(all)
		for _, value := range known {
			if strings.Contains(seen(got), value) {
				t.Fatalf("%q became %q, which still shows %q", all, got, value)
			}
		}
		if again := v.Redact(got); again != got {
			t.Fatalf("%q became %q, then %q", all, got, again)
		}
		i := r.IntN(len(all) + 1)
		j := i + r.IntN(len(all)-i+1)
		if streamed := stream(t, v, all[:i], all[i:j], all[j:]); seen(streamed) != seen(got) {
			t.Fatalf("%q in pieces: %q, want %q", all, streamed, got)
		}
	}
}

var escape = regexp.MustCompile("^\\\\(?:\r?\n|(?:u001[bB]|x1[bB]|e|033)\\[[ -?]{0,61}[@-~]|u[0-9a-fA-F]{4})|^\\^(?:\\[\\[[ -?]{0,61}[@-~]|[?-_])")

// seen is the visible part of a text, for a person or a shell. Several gaps in a row show as one.
func seen(s string) string {
	var b strings.Builder
	for i, from := 0, 0; i < len(s); {
		n, _ := text.Invisible(s[i:])
		switch found := escape.FindString(s[i:]); {
		case len(found) == 6 && found[1] == 'u':
			r, _ := strconv.ParseUint(found[2:], 16, 16)
			n = 1
			if text.Unseen.Has(rune(r)) {
				n = 6
			}
		case found != "" && (found[0] == '\\' || found[1] != 'I' && found[1] != 'J'):
			n = len(found)
		case strings.IndexByte(`'"\`, s[i]) >= 0:
			n = 1
		}
		if n > 0 {
			i += n
			continue
		}
		if i-from > 64 {
			b.WriteString("…")
		}
		b.WriteByte(s[i])
		i++
		from = i
	}
	return b.String()
}
