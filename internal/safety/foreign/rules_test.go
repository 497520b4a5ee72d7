package foreign_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/tool"
)

// TestRules translates the rules of Claude Code in the form of its documentation. A denial may cover more here, an
// approval may not.
func TestRules(t *testing.T) {
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
		{tool.Deny, "Task(Explore)", "spawn_agent(Explore)"},
		{tool.Deny, "Agent(subagent_type: my-kind)", "spawn_agent(my-kind)"},
		{tool.Deny, "Agent(general-purpose)", "spawn_agent(general-purpose)|spawn_agent(worker)"},
		{tool.Deny, "Skill(deploy)", "skill(deploy)"},
		{tool.Deny, "Skill(deploy:*)", "skill(deploy)"},
		{tool.Deny, "Skill(deploy *)", "skill(deploy)"},
		{tool.Deny, "Grep(secrets/**)", "read(secrets/**)"},

		{tool.Deny, "Bash(curl * | bash)", "it is about more than one simple command"},
		{tool.Deny, "Bash(echo 'x)", "it is about more"},
		{tool.Deny, "Read(src/{a,b}.ts)", "exceptions, braces"},
		{tool.Deny, "Read(!keep)", "exceptions, braces"},
		{tool.Deny, "Read(x", "its bracket is not closed"},
		{tool.Deny, "WebFetch(https://x)", "only domain:"},
		{tool.Allow, "Grep(x)", "inspan has no patterns for Grep"},
		{tool.Deny, "Agent(model:opus)", "only the name of a kind"},
		{tool.Deny, "Agent(two words)", "only the name of a kind"},
		{tool.Deny, "WebSearch(x)", "inspan has no patterns for WebSearch"},
		{tool.Deny, "KillShell", "inspan has no such tool"},
		{tool.Deny, "Monster(x)", "inspan has no such tool"},
		{tool.Deny, "mcp__a(b)", "inspan has no patterns"},
		{tool.Deny, "mcp__a b", "it is not the name"},
		{tool.Deny, "Read(\x1b[2J)", "it contains control characters"},
		{tool.Deny, "", "inspan has no such tool"},
	} {
		rules, why := foreign.Rules(c.action, c.text)
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

// TestTranslate reads the rules of Codex, opencode and Gemini.
func TestTranslate(t *testing.T) {
	for _, c := range []struct {
		action tool.Action
		text   string
		want   string
	}{
		{tool.Deny, "Bash(touch:*)", "bash(touch *)"},
		{tool.Deny, "run_shell_command(git push)", "bash(git push *)"},
		{tool.Deny, "ShellTool(rm -rf)", "bash(rm -rf *)"},
		{tool.Deny, "run_shell_command", "bash|git|jobs"},
		{tool.Allow, "shell(git status)", "bash(git status)"},
		{tool.Deny, "apply_patch", "write"},
		{tool.Deny, "edit(src/**)", "write(src/**)"},
		{tool.Deny, "webfetch", "web_fetch|http_request"},
		{tool.Ask, "grep", "search_files"},
		{tool.Deny, "mcp__github", "mcp__github__*"},
		{tool.Deny, `prefix_rule(pattern = ["git", "push"], decision = "forbidden")`, "bash(git push *)"},
		{tool.Deny, `prefix_rule(pattern=["echo", "a b"])`, "bash(echo 'a b' *)"},
		{tool.Deny, `prefix_rule(pattern=["git"], decision="allow")`, "its decision is allow, and it is in a list of rules that deny"},
		{tool.Deny, `prefix_rule(pattern=[["git", "hg"], "push"])`, "only a pattern"},
		{tool.Deny, `prefix_rule(pattern=["it's"])`, "its words"},
		{tool.Deny, "prefix_rule", "only a pattern"},
	} {
		rules, why := foreign.Translate(c.action, c.text)
		if got := strings.Join(rules, "|") + why; got != c.want && (len(rules) > 0 || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s %s: %q, want %q", c.action, c.text, got, c.want)
		}
		if !foreign.Is(c.text) {
			t.Errorf("%s is not told from a rule of ours", c.text)
		}
	}
	for _, ours := range []string{"bash", "bash(touch *)", "read(x)", "write", "edits", "skill", "mcp__a__b", "mcp__*", "keep(*)", "deploy"} {
		if foreign.Is(ours) {
			t.Errorf("%s is a rule of ours", ours)
		}
	}
}
