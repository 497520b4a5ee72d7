package transcript

import (
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// maxThinking bounds Now.Thinking, in bytes.
const maxThinking = 2000

// model folds events of a model.
func (f *Fold) model(e event.Event) []Item {
	switch b := e.Body.(type) {
	case event.Asked:
		f.begin(e.Time) // in case a restart or a queued message began the run
		return append(f.voidReply(), f.markHeard()...)
	case event.Delta:
		return f.delta(e, b)
	case event.Replied:
		return f.replied(e, b)
	case event.Failed:
		f.spend(b.Usage, b.Cost)
		items := append(f.voidReply(), f.wait(e)...)
		if told, _ := words.Told(b); told != "" && (f.Session.Window == 0 || b.Limit < f.Session.Window) {
			f.Session.Window = b.Limit
			items = append(items, f.note(e)...)
		}
		return items
	case event.Routed:
		f.spend(b.Usage, b.Cost)
		return append(f.voidReply(), f.routed(e, b)...)
	}
	return nil
}

// wait records a wait, if the event announces one.
func (f *Fold) wait(e event.Event) []Item {
	why, what, seconds := words.Wait(e.Body)
	if seconds <= 0 {
		return nil
	}
	f.Now.Wait = &Wait{Seq: e.Seq, Why: why, What: what, Seconds: seconds, Until: e.Time.Add(time.Duration(seconds * float64(time.Second)))}
	return []Item{f.Now.Wait}
}

// routed returns a note about the model that answers, if it has changed.
func (f *Fold) routed(e event.Event, b event.Routed) []Item {
	if b.From == "" {
		if b.Route+b.Rule == f.chosen {
			return nil
		}
		f.chosen = b.Route + b.Rule
	}
	return f.note(e)
}

// delta adds to the reply being written.
func (f *Fold) delta(e event.Event, b event.Delta) (items []Item) {
	if b.Void {
		items = f.voidReply()
	}
	if b.Call != nil {
		if b.Call.Name != "" {
			f.Now.Draft = Draft{Name: b.Call.Name}
		}
		f.Now.Draft.Bytes += len(b.Call.Args)
	}
	if b.Text == "" && b.Reasoning == "" {
		return items
	}
	if f.Now.Reply == nil {
		f.Now.Reply = &Reply{Time: e.Time}
	}
	r := f.Now.Reply
	r.text.WriteString(b.Text)
	r.thought.WriteString(b.Reasoning)
	r.Text, r.Thought = r.text.String(), r.thought.String()
	f.Now.Thinking += b.Reasoning
	f.Now.Thinking = f.Now.Thinking[max(0, len(f.Now.Thinking)-maxThinking):]
	if b.Text != "" {
		f.Now.Thinking = ""
	}
	return append(items, r)
}

// voidReply drops the reply being written, because it will not be logged.
func (f *Fold) voidReply() []Item {
	r := f.takeReply()
	if r == nil {
		return nil
	}
	r.State = Void
	return []Item{r}
}

// takeReply returns the reply being written, if any, and clears it.
func (f *Fold) takeReply() *Reply {
	r := f.Now.Reply
	f.Now.Reply, f.Now.Thinking, f.Now.Draft = nil, "", Draft{}
	return r
}

// replied replaces the reply being written with the logged one.
func (f *Fold) replied(e event.Event, b event.Replied) []Item {
	r := f.takeReply()
	if r == nil {
		r = &Reply{}
	}
	r.Seq, r.Time, r.State, r.Parts, r.Route, r.Usage, r.Cost = e.Seq, e.Time, Whole, b.Parts, b.Route, b.Usage, b.Cost
	r.Text, r.Thought = b.Parts.Text(), thought(b.Parts)
	if text := strings.TrimSpace(r.Text); text != "" {
		f.Last = text
	}
	f.spend(b.Usage, b.Cost)
	f.Spent.Turns, f.Run.Turns, f.Spent.Prompt = f.Spent.Turns+1, f.Run.Turns+1, b.Usage
	f.Spent.Unpriced = f.Spent.Unpriced || b.Unpriced
	items := []Item{r}
	for _, c := range b.Parts.Calls() {
		made := &Call{Seq: e.Seq, Call: c}
		f.remember(made)
		items = append(items, made)
	}
	return items
}

func thought(parts llm.Parts) string {
	var b strings.Builder
	for _, part := range parts {
		if r, ok := part.(llm.Reasoning); ok {
			b.WriteString(r.Text)
		}
	}
	return b.String()
}
