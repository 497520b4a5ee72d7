package compact_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/kernel/compact"
)

func TestParse(t *testing.T) {
	full := compact.Summary{Decisions: "- g", Files: "- f", State: "- s", Questions: "- q", Next: "- n"}
	short := compact.Summary{Decisions: "- g", State: "- s", Next: "- n"}
	for name, c := range map[string]struct {
		in   string
		want compact.Summary
	}{
		"as asked for":  {full.Text(), full},
		"other order":   {"## Next\n- n\n## Decisions\n- g\n## State of work\n- s\n", short},
		"other case":    {"# DECISIONS\n- g\n# state of WORK\n- s\n# nExT\n- n", short},
		"mixed depth":   {"# Decisions\n- g\n### State of work\n- s\n###### Next\n- n", short},
		"closing marks": {"## Decisions ##\n- g\n## State of work ##\n- s\n## Next ##\n- n", short},
		"numbers":       {"## 1. Decisions\n- g\n## 5) State of work:\n- s\n## 7. Next\n- n", short},
		"bold":          {"**Decisions**\n- g\n**State of work:**\n- s\n**Next**:\n- n", short},
		"bold headings": {"## **Decisions**\n- g\n## **State of work**\n- s\n## __Next__\n- n", short},
		"only colons":   {"Decisions:\n- g\nState of work:\n- s\nNext:\n- n", short},
		"wide colons":   {"Decisions：\n- g\nState of work：\n- s\nNext：\n- n", short},
		"behind colons": {"Decisions: - g\n**State of work:** - s\nNext: - n", short},
		"bare":          {"Decisions\n- g\n\nState of work\n\n- s\nNext\n- n", short},
		"text before":   {"Sure, here it is.\nAll is clear.\n\n## Decisions\n- g\n## State\n- s\n## Next steps\n- n", short},
		"a fence":       {"Here:\n```markdown\n## Decisions\n- g\n## State of work\n- s\n## Next\n- n\n```\n", short},
		"windows":       {"## Decisions\r\n- g\r\n## State of work\r\n- s\r\n## Next\r\n- n\r\n", short},
		"none": {"## Decisions\n- g\n## Files\n- (none)\n## Open questions\n无\n" +
			"## State of work\n- s\n## Next\n- n", short},
		"twice": {
			"## Decisions\n- g\n## Next\n- n\n## State of work\n- s\n## Decisions\n- more",
			compact.Summary{Decisions: "- g\n\n\n- more", State: "- s", Next: "- n"},
		},
		"other styles": {
			"## Decisions\nDecisions: g\n**Next**\n## State of work\n- s\n## Next\n- n",
			compact.Summary{Decisions: "Decisions: g\n**Next**", State: "- s", Next: "- n"},
		},
		"code": {
			"## Decisions\n- g\n## State of work\n```sh\n# a comment\nmake\n```\n## Next\n- n",
			compact.Summary{Decisions: "- g", State: "```sh\n\\# a comment\nmake\n```", Next: "- n"},
		},
		"other headings": {
			"## Decisions\n- g\n## State of work\n### Record\n- s </record>\n## Next\n- n",
			compact.Summary{Decisions: "- g", State: "\\### Record\n- s ‹/record>", Next: "- n"},
		},
		"long lines": {
			"## Decisions\n- g\n## State of work\nNext we do it.\n## Next\n- n",
			compact.Summary{Decisions: "- g", State: "Next we do it.", Next: "- n"},
		},
		"wishes": {
			"## Goal\n- all\n## Decisions\n- g\n## Constraints\n- never\n## State of work\n- s\n## Next\n- n", short,
		},
		"only wishes":     {"## Goal\n- g\n## Constraints\n- c\n## Next\n- n", compact.Summary{}},
		"nothing at all":  {"", compact.Summary{}},
		"chat":            {"I think that the decisions: to finish. Next, more.", compact.Summary{}},
		"two headings":    {"## Decisions\n- g\n## Next\n- n", compact.Summary{}},
		"empty headings":  {"## Decisions\n## State of work\n## Next\n- n", compact.Summary{}},
		"listed headings": {"- Decisions\n- State of work\n- Next", compact.Summary{}},
		"json":            {`{"decisions":"g","next":"n","state":"s"}`, compact.Summary{}},
	} {
		got, err := compact.Parse(c.in)
		if got != c.want || (err != nil) != (c.want == compact.Summary{}) {
			t.Errorf("%s:\n got %q, %v\nwant %q", name, got, err, c.want)
		}
	}
}

func TestTextHasEveryHeading(t *testing.T) {
	want := "## Decisions\ng\n\n## Files\nnone\n\n## State of work\nnone\n\n## Open questions\n" +
		"none\n\n## Next\nn\n"
	if got := (compact.Summary{Decisions: "g", Next: "n"}).Text(); got != want {
		t.Errorf("got %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "## Decisions\n- g\n## State of work\n- s\n## Next\n- n", "Decisions: a\nFiles: b\nNext: c",
		"**Decisions**\nx\n**Next:** y\n**Files**\n```\n# z\n```",
		"```\n# Decisions\n<record>\n# Next\n</record>\n# Files\n-\n```", "##Decisions\nnone\n##Next\n\\# a\n##State\n \t# b",
		"# Decisions\n\xff\n# Next\n\x00\n# Files\n\u2028",
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
		if n := strings.Count("\n"+text, "\n#"); n != 5 {
			t.Fatalf("%d headings in %q", n, text)
		}
		if low := strings.ToLower(text); strings.Contains(low, "<record") || strings.Contains(low, "</record") {
			t.Fatalf("the record can be left: %q", text)
		}
	})
}
