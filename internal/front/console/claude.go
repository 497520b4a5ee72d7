package console

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
)

// claude writes the lines that wrappers of Claude Code read: system/init, then assistant and user during the
// run, then result.
type claude struct {
	status  func() inspan.Status
	write   func(any) error
	began   time.Time
	asked   time.Time
	asking  time.Duration // time that the model took
	servers []event.Server
	opened  bool
}

// fields is a JSON object.
type fields map[string]any

// event writes the lines for one event.
func (c *claude) event(e event.Event, items []transcript.Item) error {
	if _, asked := e.Body.(event.Asked); asked {
		c.asked = e.Time
		return c.init()
	}
	for _, item := range items {
		var err error
		switch i := item.(type) {
		case *transcript.Note:
			if served, ok := i.Of.(event.Served); ok {
				c.servers = served.Servers
			}
		case *transcript.Reply:
			err = c.replied(e, i)
		case *transcript.Call:
			err = c.ended(i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *claude) replied(e event.Event, r *transcript.Reply) error {
	content := contentOf(r.Parts)
	if r.State != transcript.Whole {
		return nil
	}
	c.asking += e.Time.Sub(c.asked)
	if len(content) == 0 {
		return nil
	}
	return c.message("assistant", fields{
		"id": fmt.Sprintf("msg_%s_%d", e.Session, e.Seq), "type": "message", "role": "assistant", "model": r.Route, "content": content,
		"stop_reason": nil, "stop_sequence": nil, "usage": usageOf(r.Usage),
	})
}

func (c *claude) ended(call *transcript.Call) error {
	if call.State != transcript.Over || call.Parent != nil { // the model sees none of those
		return nil
	}
	b := call.Ended
	return c.message("user", fields{"role": "user", "content": []any{fields{
		"type": "tool_result", "tool_use_id": b.Call, "content": text.Clean(b.Parts.Text()), "is_error": b.Outcome != event.OutcomeOK,
	}}})
}

// init writes the session's properties once.
func (c *claude) init() error {
	if c.opened {
		return nil
	}
	c.opened = true
	st := c.status()
	servers := []any{}
	for _, s := range c.servers {
		state := map[string]string{"ready": "connected", "connecting": "pending", "login": "needs-auth"}[s.State]
		if state == "" {
			state = "failed"
		}
		servers = append(servers, fields{"name": s.Name, "status": state})
	}
	return c.write(fields{
		"type": "system", "subtype": "init", "session_id": st.Session, "cwd": st.Root, "model": st.Route, "permissionMode": hook.ClaudeMode(st.Mode),
		"apiKeySource": "none",
		"tools":        append([]string{}, st.Tools...), "mcp_servers": servers, "slash_commands": []string{},
	})
}

func (c *claude) message(kind string, message fields) error {
	return c.write(fields{"type": kind, "message": message, "parent_tool_use_id": nil, "session_id": c.status().Session})
}

// contentOf returns a model's words as blocks.
func contentOf(parts llm.Parts) []any {
	var out []any
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			out = append(out, fields{"type": "text", "text": p.Text})
		case llm.Reasoning:
			if p.Text != "" {
				out = append(out, fields{"type": "thinking", "thinking": p.Text, "signature": ""})
			}
		case llm.Call:
			var input any = p.Args
			if !json.Valid(p.Args) {
				input = fields{}
			}
			out = append(out, fields{"type": "tool_use", "id": p.ID, "name": p.Name, "input": input})
		}
	}
	return out
}

func usageOf(u llm.Usage) fields {
	return fields{
		"input_tokens": u.Input, "cache_creation_input_tokens": u.CacheWrite,
		"cache_read_input_tokens": u.CacheRead, "output_tokens": u.Output,
	}
}

// result writes the last line of a run.
func (c *claude) result(r Result) error {
	subtype := map[string]string{
		string(event.ReasonDone): "success", "denied": "success", string(event.ReasonMaxTurns): "error_max_turns",
		string(event.ReasonBudget): "error_max_budget_usd", string(event.ReasonRate): "error_max_budget_usd",
	}[r.Reason]
	if subtype == "" {
		subtype = "error_during_execution"
	}
	denials := []any{}
	for _, d := range r.Denials {
		denials = append(denials, fields{"tool_name": d.Tool, "tool_use_id": d.Call, "tool_input": d.args})
	}
	line := fields{
		"type": "result", "subtype": subtype, "is_error": subtype != "success", "session_id": r.Session, "num_turns": r.Turns,
		"total_cost_usd": r.Cost,
		"duration_ms":    time.Since(c.began).Milliseconds(), "duration_api_ms": c.asking.Milliseconds(), "usage": usageOf(r.Usage),
		"permission_denials": denials,
	}
	if r.Structured != nil {
		line["structured_output"] = r.Structured
	}
	if len(r.Unmerged) > 0 {
		line["unmerged"] = r.Unmerged
	}
	if line["result"] = r.Text; subtype != "success" {
		line["result"], line["errors"] = strings.TrimSpace(r.Text+"\n"+r.Detail), []string{r.Detail}
	}
	return c.write(line)
}
