package hook_test

import (
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/tool"
)

func TestCheck(t *testing.T) {
	for _, c := range []hook.Config{
		{On: tool.BeforeCall, Command: "true"},
		{On: tool.BeforeCall, Match: "bash|mcp__*|Edit", Command: "true", OnFailure: hook.Deny, Timeout: time.Hour},
		{On: tool.AfterCall, Match: "/^(read|write)_/", URL: "https://example.com/hook", OnFailure: hook.Ignore},
		{On: tool.RunStop, Match: "done", URL: "http://127.0.0.1:8080", Background: true},
		{On: tool.RunStop, URL: "http://[::1]/"},
		{On: tool.PromptSaid, Match: "*", URL: "http://localhost/x"},
		{On: tool.AfterCall, Match: "mcp__a-b__C|Deploy|*", Command: "true"},
		{On: tool.BeforeCall, Match: "/^Bahs$/", Command: "true"},
		{On: tool.AgentStart, Match: "code.reviewer (mine)|Bahs", Command: "true"},
		{On: tool.BeforeCall, Claude: true, Match: "Bahs, git push", Command: "true"},
		{On: tool.BeforeCall, Claude: true, Match: "Edit, Write|mcp__.*", Command: "go", Args: []string{}},
	} {
		if err := c.Check(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for want, c := range map[string]hook.Config{
		`on is "before_cal", not a moment; did you mean "before_call"?`: {On: "before_cal", Command: "true"},
		`on is "", not a moment`:           {Command: "true"},
		"either command or url":            {On: tool.RunStop},
		"needs either command":             {On: tool.RunStop, Command: "true", URL: "https://example.com"},
		"NUL":                              {On: tool.RunStop, Command: "a\x00b"},
		"timeout is -1s":                   {On: tool.RunStop, Command: "true", Timeout: -time.Second},
		"timeout is 1h0m1s":                {On: tool.RunStop, Command: "true", Timeout: time.Hour + time.Second},
		`on_failure is "block"`:            {On: tool.BeforeCall, Command: "true", OnFailure: "block"},
		"not at stop":                      {On: tool.RunStop, Command: "true", OnFailure: hook.Deny},
		"in the background":                {On: tool.BeforeCall, Command: "true", OnFailure: hook.Deny, Background: true},
		"is not https, or http":            {On: tool.RunStop, URL: "http://example.com"},
		`"http://10.0.0.1"`:                {On: tool.RunStop, URL: "http://10.0.0.1"},
		`"ftp://localhost"`:                {On: tool.RunStop, URL: "ftp://localhost"},
		"is not an address":                {On: tool.RunStop, URL: "example.com/x"},
		"user name":                        {On: tool.RunStop, URL: "https://me:pw@example.com"},
		"match has no meaning at a prompt": {On: tool.PromptSaid, Command: "true", Match: "x"},
		`match "/(/"`:                      {On: tool.BeforeCall, Command: "true", Match: "/(/"},
		`"[" is not a name`:                {On: tool.BeforeCall, Command: "true", Match: "bash|["},
		`no tool is called "(bash)"; write a regular expression between slashes`: {On: tool.BeforeCall, Command: "true", Match: "(bash)"},
		`no tool is called "("`:               {On: tool.AfterCall, Command: "true", Match: "bash|("},
		`no tool is called "ba?h"`:            {On: tool.BeforeCall, Command: "true", Match: "ba?h"},
		`called "git push"`:                   {On: tool.BeforeCall, Command: "true", Match: "git push"},
		`called "Bahs"; did you mean "Bash"?`: {On: tool.BeforeCall, Command: "true", Match: "todo|Bahs"},
		`called "BASH"; did you mean "Bash"?`: {On: tool.BeforeCall, Command: "true", Match: "BASH"},
		"has no name":                         {On: tool.BeforeCall, Command: "true", Match: "|"},
		`match ", "`:                          {On: tool.BeforeCall, Command: "true", Match: ", ", Claude: true},
		`match "^(?!Bash"`:                    {On: tool.BeforeCall, Command: "true", Match: "^(?!Bash", Claude: true},
		`match "/^(?!bash)/"`:                 {On: tool.BeforeCall, Command: "true", Match: "/^(?!bash)/"},
		"hooks.X can't be read":               {On: tool.BeforeCall, Command: "true", Broken: "hooks.X can't be read", Claude: true},
	} {
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestSettings(t *testing.T) {
	const text = `
[[hook]]
on = "after_call"
match = "write_file|edit_file"
command = "gofmt -l ."
timeout = "5s"

[[hook]]
on = "before_call"
url = "https://example.com"
headers = { Authorization = "Bearer $TOKEN" }
header_env = ["TOKEN"]
on_failure = "deny"
`
	var got struct{ Hook []hook.Config }
	meta, err := toml.Decode(text, &got)
	if err != nil || len(meta.Undecoded()) > 0 {
		t.Fatal(err, meta.Undecoded())
	}
	want := []hook.Config{
		{On: tool.AfterCall, Match: "write_file|edit_file", Command: "gofmt -l .", Timeout: 5 * time.Second},
		{
			On: tool.BeforeCall, URL: "https://example.com", Headers: map[string]string{"Authorization": "Bearer $TOKEN"},
			HeaderEnv: []string{"TOKEN"}, OnFailure: hook.Deny,
		},
	}
	if diff := cmp.Diff(want, got.Hook); diff != "" {
		t.Error(diff)
	}
}

// TestMatch checks which tools and reasons a match speaks of.
func TestMatch(t *testing.T) {
	tools := []string{
		"bash", "read_file", "write_file", "edit_file", "edit_lines", "find_files", "search_files", "list_files", "web_fetch",
		"web_search", "todo", "spawn_agent", "mcp__git__log", "delete_file",
	}
	for _, tc := range []struct {
		match  string
		claude bool
		want   string
	}{
		{"", false, strings.Join(tools, " ")},
		{"*", false, strings.Join(tools, " ")},
		{"bash", false, "bash"},
		{"Bash", false, "bash"},
		{"bas", false, ""},
		{" bash | todo ", false, "bash todo"},
		{"*_file", false, "read_file write_file edit_file delete_file"},
		{"mcp__*", false, "mcp__git__log"},
		{"Edit|Write", false, "write_file edit_file edit_lines"},
		{"MultiEdit|Read", false, "read_file edit_file edit_lines"},
		{"B*", false, ""},
		{"/^(read|write)_/", false, "read_file write_file"},
		{"/(?i)FILES/", false, "find_files search_files list_files"},
		{"/./", false, strings.Join(tools, " ")},
		{"*", true, strings.Join(tools, " ")},
		{"Bash", true, "bash"},
		{"bash", true, ""},
		{"Edit|Write|MultiEdit", true, "write_file edit_file edit_lines"},
		{"Edit, Read", true, "read_file edit_file edit_lines"},
		{"Glob|Grep|LS", true, "find_files search_files list_files"},
		{"WebFetch|WebSearch|TodoWrite", true, "web_fetch web_search todo"},
		{"Task", true, "spawn_agent"},
		{"Agent", true, "spawn_agent"},
		{"mcp__git__log", true, "mcp__git__log"},
		{"mcp__git", true, ""},
		{"mcp__.*", true, "mcp__git__log"},
		{"^(Web|Todo).*", true, "web_fetch web_search todo"},
		{"delete_file", true, "delete_file"},
	} {
		var got []string
		for _, name := range tools {
			s := &hook.Set{Hooks: []hook.Config{{On: tool.BeforeCall, Match: tc.match, Claude: tc.claude, Command: "true"}}}
			w := 0
			s.Warn = func(string, string) { w++ } // it can't be run, which shows that it would
			p := tool.Point{Moment: tool.BeforeCall, Call: &tool.Call{Name: name, Args: []byte("{}")}}
			if _, err := s.At(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if w > 0 {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q, Claude %v:\n%s", tc.match, tc.claude, diff)
		}
	}
	for _, tc := range []struct {
		on     tool.Moment
		match  string
		why    string
		claude bool
		want   bool
	}{
		{tool.SessionStart, "new", "new", false, true},
		{tool.SessionStart, "new", "resumed", false, false},
		{tool.SessionStart, "startup", "new", true, true},
		{tool.SessionStart, "resume", "resumed", true, true},
		{tool.SessionStart, "startup|clear", "resumed", true, false},
		{tool.BeforeCompact, "asked", "asked", false, true},
		{tool.BeforeCompact, "manual", "asked", true, true},
		{tool.BeforeCompact, "manual", "window", true, false},
		{tool.AfterCompact, "auto", "overflow", true, true},
		{tool.SessionEnd, "other", "", true, true},
		{tool.SessionEnd, "logout", "", true, false},
		{tool.RunStop, "done", "done", false, true},
		{tool.RunStop, "failed", "done", false, false},
		{tool.PromptSaid, "*", "", false, true},
	} {
		w := 0
		s := &hook.Set{Warn: func(string, string) { w++ }, Hooks: []hook.Config{{On: tc.on, Match: tc.match, Claude: tc.claude, Command: "true"}}}
		if _, err := s.At(t.Context(), tool.Point{Moment: tc.on, Why: tc.why}); err != nil {
			t.Fatal(err)
		}
		if (w > 0) != tc.want {
			t.Errorf("%+v: ran %v", tc, w > 0)
		}
	}
}
