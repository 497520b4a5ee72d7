package compact_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/inspan/inspan/internal/compact"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
)

// talk is a conversation in a window, compacted whenever a driver would do it.
type talk struct {
	compact.Source
	room        int // of a prompt
	calls       int
	compactions int
}

const fixed = 150 // tokens of a prompt that are no messages

func newTalk(window int) *talk {
	room := window * 3 / 4
	return &talk{room: room, Source: compact.Source{Room: max(room*3/4-fixed, (room-fixed)/2)}}
}

func (c *talk) keep() int { return min(keep, c.Room/3) }

func (c *talk) said(parts ...llm.Part) {
	c.Person = append(c.Person, len(c.Messages))
	c.add(user(parts...))
}

func (c *talk) add(messages ...llm.Message) { c.Messages = append(c.Messages, messages...) }

// worked adds a reply with calls, and their results.
func (c *talk) worked(args string, results ...llm.Parts) {
	var asked, answers llm.Parts
	for _, r := range results {
		c.calls++
		id := fmt.Sprint("c", c.calls)
		raw, _ := json.Marshal(map[string]string{"command": args})
		asked = append(asked, llm.Call{ID: id, Name: "bash", Args: raw})
		answers = append(answers, llm.Result{CallID: id, Name: "bash", Parts: r})
	}
	c.add(agent(asked...), user(answers...))
}

// settle compacts if the prompt has no room. The error says what is wrong with
// what came of it.
func (c *talk) settle() error {
	if size(c.Messages)+fixed <= c.room {
		return nil
	}
	p, ok := compact.Split(c.Source, c.keep())
	if !ok {
		return fmt.Errorf("%d tokens have no room in %d, and nothing can be done", size(c.Messages), c.Room)
	}
	c.compactions++
	messages, person := p.Build(p.Extract())
	if n := size(messages); n > c.Room {
		return fmt.Errorf("%d tokens became %d, and there is room for %d", size(c.Messages), n, c.Room)
	}
	if err := valid(messages); err != nil {
		return err
	}
	was, is := c.Messages[c.Person[len(c.Person)-1]], messages[person[len(person)-1]]
	whole := c.Room / 5
	if c.Person[len(c.Person)-1] == len(c.Messages)-1 {
		whole = c.Room * 3 / 5
	}
	if was.Tokens() <= whole && !equal(was.Parts, is.Parts) {
		return fmt.Errorf("the newest words of the person were %d tokens and are not the same", was.Tokens())
	}
	c.Messages, c.Person = messages, person
	return nil
}

// tokens is a text of about so many.
func tokens(n int, words string) string {
	words += " "
	return strings.Repeat(words, n*7/2/len(words)+1)
}

// plainWish is what a person says in about 170 tokens, with a demand that does not
// tell much.
func plainWish(i int) string {
	return fmt.Sprintf("Wish %d: %s. The title should look good in view %d.", i, tokens(150, "this part is about colours and sounds"), i)
}

// TestNoMessageIsOneTooMany holds that what people say bricks no session: the
// conversation goes on, compactions are few, and a demand from its beginning is
// in it to the end.
func TestNoMessageIsOneTooMany(t *testing.T) {
	for window, n := range map[int]int{4000: 300, 8000: 300, 32_000: 400, 128_000: 1000} {
		if testkit.Race {
			n = min(n, 80)
		}
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			c := newTalk(window)
			spoken := 0
			for i := range n {
				text := plainWish(i)
				if i == 2 {
					text += " And never touch the file legacy.go."
				}
				c.said(llm.Text{Text: text})
				if i%3 > 0 {
					c.add(agent(llm.Text{Text: "Yes."}))
				}
				spoken += len(text) * 2 / 7
				if err := c.settle(); err != nil {
					t.Fatalf("message %d: %v", i, err)
				}
				if all := written(c.Messages); i >= 2 && !strings.Contains(all, "never touch the file legacy.go.") {
					t.Fatalf("message %d: the demand is lost after %d compactions:\n%s", i, c.compactions, all)
				}
			}
			if most := spoken/(c.room/4) + 1; c.compactions > most || c.compactions == 0 && !testkit.Race {
				t.Errorf("%d compactions for %d tokens, want at most %d", c.compactions, spoken, most)
			}
			t.Logf("compact: window %d: %d messages of the person, %d compactions, %d tokens at the end", window, n, c.compactions, size(c.Messages))
		})
	}
}

// TestOlderWordsAreListed holds the form of what a person said long ago.
func TestOlderWordsAreListed(t *testing.T) {
	c := newTalk(32_000)
	for i := range 400 {
		wish := plainWish(i)
		switch i {
		case 0:
			wish = "Build the shop."
		case 5, 6, 90:
			wish += " Prices must be in cents."
		}
		c.said(llm.Text{Text: wish})
		if err := c.settle(); err != nil {
			t.Fatal(err)
		}
	}
	all := written(c.Messages)
	state, list, _ := strings.Cut(all, "\n# The person's older words\n")
	list, _, _ = strings.Cut(list, "\n# Record\n")
	const head = "They no longer stand above and are listed here by what they demand, oldest first. The history tool has them word for word.\n"
	if c.Messages[0].Parts.Text() != "Build the shop." || !strings.HasPrefix(list, head) {
		t.Errorf("the task or what is said of the list is not there:\n%.300s\n%s", state, list)
	}
	var listed, unsaid int
	_, counts, _ := strings.Cut(list, "\n")
	const form = "Messages listed so: %d. Demands that are left out here and only the history tool has: %d."
	if _, err := fmt.Sscanf(counts, form, &listed, &unsaid); err != nil {
		t.Errorf("%v:\n%s", err, list)
	}
	if listed+len(c.Person) != 400 {
		t.Errorf("%d messages are listed and %d stand, of 400", listed, len(c.Person))
	}
	lines := strings.Count(list, "\n- ")
	if lines+unsaid < 300 || lines < 10 || size([]llm.Message{user(text(list))}) > c.Room/8 {
		t.Errorf("%d demands are listed and %d left out:\n%s", lines, unsaid, list)
	}
	if strings.Count(list, "- Prices must be in cents.\n") != 1 || strings.Count(list, "should look good in view 7.") != 0 {
		t.Errorf("what tells most goes first, or stands there twice:\n%s", list)
	}
	if strings.Count(all, "# The person's older words") != 1 {
		t.Error("lists pile up")
	}
}

// TestListOfBuildsBefore holds that what an older build wrote down of the person's
// words is read.
func TestListOfBuildsBefore(t *testing.T) {
	src := worked("Mend it.", 60)
	p := split(t, src, 500)
	messages, person := p.Build(compact.Summary{Goal: "- g", Next: "- n"})
	const before = "Said by the person, in what was left out of their messages:\n- Never touch vendor.\n- Keep it small.\n\n# As it was\n"
	state := strings.Replace(messages[1].Parts.Text(), "\n# As it was\n", before, 1)
	messages[1] = user(text(state))
	again := compact.Source{Messages: append(messages, worked("", 60).Messages[1:]...), Person: person}
	got, _ := split(t, again, 500).Build(compact.Summary{})
	if all := written(got); !strings.Contains(all, "\n- Never touch vendor.\n- Keep it small.\n") {
		t.Error(all)
	}
}

// TestLargestMessageIsCut holds that a message larger than the window is cut in
// the middle, and that what it demands there is listed.
func TestLargestMessageIsCut(t *testing.T) {
	c := newTalk(8000)
	paste := "HEAD " + tokens(12_000, "some words of a log") + "\nNever delete a.log.\n" + tokens(12_000, "some words of a log") + " TAIL"
	c.said(text(paste))
	if err := c.settle(); err != nil {
		t.Fatal(err)
	}
	cut := c.Messages[c.Person[0]].Parts.Text()
	if !shortened(cut, paste) || !strings.HasPrefix(cut, "HEAD ") || !strings.HasSuffix(cut, " TAIL") {
		t.Errorf("badly cut: %.100s", cut)
	}
	if all := written(c.Messages); !strings.Contains(all, "\n- Never delete a.log.\n") {
		t.Error("what it demands in its middle is lost")
	}
}

// TestImagesMakeRoom holds that images go before words do.
func TestImagesMakeRoom(t *testing.T) {
	c := newTalk(8000)
	var shown llm.Parts
	for i := range 10 {
		shown = append(shown, llm.Image{MediaType: "image/png", Digest: fmt.Sprint("sha256:", i)})
	}
	c.said(slices.Concat(shown, llm.Parts{text("Make it look like this.")})...)
	c.add(agent(text("Like which?")))
	c.said(slices.Concat(shown, llm.Parts{text("Like the last.")})...)
	if err := c.settle(); err != nil {
		t.Fatal(err)
	}
	old, last := c.Messages[c.Person[0]].Parts, c.Messages[c.Person[len(c.Person)-1]].Parts
	if images(old) != 0 || strings.Count(old.Text(), pictureNote) != 10 || !strings.HasSuffix(old.Text(), "Make it look like this.") {
		t.Errorf("got %v", old)
	}
	if n := images(last); n != 1 || n+strings.Count(last.Text(), pictureNote) != 10 || !strings.HasSuffix(last.Text(), "Like the last.") {
		t.Errorf("got %v", last)
	}
}

// TestWhateverIsSaid holds that a prompt fits after each compaction, whatever
// people, models and tools have said.
func TestWhateverIsSaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.IntRange(4000, 10_000)
		windows, most := rapid.OneOf(small, small, small, rapid.IntRange(10_000, 40_000), rapid.SampledFrom([]int{128_000, 200_000})), 30
		if testkit.Race {
			windows, most = rapid.IntRange(4000, 5000), 8
		}
		window := windows.Draw(t, "window")
		c := newTalk(window)
		for range rapid.IntRange(0, 60).Draw(t, "files") {
			c.Facts.Changed = append(c.Facts.Changed, fmt.Sprintf("%s/f%d.go", strings.Repeat("folder", 10), len(c.Facts.Changed)))
		}
		for range rapid.IntRange(0, 30).Draw(t, "todo") {
			c.Carry.Todo = append(c.Carry.Todo, compact.Item{Text: tokens(40, "a thing to do"), Status: "open"})
			c.Facts.Failed = append(c.Facts.Failed, tokens(200, "some command"))
		}
		words := rapid.SampledFrom([]string{"so many words", "never touch a_b.go.", "必须保持。", "x"})
		usual := rapid.IntRange(1, 400)
		large := rapid.OneOf(usual, usual, usual, usual, rapid.IntRange(1, 3*window))
		for range rapid.IntRange(5, most).Draw(t, "steps") {
			c.step(t, large, words)
			if err := c.settle(); err != nil {
				t.Fatalf("after %d compactions: %v", c.compactions, err)
			}
		}
	})
}

// step says, shows, answers or works.
func (c *talk) step(t *rapid.T, large *rapid.Generator[int], words *rapid.Generator[string]) {
	draw := func() llm.Text { return text(tokens(large.Draw(t, "tokens"), words.Draw(t, "words"))) }
	switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
	case what == 0 && len(c.Messages) > 0:
		c.add(agent(draw()))
	case what == 1 && len(c.Messages) > 0:
		results := make([]llm.Parts, rapid.IntRange(1, 8).Draw(t, "calls"))
		for i := range results {
			results[i] = llm.Parts{draw()}
		}
		c.worked(tokens(rapid.SampledFrom([]int{5, 5, 500, 5000}).Draw(t, "args"), "echo"), results...)
	case what == 2:
		var shown llm.Parts
		for range rapid.IntRange(1, 12).Draw(t, "images") {
			shown = append(shown, llm.Image{MediaType: "image/png"})
		}
		c.said(append(shown, draw())...)
	default:
		c.Carry.Goal = draw().Text
		c.said(text(c.Carry.Goal))
	}
}
