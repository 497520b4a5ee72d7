package tui

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// view is the transcript of a session as it is shown: what has happened in blocks, which
// whoever prints them takes away, and what goes on in the fold. It is all that the front end
// knows of the session, and it asks nobody: the same events always show the same.
type view struct {
	transcript.Fold
	blocks []*block // oldest first

	reply   *block              // the last one of a reply
	ended   *block              // the last call, or command of the person's own, that ended
	thought string              // before the last reply that came with any
	said    []string            // by the person, oldest first
	changes []change            // files the session changed, in order, but for what was undone
	marked  map[string][]change // what they were at each checkpoint
	jobs    []string            // commands that were started in the background
	given   map[string]string   // how rules were approved for this session, in words
	filled  int                 // tokens of the next prompt, as the session knows; 0: it was not asked
}

// change is what a call did to a file.
type change struct {
	path, diff string
}

func newView() *view { return &view{} }

// Apply shows what one event brings.
func (v *view) Apply(e event.Event) {
	switch b := e.Body.(type) {
	case event.Checkpoint:
		v.mark(b.ID)
	case event.Restored:
		v.restored(b)
	}
	for _, item := range v.Fold.Apply(e) {
		switch i := item.(type) {
		case *transcript.Said:
			v.tell(i)
		case *transcript.Reply:
			v.replied(i)
		case *transcript.Call:
			v.called(i)
		case *transcript.Question:
			v.answered(i)
		case *transcript.Note:
			v.noted(i)
		case *transcript.Wait:
			if i.Seq != 0 {
				v.warn(i.Why)
			}
		case *transcript.Child:
			v.child(i)
		case *transcript.Stop:
			v.add(&block{kind: stopBlock, text: summary(i), bad: i.Stopped.Reason != event.ReasonDone, detail: i.Stopped.Detail})
		}
	}
}

// tell shows what was said, once the model hears it. Until then it stands below.
func (v *view) tell(s *transcript.Said) {
	if !s.Heard {
		return
	}
	if s.By == "" {
		v.said = append(v.said, s.Text)
	}
	if s.Origin == event.OriginCommand {
		v.said = append(v.said, event.Said{Parts: s.Parts, Origin: s.Origin}.Typed())
		v.ended = &block{kind: ownBlock, text: words.OwnCommand(s.Text)}
		v.add(v.ended)
		return
	}
	if s.By == words.NamedFiles {
		v.note("with your message the model gets " + words.OneLine(words.Names(s.Text), 200))
		return
	}
	v.add(&block{kind: saidBlock, text: s.Text, by: s.By})
}

// replied shows a reply from its first text on.
func (v *view) replied(r *transcript.Reply) {
	if r.State == transcript.Whole && strings.TrimSpace(r.Thought) != "" {
		v.thought = r.Thought
	}
	if v.reply != nil && v.reply.reply == r {
		return
	}
	switch {
	case r.State == transcript.Void, r.Text == "":
		return
	case r.State == transcript.Whole && strings.TrimSpace(r.Text) == "":
		return
	}
	v.reply = &block{kind: replyBlock, reply: r}
	v.add(v.reply)
}

func (v *view) called(c *transcript.Call) {
	if c.State != transcript.Over {
		return
	}
	for _, f := range c.Ended.Files {
		if f.Diff != "" {
			v.changes = append(v.changes, change{f.Path, f.Diff})
		}
	}
	failed := c.Ended.Outcome != event.OutcomeOK
	if !failed && background(c.Call) {
		v.jobs = append(v.jobs, words.Subject(c.Call))
	}
	v.ended = &block{kind: callBlock, call: c, bad: words.Failed(c.Ended) != ""}
	v.add(v.ended)
}

// mark notes what has been changed at a checkpoint.
func (v *view) mark(id string) {
	if v.marked == nil {
		v.marked = map[string][]change{}
	}
	v.marked[id] = slices.Clip(v.changes)
}

// restored takes the changes back to those of a checkpoint, but for files that stayed as they were.
func (v *view) restored(b event.Restored) {
	v.mark(b.Before)
	then, known := v.marked[b.To]
	if !known {
		return
	}
	put := func(c change) bool {
		path, err := filepath.Rel(v.Session.Root, c.path)
		return err == nil && slices.Contains(b.Files, filepath.ToSlash(path))
	}
	if b.Kept == 0 { // of many, only some are named
		put = func(change) bool { return true }
	}
	stay := slices.DeleteFunc(slices.Clone(v.changes), put)
	back := slices.DeleteFunc(slices.Clone(then), func(c change) bool { return !put(c) })
	v.changes = slices.Concat(back, stay)
	v.mark(b.After)
}

// background reports whether a call only starts something.
func background(c llm.Call) bool {
	var args struct {
		Background bool `json:"background"`
	}
	return json.Unmarshal(c.Args, &args) == nil && args.Background
}

// answered says what a person let a call do for longer, or answered it.
func (v *view) answered(q *transcript.Question) {
	if d := q.Answer; d != nil && d.Scope == event.ScopeSession {
		for _, rule := range d.Grants(q.Rules, q.Offers) {
			if v.given == nil {
				v.given = map[string]string{}
			}
			v.given[rule] = words.Given(*d, toolOf(q))
		}
	}
	if d := q.Answer; d != nil && q.Call != nil && d.Allow && (d.Scope != event.ScopeOnce || d.Answer != "") {
		v.note(allowed(*d, q.Call.Call.Name))
	}
}

// noted shows what is told in a sentence. What the session begins with is no news, and what
// it does for a moment is seen below.
func (v *view) noted(n *transcript.Note) {
	switch b := n.Of.(type) {
	case event.Forked:
		v.note("forked from " + b.From)
	case event.Progress:
	default:
		if n.Text != "" && !n.First {
			v.add(&block{kind: noteBlock, text: n.Text, bad: n.Notice})
		}
	}
}

// child tells of a child that works in the background. Any other is a call.
func (v *view) child(c *transcript.Child) {
	var body event.Body = c.Spawned
	if c.Returned != nil {
		body = *c.Returned
	}
	if text, notice := words.Told(body); c.Spawned.Background {
		v.add(&block{kind: noteBlock, text: text, bad: notice})
	}
}

func (v *view) add(b *block)     { v.blocks = append(v.blocks, b) }
func (v *view) note(text string) { v.add(&block{kind: noteBlock, text: text}) }
func (v *view) warn(text string) { v.add(&block{kind: noteBlock, text: text, bad: true}) }

// share is how full the window of the model is, in percent; -1: not known.
func (v *view) share() int {
	return percent(cmp.Or(v.filled, v.Spent.Prompt.Prompt()+v.Spent.Prompt.Output), v.Session.Window)
}

func (v *view) cached() int { return percent(v.Spent.Prompt.CacheRead, v.Spent.Prompt.Prompt()) }

func percent(a, b int) int {
	if b == 0 {
		return -1
	}
	return (100*a + b/2) / b
}

// lastLine is the last line of text that says something.
func lastLine(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	return text[strings.LastIndexAny(text, "\r\n")+1:]
}

// asking is the question to decide on next, those of children first, and whether there is one.
func (v *view) asking(decided []event.Body) (inspan.Pending, bool) {
	return first(append(v.raised(decided), v.waiting(decided)...))
}

// calling is the call to decide on next, and whether there is one.
func (v *view) calling(decided []event.Body) (inspan.Pending, bool) { return first(v.waiting(decided)) }

func first(list []inspan.Pending) (p inspan.Pending, some bool) {
	if len(list) > 0 {
		p = list[0]
	}
	return p, len(list) > 0
}

// raised are the questions of children that are not decided on.
func (v *view) raised(decided []event.Body) (out []inspan.Pending) {
	for _, q := range v.Raised() {
		if p := inspan.Asked(inspan.Question{Raised: *q.Raised, Seq: q.Seq}); !decides(decided, p) {
			out = append(out, p)
		}
	}
	return out
}

// waiting are the questions about calls that are not decided on, in sets.
func (v *view) waiting(decided []event.Body) (out []inspan.Pending) {
	for _, q := range v.Waiting() {
		if p := pending(q); !decides(decided, p) {
			out = append(out, p)
		}
	}
	return inspan.Sets(out)
}

// decides reports whether a question is decided on.
func decides(decided []event.Body, p inspan.Pending) bool {
	return slices.ContainsFunc(decided, func(b event.Body) bool {
		d, ok := b.(event.Decided)
		return ok && (d.Call == p.Call.ID || d.OnCall(p.Call.ID, p.Parent, p.Question))
	})
}

// asks reports whether all that is open are questions, also where a call that runs waits for those about calls
// that it has made.
func (v *view) asks() bool {
	waiting := v.Waiting()
	works := func(c *transcript.Call) bool {
		return !slices.ContainsFunc(waiting, func(q *transcript.Question) bool { return strings.HasPrefix(q.ID, c.Call.ID+"/") })
	}
	return len(waiting) > 0 && !slices.ContainsFunc(v.Now.Running, works)
}

// undecided counts the questions, of subagents too, that are not decided on.
func (v *view) undecided(decided []event.Body) int {
	return len(v.raised(decided)) + len(v.waiting(decided))
}

// pending is a question about a call.
func pending(q *transcript.Question) inspan.Pending {
	c := q.Call.Call
	c.Name = cmp.Or(c.Name, "a call")
	p := inspan.Pending{
		Call: c, Question: q.Seq, Effects: q.Call.Effects(), Preview: q.Preview, Rules: q.Rules, Offers: q.Offers, Until: q.Until,
	}
	p.Asks = slices.ContainsFunc(p.Effects, func(e tool.Effect) bool { return e.Kind == tool.Question })
	if j := q.Call.Judged; j != nil {
		p.Reason, p.Parent, p.Ahead = j.Reason, j.Parent, j.Ahead
	}
	return p
}
