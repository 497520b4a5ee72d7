package secret_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/secret"
)

// FuzzRedact checks properties of any text: a stream gives the result of the whole, no known value stays, redacting
// twice changes nothing more, and the text can be restored.
func FuzzRedact(f *testing.F) {
	sweep(f)
	for _, s := range slices.Concat(corpus(f, "secrets.txt"), corpus(f, "lookalikes.txt"), corpus(f, "formats.txt")) {
		f.Add(s.text, "kT7vQ2mXw9", uint64(len(s.text)))
	}
	f.Add("[secret:1]ghp_[secret:", "[secret]x1y2", uint64(3))
	f.Fuzz(func(t *testing.T, text, value string, cuts uint64) {
		v := new(secret.Vault)
		known := v.Add("A", value)
		v.Add("B", "abcd[efgh]1")
		v.Add("C", "secret:1]zz9")
		text += "\n" + odd(strings.TrimSpace(value), cuts)
		if cuts&1 == 0 { // far from the end quick looks pass over most of a text, which a stream reads near its end
			text += "\n" + strings.Repeat("plain words, ", 20)
		}
		got := v.Redact(text)
		if again := v.Redact(got); again != got {
			t.Fatalf("%q became %q, then %q", text, got, again)
		}
		if !strings.Contains(text, "[secret:") {
			if back := v.Resolve(got); back != text {
				t.Fatalf("%q became %q and came back as %q", text, got, back)
			}
			if value := strings.TrimSpace(value); known && strings.Contains(strings.ReplaceAll(got, "[secret:", ""), value) {
				t.Fatalf("%q still holds %q", text, value)
			}
			if known && seen(value) == value && strings.Contains(seen(got), value) {
				t.Fatalf("%q became %q, which still shows %q", text, got, value)
			}
		}
		var pieces []string
		for rest := text; rest != ""; {
			cuts = cuts*6364136223846793005 + 1442695040888963407
			n := min(len(rest), int(cuts>>33)%(1+int(cuts>>60)*3)+1)
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if streamed := stream(t, v, pieces...); streamed != got {
			t.Fatalf("%q in %q: %q, want %q", text, pieces, streamed, got)
		}
	})
}

// odd is a value with gaps at random places inside.
func odd(value string, chance uint64) string {
	gaps := []string{"", "\u200b", "\x1b[1;31m", `"`, "\\\n", "\u00ad'", "\x00", "\r"}
	out := ""
	for _, c := range []byte(value) {
		chance = chance*6364136223846793005 + 1442695040888963407
		out += gaps[chance>>61] + string([]byte{c})
	}
	return out
}
