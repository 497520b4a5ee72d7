package acp

import (
	"strings"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// view tells the client of the transcript of a session. The same events tell the same,
// whether they happen now or are replayed.
type view struct {
	session *session
	fold    transcript.Fold
	past    bool // what is folded happened before
	// quiet says that the client is told nothing: it knows, or does not want to.
	quiet bool

	reply   reply
	void    bool // what was told of the last reply does not count
	calls   map[*transcript.Call]*shownCall
	title   string
	mode    tool.Mode
	route   string
	shrinks string // id of the compaction that goes on; empty: none does
}

// reply is what the client was told of a reply as it came, in bytes.
type reply struct {
	of            *transcript.Reply
	text, thought int
}

func newView(st *session) *view {
	status := st.session.Status()
	v := &view{session: st, calls: map[*transcript.Call]*shownCall{}, mode: status.Mode, route: status.Route}
	v.fold.Session.Window = st.session.Context().Window
	return v
}

// apply tells what one event brings.
func (v *view) apply(e event.Event) {
	for _, item := range v.fold.Apply(e) {
		switch i := item.(type) {
		case *transcript.Said:
			if i.Seq == e.Seq { // else it was told when it was said
				v.said(i.Parts, i.By)
			}
		case *transcript.Reply:
			v.replied(i)
		case *transcript.Call:
			v.call(e, i)
		case *transcript.Note:
			v.note(e, i)
		case *transcript.Wait:
			v.notice(i.Why, true)
		case *transcript.Child:
			v.child(i)
		case *transcript.Stop:
			v.stop(i.Stopped)
		}
	}
}

// note tells what is beside the conversation.
func (v *view) note(e event.Event, n *transcript.Note) {
	switch b := n.Of.(type) {
	case event.Titled:
		v.titled(b.Title)
	case event.Switched:
		v.switched(b)
	default:
		if _, compacted := b.(event.Compacted); compacted {
			v.usage()
		}
		if !v.showsCompaction(n.Of) {
			v.notice(n.Text, n.Notice)
		}
		v.compacts(e, n)
	}
}

func (v *view) child(c *transcript.Child) {
	var body event.Body = c.Spawned
	if c.Returned != nil {
		body = *c.Returned
	}
	text, notable := words.Told(body)
	v.notice(text, notable)
}

func (v *view) tell(u wire.SessionUpdate) {
	if !v.quiet {
		v.session.agent.update(v.session.id, u)
	}
}

// message tells something as the agent's own words.
func (v *view) message(s string) {
	if s = text.Clean(s); s != "" {
		v.tell(wire.UpdateAgentMessageText(s))
	}
}

// notice tells something beside the conversation. Clients that have no place for it
// get it as a thought. Notices are of now: none is replayed.
func (v *view) notice(text string, notable bool) {
	_, more := v.session.agent.capabilities()
	switch text = words.OneLine(text, 1000); {
	case text == "" || v.quiet:
	case !more.notices():
		v.tell(wire.UpdateAgentThoughtText(text + "\n"))
	case !v.past:
		v.session.agent.notice(v.session.id, text, notable)
	}
}

// notice tells a client something beside the conversation, if it has a place for it.
func (a *agent) notice(id, text string, notable bool) {
	if _, more := a.capabilities(); !more.notices() {
		return
	}
	severity := map[bool]string{true: "warning", false: "info"}[notable]
	a.notify(wire.ClientMethodSessionUpdate, rawUpdate{id, notice{"notice", severity, words.OneLine(text, 1000)}})
}

// said tells what a person said, if the client does not know it because it said so
// itself.
func (v *view) said(parts llm.Parts, by string) {
	if by == loop.By {
		v.notice(words.ToldModel(parts.Text()), false)
		return
	}
	if v.title == "" {
		v.titled(words.OneLine(parts.Text(), 100))
	}
	if !v.past && by == "" && v.session.expected(parts) {
		return
	}
	if by != "" {
		v.tell(wire.UpdateUserMessageText(text.Line(by) + ": "))
	}
	for _, b := range v.session.spoken(parts) {
		v.tell(wire.UpdateUserMessage(b))
	}
}

func (v *view) titled(title string) {
	if title = words.OneLine(title, 200); title != "" && title != v.title {
		v.title = title
		v.tell(wire.SessionUpdate{SessionInfoUpdate: &wire.SessionSessionInfoUpdate{Title: &title}})
	}
}

// replied tells what is new of a reply.
func (v *view) replied(r *transcript.Reply) {
	if v.reply.of != r {
		v.reply = reply{of: r}
	}
	switch r.State {
	case transcript.Void:
		v.void = v.void || v.reply.text > 0
		return
	case transcript.Written:
		v.thought(r.Thought[v.reply.thought:])
		v.spoke(r.Text[v.reply.text:])
		v.reply.text, v.reply.thought = len(r.Text), len(r.Thought)
		return
	}
	for _, part := range r.Parts { // what was not told as it came
		switch p := part.(type) {
		case llm.Text:
			if v.reply.text == 0 {
				v.spoke(p.Text)
			}
		case llm.Reasoning:
			if v.reply.thought == 0 {
				v.thought(p.Text)
			}
		}
	}
	v.void = false
	v.usage()
}

func (v *view) thought(s string) {
	if s != "" {
		v.tell(wire.UpdateAgentThoughtText(text.Clean(s)))
	}
}

// spoke tells what the model says.
func (v *view) spoke(s string) {
	if s != "" && v.void { // what was told can't be taken back
		v.message("\n\n(the reply broke off; it begins again)\n\n")
		v.void = false
	}
	v.message(s)
}

// usage tells how full the context is, and what the session has cost.
func (v *view) usage() {
	used, size := v.fold.Spent.Prompt.Prompt()+v.fold.Spent.Prompt.Output, v.fold.Session.Window
	if size > 0 && used > 0 {
		v.tell(wire.SessionUpdate{UsageUpdate: &wire.SessionUsageUpdate{
			Used: used, Size: size,
			Cost: &wire.Cost{Amount: v.fold.Spent.Cost, Currency: "USD"},
		}})
	}
}

func (v *view) switched(b event.Switched) {
	v.session.mu.Lock()
	if b.Effort != "" {
		v.session.effort = b.Effort
	}
	v.session.mu.Unlock()
	changed := b.Mode != "" && b.Mode != v.mode
	other := changed || b.Effort != "" || b.Route != "" && b.Route != v.route
	if b.Mode != "" {
		v.mode = b.Mode
	}
	if b.Route != "" {
		v.route = b.Route
	}
	if v.past {
		return // the answer says what holds
	}
	if changed {
		v.tell(wire.SessionUpdate{CurrentModeUpdate: &wire.SessionCurrentModeUpdate{CurrentModeId: wire.SessionModeId(v.session.mode())}})
	}
	if other && !v.quiet {
		v.session.tellOptions()
	}
}

// stop says what the protocol has no word for.
func (v *view) stop(b event.Stopped) {
	if v.shrinks != "" {
		v.compaction("cancelled", "", "")
	}
	clear(v.calls) // each has ended
	v.void = false
	if b.Reason == event.ReasonDone || b.Reason == event.ReasonCancelled {
		return
	}
	s := "The run stopped: " + strings.ReplaceAll(string(b.Reason), "_", " ")
	if b.Detail != "" {
		s += ", " + text.Line(b.Detail)
	}
	v.message("\n\n" + s + "\n")
}

// plan is the list of things to do in the words of the protocol.
func plan(list []tool.Todo) wire.SessionUpdate {
	entries := []wire.PlanEntry{}
	for _, t := range list {
		e := wire.PlanEntry{Content: text.Line(t.Text), Priority: wire.PlanEntryPriorityMedium, Status: wire.PlanEntryStatusPending}
		switch t.State {
		case tool.TodoDoing:
			e.Status = wire.PlanEntryStatusInProgress
		case tool.TodoDone:
			e.Status = wire.PlanEntryStatusCompleted
		}
		entries = append(entries, e)
	}
	return wire.UpdatePlan(entries...)
}
