package managed

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Calls and questions in the fold.

// shownCall is a call in progress as it was emitted.
type shownCall struct {
	event string // id of its event; empty means none was emitted yet
	kind  string // of that event
}

// question is an open question.
type question struct {
	*transcript.Question
	Event  string // id of the event that asks
	Custom bool
	worker bool // a worker answers it
	asks   bool // only after a client has confirmed the call
}

// waits reports whether a client must answer.
func (q question) waits() bool { return !q.worker || q.asks }

// child returns the subagent that asks; empty if the session itself does.
func (q question) child() string {
	if q.Raised == nil {
		return ""
	}
	return q.Raised.Child
}

// parent returns the id of the running call that asks; empty if none does.
func (q question) parent() string {
	switch {
	case q.Raised != nil:
		return q.Raised.Call
	case q.Call.Parent != nil:
		return q.Call.Parent.Call.ID
	}
	return ""
}

// Open returns the question of an event, if it is open.
func (f *Fold) Open(id string) (question, bool) {
	i := slices.IndexFunc(f.open, func(q question) bool { return q.Event == id })
	if i < 0 {
		return question{}, false
	}
	return f.open[i], true
}

// call follows a call from its verdict to its end. A call within another call is only emitted if it asks.
func (f *Fold) call(c *transcript.Call) {
	shown, known := f.calls[c]
	tell := func(action tool.Action) {
		if shown.event == "" && c.Parent == nil {
			shown = f.tell(c.Call, action, "")
		}
	}
	switch c.State {
	case transcript.Made:
		f.calls[c] = shown
	case transcript.Judged:
		if c.Judged.Action != tool.Ask {
			tell(c.Judged.Action)
		}
		f.calls[c] = shown
	case transcript.Over:
		if !known {
			return
		}
		delete(f.calls, c)
		tell(tool.Deny) // it was invalid from the start
		f.ended(shown, c.Ended)
	}
}

func (f *Fold) custom(name string) bool { return slices.Contains(f.Custom, name) }

// tell emits the event of a call. Thread is that of the subagent whose call it is.
func (f *Fold) tell(c llm.Call, action tool.Action, thread string) shownCall {
	name, input := theirs(c.Name, c.Args)
	fields := map[string]any{"name": name, "input": input}
	if thread != "" {
		fields["session_thread_id"] = thread
	}
	if f.custom(c.Name) {
		return shownCall{f.add("agent.custom_tool_use", fields), "agent.custom_tool_use"}
	}
	kind := "agent.tool_use"
	if server, of := f.server(c.Name); server != "" {
		kind = "agent.mcp_tool_use"
		fields["mcp_server_name"], fields["name"] = server, of
	}
	fields["evaluated_permission"] = string(action)
	if action != tool.Deny {
		fields["evaluation"] = map[string]any{"type": "always_" + string(action)}
	}
	return shownCall{f.add(kind, fields), kind}
}

// server returns the MCP server of a tool, and the server's name of the tool.
func (f *Fold) server(name string) (server, of string) {
	for _, s := range f.Servers {
		if of, is := strings.CutPrefix(name, "mcp__"+s+"__"); is {
			return s, of
		}
	}
	return "", ""
}

// ended emits the result of a call, if the call was emitted.
func (f *Fold) ended(c shownCall, b event.Ended) {
	failed := b.Outcome != event.OutcomeOK
	switch c.kind {
	case "", "agent.custom_tool_use", resultType: // in the latter two, the client has sent the result, and knows it
	case "agent.mcp_tool_use":
		f.add("agent.mcp_tool_result", map[string]any{"mcp_tool_use_id": c.event, "content": blocks(b.Parts), "is_error": failed})
	default:
		f.add("agent.tool_result", map[string]any{"tool_use_id": c.event, "content": blocks(b.Parts), "is_error": failed})
	}
}

// question emits a question: of a subagent, of a running call, or about a call, which may ask again. Once it is
// closed, it emits the answer.
func (f *Fold) question(q *transcript.Question) {
	at := slices.IndexFunc(f.open, func(o question) bool { return o.Question == q })
	switch {
	case q.Closed && at < 0:
	case q.Closed:
		was := f.open[at]
		if f.open = slices.Delete(f.open, at, at+1); q.Answer != nil {
			f.answered(was, *q.Answer)
		}
	case q.Raised != nil:
		thread := ""
		if q.Raised.Child != "" {
			thread = threadPrefix + q.Raised.Child
		}
		shown := f.tell(llm.Call{Name: q.Raised.Tool, Args: q.Raised.Args}, tool.Ask, thread)
		f.open = append(f.open, question{Question: q, Event: shown.event, Custom: f.custom(q.Raised.Tool)})
	default:
		asked := question{Question: q, Custom: f.custom(q.Call.Call.Name)}
		f.calls[q.Call] = f.tell(q.Call.Call, f.hand(&asked), "")
		asked.Event = f.calls[q.Call].event
		f.open = append(f.open, asked)
	}
}

func (f *Fold) answered(q question, b event.Decided) {
	fields := map[string]any{}
	if q.child() != "" {
		fields["session_thread_id"] = threadPrefix + q.child()
	}
	switch {
	case b.Rule != "":
	case q.Custom:
		said, failed := server.Answered(b.Answer)
		if !b.Allow {
			said, failed = b.Reason, true
		}
		fields["custom_tool_use_id"], fields["content"], fields["is_error"] = q.Event, blocks(llm.Say(said)), failed
		f.add("user.custom_tool_result", fields)
	case q.worker && b.Allow:
		said, failed := server.Answered(b.Answer)
		fields["tool_use_id"], fields["content"], fields["is_error"] = q.Event, blocks(llm.Say(said)), failed
		f.add(resultType, fields)
		f.calls[q.Call] = shownCall{q.Event, resultType}
	default:
		fields["tool_use_id"], fields["result"] = q.Event, "allow"
		if !b.Allow {
			fields["result"] = "deny"
			if b.Reason != "" {
				fields["deny_message"] = b.Reason
			}
		}
		f.add("user.tool_confirmation", fields)
	}
}
