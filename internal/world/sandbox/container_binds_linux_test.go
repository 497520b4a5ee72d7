package sandbox

import "testing"

func TestUnescaped(t *testing.T) {
	for text, want := range map[string]string{
		"/plain": "/plain", `/a\040b`: "/a b", `/a\134b`: `/a\b`, `/tab\011`: "/tab\t", `/end\04`: `/end\04`, `/no\999`: `/no\999`,
		`/high\777`: `/high\777`, "": "", `\`: `\`,
	} {
		if got := unescaped(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
