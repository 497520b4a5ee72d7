//go:build unix

package acp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/testkit"
)

// TestConsentToASet checks that calls which are asked for together are one question, that shows each of them whole and
// can be allowed once or denied.
func TestConsentToASet(t *testing.T) {
	for choice, want := range map[string]string{"y": "new\n", "n": ""} {
		e := edit(t, wire.ClientCapabilities{}, func(a *inspan.Agent) {
			a.Tools = append(a.Tools, testkit.Fill("write_file", `{"path":"a","content":"new\n"}`, `{"path":"b","content":"new\n"}`))
		})
		e.permit = choose(choice)
		e.prompt("call: fill {}")
		asked := e.questions()
		if len(asked) != 1 || len(asked[0].Options) != 2 ||
			!strings.HasPrefix(*asked[0].ToolCall.Title, "a set of 2 calls: write 2 files below "+e.root) {
			t.Fatalf("asked %+v", asked)
		}
		shown := map[string]bool{}
		for _, c := range asked[0].ToolCall.Content {
			if c.Diff != nil {
				shown[filepath.Base(c.Diff.Path)] = c.Diff.NewText == "new\n"
			}
		}
		if !shown["a"] || !shown["b"] {
			t.Errorf("shows %+v", asked[0].ToolCall.Content)
		}
		for _, name := range []string{"a", "b"} {
			raw, _ := os.ReadFile(filepath.Join(e.root, name))
			if string(raw) != want {
				t.Errorf("%s: %s has %q", choice, name, raw)
			}
		}
	}
}
