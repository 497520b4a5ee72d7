package acp

import (
	"fmt"
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

// view reports the transcript of a session to the client. The reports depend on the events alone, whether they
// happen now or are replayed.
type view struct {
	session *session
	fold    transcript.Fold
	past    bool // the folded events happened before
	// quiet suppresses the reports: the client knows the events already, or does not want them.
	quiet bool

	asked uint64 // event of the last request to the model
	of    string // id of the message that text belongs to, the same when it is replayed

	reply   reply
	void    bool // the reported text of the last reply does not count
	calls   map[*transcript.Call]*shownCall
	title   string
	mode    tool.Mode
	route   string
	shrinks string // id of the compaction in progress; empty if none
}

// reply is how much of a reply was reported as it arrived, in bytes.
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

// apply reports the effect of one event.
func (v *view) apply(e event.Event) {
	if _, asked := e.Body.(event.Asked); asked {
		v.asked = e.Seq
	}
	for _, item := range v.fold.Apply(e) {
		v.of = text.UUID(fmt.Sprint(v.session.id, " event ", e.Seq))
		switch i := item.(type) {
		case *transcript.Said:
			if i.Seq == e.Seq { // otherwise it was reported when it was said
				v.reportMessage(i.Parts, i.By)
			}
		case *transcript.Reply:
			v.of = text.UUID(fmt.Sprint(v.session.id, " reply ", v.asked))
			v.reportReply(i)
		case *transcript.Call:
			v.call(e, i)
		case *transcript.Note:
			v.reportNote(e, i)
		case *transcript.Wait:
			v.notice(i.Why, true)
		case *transcript.Child:
			v.reportChild(i)
		case *transcript.Stop:
			v.reportStop(i.Stopped)
		}
	}
}

// reportNote reports something outside the conversation.
func (v *view) reportNote(e event.Event, n *transcript.Note) {
	switch b := n.Of.(type) {
	case event.Titled:
		v.reportTitle(b.Title)
	case event.Switched:
		v.reportSwitch(b)
	default:
		if _, compacted := b.(event.Compacted); compacted {
			v.reportUsage()
		}
		if !v.showsCompaction(n.Of) {
			v.notice(n.Text, n.Notice)
		}
		v.compacts(e, n)
	}
}

func (v *view) reportChild(c *transcript.Child) {
	text, notable := words.Told(c.Last())
	v.notice(text, notable)
}

func (v *view) report(u wire.SessionUpdate) {
	if !v.quiet {
		v.session.agent.update(v.session.id, u)
	}
}

// reportText reports a piece of a message, with the id of the message.
func (v *view) reportText(u wire.SessionUpdate) {
	of := v.of
	switch {
	case u.AgentMessageChunk != nil:
		u.AgentMessageChunk.MessageId = &of
	case u.AgentThoughtChunk != nil:
		u.AgentThoughtChunk.MessageId = &of
	case u.UserMessageChunk != nil:
		u.UserMessageChunk.MessageId = &of
	}
	v.report(u)
}

// message reports text as the agent's own words.
func (v *view) message(s string) {
	if s = text.Clean(s); s != "" {
		v.reportText(wire.UpdateAgentMessageText(s))
	}
}

// notice reports something outside the conversation. Clients without a place for notices get it as a thought.
// Notices are momentary: they are not replayed.
func (v *view) notice(text string, notable bool) {
	_, more := v.session.agent.capabilities()
	switch text = words.OneLine(text, 1000); {
	case text == "" || v.quiet:
	case !more.notices():
		v.reportText(wire.UpdateAgentThoughtText(text + "\n"))
	case !v.past:
		v.session.agent.notice(v.session.id, text, notable)
	}
}

// notice sends the client a notice, if it has a place for it.
func (a *agent) notice(id, text string, notable bool) {
	if _, more := a.capabilities(); !more.notices() {
		return
	}
	severity := map[bool]string{true: "warning", false: "info"}[notable]
	a.notify(wire.ClientMethodSessionUpdate, rawUpdate{id, notice{"notice", severity, words.OneLine(text, 1000)}})
}

// reportMessage reports a person's message, unless the client sent it.
func (v *view) reportMessage(parts llm.Parts, by string) {
	if by == loop.By {
		v.notice(words.ToldModel(parts.Text()), false)
		return
	}
	if v.title == "" {
		v.reportTitle(words.OneLine(parts.Text(), 100))
	}
	if !v.past && by == "" && v.session.isEcho(parts) {
		return
	}
	if by != "" {
		v.reportText(wire.UpdateUserMessageText(text.Line(by) + ": "))
	}
	for _, part := range parts {
		switch p := part.(type) {
		case llm.Text:
			v.reportText(wire.UpdateUserMessageText(text.Clean(p.Text)))
		case llm.Image:
			v.reportText(wire.UpdateUserMessage(v.session.image(p)))
		}
	}
}

func (v *view) reportTitle(title string) {
	if title = words.OneLine(title, 200); title != "" && title != v.title {
		v.title = title
		v.report(wire.SessionUpdate{SessionInfoUpdate: &wire.SessionSessionInfoUpdate{Title: &title}})
	}
}

// reportReply reports the new part of a reply.
func (v *view) reportReply(r *transcript.Reply) {
	if v.reply.of != r {
		v.reply = reply{of: r}
	}
	switch r.State {
	case transcript.Void:
		v.void = v.void || v.reply.text > 0
		return
	case transcript.Written:
		v.reportThought(r.Thought[v.reply.thought:])
		v.reportWords(r.Text[v.reply.text:])
		v.reply.text, v.reply.thought = len(r.Text), len(r.Thought)
		return
	}
	for _, part := range r.Parts { // parts that were not reported as they arrived
		switch p := part.(type) {
		case llm.Text:
			if v.reply.text == 0 {
				v.reportWords(p.Text)
			}
		case llm.Reasoning:
			if v.reply.thought == 0 {
				v.reportThought(p.Text)
			}
		}
	}
	v.void = false
	v.reportUsage()
}

func (v *view) reportThought(s string) {
	if s != "" {
		v.reportText(wire.UpdateAgentThoughtText(text.Clean(s)))
	}
}

// reportWords reports the model's words.
func (v *view) reportWords(s string) {
	if s != "" && v.void { // reported text can't be taken back
		v.message("\n\n(the reply broke off; it begins again)\n\n")
		v.void = false
	}
	v.message(s)
}

// reportUsage reports how full the context is, and the cost of the session.
func (v *view) reportUsage() {
	used, size := v.fold.Spent.Prompt.Prompt()+v.fold.Spent.Prompt.Output, v.fold.Session.Window
	if size > 0 && used > 0 {
		v.report(wire.SessionUpdate{UsageUpdate: &wire.SessionUsageUpdate{
			Used: used, Size: size,
			Cost: &wire.Cost{Amount: v.fold.Spent.Cost, Currency: "USD"},
		}})
	}
}

func (v *view) reportSwitch(b event.Switched) {
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
		return // the response says what applies
	}
	if changed {
		v.report(wire.SessionUpdate{CurrentModeUpdate: &wire.SessionCurrentModeUpdate{CurrentModeId: wire.SessionModeId(v.session.mode())}})
	}
	if other && !v.quiet {
		v.session.tellOptions()
	}
}

// reportStop reports reasons that the protocol has no word for.
func (v *view) reportStop(b event.Stopped) {
	if v.shrinks != "" {
		v.compaction("cancelled", "", "")
	}
	clear(v.calls) // all of them have ended
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

// plan returns the to-do list in the protocol's form.
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
