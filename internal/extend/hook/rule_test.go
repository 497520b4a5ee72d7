package hook_test

import (
	"encoding/json"
	"testing"

	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/tool"
)

// TestRules checks which calls a rule of Claude Code ("if") speaks of.
func TestRules(t *testing.T) {
	for _, tc := range []struct {
		rule, name, arg string
		want            bool
	}{
		{"Bash", "bash", "ls", true},
		{"Bash(*)", "bash", "ls", true},
		{"Bash(git *)", "bash", "git push", true},
		{"Bash(git *)", "bash", "git", true},
		{"Bash(git:*)", "bash", "git push", true},
		{"Bash(git *)", "bash", "github", false},
		{"Bash(git *)", "bash", "FOO=bar BAZ=1 git push", true},
		{"Bash(git *)", "bash", "npm test && git push", true},
		{"Bash(git *)", "bash", "npm test | tee git", false},
		{"Bash(rm *)", "bash", "echo $(rm -rf /)", true},
		{"Bash(rm *)", "bash", "echo `rm -rf /`", true},
		{"Bash(rm *)", "bash", "echo $(date)", false},
		{"Bash(rm *)", "bash", "$CMD -rf /", true},
		{"Bash(git push *)", "bash", "echo $(date)", true},
		{"Bash(git push *)", "bash", "git pull", false},
		{"Bash(ls)", "bash", "ls -l", false},
		{"Bash(* --force)", "bash", "git push --force", true},
		{"Bash(git * main)", "bash", "git push -f main", true},
		{"Bash(git * main)", "bash", "git push -f next", false},
		{"Bash(a*b*c)", "bash", "a1b2c", true},
		{"Bash(a*b*c)", "bash", "a1c2b", false},
		{"Bash(a*bc*c)", "bash", "abc", false},
		{"Bash(*b*)", "bash", "xaby", true},
		{"Bash(./x=1 *)", "bash", "./x=1 a", true},
		{"Bash(proven *)", "bash", "hidden", true}, // by its effects
		{"Edit(*.ts)", "edit_file", "src/a.ts", true},
		{"Edit(*.ts)", "write_file", "src/a.ts", true},
		{"Edit(*.ts)", "read_file", "src/a.ts", false},
		{"Edit(*.ts)", "edit_file", "src/a.go", false},
		{"Edit(src/**)", "edit_file", "src/x/a.go", true},
		{"Edit(/src/*.go)", "edit_file", "src/a.go", true},
		{"Edit(src/**)", "edit_file", "test/src/a.go", false},
		{"Read(//etc/**)", "read_file", "/etc/passwd", true},
		{"Read(//etc/**)", "read_file", "etc/passwd", false},
		{"Read(~/.ssh/**)", "read_file", "a", true}, // who knows
		{"Write(a[)", "write_file", "b", true},
		{"WebFetch(domain:example.com)", "web_fetch", "https://docs.example.com/x", true},
		{"WebFetch(domain:example.com)", "web_fetch", "https://badexample.com/x", false},
		{"WebFetch(other)", "web_fetch", "https://a.b", true},
		{"Grep(x)", "search_files", "y", true},
		{"Bash(git *)", "read_file", "git", false},
	} {
		field := map[string]string{"bash": "command", "web_fetch": "url", "search_files": "pattern"}[tc.name]
		if field == "" {
			field = "path"
		}
		args, err := json.Marshal(map[string]string{field: tc.arg})
		if err != nil {
			t.Fatal(err)
		}
		ran := false
		s := &hook.Set{
			Hooks: []hook.Config{{On: tool.BeforeCall, Claude: true, If: tc.rule, Command: "true"}},
			Warn:  func(string, string) { ran = true }, // as it can't be run here
		}
		p := tool.Point{Moment: tool.BeforeCall, Root: "/w", Call: &tool.Call{Name: tc.name, Args: args, Cwd: "/w"}}
		if tc.arg == "hidden" {
			p.Effects = []tool.Effect{{Kind: tool.Execute, Text: "proven right"}, {Kind: tool.Read, Text: "x"}}
		}
		if _, err := s.At(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if ran != tc.want {
			t.Errorf("%s, %s %q: ran %v", tc.rule, tc.name, tc.arg, ran)
		}
	}
	s := &hook.Set{Hooks: []hook.Config{{On: tool.RunStop, Claude: true, If: "Bash(git *)", Command: "true"}}}
	if _, err := s.At(t.Context(), tool.Point{Moment: tool.RunStop}); err != nil {
		t.Errorf("it ran where there is no call: %v", err)
	}
}
