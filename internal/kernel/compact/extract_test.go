package compact_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/kernel/compact"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

func TestExtract(t *testing.T) {
	src := worked("Mend the parser.", 60)
	bad := answer("c1", "compiling\nparse.go:7: error: no such field\nmake: exit 2 follows\n")
	bad.Error = true
	src.Messages[4] = user(bad)
	src.Messages[5].Parts = append(llm.Parts{text("The lexer looks odd.")}, src.Messages[5].Parts...)
	src.Messages = slices.Insert(src.Messages, 7, agent(text("The lexer drops tabs. Shall I mend it? It is easy.")),
		user(text("Yes, and keep it small.")))
	src.Person = append(src.Person, 8)
	src.Facts = compact.Facts{
		Changed: []string{"parse.go", "lex.go"},
		Test:    &compact.Test{Run: compact.Run{Command: "go test ./parse", Detail: "--- FAIL: TestTabs"}},
	}
	src.Carry = compact.Carry{Todo: []tool.Todo{{Text: "write notes", State: "pending"}, {Text: "read it", State: "Done"}}}
	p := split(t, src, 500)
	got := p.Extract()
	want := compact.Summary{
		Decisions: "- The lexer looks odd.\n- The lexer drops tabs. Shall I mend it? It is easy.",
		Files:     "- parse.go\n- lex.go",
		State: "- Tests: failed: go test ./parse: --- FAIL: TestTabs\n- bash failed: parse.go:7: error: no such field\n" +
			"- Last call before the part that stays: bash {\"command\":\"make\"}",
		Next: "- Continue with the last request.",
	}
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got.Text(), want.Text())
	}
}

func TestExtractWhereThereIsHardlyRoom(t *testing.T) {
	src := worked("Mend it.", 8)
	var said strings.Builder
	for i := range 30 {
		fmt.Fprintf(&said, "item_%d is %s. ", i, strings.Repeat("a long story ", 8))
	}
	src.Messages = append(src.Messages, agent(text(said.String())), user(text("Good.")), agent(text("Thank you.")))
	src.Person = append(src.Person, len(src.Messages)-2)
	for i := range 100 {
		src.Facts.Changed = append(src.Facts.Changed, fmt.Sprint("a/", i))
	}
	p := split(t, src, 1)
	if p.Room > 1200 {
		t.Fatalf("there is room: %d", p.Room)
	}
	if missing := p.Check(p.Extract()); len(missing) > 0 {
		t.Errorf("room %d: %v\n%s", p.Room, missing, p.Extract().Text())
	}
}
