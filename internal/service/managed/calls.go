package managed

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Calls and questions in the fold.

// called follows a call from its verdict to its end.
func (f *Fold) called(body event.Body) {
	switch b := body.(type) {
	case event.Judged:
		c := f.calls[b.Call]
		if c == nil {
			c = &call{}
			f.calls[b.Call] = c
		}
		c.parent = b.Parent
		if b.Tool != "" {
			c.name = b.Tool
		}
		if len(b.Args) > 0 {
			c.args = b.Args
		}
		if b.Action != tool.Ask {
			delete(f.unjudged, b.Call)
			f.tell(b.Call, b.Action, "")
		}
	case event.Waiting:
		delete(f.unjudged, b.Call)
		if c := f.calls[b.Call]; c != nil {
			c.event = "" // it may ask again
			q := question{ID: b.Call, Seq: f.seq, Custom: f.custom(c), parent: c.parent, call: true}
			f.tell(b.Call, f.hand(c, &q), "")
			q.Event = c.event
			f.open = append(f.open, q)
		}
	case event.Started:
		f.running[b.Call] = true
	case event.Ended:
		f.ended(b)
	}
}

func (f *Fold) custom(c *call) bool { return slices.Contains(f.Custom, c.name) }

// tell emits the event of a call. A call within another call gets one only if it asks.
func (f *Fold) tell(id string, action tool.Action, thread string) {
	c := f.calls[id]
	if c == nil || c.event != "" || c.parent != "" && action != tool.Ask {
		return
	}
	name, input := theirs(c.name, c.args)
	fields := map[string]any{"name": name, "input": input}
	if thread != "" {
		fields["session_thread_id"] = thread
	}
	kind := "agent.tool_use"
	server, of := f.server(c.name)
	switch {
	case f.custom(c):
		c.event, c.kind = f.add("agent.custom_tool_use", fields), "agent.custom_tool_use"
		return
	case server != "":
		kind = "agent.mcp_tool_use"
		fields["mcp_server_name"], fields["name"] = server, of
	}
	fields["evaluated_permission"] = string(action)
	if action != tool.Deny {
		fields["evaluation"] = map[string]any{"type": "always_" + string(action)}
	}
	c.event, c.kind = f.add(kind, fields), kind
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

func (f *Fold) ended(b event.Ended) {
	delete(f.unjudged, b.Call)
	delete(f.running, b.Call)
	f.close(func(q question) bool { return q.ID == b.Call })
	f.tell(b.Call, tool.Deny, "") // it was invalid from the start
	c := f.calls[b.Call]
	if c == nil || c.event == "" {
		return
	}
	delete(f.calls, b.Call)
	failed := b.Outcome != event.OutcomeOK
	switch c.kind {
	case "agent.custom_tool_use", resultType: // the client has sent the result, and knows it
	case "agent.mcp_tool_use":
		f.add("agent.mcp_tool_result", map[string]any{"mcp_tool_use_id": c.event, "content": blocks(b.Parts), "is_error": failed})
	default:
		f.add("agent.tool_result", map[string]any{"tool_use_id": c.event, "content": blocks(b.Parts), "is_error": failed})
	}
}

// close removes questions that are no longer open.
func (f *Fold) close(over func(question) bool) { f.open = slices.DeleteFunc(f.open, over) }

func (f *Fold) decided(b event.Decided) {
	for _, q := range slices.Clone(f.open) {
		if b.On(q.ID, q.Seq) || q.call && b.OnCall(q.ID, q.parent, q.Seq) {
			f.close(func(o question) bool { return o.Seq == q.Seq })
			f.answered(q, b)
		}
	}
}

func (f *Fold) answered(q question, b event.Decided) {
	fields := map[string]any{}
	if q.child != "" {
		fields["session_thread_id"] = threadPrefix + q.child
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
		if c := f.calls[q.ID]; c != nil {
			c.kind = resultType
		}
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

// raised passes on the question of a subagent, or of a running call.
func (f *Fold) raised(b event.Raised) {
	i := slices.IndexFunc(f.open, func(q question) bool { return q.ID == b.ID })
	if i >= 0 {
		f.open = slices.Delete(f.open, i, i+1)
	}
	id, thread := "raised/"+b.ID, ""
	if b.Child != "" {
		thread = threadPrefix + b.Child
	}
	f.calls[id] = &call{name: b.Tool, args: b.Args}
	f.tell(id, tool.Ask, thread)
	c := f.calls[id]
	f.open = append(f.open, question{Event: c.event, ID: b.ID, Seq: f.seq, Custom: f.custom(c), child: b.Child, parent: b.Call})
}
