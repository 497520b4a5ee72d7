package tui

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// view is the transcript of a session as shown: past events as blocks, which the printer takes away, and work
// in progress in the fold. It depends on the events alone, except for the filled context and lines of the front end
// itself.
type view struct {
	transcript.Fold
	blocks []*block // the oldest first

	reply   *block   // the last block of a reply
	ended   *block   // the last call, or command of the person's own, that ended
	thought string   // the thoughts before the last reply that had any
	said    []string // the person's messages, the oldest first
	changes transcript.Changes
	jobs    []string          // commands that were started in the background
	given   map[string]string // how rules were approved for this session, in words
	filled  int               // tokens of the next prompt, as reported by the session; 0 if it was not asked
}

func newView() *view { return &view{} }

// Apply shows the effect of one event.
func (v *view) Apply(e event.Event) {
	v.changes.Apply(e)
	for _, item := range v.Fold.Apply(e) {
		switch i := item.(type) {
		case *transcript.Said:
			v.tell(i)
		case *transcript.Reply:
			v.addReply(i)
		case *transcript.Call:
			v.addCall(i)
		case *transcript.Question:
			v.addAnswer(i)
		case *transcript.Note:
			v.addNote(i)
		case *transcript.Wait:
			if i.Seq != 0 {
				v.warn(i.Why)
			}
		case *transcript.Child:
			v.addChild(i)
		case *transcript.Stop:
			v.add(&block{kind: stopBlock, text: summary(i), bad: i.Stopped.Reason != event.ReasonDone, detail: i.Stopped.Detail})
		}
	}
}

// tell shows a message once the model hears it. Until then it is shown at the bottom.
func (v *view) tell(s *transcript.Said) {
	if !s.Heard {
		return
	}
	if typed := s.Typed(); typed != "" {
		v.said = append(v.said, typed)
	}
	if s.Origin == event.OriginCommand {
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

// addReply shows a reply from its first text on.
func (v *view) addReply(r *transcript.Reply) {
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

func (v *view) addCall(c *transcript.Call) {
	if c.State != transcript.Over {
		return
	}
	failed := c.Ended.Outcome != event.OutcomeOK
	if !failed && isBackground(c.Call) {
		v.jobs = append(v.jobs, words.Subject(c.Call))
	}
	v.ended = &block{kind: callBlock, call: c, bad: words.Failed(c.Ended) != ""}
	v.add(v.ended)
}

// isBackground reports whether a call only starts something.
func isBackground(c llm.Call) bool {
	var args struct {
		Background bool `json:"background"`
	}
	return json.Unmarshal(c.Args, &args) == nil && args.Background
}

// addAnswer shows the answer of a person, or the calls that it allows for longer.
func (v *view) addAnswer(q *transcript.Question) {
	if d := q.Answer; d != nil && d.Scope == event.ScopeSession {
		for _, rule := range d.Grants(q.Rules, q.Offers) {
			if v.given == nil {
				v.given = map[string]string{}
			}
			v.given[rule] = words.Given(*d, toolOf(q))
		}
	}
	if d := q.Answer; d != nil && d.Allow {
		if granted := words.Granted(*d, q.Rules, q.Offers); granted != "" {
			v.note(granted)
		}
		if q.Call != nil && d.Answer != "" {
			v.note("answered: " + d.Answer)
		}
	}
}

// addNote shows a note. The session's initial settings are not news, and momentary states are shown at the
// bottom.
func (v *view) addNote(n *transcript.Note) {
	switch b := n.Of.(type) {
	case event.Forked:
		v.note("forked from " + b.From)
	case event.Progress:
	case event.Switched:
		b.Mode = "" // the status line shows it
		if text, notice := words.Told(b); text != "" && !n.First {
			v.add(&block{kind: noteBlock, text: text, bad: notice})
		}
	default:
		if n.Text != "" && !n.First {
			v.add(&block{kind: noteBlock, text: n.Text, bad: n.Notice})
		}
	}
}

// addChild shows a child that works in the background. Any other child is shown as a call.
func (v *view) addChild(c *transcript.Child) {
	if text, notice := words.Told(c.Last()); c.Spawned.Background {
		v.add(&block{kind: noteBlock, text: text, bad: notice})
	}
}

func (v *view) add(b *block)     { v.blocks = append(v.blocks, b) }
func (v *view) note(text string) { v.add(&block{kind: noteBlock, text: text}) }
func (v *view) warn(text string) { v.add(&block{kind: noteBlock, text: text, bad: true}) }

// windowPercent returns how full the model's window is, in percent; -1 if unknown.
func (v *view) windowPercent() int {
	return percent(cmp.Or(v.filled, v.Spent.Prompt.Prompt()+v.Spent.Prompt.Output), v.Session.Window)
}

func (v *view) cached() int { return percent(v.Spent.Prompt.CacheRead, v.Spent.Prompt.Prompt()) }

func percent(a, b int) int {
	if b == 0 {
		return -1
	}
	return (100*a + b/2) / b
}

// lastLine returns the last line with text.
func lastLine(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	return text[strings.LastIndexAny(text, "\r\n")+1:]
}

// nextQuestion returns the question to decide next, and whether there is one: first those of subagents and of running calls.
func (v *view) nextQuestion(decided []event.Body) (inspan.Pending, bool) {
	return firstPending(append(v.raisedQuestions(decided), v.callQuestions(decided)...))
}

// nextCallQuestion returns the call to decide on next, and whether there is one.
func (v *view) nextCallQuestion(decided []event.Body) (inspan.Pending, bool) {
	return firstPending(v.callQuestions(decided))
}

func firstPending(list []inspan.Pending) (p inspan.Pending, some bool) {
	if len(list) > 0 {
		p = list[0]
	}
	return p, len(list) > 0
}

// raisedQuestions returns the undecided questions of subagents and of running calls.
func (v *view) raisedQuestions(decided []event.Body) (out []inspan.Pending) {
	for _, q := range v.Raised() {
		if p := v.Pending(q); !isDecided(decided, p) {
			out = append(out, p)
		}
	}
	return out
}

// callQuestions returns the undecided questions about calls, in sets.
func (v *view) callQuestions(decided []event.Body) (out []inspan.Pending) {
	for _, q := range v.Waiting() {
		if p := v.Pending(q); !isDecided(decided, p) {
			out = append(out, p)
		}
	}
	return inspan.Sets(out)
}

// isDecided reports whether a question has been decided.
func isDecided(decided []event.Body, p inspan.Pending) bool {
	return slices.ContainsFunc(decided, func(b event.Body) bool {
		d, ok := b.(event.Decided)
		this := d.Question == 0 || d.Question == p.Question // and not an earlier question about the same call
		return ok && (d.Call == p.Call.ID && this || d.OnCall(p.Call.ID, p.Parent, p.Question))
	})
}

// onlyAsks reports whether everything in progress waits for questions, including running calls that wait for
// decisions on nested calls.
func (v *view) onlyAsks() bool {
	waiting := v.Waiting()
	works := func(c *transcript.Call) bool {
		return !slices.ContainsFunc(waiting, func(q *transcript.Question) bool { return strings.HasPrefix(q.ID, c.Call.ID+"/") })
	}
	return len(waiting) > 0 && !slices.ContainsFunc(v.Now.Running, works)
}

// countUndecided returns the number of undecided questions, including those of subagents and of running calls.
func (v *view) countUndecided(decided []event.Body) int {
	return len(v.raisedQuestions(decided)) + len(v.callQuestions(decided))
}
