package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/inspan/inspan/internal/base/text"
)

func TestCutMiddle(t *testing.T) {
	lines := strings.Repeat("0123456789\n", 10)
	tests := []struct {
		text       string
		limit      int
		head, tail string
	}{
		{"short", 5, "short", ""},
		{"", 0, "", ""},
		{"abc", 0, "", ""},
		{"abcdef", 4, "ab", "ef"},
		{"abcdef", 3, "ab", "f"},
		{lines, 50, "0123456789\n0123456789\n", "0123456789\n0123456789\n"},
		{"ééééé", 5, "é", "é"},
	}
	for _, tt := range tests {
		head, tail, dropped := text.CutMiddle(tt.text, tt.limit)
		if head != tt.head || tail != tt.tail || dropped != len(tt.text)-len(head)-len(tail) {
			t.Errorf("CutMiddle(%q, %d) = %q, %q, %d", tt.text, tt.limit, head, tail, dropped)
		}
	}
}

func TestCutMiddleAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.SampledFrom([]rune("ab\né世🙂"))).Draw(t, "text")
		limit := rapid.IntRange(-1, len(s)+2).Draw(t, "limit")
		head, tail, dropped := text.CutMiddle(s, limit)
		if !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) ||
			len(head)+len(tail)+dropped != len(s) || dropped < 0 {
			t.Fatalf("CutMiddle(%q, %d) = %q, %q, %d", s, limit, head, tail, dropped)
		}
		if len(head)+len(tail) > max(limit, 0) || !utf8.ValidString(head) || !utf8.ValidString(tail) {
			t.Fatalf("CutMiddle(%q, %d) = %q, %q", s, limit, head, tail)
		}
	})
}

func TestNearest(t *testing.T) {
	names := []string{"path", "old_string", "new_string", "limit"}
	for want, near := range map[string]string{
		"pth": "path", "oldString": "old_string", "newstring": "new_string", "limits": "limit", "ptah": "path", "zzz": "", "": "",
	} {
		if got := text.Nearest(want, names); got != near {
			t.Errorf("Nearest(%q) = %q, want %q", want, got, near)
		}
	}
	if got := text.Nearest("modle", []string{"mode", "model"}); got != "model" {
		t.Errorf("of two that are as near it takes %q", got)
	}
}

func TestInside(t *testing.T) {
	for _, tc := range []struct {
		dir, path string
		want      bool
	}{
		{"/w", "/w", true},
		{"/w", "/w/a/b", true},
		{"/w", "/w/..a", true},
		{"/", "/w", true},
		{"/w", "/", false},
		{"/w", "/wide", false},
		{"/w/a", "/w/b", false},
		{"", "/w", false},
		{"", "", false},
	} {
		if got := text.Inside(tc.dir, tc.path); got != tc.want {
			t.Errorf("Inside(%q, %q) = %v", tc.dir, tc.path, got)
		}
	}
}
