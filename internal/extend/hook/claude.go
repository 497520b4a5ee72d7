package hook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// claude is the protocol of Claude Code.
type claude struct {
	event string
	log   func(session string) string
}

// event returns the Claude Code event for a hook at a point.
func (c Config) event(p tool.Point) string {
	if p.Moment == tool.RunStop && c.Kind != "" {
		return "SubagentStop" // Claude Code's name for the Stop of a subagent
	}
	if c.Event != "" {
		return c.Event
	}
	if p.Moment == tool.AfterCall && failed(p) {
		return "PostToolUseFailure"
	}
	for _, e := range events() {
		if e.moment == p.Moment {
			return e.name
		}
	}
	return ""
}

// failed reports whether a call counts as failed in Claude Code, as a command with a nonzero exit code does.
func failed(p tool.Point) bool {
	return p.Failed != "" || p.Result != nil && p.Result.Exit != nil && *p.Result.Exit != 0
}

// ClaudeMode returns the most similar permission mode of Claude Code.
func ClaudeMode(mode tool.Mode) string {
	switch mode {
	case "plan", "auto":
		return string(mode)
	case "edit":
		return "acceptEdits"
	case "yolo":
		return "bypassPermissions"
	}
	return "default"
}

// claudeWhy returns the text that a matcher is compared with at points without a call.
func claudeWhy(p tool.Point, event string) string {
	switch p.Moment {
	case tool.SessionStart:
		if p.Why == "resumed" {
			return "resume"
		}
		return "startup"
	case tool.BeforeCompact, tool.AfterCompact:
		if event == "SessionStart" {
			return "compact"
		}
		if p.Why == "asked" {
			return "manual"
		}
		return "auto"
	case tool.SessionEnd:
		return "other"
	}
	return p.Why
}

func (w claude) say(p tool.Point) ([]byte, error) {
	lead := cmp.Or(p.Who.Lead, p.Session)
	in := map[string]any{
		"session_id": lead, "transcript_path": w.path(lead), "cwd": p.Root,
		"permission_mode": ClaudeMode(p.Mode), "hook_event_name": w.event,
	}
	if p.Who.Parent != "" {
		in["agent_id"], in["agent_type"] = p.Session, p.Who.Kind
	}
	why := claudeWhy(p, w.event)
	switch w.event {
	case "PreToolUse", "PostToolUse", "PostToolUseFailure":
		if err := sayCall(in, p, w.event); err != nil {
			return nil, err
		}
	case "UserPromptSubmit":
		in["prompt"] = p.Text
	case "SessionStart":
		in["source"] = why
	case "SessionEnd":
		in["reason"] = why
	case "PreCompact":
		in["trigger"], in["custom_instructions"] = why, p.Text
	case "PostCompact":
		in["trigger"], in["compact_summary"] = why, p.Text
	case "TeammateIdle":
		in["teammate_name"] = p.Who.Name
	case "TaskCompleted":
		in["task_id"], in["task_subject"] = p.Why, p.Text
		if p.Who.Name != "" {
			in["teammate_name"] = p.Who.Name
		}
	case "Stop", "SubagentStop":
		in["stop_hook_active"], in["last_assistant_message"] = p.Rounds > 0, p.Text
	}
	if w.event == "SubagentStop" {
		in["agent_transcript_path"] = w.path(p.Session)
	}
	return encode(in)
}

// path returns the path of a session's log; empty if unknown.
func (w claude) path(session string) string {
	if w.log == nil {
		return ""
	}
	return w.log(session)
}

func sayCall(in map[string]any, p tool.Point, event string) error {
	if p.Call == nil {
		return errors.New("there is no call to report")
	}
	name, args, err := input(p.Call)
	if err != nil {
		return err
	}
	in["tool_name"], in["tool_input"], in["tool_use_id"] = name, args, p.Call.ID
	if p.Call.Cwd != "" {
		in["cwd"] = p.Call.Cwd
	}
	text := ""
	if p.Result != nil {
		text = printed(p.Result)
	}
	switch event {
	case "PostToolUse":
		in["tool_response"] = response(p.Call, args, text)
	case "PostToolUseFailure":
		in["error"], in["is_interrupt"] = failure(p, text), false
	}
	return nil
}

// printed returns the text of a result. For a command it is the output alone, without the lines that inspan adds.
func printed(res *tool.Result) string {
	text := res.Parts.Text()
	if res.Exit == nil {
		return text
	}
	end := strings.LastIndex("\n"+text, fmt.Sprintf("\n[exit code %d", *res.Exit))
	if end < 0 {
		return text
	}
	text = strings.TrimSuffix(text[:end], "[no output]\n")
	for {
		rest := strings.TrimSuffix(text, "\n")
		last := rest[strings.LastIndexByte(rest, '\n')+1:]
		if !strings.HasPrefix(last, "[the sandbox ") && !strings.HasSuffix(last, "; the network argument of a call asks for it]") {
			return text
		}
		text = strings.TrimSuffix(rest, last)
	}
}

func failure(p tool.Point, text string) string {
	switch {
	case p.Failed != "":
		return p.Failed
	case p.Result != nil && p.Result.Exit != nil:
		return fmt.Sprintf("Exit code %d\n%s", *p.Result.Exit, text)
	}
	return text
}

func (w claude) plain(tool.Moment) bool {
	return w.event == "SessionStart" || w.event == "UserPromptSubmit" || w.event == "PreCompact"
}

// claudeReply is the output of a hook of Claude Code. Other fields are ignored, since many of them mean nothing
// outside of Claude Code.
type claudeReply struct {
	Continue *bool  `json:"continue"`
	Stop     string `json:"stopReason"`
	System   string `json:"systemMessage"`
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
	Specific struct {
		Event    string          `json:"hookEventName"`
		Decision string          `json:"permissionDecision"`
		Reason   string          `json:"permissionDecisionReason"`
		Input    json.RawMessage `json:"updatedInput"`
		Context  string          `json:"additionalContext"`
		Output   json.RawMessage `json:"updatedToolOutput"`
		MCP      json.RawMessage `json:"updatedMCPToolOutput"`
	} `json:"hookSpecificOutput"`
}

func (w claude) hear(data []byte, p tool.Point) (out tool.Outcome, note string, err error) {
	r, err := decode[claudeReply](data)
	if err != nil {
		return out, "", fmt.Errorf("its answer is not valid output of a Claude Code hook: %w", err)
	}
	if e := r.Specific.Event; e != "" && e != w.event {
		return out, "", fmt.Errorf("its answer is for %s, not for %s", e, w.event)
	}
	out, note, err = r.decide(p)
	if err != nil {
		return tool.Outcome{}, "", err
	}
	if w.takesContext() {
		out.Text = joined(out.Text, text.Printed(r.Specific.Context))
	}
	if r.Continue != nil && !*r.Continue {
		out, note = halted(p.Moment, text.Printed(r.Stop))
	}
	return out, joined(note, text.Printed(r.System)), nil
}

// takesContext reports whether additionalContext means something at the event.
func (w claude) takesContext() bool {
	switch w.event {
	case "Stop", "SubagentStop", "SessionEnd", "PreCompact", "PostCompact", "TeammateIdle", "TaskCompleted":
		return false
	}
	return true
}

// decide reads the fields that depend on the moment.
func (r claudeReply) decide(p tool.Point) (out tool.Outcome, note string, err error) {
	switch p.Moment {
	case tool.BeforeCall:
		out, err = r.verdict(p.Call)
		return out, "", err
	case tool.AfterCall:
		if raw := given(r.Specific.Output, r.Specific.MCP); raw != nil {
			out.Result = replaced(p.Result, responded(raw))
		}
	}
	switch r.Decision {
	case "", "approve":
	case "block":
		blocked, note := block(p.Moment, text.Printed(r.Reason))
		blocked.Result = out.Result
		return blocked, note, nil
	default:
		return out, "", fmt.Errorf("its decision is %q, not block", r.Decision)
	}
	return out, "", nil
}

// verdict returns the hook's verdict on a call. The fields at the top level are the older form.
func (r claudeReply) verdict(c *tool.Call) (out tool.Outcome, err error) {
	decision, reason := r.Specific.Decision, r.Specific.Reason
	if decision == "" {
		decision = r.Decision
	}
	if reason == "" {
		reason = r.Reason
	}
	switch out.Reason = text.Printed(reason); decision {
	case "", "defer":
	case "allow", "approve":
		out.Action = tool.Allow
	case "ask":
		out.Action = tool.Ask
	case "deny", "block":
		out, _ = block(tool.BeforeCall, out.Reason)
	default:
		return out, fmt.Errorf("its decision is %q, not allow, ask or deny", decision)
	}
	changed, err := object(r.Specific.Input)
	if err == nil && changed != nil && out.Action != tool.Deny {
		out.Args, err = arguments(c, changed)
	}
	return out, err
}

// halted returns the outcome of a hook that wants everything to stop. Where it can't end a run, the model is
// asked to stop.
func halted(m tool.Moment, why string) (out tool.Outcome, note string) {
	if why == "" {
		why = "a hook stops the work here"
	}
	switch m {
	case tool.PromptSaid, tool.BeforeCall, tool.BeforeCompact, tool.TaskCompleted:
		return block(m, why)
	case tool.AfterCall:
		return tool.Outcome{Text: "End your turn now, and tell the person why: " + why}, why
	}
	return out, why
}

// given returns the first value that is set.
func given(list ...json.RawMessage) json.RawMessage {
	for _, raw := range list {
		if raw != nil && string(raw) != "null" {
			return raw
		}
	}
	return nil
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
