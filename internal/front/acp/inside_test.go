//go:build unix

package acp

import (
	"testing"

	wire "github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/extend/mcp"
)

func TestServers(t *testing.T) {
	got, err := servers([]wire.McpServer{
		{Stdio: &wire.McpServerStdio{Name: "a", Command: "/bin/a", Args: []string{"-x"}, Env: []wire.EnvVariable{{Name: "K", Value: "v"}}}},
		{Http: &wire.McpServerHttpInline{Name: "b", Url: "https://example.com/mcp", Headers: []wire.HttpHeader{{Name: "H", Value: "w"}}}},
		{Sse: &wire.McpServerSseInline{Name: "c", Url: "https://example.com/sse"}},
	})
	want := []mcp.Server{
		{Name: "a", Command: []string{"/bin/a", "-x"}, Env: map[string]string{"K": "v"}, Source: mcp.Client},
		{Name: "b", Kind: mcp.HTTP, URL: "https://example.com/mcp", Headers: map[string]string{"H": "w"}, Source: mcp.Client},
		{Name: "c", Kind: mcp.SSE, URL: "https://example.com/sse", Headers: map[string]string{}, Source: mcp.Client},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := servers([]wire.McpServer{{}}); err == nil {
		t.Error("a server of no kind was taken")
	}
}

func TestHunks(t *testing.T) {
	for name, tc := range map[string]struct {
		diff  string
		want  []hunk
		whole bool
	}{
		"one": {"--- a\n+++ a\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n", []hunk{{"a", 1, "x\ny\n", "x\nz\n", false}}, true},
		"two": {
			"--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n@@ -9,2 +8 @@ func\n-u\n-v\n+w\n",
			[]hunk{{"a", 1, "x\n", "y\n", false}, {"a", 8, "u\nv\n", "w\n", false}},
			true,
		},
		"files": {
			"--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n--- b c\n+++ b c\n@@ -1 +2 @@\n-x\n+y\n",
			[]hunk{{"a", 1, "x\n", "y\n", false}, {"b c", 2, "x\n", "y\n", false}},
			true,
		},
		"new":  {"--- /dev/null\n+++ a\n@@ -0,0 +1,2 @@\n+x\n+y\n", []hunk{{"a", 1, "", "x\ny\n", true}}, true},
		"gone": {"--- a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", []hunk{{"a", 1, "x\n", "", false}}, true},
		"no newline": {
			"--- a\n+++ a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n",
			[]hunk{{"a", 1, "x", "y", false}},
			true,
		},
		"dashes": {"--- a\n+++ a\n@@ -1 +1 @@\n--- x\n+++ y\n", []hunk{{"a", 1, "-- x\n", "++ y\n", false}}, true},
		"left out": {
			"--- a\n+++ a\n@@ -1,9 +1,9 @@\n-x\n… 3 lines left out …\n+y\n@@ -20 +20 @@\n-u\n+v\n",
			[]hunk{{"a", 1, "x\n", "", false}, {"a", 20, "u\n", "v\n", false}},
			false,
		},
		"cut":       {"--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y", []hunk{{"a", 1, "x\n", "y", false}}, true},
		"no diff":   {"it would\n@@ x\ndo that", nil, false},
		"odd head":  {"--- a\n+++ a\n@@ -x +1 @@\n-x\n", nil, false},
		"too short": {"--- a\n+++ a\n@@ -1,5 +1 @@\n-x\n", []hunk{{"a", 1, "x\n", "", false}}, false},
		"CRLF":      {"--- a\r\n+++ a\r\n@@ -1 +1 @@\r\n-x\r\n+y\r\n", []hunk{{"a", 1, "x\r\n", "y\r\n", false}}, true},
		"empty":     {"", nil, true},
	} {
		got, whole := parseHunks(tc.diff)
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(hunk{})); diff != "" || whole != tc.whole {
			t.Errorf("%s: whole %v\n%s", name, whole, diff)
		}
	}
}

func FuzzHunks(f *testing.F) {
	f.Add("--- a\n+++ a\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n\\ No newline at end of file\n")
	f.Add("--- /dev/null\n+++ a\n@@ -0,0 +1 @@\n+")
	f.Fuzz(func(t *testing.T, diff string) {
		hunks, _ := parseHunks(diff)
		n := 0
		for _, h := range hunks {
			n += max(len(h.old), len(h.new))
			if h.line < 1 || h.name == "" {
				t.Errorf("%q: %+v", diff, h)
			}
		}
		if n > len(diff) {
			t.Errorf("%q has become longer: %+v", diff, hunks)
		}
	})
}
