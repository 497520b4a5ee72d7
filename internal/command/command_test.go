package command_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/command"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		file, data string
		want       command.Command
		err        string
	}{
		{"review.md", "---\ndescription: Look at  it\nargument-hint: [file] [depth]\nallowed-tools: Bash(git diff:*)\nmodel: x\n---\n\nReview $1.\n", command.Command{Name: "review", Description: "Look at it", Hint: "[file] [depth]", Text: "Review $1."}, ""},
		{"review.md", "---\r\ndescription: Look\r\nargument-hint: \"[file] [depth]\"\r\n---\r\nReview $1.\r\n", command.Command{Name: "review", Description: "Look", Hint: "[file] [depth]", Text: "Review $1."}, ""},
		{"git/tidy.md", "# Tidy up\nAll of it.", command.Command{Name: "git:tidy", Description: "Tidy up", Text: "# Tidy up\nAll of it."}, ""},
		{"a.md", "---\n---\ntext", command.Command{Name: "a", Description: "text", Text: "text"}, ""},
		{"a.md", "--- not front\ntext", command.Command{Name: "a", Description: "--- not front", Text: "--- not front\ntext"}, ""},
		{"hint.md", "---\nargument-hint: [file]\n---\nx", command.Command{Name: "hint", Description: "x", Hint: "[file]", Text: "x"}, ""},
		{"a.md", "---\ndescription: x\n---", command.Command{}, "it has no text"},
		{"a.md", " \n", command.Command{}, "it has no text"},
		{"a.md", "---\ndescription: x\ntext", command.Command{}, "has no end"},
		{"a b.md", "x", command.Command{}, "is no name"},
		{"../a.md", "x", command.Command{}, "is no name"},
		{".md", "x", command.Command{}, "is no name"},
		{"a.txt", "x", command.Command{}, "is no name"},
		{"a.md", strings.Repeat("x", command.MaxSize+1), command.Command{}, "more than"},
	} {
		got, err := command.Parse(tc.file, "", []byte(tc.data))
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
		if got := (command.Command{Text: tc.text}).Expand(tc.args); got != tc.want {
			t.Errorf("%q with %q: %q, want %q", tc.text, tc.args, got, tc.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("---\ndescription: [a\n---\nx $1 $ARGUMENTS", `a "b`)
	f.Add("---\n- a: &x [*x]\n---\nx", "'")
	f.Fuzz(func(t *testing.T, data, args string) {
		c, err := command.Parse("a.md", "s", []byte(data))
		if err == nil && (c.Text == "" || strings.Contains(c.Description, "\n")) {
			t.Errorf("%q: %+v", data, c)
		}
		c.Expand(args)
	})
}
