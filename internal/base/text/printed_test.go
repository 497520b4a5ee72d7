package text_test

import (
	"testing"

	"github.com/inspan/inspan/internal/base/text"
)

func TestPrinted(t *testing.T) {
	for printed, want := range map[string]string{
		" plain\ttext\n\n":             "plain\ttext",
		"\x1b[1;31mred\x1b[0m and\r\n": "red and",
		"\x1b[2J\x1b]52;c;aGk=\a":      "]52;c;aGk=",
		"of tput\x1b(B\x1b[m \x1b)0":   "of tput",
		"\x1b[":                        "[",
		"a\x00\x07\u009bb\xff":         "ab\ufffd",
		"":                             "",
	} {
		if got := text.Printed(printed); got != want {
			t.Errorf("%q: %q, want %q", printed, got, want)
		}
	}
}
