package skill_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/extend/skill"
)

func TestParseCommand(t *testing.T) {
	for _, tc := range []struct {
		file, data string
		want       skill.Command
		err        string
	}{
		{"review.md", "---\ndescription: Look at  it\nargument-hint: [file] [depth]\nallowed-tools: Bash(git diff:*)\nmodel: x\n---\n\n" +
			"Review $1.\n", skill.Command{Name: "review", Description: "Look at it", Hint: "[file] [depth]", Text: "Review $1."}, ""},
		{
			"review.md", "---\r\ndescription: Look\r\nargument-hint: \"[file] [depth]\"\r\n---\r\nReview $1.\r\n",
			skill.Command{Name: "review", Description: "Look", Hint: "[file] [depth]", Text: "Review $1."},
			"",
		},
		{"git/tidy.md", "# Tidy up\nAll of it.", skill.Command{Name: "git:tidy", Description: "Tidy up", Text: "# Tidy up\nAll of it."}, ""},
		{"a.md", "---\n---\ntext", skill.Command{Name: "a", Description: "text", Text: "text"}, ""},
		{"a.md", "--- not front\ntext", skill.Command{Name: "a", Description: "--- not front", Text: "--- not front\ntext"}, ""},
		{"hint.md", "---\nargument-hint: [file]\n---\nx", skill.Command{Name: "hint", Description: "x", Hint: "[file]", Text: "x"}, ""},
		{"a.md", "---\ndescription: x\n---", skill.Command{}, "it has no text"},
		{"a.md", " \n", skill.Command{}, "it has no text"},
		{"a.md", "---\ndescription: x\ntext", skill.Command{}, "has no end"},
		{"a b.md", "x", skill.Command{}, "is not the name"},
		{"../a.md", "x", skill.Command{}, "is not the name"},
		{".md", "x", skill.Command{}, "is not the name"},
		{"a.txt", "x", skill.Command{}, "is not the name"},
		{"a.md", strings.Repeat("x", skill.MaxText+1), skill.Command{}, "more than"},
	} {
		got, err := skill.ParseCommand(tc.file, "", []byte(tc.data))
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s %.40q: %v, want %q", tc.file, tc.data, err, tc.err)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s %.40q: %v\n%s", tc.file, tc.data, err, diff)
		}
	}
}

// Shell commands in a text are named and left to the model. What was typed adds none.
func TestInline(t *testing.T) {
	for text, want := range map[string][]string{
		"Look.\n!`git status`\nand at !`git diff $1`.": {"git status", "git diff $1"},
		"Run `make` !important `x`, or a!`b`.":         nil,
		"$ARGUMENTS":                                   nil,
	} {
		c := skill.Command{Text: text}
		if diff := cmp.Diff(want, c.Inline()); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
		told := strings.Contains(c.Expand(" !`rm -r /`"), "were not run. Run them with bash first.")
		if told != (want != nil) {
			t.Errorf("%q: %q", text, c.Expand("x"))
		}
	}
}

func TestExpand(t *testing.T) {
	for _, tc := range []struct{ text, args, want string }{
		{"Fix $ARGUMENTS now.", " the  bug ", "Fix the  bug now."},
		{"From $1 to $2, $3!", `a "b c"`, "From a to b c, !"},
		{"It costs $5 or $10 or $.", "a", "It costs  or $10 or $."},
		{"Do it.", "with care", "Do it.\n\nwith care"},
		{"Do it.", "  ", "Do it."},
		{"$ARGUMENTS", "$ARGUMENTS $1", "$ARGUMENTS $1"}, // what was typed is not read again
		{"$1", "", ""},
	} {
		if got := (skill.Command{Text: tc.text}).Expand(tc.args); got != tc.want {
			t.Errorf("%q with %q: %q, want %q", tc.text, tc.args, got, tc.want)
		}
	}
}

func FuzzParseCommand(f *testing.F) {
	f.Add("---\ndescription: [a\n---\nx $1 $ARGUMENTS", `a "b`)
	f.Add("---\n- a: &x [*x]\n---\nx", "'")
	f.Fuzz(func(t *testing.T, data, args string) {
		c, err := skill.ParseCommand("a.md", "s", []byte(data))
		if err == nil && (c.Text == "" || strings.Contains(c.Description, "\n")) {
			t.Errorf("%q: %+v", data, c)
		}
		c.Expand(args)
	})
}

// TestCommands checks which files of folders are commands: also those in folders, none behind links, and of two with
// one name the first.
func TestCommands(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	put(t, a, map[string]string{
		"review.md": "ours", "git/tidy.md": "Tidy.", "notes.txt": "x", ".git/hook.md": "x", "empty.md": "", "a b.md": "x",
		"big.md": strings.Repeat("x", skill.MaxText+1), "seen.md": "---\ndescription: \"A\\u202eB\"\n---\nRead\u200b it.",
	})
	put(t, b, map[string]string{"Review.md": "theirs", "test.md": "Test."})
	link(t, "review.md", filepath.Join(a, "link.md"))
	commands, warnings := skill.Commands([]skill.Folder{{}, in(filepath.Join(a, "none"), "x"), in(a, "project"), in(b, "user")})
	var got []string
	for _, c := range commands {
		got = append(got, c.Source+" "+c.Name+": "+c.Text)
	}
	if diff := cmp.Diff([]string{"project git:tidy: Tidy.", "project review: ours", "project seen: Read it.", "user test: Test."},
		got); diff != "" {
		t.Error(diff)
	}
	holds(t, "warnings", warnings, []string{
		`a b.md is not a usable command: "a b.md" is not the name`, "big.md is not a usable command: it has 102,401 bytes",
		"empty.md is not a usable command: it has no text",
		"the command Review in " + filepath.Join(b, "Review.md") + " is hidden by that in " + filepath.Join(a, "review.md"),
	})
	files := map[string]string{}
	for i := range skill.MaxCommands + 5 {
		files[fmt.Sprintf("more/c%03d.md", i)] = "x"
	}
	put(t, b, files)
	if commands, warnings = skill.Commands([]skill.Folder{in(b, "user")}); len(commands) != skill.MaxCommands {
		t.Errorf("%d commands", len(commands))
	}
	holds(t, "warnings", warnings, []string{"more than 500 files of commands"})
}
