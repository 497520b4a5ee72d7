package text_test

import (
	"testing"

	"github.com/inspan/inspan/internal/base/text"
)

func TestAddress(t *testing.T) {
	for url, want := range map[string]string{
		"https://h.example/v1":                      "https://h.example/v1",
		"https://bob:hunter2@h.example/x?token=abc": "https://***@h.example/x?***",
		"https://u:p@q@h.example/v1#key":            "https://***@h.example/v1#***",
		"ftp://u@h\n?k=v":                           "ftp://***@h\n?***",
		"https://u:p?w@h.example/x":                 "https://***@h.example/x",
		"":                                          "",
		"https://h.example/a@b":                     "https://h.example/a@b",
	} {
		if got := text.Address(url); got != want {
			t.Errorf("%q is shown as %q, want %q", url, got, want)
		}
	}
}
