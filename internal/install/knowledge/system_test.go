package knowledge_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/install/knowledge"
)

func reader(files map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		text, ok := files[path]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return []byte(text), nil
	}
}

func paths(files []knowledge.File) []string {
	var out []string
	for _, f := range files {
		out = append(out, f.Path)
	}
	return out
}

func TestFindWalksFromTheRootDown(t *testing.T) {
	got := paths(knowledge.Gather(knowledge.Paths("/a/b"), reader(map[string]string{
		"/AGENTS.md": "top", "/a/CLAUDE.md": "middle", "/a/b/agents.md": "near", "/a/b/c/AGENTS.md": "too deep", "/a/x/AGENTS.md": "beside",
	})))
	if want := []string{"/AGENTS.md", "/a/CLAUDE.md", "/a/b/agents.md"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFindTakesTheSameTextOnce(t *testing.T) {
	got := paths(knowledge.Gather(knowledge.Paths("/a"), reader(map[string]string{
		"/a/AGENTS.md": "same\n", "/a/agents.md": "same\n", "/a/CLAUDE.md": "same", "/a/claude.md": "other", "/AGENTS.md": "  \n",
	})))
	if want := []string{"/a/AGENTS.md", "/a/claude.md"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestEachTextStandsOnce however one file of instructions names another.
func TestEachTextStandsOnce(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"imported":          {"/w/AGENTS.md": "RULE", "/w/CLAUDE.md": "@AGENTS.md\n\nMore."},
		"in a folder":       {"/w/AGENTS.md": "RULE", "/w/.claude/CLAUDE.md": "@../AGENTS.md"},
		"from above":        {"/AGENTS.md": "@w/AGENTS.md", "/w/AGENTS.md": "RULE"},
		"twice":             {"/w/AGENTS.md": "@a.md", "/w/CLAUDE.md": "@b.md", "/w/a.md": "RULE", "/w/b.md": "RULE\n"},
		"a link as text":    {"/w/AGENTS.md": "RULE", "/w/CLAUDE.md": "AGENTS.md"},
		"a link to another": {"/w/CLAUDE.md": "docs/guide.md\n", "/w/docs/guide.md": "RULE"},
		"behind a link":     {"/w/CLAUDE.md": "docs/guide.md", "/w/docs/guide.md": "@rule.md", "/w/docs/rule.md": "RULE"},
		"other line ends":   {"/w/AGENTS.md": "RULE\nx", "/w/CLAUDE.md": "\ufeffRULE\r\nx\r\n"},
		"each other":        {"/w/AGENTS.md": "@CLAUDE.md RULE", "/w/CLAUDE.md": "@AGENTS.md"},
	} {
		all := ""
		for _, f := range knowledge.Gather(knowledge.Paths("/w"), reader(files)) {
			all += f.Text + "\n"
		}
		if n := strings.Count(all, "RULE"); n != 1 {
			t.Errorf("%s: %d times in %q", name, n, all)
		}
	}
}

func TestBlocksAreOrderedAndNamed(t *testing.T) {
	blocks, warnings := knowledge.Blocks(knowledge.Input{
		Files: []knowledge.File{{Path: "/AGENTS.md", Text: "use tabs"}},
		Facts: []string{"system: linux"}, Append: "be brief",
	})
	var sources []string
	for _, b := range blocks {
		sources = append(sources, b.Source)
	}
	if want := []string{"inspan", "/AGENTS.md", "environment", "--append-system"}; !slices.Equal(sources, want) || len(warnings) != 0 {
		t.Errorf("sources %v, warnings %v", sources, warnings)
	}
	if !strings.Contains(blocks[1].Text, "/AGENTS.md") || !strings.Contains(blocks[1].Text, "use tabs") {
		t.Errorf("block = %q", blocks[1].Text)
	}
	replaced, _ := knowledge.Blocks(knowledge.Input{Replace: "you are a pirate"})
	if len(replaced) != 1 || replaced[0].Text != "you are a pirate" {
		t.Errorf("replaced = %+v", replaced)
	}
}

func TestTooLongInstructionsAreCutVisibly(t *testing.T) {
	near := strings.Repeat("n", 20*1024)
	far := strings.Repeat("é", 10*1024) // 20 KiB of two-byte letters
	blocks, warnings := knowledge.Blocks(knowledge.Input{Files: []knowledge.File{{Path: "/far", Text: far}, {Path: "/near", Text: near}}})
	if len(warnings) != 1 || !strings.Contains(warnings[0], "/far") {
		t.Errorf("warnings %v", warnings)
	}
	if !strings.HasSuffix(blocks[2].Text, near) {
		t.Error("the nearest file must be whole")
	}
	if !strings.Contains(blocks[1].Text, "[cut: ") || strings.Contains(blocks[1].Text, "\uFFFD") {
		t.Errorf("the far file ends with %q", blocks[1].Text[len(blocks[1].Text)-80:])
	}
	total := len(blocks[1].Text) + len(blocks[2].Text)
	if total > knowledge.MaxInstructions+200 {
		t.Errorf("%d bytes in all", total)
	}
}

func TestImports(t *testing.T) {
	files := map[string]string{
		"/w/AGENTS.md": "Read @docs/style.md, and @./own.md.\nMail me@example.com or ask @ann.\n`@code.md`\n```\n@fenced.md\n```\n" +
			"@/etc/abs.md @missing.md",
		"/w/docs/style.md": "Tabs. See @more.md and @../AGENTS.md", "/w/docs/more.md": "loop back to @style.md", "/w/own.md": "own",
		"/w/code.md": "CODE", "/w/fenced.md": "FENCED", "/etc/abs.md": "abs",
		"/deep/AGENTS.md": "@1", "/deep/1": "one @2", "/deep/2": "two @3", "/deep/3": "three @4", "/deep/4": "four @5", "/deep/5": "five @6",
		"/deep/6": "SIX",
	}
	text := knowledge.Gather(knowledge.Paths("/w"), reader(files))[0].Text
	for _, want := range []string{
		"Imported from /w/docs/style.md:\n\nTabs.", "Imported from /w/docs/more.md:\n\nloop",
		"Imported from /w/own.md", "Imported from /etc/abs.md",
	} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is there %d times", want, strings.Count(text, want))
		}
	}
	for _, no := range []string{"CODE", "FENCED", "Imported from /w/AGENTS.md", "missing.md:"} {
		if strings.Contains(text, no) {
			t.Errorf("%q is there:\n%s", no, text)
		}
	}
	// However much is named, there is an end to it.
	many := map[string]string{"/m/AGENTS.md": ""}
	for i := range 500 {
		many["/m/AGENTS.md"] += fmt.Sprintf("@%d.md ", i)
		many[fmt.Sprintf("/m/%d.md", i)] = strings.Repeat("x", 3000)
	}
	if n := len(knowledge.Gather(knowledge.Paths("/m"), reader(many))[0].Text); n > 3*knowledge.MaxInstructions {
		t.Errorf("%d bytes are imported", n)
	}
	if text := knowledge.Gather(knowledge.Paths("/deep"), reader(files))[0].Text; !strings.Contains(text, "five") || strings.Contains(text, "SIX") ||
		!strings.Contains(text, "/deep/6 is not imported") {
		t.Errorf("imports have no end:\n%s", text)
	}
}
