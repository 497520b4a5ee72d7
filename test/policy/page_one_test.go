package policy_test

import (
	"os"
	"strings"
	"testing"
)

// TestPageOne checks that the first example of the documents is the program in examples/01-agent, which the test of the
// examples runs, and that it fits on a page.
func TestPageOne(t *testing.T) {
	program := read(t, "examples/01-agent/main.go")
	_, body, _ := strings.Cut(program, "func main() {\n")
	if n := strings.Count(body, "\n"); n == 0 || n > 50 {
		t.Errorf("it has %d lines", n)
	}
	body, _, _ = strings.Cut(body, "\tfmt.Println()\n}")
	want := strings.TrimSpace(strings.ReplaceAll("\n"+body, "\n\t", "\n"))
	for _, path := range []string{"README.md", "docs/EMBEDDING.md", "doc.go"} {
		text := strings.ReplaceAll(strings.ReplaceAll(read(t, path), "\n//\t", "\n"), "\n//\n", "\n\n")
		if !strings.Contains(text, want) {
			t.Errorf("%s does not have the program", path)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
