package secret_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/secret"
)

// TestPieces checks that parts of a secret are hidden wherever a shell may leave them, and nothing else is.
func TestPieces(t *testing.T) {
	for name, tc := range map[string]struct {
		value, text, hide, words string // what is hidden stands in <>
	}{
		"operators": {
			"hunter&zq77wkk;31vx|abcdef", "make hunter, zq77wkk: not found, 31vx, ;31vx|, abcde", "make <>, <>: not found, 31vx, <>, <>",
			"make <>, <>: not found, 31vx, ;31vx|, abcde",
		},
		"cut":       {"hunter&zq77wkk;31vx|abcdef", `would run "zq77w"`, `would run "<>"`, `would run "zq77w"`},
		"longest":   {"q7wertgh;q7wertxyz", "q7wertxyz q7wertgh q7wert", "<> <> <>", "<> <> q7wert"},
		"quotes":    {`pre"fix'ed`, "prefixed pre", "<> pre", "<> pre"},
		"whole":     {"k3yWithoutAnything99", "k3yWithoutAnything k3yWi other", "<> <> other", "k3yWithoutAnything k3yWi other"},
		"lines":     {"first&line-of-it\nsecond;line-of-it", "line-of-it second", "<> <>", "<> <>"},
		"head":      {"-----BEGIN KEY-----\nMIIabc&defghi\n-----END KEY-----", "-----BEGIN KEY----- defghi", "-----BEGIN KEY----- <>", "-----BEGIN KEY----- <>"},
		"address":   {"https://ann:pass&word99@db.internal/orders?a=1&bcdef", "https://db.internal word99 orders bcdef", "https://db.internal <> <> <>", "https://db.internal <> orders <>"},
		"no user":   {"https://hooks.internal/T012q;B345X", "https://hooks.internal/T012q B345X", "https://hooks.internal<> <>", "https://hooks.internal<> <>"},
		"one over":  {"-----&=====zq77wkk", "===== ----- zq77wkk", "===== ----- <>", "===== ----- zq77wkk"},
		"non-ASCII": {"schlüßel;geheimnüß", "geheimnüß schlüß", "<> <>", "<> schlüß"},
	} {
		t.Run(name, func(t *testing.T) {
			v := secret.Vault{Key: []byte("k")}
			if !v.Add("TOKEN", tc.value) {
				t.Fatal("it is not a secret")
			}
			p := v.Pieces("x " + v.Redact(tc.value) + " [secret:aaaaaaaa]")
			for f, want := range map[*func(string) string]string{new(p.Hide): tc.hide, new(p.HideWords): tc.words} {
				hid := (*f)(tc.text)
				shown := hid
				for {
					i := strings.Index(shown, "[secret:")
					if i < 0 {
						break
					}
					shown = shown[:i] + "<>" + shown[i+strings.IndexByte(shown[i:], ']')+1:]
				}
				if shown != want {
					t.Errorf("%q, want %q", shown, want)
				}
				if v.Resolve(hid) != hid || v.Redact(hid) != hid || (*f)(hid) != hid {
					t.Errorf("%q stands for something, or is not left as it is", hid)
				}
			}
		})
	}
}

// TestPiecesOfNothing checks that a text without placeholders, or with unknown ones, hides nothing.
func TestPiecesOfNothing(t *testing.T) {
	v := secret.Vault{Key: []byte("k")}
	v.Add("TOKEN", "hunter&zq77wkk")
	for _, of := range []string{"", "hunter", "[secret:aaaaaaaa]", "[secret:", "[secret:1]"} {
		if got := v.Pieces(of).Hide("hunter zq77wkk"); got != "hunter zq77wkk" {
			t.Errorf("of %q: %q", of, got)
		}
	}
	if got := (secret.Pieces{}).HideWords("hunter"); got != "hunter" {
		t.Errorf("of none: %q", got)
	}
}
