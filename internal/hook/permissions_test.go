package hook_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/hook"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/tool"
)

// TestOwnRules translates the rules of Claude Code as its documentation writes them. What denies
// may come to mean more here, what allows may not.
func TestOwnRules(t *testing.T) {
	for _, c := range []struct {
		action tool.Action
		text   string
		want   string // split by spaces between rules, or the beginning of why there are none
	}{
		{tool.Deny, "Read(./secrets/**)", "read(secrets/**)"},
		{tool.Deny, "Read(./.env)", "read(.env)|read(.env/**)"},
		{tool.Deny, "Read(.env)", "read(**/.env)|read(**/.env/**)"},
		{tool.Deny, "Read(./.env.*)", "read(.env.*)|read(.env.*/**)"},
		{tool.Deny, "Read(//etc/passwd)", "read(/etc/passwd)|read(/etc/passwd/**)"},
		{tool.Deny, "Read(~/.ssh/**)", "read(~/.ssh/**)"},
		{tool.Deny, "Read(~)", "read(~/**)"},
		{tool.Deny, "Edit(/migrations/)", "write(migrations)|write(migrations/**)"},
		{tool.Deny, "Write(*.lock)", "write(**/*.lock)|write(**/*.lock/**)"},
		{tool.Ask, "Edit(.)", "write(**)"},
		{tool.Allow, "Edit(src/**)", "write(src/**)"},
		{tool.Allow, "Read(notes.txt)", "read(notes.txt)"},
		{tool.Deny, "Bash(curl:*)", "bash(curl *)"},
		{tool.Deny, "Bash(rm -rf *)", "bash(rm -rf *)"},
		{tool.Allow, "Bash(npm run test:*)", "bash(npm run test *)"},
		{tool.Allow, "Bash(git status)", "bash(git status)"},
		{tool.Deny, "Bash", "bash|git|jobs"},
		{tool.Deny, "Bash(*)", "bash|git|jobs"},
		{tool.Deny, "WebFetch(domain:example.com)", "network(example.com)"},
		{tool.Allow, "WebFetch(domain:example.com)", "web_fetch(example.com)"},
		{tool.Deny, "WebSearch", "web_search"},
		{tool.Deny, "Edit", "write"},
		{tool.Deny, "MultiEdit(*)", "write"},
		{tool.Ask, "Write", "write"},
		{tool.Deny, "NotebookEdit", "notebook_edit"},
		{tool.Deny, "Read", "read"},
		{tool.Deny, "Grep", "search_files"},
		{tool.Deny, "Glob", "find_files|list_files"},
		{tool.Ask, "LS", "find_files|list_files"},
		{tool.Deny, "WebFetch", "web_fetch|http_request"},
		{tool.Allow, "Edit", "edit_file|edit_lines|write_file"},
		{tool.Allow, "Write", "write_file"},
		{tool.Allow, "Read", "read_file"},
		{tool.Allow, "Glob", "find_files"},
		{tool.Allow, "WebFetch", "web_fetch"},
		{tool.Ask, "mcp__github", "mcp__github__*"},
		{tool.Allow, "mcp__github__get_issue", "mcp__github__get_issue"},
		{tool.Deny, "Task", "spawn_agent"},

		{tool.Deny, "Bash(curl * | bash)", "it is about more than one simple command"},
		{tool.Deny, "Bash(echo 'x)", "it is about more"},
		{tool.Deny, "Read(src/{a,b}.ts)", "exceptions, braces"},
		{tool.Deny, "Read(!keep)", "exceptions, braces"},
		{tool.Deny, "Read(x", "its bracket is not closed"},
		{tool.Deny, "WebFetch(https://x)", "only domain:"},
		{tool.Deny, "Agent(Explore)", "inspan has no patterns for Agent"},
		{tool.Deny, "KillShell", "inspan has no such tool"},
		{tool.Deny, "Monster(x)", "inspan has no such tool"},
		{tool.Deny, "mcp__a(b)", "inspan has no patterns"},
		{tool.Deny, "mcp__a b", "it is not the name"},
		{tool.Deny, "Read(\x1b[2J)", "it contains control characters"},
		{tool.Deny, "", "inspan has no such tool"},
	} {
		rules, why := hook.OwnRules(c.action, c.text)
		if got := strings.Join(rules, "|") + why; got != c.want && (len(rules) > 0 || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s %s: %q, want %q", c.action, c.text, got, c.want)
		}
		for _, rule := range rules {
			if _, err := policy.ParseRule(c.action, rule, ""); err != nil {
				t.Errorf("%s: %v", c.text, err)
			}
		}
	}
}

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
