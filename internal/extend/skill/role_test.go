package skill_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/tool"
)

func TestParseRole(t *testing.T) {
	const min = "---\nname: a\ndescription: Does it.\n"
	basic := func(change func(r *skill.Role)) skill.Role {
		r := skill.Role{Name: "a", Description: "Does it.", Prompt: "Do it.", Source: "user"}
		change(&r)
		return r
	}
	for _, tc := range []struct {
		file, data string
		want       skill.Role
		err        string
	}{
		{"a.md", min + "---\n\nDo it.\n", basic(func(*skill.Role) {}), ""},
		{
			"file.md", "\ufeff---\r\nname: code-reviewer\r\ndescription: Reviews. Use when: asked.\r\n" +
				"tools: Read, Grep, Bash(git diff:*), Agent(worker)\r\ndisallowedTools: Write\r\nmodel: opus\r\npermissionMode: plan\r\n" +
				"maxTurns: 7\r\neffort: high\r\nskills: a, b\r\nisolation: worktree\r\nbackground: true\r\ncolor: red\r\n---\r\nYou review.\r\n" +
				"Well.\r\n",
			skill.Role{
				Name: "code-reviewer", Description: "Reviews. Use when: asked.", Tools: []string{"Read", "Grep", "Bash(git diff:*)", "Agent(worker)"},
				Without: []string{"Write"}, Model: "opus", Mode: "plan", MaxTurns: 7,
				Effort: "high", Skills: []string{"a", "b"}, Isolation: "worktree", Background: true, Prompt: "You review.\nWell.", Source: "user",
				Problems: []string{"the front matter is not YAML: the value of description has a colon, so it needs quotes"},
			},
			"",
		},
		{"a.md", min + "tools:\n  - Read\n  - Bash(git diff:*)\ndisallowed-tools: [Write, Edit]\nskills:\n  - x\nmax_turns: 3\n" +
			"permission-mode: acceptEdits\nisolation: sandbox\nbackground: no\nmodel: provider/model-1\n---\nDo it.", basic(func(r *skill.Role) {
			r.Tools, r.Without, r.Skills, r.MaxTurns, r.Mode, r.Isolation, r.Model = []string{"Read", "Bash(git diff:*)"}, []string{
				"Write",
				"Edit",
			}, []string{"x"}, 3, "edit", "sandbox", "provider/model-1"
		}), ""},
		{"a.md", min + "tools: '*'\n---\nDo it.", basic(func(*skill.Role) {}), ""},
		{"a.md", min + "tools: Read, *\n---\nDo it.", basic(func(*skill.Role) {}), ""},
		{"a.md", min + "tools:\n---\nDo it.", basic(func(*skill.Role) {}), ""},
		{"a.md", min + "tools: []\n---\nDo it.", basic(func(r *skill.Role) { r.Tools = []string{} }), ""},
		{"a.md", min + "argument-hint: [a] [b]\ntools: [Read,\n  Grep]\n---\nDo it.", basic(func(r *skill.Role) {
			r.Tools = []string{"Read", "Grep"}
			r.Problems = []string{"the front matter is not YAML: yaml: line 2: did not find expected key", "inspan ignores argument-hint"}
		}), ""},
		{"a.md", min + "permissionMode: bypassPermissions\nmode: yolo\nallowed-tools: Read\nhooks: {}\n---\nDo it.", basic(func(r *skill.Role) {
			r.Problems = []string{
				"inspan ignores allowed-tools", "inspan ignores mode",
				`permissionMode "bypassPermissions" gives no rights here, so it gets at most those of its parent`,
			}
		}), ""},
		{
			"a.md", min + "permissionMode: auto\nmaxTurns: -1\neffort: huge\nbackground: maybe\nmodel: not a model\nmax_turns: 3\n---\nDo it.",
			basic(func(r *skill.Role) {
				r.MaxTurns = 0
				r.Problems = []string{
					"max_turns is there twice", `"not a model" is not a model, so it gets the model of its parent`, `"-1" is not a number of turns`,
					`effort "huge" is not low, medium, high, xhigh or max`, `background "maybe" is not true or false`,
					`permissionMode "auto" gives no rights here, so it gets at most those of its parent`,
				}
			}), "",
		},
		{
			"a.md", min + "permissionMode: default\neffort: MAX\nmodel: inherit\nisolation: none\n---\nDo it.",
			basic(func(r *skill.Role) { r.Effort, r.Model = "max", "inherit" }), "",
		},
		{
			"a.md", min + "permissionMode: ask\nmaxTurns: 1.5\n---\nDo it.",
			basic(func(r *skill.Role) { r.Mode, r.Problems = "ask", []string{`"1.5" is not a number of turns`} }), "",
		},
		{
			"x/a.md", "---\nname: A Nice One\ndescription: Does it.\n---\nDo it.",
			basic(func(r *skill.Role) { r.Problems = []string{`"A Nice One" is not a valid name, so it is called a`} }), "",
		},
		{"a.md", "---\ndescription: \"Does\\u202e\\e[31m it.\"\n---\nDo\u200b it.\x1b", basic(func(*skill.Role) {}), ""},
		{"a.md", "---\nname: a\n---\n# Do it.", basic(func(r *skill.Role) {
			r.Description, r.Prompt, r.Problems = "Do it.", "# Do it.", []string{"it has no description of when to use it"}
		}), ""},
		{"a.md", "---\nname: a\ndescription: " + strings.Repeat("é", 1025) + "\n---\nDo it.", basic(func(r *skill.Role) {
			r.Description, r.Problems = strings.Repeat("é", 1023)+"…", []string{"its description has more than 1024 characters"}
		}), ""},
		{
			"a.md", min + "permissionMode: plan\nthrowaway: true\n---\nDo it.",
			basic(func(r *skill.Role) { r.Mode, r.Throwaway = "plan", true }), "",
		},
		{"a.md", min + "permissionMode: plan\nthrowaway: no\n---\nDo it.", basic(func(r *skill.Role) { r.Mode = "plan" }), ""},
		{"a.md", min + "permissionMode: plan\nthrowaway: much\n---\nDo it.", basic(func(r *skill.Role) {
			r.Mode, r.Problems = "plan", []string{`throwaway "much" is not true or false`}
		}), ""},
		{
			"a.md", min + "throwaway: true\n---\nDo it.",
			basic(func(r *skill.Role) { r.Problems = []string{"throwaway has a meaning only with permissionMode plan"} }), "",
		},
		{"a.md", min + "tools: Read\nmemory: project\nmcpServers: [github]\n---\nDo it.", basic(func(r *skill.Role) { r.Tools = []string{"Read", "memory"} }), ""},
		{
			"a.md", min + "hooks:\n  Stop:\n    - hooks: [{type: command, command: make}]\n---\nDo it.",
			basic(func(r *skill.Role) {
				r.Hooks = []byte(`{"hooks":{"Stop":[{"hooks":[{"command":"make","type":"command"}]}]}}`)
			}), "",
		},
		{"a.md", min + "hooks: [x]\n---\nDo it.", skill.Role{}, "its hooks are not a table"},
		{"a.md", min + "mcpServers: [github, {other: {command: x}}]\n---\nDo it.", skill.Role{}, "defines an MCP server"},
		{"a.md", min + "mcpServers: {other: {command: x}}\n---\nDo it.", skill.Role{}, "defines MCP servers"},
		{"a.md", min + "isolation: remote\n---\nDo it.", skill.Role{}, `isolation "remote" is not`},
		{"a.md", min + "---\n \n", skill.Role{}, "it has no text"},
		{"readme.md", "# Agents\nThese are ours.", skill.Role{}, "no name and no description"},
		{"readme.md", "---\ntitle: x\n---\nThese are ours.", skill.Role{}, "no name and no description"},
		{"a.md", "---\n- name: a\n---\nDo it.", skill.Role{}, "not a list of keys"},
		{"a.md", "---\nname: a\nDo it.", skill.Role{}, "has no end"},
		{"a b.md", "---\nname: ../x\ndescription: x\n---\nDo it.", skill.Role{}, `"../x" is not the name of a kind of agent`},
		{".md", "---\ndescription: x\n---\nDo it.", skill.Role{}, "is not the name of a kind of agent"},
		{"a.md", "---\nname: a\nd: " + strings.Repeat("x", 33<<10) + "\n---\nDo it.", skill.Role{}, "bytes, more than 32768"},
		{"a.md", min + "---\n" + strings.Repeat("x", skill.MaxText), skill.Role{}, "more than 102,400"},
	} {
		got, err := skill.ParseRole(tc.file, "user", []byte(tc.data))
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s %.80q: %v, want %q", tc.file, tc.data, err, tc.err)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s %.200q: %v\n%s", tc.file, tc.data, err, diff)
		}
	}
}

func define(name, text string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: Is %[1]s.\n---\n%s", name, text)
}

func in(path, source string) skill.Folder { return skill.Folder{Path: path, Source: source} }

func TestRoles(t *testing.T) {
	a, b, outside := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, outside, map[string]string{"x.md": define("linked", "x")})
	put(t, a, map[string]string{
		"one.md": define("one", "first"), "plan.md": define("plan", "ours"), "README.md": "# x", "notes.txt": define("notes", "x"),
		"sub/deep.md": define("deep", "x"), ".hidden.md": define("hidden", "x"),
		"big.md": define("big", strings.Repeat("x", skill.MaxText)), "bad\nname.md": "---\nname: x\n",
	})
	put(t, b, map[string]string{"uno.md": define("One", "second"), "two.md": define("two", "x")})
	for at, to := range map[string]string{
		filepath.Join(a, "link.md"):  filepath.Join(outside, "x.md"),
		filepath.Join(a, "inner.md"): "one.md",
	} {
		if err := os.Symlink(to, at); err != nil {
			t.Skip("no links here: ", err)
		}
	}
	roles, warnings := skill.Roles([]skill.Folder{
		{},
		in(filepath.Join(a, "none"), "x"),
		in(a, "project"), in(b, "user"), in(a, "again"), in(filepath.Join(a, "one.md"), "x"),
	})
	var got []string
	for _, r := range roles {
		got = append(got, r.Name+" "+r.Source)
	}
	if want := []string{
		"explore built in", "one project", "plan project", "reviewer built in", "two user",
		"worker built in",
	}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	bad := []string{
		"README.md is not a usable kind of agent", "bad name.md is not a usable kind of agent: its front matter has no end",
		"big.md is not a usable kind of agent: it has",
	}
	holds(t, "warnings", warnings, slices.Concat(bad, []string{"the kind of agent One in " + filepath.Join(b, "uno.md") +
		" is hidden by that in " + filepath.Join(a, "one.md")}, bad, []string{"can't be read: it is not a folder"}))
	if roles, warnings := skill.Roles(nil); len(roles) != 4 || warnings != nil {
		t.Error(roles, warnings)
	}
}

func TestManyRoles(t *testing.T) {
	dir, files := t.TempDir(), map[string]string{}
	for i := range skill.MaxRoles + 5 {
		files[fmt.Sprintf("r%03d.md", i)] = define(fmt.Sprintf("r%03d", i), "x")
	}
	put(t, dir, files)
	roles, warnings := skill.Roles([]skill.Folder{in(dir, "user")})
	holds(t, "warnings", warnings, []string{"more than 200 files"})
	if len(roles) != skill.MaxRoles+4 || roles[4].Name != "r003" && roles[1].Name != "plan" && roles[2].Name != "r000" {
		t.Errorf("%d", len(roles))
	}
}

func TestBuiltinRoles(t *testing.T) {
	readers := []string{"read_file", "list_files", "find_files", "search_files", "lsp", "view_image"}
	want := map[string]skill.Role{
		"explore":  {Tools: readers, Model: "small", Mode: "plan"},
		"plan":     {Tools: readers, Mode: "plan"},
		"reviewer": {Tools: slices.Concat(readers, []string{"bash", "jobs", "git"}), Mode: "plan", Throwaway: true},
		"worker":   {},
	}
	all := skill.BuiltinRoles()
	if len(all) != len(want) {
		t.Errorf("%d roles", len(all))
	}
	for _, r := range all {
		w, known := want[r.Name]
		if !known || !slices.Equal(r.Tools, w.Tools) || (r.Tools == nil) != (w.Tools == nil) || r.Model != w.Model || r.Mode != w.Mode ||
			r.Throwaway != w.Throwaway || r.Problems != nil || r.Source != "built in" {
			t.Errorf("%+v", r)
		}
		if n := strings.Count(r.Prompt, "\n") + 1; n < 15 || n > 40 || !strings.Contains(r.Prompt, "Your last message is your result") ||
			!strings.Contains(r.Prompt, "can't change files") && !strings.Contains(r.Prompt, "What you may not do") {
			t.Errorf("%s: %d lines", r.Name, n)
		}
		if !strings.Contains(r.Description, "Use ") {
			t.Errorf("%s: %s", r.Name, r.Description)
		}
	}
}

func FuzzParseRole(f *testing.F) {
	f.Add("---\nname: a\ntools: [a, *b]\n---\nx")
	f.Add("---\ndescription: a: b\nmaxTurns: 99999999999999999999\nisolation: worktree\n---\nx\u202e")
	f.Fuzz(func(t *testing.T, data string) {
		r, err := skill.ParseRole("a.md", "s", []byte(data))
		if err != nil {
			return
		}
		if r.Name == "" || r.Prompt == "" || strings.Contains(r.Name+r.Description+r.Model+strings.Join(r.Problems, ""), "\n") ||
			!slices.Contains([]tool.Mode{"", "plan", "ask", "edit"}, r.Mode) || r.MaxTurns < 0 {
			t.Errorf("%q: %+v", data, r)
		}
	})
}

// TestThrowawayIsForOwnFiles checks that a file of the workspace can't let commands run that would ask there.
func TestThrowawayIsForOwnFiles(t *testing.T) {
	data := []byte("---\nname: a\ndescription: x\npermissionMode: plan\nthrowaway: true\n---\nDo it.")
	for source, want := range map[string]bool{skill.FromProject: false, "user": true, "plugin tests": true} {
		r, err := skill.ParseRole("a.md", source, data)
		if err != nil || r.Throwaway != want || want != (r.Problems == nil) {
			t.Errorf("%s: %v %+v", source, err, r)
		}
	}
}
