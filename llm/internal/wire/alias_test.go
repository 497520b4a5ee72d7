package wire

import (
	"strings"
	"testing"
)

func TestToolName(t *testing.T) {
	long := strings.Repeat("x", 65)
	for name, want := range map[string]string{
		"read":            "read",
		"mcp__git-status": "mcp__git-status",
		long[:64]:         long[:64],
		"git.status":      "git_status_",
		"files/read":      "files_read_",
		"größe":           "gr__e_",
		"a\xffb":          "a_b_",
		"":                "_",
		long:              long[:55] + "_",
	} {
		got := ToolName(name)
		hash := strings.TrimPrefix(got, want)
		if (got != name || name != want) && (!strings.HasPrefix(got, want) || len(hash) != 8) || len(got) > 64 {
			t.Errorf("%q becomes %q, want %q and a hash", name, got, want)
		}
	}
}
