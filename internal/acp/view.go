package acp

import (
	"strings"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// view folds the events of a session into what the client is told. The same events
// tell the same, whether they happen now or are replayed.
type view struct {
	seat *seat
	past bool // what is folded happened before
	// quiet says that the client is told nothing: it knows, or does not want to.
	quiet bool

	seq     uint64
	calls   map[string]*call // that have not ended, by id
	wrote   bool             // text of the reply that is being written was told
	thought bool
	void    bool // what was told of the reply does not count
	title   string
	window  int
	cost    float64
	mode    string
	route   string
	shrinks string // id of the compaction that goes on; empty: none does
}

func newView(st *seat) *view {
	status := st.session.Status()
	return &view{seat: st, calls: map[string]*call{}, mode: status.Mode, route: status.Route, window: st.session.Context().Window}
}

// apply folds one event.
func (v *view) apply(e event.Event) {
	if !e.Transient() {
		if e.Seq <= v.seq {
			return // it is known
		}
		v.seq = e.Seq
	}
	switch b := e.Body.(type) {
	case event.Said:
		v.said(b.Parts, b.By)
	case event.Steered:
		v.said(b.Parts, b.By)
	case event.Titled:
		v.titled(b.Title)
	case event.Asked, event.Delta, event.Replied:
		v.model(e)
	case event.Judged, event.Waiting, event.Started, event.Progress, event.Ended:
		v.call(e)
	case event.Switched:
		v.switched(b)
	case event.Stopped:
		v.stop(b)
	default:
		v.rest(e)
	}
}

// rest folds what is told beside the conversation.
func (v *view) rest(e event.Event) {
	defer v.compacts(e)
	switch b := e.Body.(type) {
	case event.Forked, event.Rewound:
		v.calls = map[string]*call{}
	case event.Compacted:
		v.cost += b.Cost
		v.usage(b.After)
	case event.Kept:
		v.cost += b.Cost
	case event.Returned:
		v.cost += b.Cost
	}
	if why, _, seconds := words.Wait(e.Body); seconds > 0 {
		v.notice(why, true)
		return
	}
	if text, notable := words.Told(e.Body); !v.showsCompaction(e.Body) {
		v.notice(text, notable)
	}
}

func (v *view) tell(u wire.SessionUpdate) {
	if !v.quiet {
		v.seat.agent.update(v.seat.id, u)
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
	_, more := v.seat.agent.capabilities()
	switch text = words.OneLine(text, 1000); {
	case text == "" || v.quiet:
	case !more.notices():
		v.tell(wire.UpdateAgentThoughtText(text + "\n"))
	case !v.past:
		v.seat.agent.notice(v.seat.id, text, notable)
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
	if !v.past && by == "" && v.seat.expected(parts) {
		return
	}
	if by != "" {
		v.tell(wire.UpdateUserMessageText(text.Line(by) + ": "))
	}
	for _, b := range v.seat.spoken(parts) {
		v.tell(wire.UpdateUserMessage(b))
	}
}

func (v *view) titled(title string) {
	if title = words.OneLine(title, 200); title != "" && title != v.title {
		v.title = title
		v.tell(wire.SessionUpdate{SessionInfoUpdate: &wire.SessionSessionInfoUpdate{Title: &title}})
	}
}

// model folds what a model says.
func (v *view) model(e event.Event) {
	switch b := e.Body.(type) {
	case event.Asked:
		v.wrote, v.thought, v.void = false, false, false
	case event.Delta:
		v.delta(b)
	case event.Replied:
		v.replied(b)
		v.usage(b.Usage.Prompt() + b.Usage.Output)
	}
}

// replied tells what of the reply was not told as it came.
func (v *view) replied(b event.Replied) {
	for _, part := range b.Parts {
		switch p := part.(type) {
		case llm.Text:
			if !v.wrote {
				v.message(p.Text)
			}
		case llm.Reasoning:
			if !v.thought && p.Text != "" {
				v.tell(wire.UpdateAgentThoughtText(text.Clean(p.Text)))
			}
		case llm.Call:
			v.called(p)
		}
	}
	v.cost += b.Cost
}

func (v *view) delta(b event.Delta) {
	if b.Void {
		v.void = v.wrote
		v.wrote, v.thought = false, false
	}
	if b.Reasoning != "" {
		v.thought = true
		v.tell(wire.UpdateAgentThoughtText(text.Clean(b.Reasoning)))
	}
	if b.Text != "" {
		if v.void { // what was told can't be taken back
			v.message("\n\n(the reply broke off; it begins again)\n\n")
			v.void = false
		}
		v.wrote = true
		v.message(b.Text)
	}
}

// usage tells how full the context is, and what the session has cost.
func (v *view) usage(used int) {
	if v.window > 0 && used > 0 {
		v.tell(wire.SessionUpdate{UsageUpdate: &wire.SessionUsageUpdate{Used: used, Size: v.window, Cost: &wire.Cost{Amount: v.cost, Currency: "USD"}}})
	}
}

func (v *view) switched(b event.Switched) {
	if b.Window != nil {
		v.window = b.Window.Tokens
	}
	v.seat.mu.Lock()
	if b.Effort != "" {
		v.seat.effort = b.Effort
	}
	v.seat.mu.Unlock()
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
		v.tell(wire.SessionUpdate{CurrentModeUpdate: &wire.SessionCurrentModeUpdate{CurrentModeId: wire.SessionModeId(v.seat.mode())}})
	}
	if other && !v.quiet {
		v.seat.tellOptions()
	}
}

// stop says what the protocol has no word for.
func (v *view) stop(b event.Stopped) {
	if v.shrinks != "" {
		v.compaction("cancelled", "", "")
	}
	clear(v.calls) // each has ended
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
