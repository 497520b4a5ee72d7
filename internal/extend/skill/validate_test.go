package skill_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/extend/skill"
)

func TestValidate(t *testing.T) {
	head := func(more string) string { return "---\nname: a\ndescription: Does it.\n" + more + "---\ntext\n" }
	long := func(n int) string { return strings.Repeat("é", n) }
	for _, tc := range []struct {
		dir, text string
		want      []string
	}{
		{"a", head(""), nil},
		{"a", head("license: MIT\ncompatibility: Needs git\nmetadata:\n  a: b\n  version: 1.0\nallowed-tools: Read Bash(git:*)\n"), nil},
		{"a", head("allowed-tools:\n  - Read\n"), nil},
		{strings.Repeat("a", 64), "---\nname: " + strings.Repeat("a", 64) +
			"\ndescription: " + long(1024) + "\ncompatibility: " + long(500) + "\n---\n", nil},
		{"a1-b2-3", "---\nname: a1-b2-3\ndescription: x\n---\n", nil},
		{
			strings.Repeat("a", 65), "---\nname: " + strings.Repeat("a", 65) + "\ndescription: x\n---\n",
			[]string{"65 characters, more than 64", "has characters other"},
		},
		{"a", "---\nname: a\ndescription: " + long(1025) + "\n---\n", []string{"1025 characters, more than 1024"}},
		{"a", head("compatibility: " + long(501) + "\n"), []string{"501 characters, not 1 to 500"}},
		{"a", head("compatibility: ''\n"), []string{"0 characters"}},
		{"a", "---\nname: b\ndescription: x\n---\n", []string{`its name is "b", but its folder is "a"`}},
		{"a", "---\nname: A\ndescription: x\n---\n", []string{"characters other", "its folder"}},
		{"-a", "---\nname: -a\ndescription: x\n---\n", []string{"begins or ends with -"}},
		{"a-", "---\nname: a-\ndescription: x\n---\n", []string{"begins or ends with -"}},
		{"a--b", "---\nname: a--b\ndescription: x\n---\n", []string{"two in a row"}},
		{"a_b", "---\nname: a_b\ndescription: x\n---\n", []string{"characters other"}},
		{"é", "---\nname: é\ndescription: x\n---\n", []string{"characters other"}},
		{"a", "---\ndescription: x\n---\n", []string{"it has no name"}},
		{"a", "---\nname: a\n---\n", []string{"it has no description"}},
		{"a", "---\nname: a\ndescription: '  '\n---\n", []string{"it has no description"}},
		{
			"a", "---\nname: [a]\ndescription: {x: y}\nlicense: [MIT]\n---\n",
			[]string{
				"name is not a text", "description is not a text", "license is not a text",
				"has characters other", "but its folder", "it has no description",
			},
		},
		{"a", head("metadata: text\n"), []string{"metadata is not a list"}},
		{"a", head("metadata:\n  a: [b]\n"), []string{"metadata is not a list"}},
		{"a", head("metadata:\n  a:\n"), []string{"metadata is not a list"}},
		{"a", head("allowed-tools:\n  - [Read]\n"), []string{"allowed-tools are not"}},
		{"a", head("allowed-tools: {a: b}\n"), []string{"allowed-tools are not"}},
		{"a", head("version: 1\nmodel: x\n"), []string{"does not know the key model", "does not know the key version"}},
		{"a", "---\nname: a\ndescription: \"a\\u202eb\"\n---\n", []string{"description has invisible characters"}},
		{"a", "---\nname: a\ndescription: a\xff\n---\n", []string{"description has invisible characters"}},
		{"a", "---\nname: a\ndescription: a: b\n---\n", []string{"is not YAML"}},
		{"a", "text", []string{"no front matter", "no name", "no description"}},
		{"a", "---\nname: a\n", []string{"has no end"}},
		{"a", head("") + strings.Repeat("\n", 499), nil},
		{"a", head("") + strings.Repeat("\n", 500), []string{"501 lines, more than the recommended 500"}},
		{"a", head("") + strings.Repeat("x", skill.MaxSize), []string{"SKILL.md can't be read: it has"}},
	} {
		dir := t.TempDir()
		put(t, dir, map[string]string{tc.dir + "/SKILL.md": tc.text})
		got := skill.Validate(filepath.Join(dir, tc.dir))
		if len(got) != len(tc.want) {
			t.Errorf("%s %.60q: %q, want %q", tc.dir, tc.text, got, tc.want)
			continue
		}
		holds(t, tc.text[:min(len(tc.text), 60)], got, tc.want)
	}
	dir := t.TempDir()
	put(t, dir, map[string]string{"lower/Skill.md": head(""), "none/x": "x", "file": "x"})
	for name, want := range map[string]string{
		"lower": "its file is called Skill.md, not SKILL.md", "none": "it has no SKILL.md",
		"file": "can't be read", "missing": "can't be read",
	} {
		holds(t, name, skill.Validate(filepath.Join(dir, name)), []string{want})
	}
}
