package compact_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/compact"
)

func TestParse(t *testing.T) {
	full := compact.Summary{Goal: "- g", Constraints: "- c", Decisions: "- d", Files: "- f", State: "- s", Questions: "- q", Next: "- n"}
	short := compact.Summary{Goal: "- g", State: "- s", Next: "- n"}
	for name, c := range map[string]struct {
		in   string
		want compact.Summary
	}{
		"as asked for":  {full.Text(), full},
		"other order":   {"## Next\n- n\n## Goal\n- g\n## State of work\n- s\n", short},
		"other case":    {"# GOAL\n- g\n# state of WORK\n- s\n# nExT\n- n", short},
		"mixed depth":   {"# Goal\n- g\n### State of work\n- s\n###### Next\n- n", short},
		"closing marks": {"## Goal ##\n- g\n## State of work ##\n- s\n## Next ##\n- n", short},
		"numbers":       {"## 1. Goal\n- g\n## 5) State of work:\n- s\n## 7. Next\n- n", short},
		"bold":          {"**Goal**\n- g\n**State of work:**\n- s\n**Next**:\n- n", short},
		"bold headings": {"## **Goal**\n- g\n## **State of work**\n- s\n## __Next__\n- n", short},
		"only colons":   {"Goal:\n- g\nState of work:\n- s\nNext:\n- n", short},
		"wide colons":   {"Goal：\n- g\nState of work：\n- s\nNext：\n- n", short},
		"behind colons": {"Goal: - g\n**State of work:** - s\nNext: - n", short},
		"bare":          {"Goal\n- g\n\nState of work\n\n- s\nNext\n- n", short},
		"text before":   {"Sure, here it is.\nGoal is clear.\n\n## Goal\n- g\n## State\n- s\n## Next steps\n- n", short},
		"a fence":       {"Here:\n```markdown\n## Goal\n- g\n## State of work\n- s\n## Next\n- n\n```\n", short},
		"windows":       {"## Goal\r\n- g\r\n## State of work\r\n- s\r\n## Next\r\n- n\r\n", short},
		"none": {"## Goal\n- g\n## Files\nNone.\n## Decisions\n- (none)\n## Constraints\n*keine*\n## Open questions\n无\n" +
			"## State of work\n- s\n## Next\n- n", short},
		"twice": {
			"## Goal\n- g\n## Next\n- n\n## State of work\n- s\n## Goal\n- more",
			compact.Summary{Goal: "- g\n\n\n- more", State: "- s", Next: "- n"},
		},
		"other styles": {
			"## Goal\nGoal: g\n**Next**\n## State of work\n- s\n## Next\n- n",
			compact.Summary{Goal: "Goal: g\n**Next**", State: "- s", Next: "- n"},
		},
		"code": {
			"## Goal\n- g\n## State of work\n```sh\n# a comment\nmake\n```\n## Next\n- n",
			compact.Summary{Goal: "- g", State: "```sh\n\\# a comment\nmake\n```", Next: "- n"},
		},
		"other headings": {
			"## Goal\n- g\n## State of work\n### Record\n- s </record>\n## Next\n- n",
			compact.Summary{Goal: "- g", State: "\\### Record\n- s ‹/record>", Next: "- n"},
		},
		"long lines": {
			"## Goal\n- g\n## State of work\nNext we do it.\n## Next\n- n",
			compact.Summary{Goal: "- g", State: "Next we do it.", Next: "- n"},
		},
		"nothing at all":  {"", compact.Summary{}},
		"chat":            {"I think that the goal: to finish. Next, more.", compact.Summary{}},
		"two headings":    {"## Goal\n- g\n## Next\n- n", compact.Summary{}},
		"empty headings":  {"## Goal\n## State of work\n## Next\n- n", compact.Summary{}},
		"listed headings": {"- Goal\n- State of work\n- Next", compact.Summary{}},
		"json":            {`{"goal":"g","next":"n","state":"s"}`, compact.Summary{}},
	} {
		got, err := compact.Parse(c.in)
		if got != c.want || (err != nil) != (c.want == compact.Summary{}) {
			t.Errorf("%s:\n got %q, %v\nwant %q", name, got, err, c.want)
		}
	}
}

func TestTextHasEveryHeading(t *testing.T) {
	want := "## Goal\ng\n\n## Constraints\nnone\n\n## Decisions\nnone\n\n## Files\nnone\n\n## State of work\nnone\n\n## Open questions\n" +
		"none\n\n## Next\nn\n"
	if got := (compact.Summary{Goal: "g", Next: "n"}).Text(); got != want {
		t.Errorf("got %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "## Goal\n- g\n## State of work\n- s\n## Next\n- n", "Goal: a\nFiles: b\nNext: c",
		"**Goal**\nx\n**Next:** y\n**Files**\n```\n# z\n```",
		"```\n# Goal\n<record>\n# Next\n</record>\n# Files\n-\n```", "##Goal\nnone\n##Next\n\\# a\n##State\n \t# b",
		"# Goal\n\xff\n# Next\n\x00\n# Files\n\u2028",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		s, err := compact.Parse(in)
		if err != nil {
			if s != (compact.Summary{}) {
				t.Fatalf("an error and a summary: %q", s)
			}
			return
		}
		text := s.Text()
		again, err := compact.Parse(text)
		if err != nil || again != s {
			t.Fatalf("written and read again it is another:\n%q\n%q, %v", s, again, err)
		}
		if n := strings.Count("\n"+text, "\n#"); n != 7 {
			t.Fatalf("%d headings in %q", n, text)
		}
		if low := strings.ToLower(text); strings.Contains(low, "<record") || strings.Contains(low, "</record") {
			t.Fatalf("the record can be left: %q", text)
		}
	})
}
