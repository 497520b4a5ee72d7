package hook_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/hook"
	"github.com/inspan/inspan/tool"
)

func TestReadPermissions(t *testing.T) {
	got, err := hook.ReadPermissions([]byte("\ufeff"+`{"permissions": {
		"allow": ["Bash(ls:*)", 5], "deny": ["Read(./a)"], "ask": "Bash", "defaultMode": "acceptEdits",
		"additionalDirectories": ["../docs"], "disableBypassPermissionsMode": "disable"}, "hooks": {}}`), "x")
	want := hook.Permissions{
		Rules: []hook.Translated{
			{Action: tool.Deny, Text: "Read(./a)", Rules: []string{"read(a)", "read(a/**)"}},
			{Action: tool.Ask, Text: `"Bash"`, Why: "it is not a list"},
			{Action: tool.Allow, Text: "Bash(ls:*)", Rules: []string{"bash(ls *)"}},
			{Action: tool.Allow, Text: "5", Why: "it is not a text"},
		},
		Mode: "acceptEdits", Folders: []string{"../docs"}, Other: []string{"disableBypassPermissionsMode"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, bad := range []string{"", "[]", "{", `{"permissions": []}`} {
		if _, err := hook.ReadPermissions([]byte(bad), "x.json"); err == nil || !strings.Contains(err.Error(), "x.json") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
