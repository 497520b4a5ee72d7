package compact_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/kernel/compact"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// random draws conversations as the loop folds them, and stranger ones.
type random struct {
	*rand.Rand
	calls int
}

func (r *random) text(most int) string {
	words := strings.Fields("the tests pass never touch only at most 17 files lib/a.go error: failed Übung 你好 必须 ## Goal <record> </record> " +
		"# Record none - [x] `code` 3.14 https://example.org/a ; . ? !")
	var b strings.Builder
	for range r.IntN(most + 1) {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteString([]string{" ", "\n", ", ", ". "}[r.IntN(4)])
	}
	return b.String()
}

func (r *random) said() llm.Parts {
	parts := llm.Parts{text(r.text(30))}
	switch r.IntN(12) {
	case 0:
		parts = append(parts, llm.Image{MediaType: "image/png", Digest: fmt.Sprint("sha256:", r.IntN(100))})
	case 1:
		parts = llm.Parts{text("  "), text(r.text(5))}
	case 2:
		parts = llm.Parts{text(r.text(3000))}
	}
	return parts
}

// turn is a reply with calls and the messages with their results.
func (r *random) turn() []llm.Message {
	asked := llm.Parts{llm.Reasoning{Text: r.text(5), Opaque: json.RawMessage(`{"a":1}`), Route: "x/y"}, text(r.text(10))}
	var answers llm.Parts
	for range 1 + r.IntN(4) {
		r.calls++
		id := fmt.Sprint("c", r.calls)
		asked = append(asked, llm.Call{ID: id, Name: "bash", Args: json.RawMessage(`{"command":"go test ./lib"}`)})
		answers = append(answers, llm.Result{CallID: id, Name: "bash", Parts: llm.Say(r.text(120)), Error: r.IntN(4) == 0})
	}
	r.Shuffle(len(answers), func(i, j int) { answers[i], answers[j] = answers[j], answers[i] })
	if r.IntN(5) > 0 {
		return []llm.Message{agent(asked...), user(answers...)}
	}
	n := r.IntN(len(answers))
	return slices.DeleteFunc([]llm.Message{agent(asked...), user(answers[:n]...), user(text("by the way")), user(answers[n:]...)},
		func(m llm.Message) bool { return len(m.Parts) == 0 })
}

func (r *random) source() compact.Source {
	var src compact.Source
	for range 1 + r.IntN(12) {
		src.Person = append(src.Person, len(src.Messages))
		src.Messages = append(src.Messages, llm.Message{Role: llm.User, Parts: r.said()})
		for range r.IntN(30) {
			src.Messages = append(src.Messages, r.turn()...)
		}
		src.Messages = append(src.Messages, agent(text(r.text(60))))
	}
	for i := range r.IntN(200) {
		src.Facts.Changed = append(src.Facts.Changed, fmt.Sprintf("lib/%c/f%d.go", 'a'+i%7, i/2))
	}
	if r.IntN(2) == 0 {
		src.Facts.Test = &compact.Test{Run: compact.Run{Command: "go test", Detail: r.text(20)}, Passed: r.IntN(2) == 0}
	}
	for range r.IntN(4) {
		src.Facts.Failed = append(src.Facts.Failed, compact.Run{Command: r.text(8)})
	}
	src.Carry.Todo = []tool.Todo{{Text: r.text(6), State: "open"}, {Text: r.text(6), State: "done"}}
	if r.IntN(2) == 0 {
		src.Carry.Goal = r.text(20)
	}
	return src
}

// TestProperties checks properties of every conversation.
func TestProperties(t *testing.T) {
	done, seeds := 0, uint64(150)
	if testkit.Race {
		seeds = 15
	}
	for seed := range seeds {
		r := &random{Rand: rand.New(rand.NewPCG(seed, 7))}
		src, keep := r.source(), r.IntN(6000)
		if r.IntN(4) == 0 {
			keep = r.IntN(50)
		}
		before, _ := json.Marshal(src.Messages)
		p, ok := compact.Split(src, keep)
		if !ok {
			continue
		}
		done++
		s := p.Extract()
		if missing := p.Check(s); len(missing) > 0 {
			t.Fatalf("seed %d: an extract is refused: %v\n%s", seed, missing, s.Text())
		}
		if again, err := compact.Parse(s.Text()); err != nil || again != s {
			t.Fatalf("seed %d: an extract can't be read again: %v\n%q\n%q", seed, err, s, again)
		}
		messages, person := p.Build(s)
		if err := properties(src, p, messages, person, keep); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		other, _ := compact.Split(src, keep)
		if same, _ := other.Build(other.Extract()); !equal(same, messages) {
			t.Fatalf("seed %d: not the same twice", seed)
		}
		for _, req := range []llm.Request{p.Request(nil, nil, "x"), p.Repair(p.Request(nil, nil, ""), "x", nil)} {
			if err := valid(req.Messages); err != nil {
				t.Fatalf("seed %d: request: %v", seed, err)
			}
		}
		if after, _ := json.Marshal(src.Messages); string(after) != string(before) {
			t.Fatalf("seed %d: the source was changed", seed)
		}
		src.Messages, src.Person = messages, person
		if _, ok := compact.Split(src, keep); ok {
			t.Fatalf("seed %d: it wants to be compacted again at once", seed)
		}
	}
	if done < int(seeds)/2 {
		t.Errorf("only %d conversations were long enough", done)
	}
}

func properties(src compact.Source, p compact.Plan, messages []llm.Message, person []int, keep int) error {
	if err := valid(messages); err != nil {
		return err
	}
	if err := heard(src, messages, person, p.Unshown.Messages); err != nil {
		return err
	}
	end := src.Messages[p.From:]
	if !equal(messages[len(messages)-len(end):], end) {
		return fmt.Errorf("the end is not as it was")
	}
	if size(end) < keep {
		return fmt.Errorf("%d tokens of %d stay", size(end), keep)
	}
	for i, m := range messages[:len(messages)-len(end)] {
		if slices.ContainsFunc(m.Parts, func(p llm.Part) bool { t, ok := p.(llm.Text); return ok && strings.TrimSpace(t.Text) == "" }) {
			return fmt.Errorf("message %d has a part without text", i)
		}
	}
	if before, after := size(src.Messages), size(messages); after >= before {
		return fmt.Errorf("%d tokens became %d", before, after)
	}
	return nil
}

func TestCountIsTheCallers(t *testing.T) {
	src := worked("Mend it.", 60)
	src.Count = func(m llm.Message) int { return m.Parts.Bytes() }
	p := split(t, src, 2000)
	if n := len(written(src.Messages[p.From:])); n < 2000 || n > 3500 {
		t.Errorf("%d bytes stay", n)
	}
}
