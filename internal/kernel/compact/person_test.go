package compact_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/inspan/inspan/internal/kernel/compact"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// talk is a conversation in a window, compacted whenever a driver would do it.
type talk struct {
	compact.Source
	room        int // of a prompt
	calls       int
	compactions int
	writes      func(p compact.Plan, n int) (string, error) // the records; nil means no one does
}

const fixed = 150 // tokens of a prompt that are no messages

func newTalk(window int) *talk {
	room := window * 3 / 4
	return &talk{room: room, Source: compact.Source{Room: max(room*3/4-fixed, (room-fixed)/2)}}
}

func (c *talk) keep() int { return min(keep, c.Room/3) }

func (c *talk) said(parts ...llm.Part) {
	c.Person, c.Events = append(c.Person, len(c.Messages)), append(c.Events, uint64(10*(len(c.Person)+c.Unshown.Messages+1)))
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

// settle compacts if the prompt has no room. The error says what is wrong with the result.
func (c *talk) settle() error {
	if size(c.Messages)+fixed <= c.room {
		return nil
	}
	p, ok := compact.Split(c.Source, c.keep())
	if !ok {
		return fmt.Errorf("%d tokens have no room in %d, and nothing can be done", size(c.Messages), c.Room)
	}
	c.compactions++
	messages, person := p.Build(c.recorded(p))
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
	if was.Tokens() <= whole && !equal(was.Parts, is.Parts) && !shortened(is.Parts.Text(), was.Parts.Text()) { // by what was pasted
		return fmt.Errorf("the newest words of the person were %d tokens and are not the same", was.Tokens())
	}
	c.Messages, c.Person, c.Events, c.Unshown = messages, person, p.Events(), p.Unshown
	return nil
}

// recorded is the record that a driver takes.
func (c *talk) recorded(p compact.Plan) compact.Summary {
	for range 2 {
		if c.writes == nil {
			break
		}
		answer, err := c.writes(p, c.compactions)
		if err != nil {
			break
		}
		if s, missing := p.Read(answer); len(missing) == 0 {
			return s
		}
	}
	return p.Extract()
}

// tokens is a text of about so many.
func tokens(n int, words string) string {
	words += " "
	return strings.Repeat(words, n*7/2/len(words)+1)
}

// plainWish is a message of about 170 tokens without repetition.
func plainWish(i int) string {
	words := strings.Fields("sand tree lamp bird door coat milk road wall gate fish corn leaf salt rope")
	var b strings.Builder
	for n := range 13 {
		fmt.Fprintf(&b, " Part %s of %s has the colour of %s.", words[n], words[i%15], words[i/15%15])
	}
	return fmt.Sprintf("Wish %d:%s The title should look good in view %d.", i, b.String(), i)
}

// TestNoMessageIsOneTooMany checks that no number of messages breaks a session: the conversation continues, compactions
// are few, and messages without room are counted.
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
				c.said(llm.Text{Text: text})
				if i%3 > 0 {
					c.add(agent(llm.Text{Text: "Yes."}))
				}
				spoken += len(text) * 2 / 7
				if err := c.settle(); err != nil {
					t.Fatalf("message %d: %v", i, err)
				}
				if n := len(c.Person) + c.Unshown.Messages; n != i+1 {
					t.Fatalf("message %d: %d stand and %d are left out", i, len(c.Person), c.Unshown.Messages)
				}
			}
			if most := spoken/(c.room/4) + 1; c.compactions > most || c.compactions == 0 && !testkit.Race {
				t.Errorf("%d compactions for %d tokens, want at most %d", c.compactions, spoken, most)
			}
			t.Logf("compact: window %d: %d messages of the person, %d compactions, %d tokens at the end", window, n, c.compactions, size(c.Messages))
		})
	}
}

// TestWhatHasNoRoomIsCounted checks that order alone decides which of the person's messages go, and that the report
// about them is true.
func TestWhatHasNoRoomIsCounted(t *testing.T) {
	c := newTalk(32_000)
	c.History = true
	for i := range 400 {
		wish := plainWish(i)
		if i == 0 {
			wish = "Build the shop."
		}
		c.said(llm.Text{Text: wish})
		if err := c.settle(); err != nil {
			t.Fatal(err)
		}
	}
	n := c.Unshown.Messages
	if n < 100 || n+len(c.Person) != 400 || c.Messages[c.Person[0]].Parts.Text() != "Build the shop." {
		t.Errorf("%d are left out and %d stand, of 400; the first is %q", n, len(c.Person), c.Messages[c.Person[0]].Parts.Text())
	}
	for k, i := range c.Person[1:] {
		if got, want := c.Messages[i].Parts.Text(), plainWish(n+1+k); got != want || c.Events[k+1] != uint64(10*(n+2+k)) {
			t.Fatalf("message %d of event %d is %q, want %q", k+1, c.Events[k+1], got, want)
		}
	}
	want := fmt.Sprintf("\nMessages left out for lack of room: %d. The first is event 20, the last is event %d. To see them, call history with who \"person\"", n, 10*(n+1))
	if all := written(c.Messages); !strings.Contains(all, want) || strings.Count(all, "# What the person said") != 1 {
		t.Errorf("nothing says %q", want)
	}
}

// TestEachTextOnce checks that a repeated text is kept at its last position.
func TestEachTextOnce(t *testing.T) {
	src := worked("Use tabs.", 30)
	src.Carry.Goal = "Use tabs."
	for _, said := range []string{"Use spaces.", "Use  tabs.\n"} {
		src.Person = append(src.Person, len(src.Messages))
		src.Messages = append(src.Messages, user(text(said)))
		src.Messages = append(src.Messages, worked("", 30).Messages[1:]...)
	}
	got, person := split(t, src, 500).Build(compact.Summary{})
	if len(person) != 2 || got[person[0]].Parts.Text() != "Use spaces." || got[person[1]].Parts.Text() != "Use  tabs.\n" {
		t.Errorf("got %v", got[:2])
	}
	if all := written(got); strings.Count(all, "tabs") != 1 || !strings.Contains(all, "Goal: the person's last request;") {
		t.Errorf("the goal stands twice: %s", all)
	}
}

// TestListOfBuildsBefore checks that lists of the person's words by an older build are read and kept.
func TestListOfBuildsBefore(t *testing.T) {
	const counted = "# The person's older words\nThey no longer stand above.\nMessages listed so: 5. Demands that are left out here and only the " +
		"history tool has: 0.\n"
	for before, listed := range map[string]int{"Said by the person, in what was left out of their messages:\n": 0, counted: 5} {
		src := worked("Mend it.", 60)
		messages, person := split(t, src, 500).Build(compact.Summary{Next: "- n"})
		state := strings.Replace(messages[1].Parts.Text(), "\n# Unchanged\n", "\n"+before+"- Never touch vendor.\n- Keep it small.\n\n# Unchanged\n", 1)
		messages[1] = user(text(state))
		for range 2 {
			p := split(t, compact.Source{Messages: append(messages, worked("", 60).Messages[1:]...), Person: person}, 500)
			messages, person = p.Build(compact.Summary{})
			if all := written(messages); !strings.Contains(all, "\n- Never touch vendor.\n- Keep it small.\n") || p.Unshown.Messages != listed {
				t.Errorf("%d are left out: %s", p.Unshown.Messages, all)
			}
			listed = 0 // the state of a session has it from now on
		}
	}
}

// TestLargestMessageIsCut checks that in a message larger than the window the pasted text is cut in the middle, and no
// sentence of the person.
func TestLargestMessageIsCut(t *testing.T) {
	c := newTalk(8000)
	paste := "HEAD " + tokens(12_000, "some words of a log") + "\nHands off a.log.\n" + tokens(12_000, "some words of a log") + " TAIL"
	c.said(text(paste))
	if err := c.settle(); err != nil {
		t.Fatal(err)
	}
	cut := c.Messages[c.Person[0]].Parts.Text()
	if !shortened(cut, paste) || !strings.HasPrefix(cut, "HEAD ") || !strings.HasSuffix(cut, " TAIL") || !strings.Contains(cut, "\nHands off a.log.\n") {
		t.Errorf("badly cut: %s", cut)
	}
	if n := size(c.Messages); n < c.Room/2 {
		t.Errorf("%d tokens stay, and there is room for %d", n, c.Room)
	}
}

// TestWordsBeforeResults checks that in a small room the person's own words come before results of calls and before
// pasted text, even the newest.
func TestWordsBeforeResults(t *testing.T) {
	c := newTalk(4000)
	var wishes []string
	for i := range 40 {
		wishes = append(wishes, fmt.Sprintf("Wish %d: paint the door of room %d.", i, i))
		c.said(text(wishes[i] + "\n" + strings.Repeat("queue shard lease merge ", 50)))
		c.worked("cat data", llm.Say(tokens(840, "value index order total")))
		if err := c.settle(); err != nil {
			t.Fatal(err)
		}
	}
	all := written(c.Messages)
	for _, w := range wishes {
		if strings.Count(all, w) != 1 {
			t.Errorf("%q stands there %d times after %d compactions", w, strings.Count(all, w), c.compactions)
		}
	}
}

// TestImagesMakeRoom checks that images go before words do.
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
	if n := images(old); n > 1 || n+strings.Count(old.Text(), pictureNote) != 10 || !strings.HasSuffix(old.Text(), "Make it look like this.") {
		t.Errorf("got %v", old)
	}
	if n := images(last); n != 1 || n+strings.Count(last.Text(), pictureNote) != 10 || !strings.HasSuffix(last.Text(), "Like the last.") {
		t.Errorf("got %v", last)
	}
}

// TestWhateverIsSaid checks that a prompt fits after each compaction, whatever people, models and tools have said.
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
			c.Carry.Todo = append(c.Carry.Todo, tool.Todo{Text: tokens(40, "a thing to do"), State: "open"})
			c.Facts.Failed = append(c.Facts.Failed, compact.Run{Command: tokens(200, "some command")})
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
