package acp

import (
	"encoding/json"
	"path/filepath"
	"time"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const (
	maxShown = 32 << 10 // bytes of text of one call
	maxInput = 1 << 20  // bytes of arguments that are passed on

	progressEvery = 100 * time.Millisecond // of one call, at most
)

// shownCall is the state of a running call as the client knows it.
type shownCall struct {
	at time.Time // of its last output
	// terminal is the client's terminal that it runs in, once the client knows; empty if none.
	terminal string
}

// description describes a call in the terms of the protocol.
type description struct {
	title     string
	kind      wire.ToolKind
	locations []wire.ToolCallLocation
	input     any
}

// describe describes a call. The effects are those it was judged by, if it was.
func describe(c llm.Call, effects []tool.Effect) description {
	d := description{title: words.OneLine(c.Name+" "+words.Subject(c), 200), kind: kindOf(c.Name, effects)}
	if len(c.Args) <= maxInput && json.Valid(c.Args) {
		d.input = c.Args
	}
	line := lineOf(c)
	for _, e := range effects {
		if e.Kind != tool.Read && e.Kind != tool.Write || !filepath.IsAbs(e.Path) || len(d.locations) == 20 {
			continue
		}
		d.locations = append(d.locations, wire.ToolCallLocation{Path: e.Path, Line: line})
		line = nil // the line belongs to the first
	}
	return d
}

// lineOf returns the line that a call is about, from its arguments.
func lineOf(c llm.Call) *int {
	var args struct {
		Offset int `json:"offset"`
		First  int `json:"first_line"`
		Line   int `json:"line"`
	}
	_ = json.Unmarshal(c.Args, &args) // other calls have none
	for _, n := range []int{args.Offset, args.First, args.Line} {
		if n > 0 {
			return &n
		}
	}
	return nil
}

// kindOf returns the icon for a tool: ours by name, others by their effects.
func kindOf(name string, effects []tool.Effect) wire.ToolKind {
	switch name {
	case "read_file", "view_image", "list_files", "history":
		return wire.ToolKindRead
	case "edit_file", "edit_lines", "write_file", "notebook_edit":
		return wire.ToolKindEdit
	case "delete_file":
		return wire.ToolKindDelete
	case "search_files", "find_files", "tool_search", "web_search", "lsp":
		return wire.ToolKindSearch
	case "bash", "git", "jobs":
		return wire.ToolKindExecute
	case "web_fetch", "http_request":
		return wire.ToolKindFetch
	case "todo", "ask_user", "memory", "skill":
		return wire.ToolKindThink
	}
	kinds := map[tool.EffectKind]wire.ToolKind{
		tool.Execute: wire.ToolKindExecute, tool.Write: wire.ToolKindEdit, tool.Network: wire.ToolKindFetch, tool.Read: wire.ToolKindRead,
	}
	for _, e := range effects {
		if kind, ok := kinds[e.Kind]; ok {
			return kind
		}
	}
	return wire.ToolKindOther
}

// call reports the progress of a call.
func (v *view) call(e event.Event, c *transcript.Call) {
	switch {
	case c.State == transcript.Made:
		v.newCall(c)
	case c.State == transcript.Judged:
		if c.Parent != nil { // no reply has mentioned it
			v.newCall(c)
		}
		d := describe(c.Call, c.Judged.Effects)
		v.updateCall(c, wire.SessionToolCallUpdate{Title: &d.title, Kind: &d.kind, Locations: d.locations, RawInput: d.input})
	case c.State == transcript.Waiting:
		v.updateCall(c, wire.SessionToolCallUpdate{Content: previewContent(c.Question.Preview, c.Effects(), v.session.root)})
	case c.State == transcript.Running && c.Latest == "":
		v.updateCall(c, wire.SessionToolCallUpdate{Status: wire.Ptr(wire.ToolCallStatusInProgress)})
	case c.State == transcript.Over:
		v.endCall(c)
	default:
		v.progress(e, c)
	}
}

// newCall reports a new call.
func (v *view) newCall(c *transcript.Call) {
	d := describe(c.Call, nil)
	v.report(wire.SessionUpdate{ToolCall: &wire.SessionUpdateToolCall{
		ToolCallId: wire.ToolCallId(c.Call.ID), Title: d.title, Kind: d.kind, Status: wire.ToolCallStatusPending, RawInput: d.input,
	}})
}

// updateCall reports a change of a call.
func (v *view) updateCall(c *transcript.Call, u wire.SessionToolCallUpdate) {
	u.ToolCallId = wire.ToolCallId(c.Call.ID)
	v.report(wire.SessionUpdate{ToolCallUpdate: &u})
}

// progress shows the end of a running call's output.
func (v *view) progress(e event.Event, c *transcript.Call) {
	shown := v.calls[c]
	if shown == nil {
		shown = &shownCall{}
		v.calls[c] = shown
	}
	if shown.terminal != "" {
		return // the terminal shows it as it happens
	}
	if shown.terminal = v.session.terminal(c.Call.ID); shown.terminal != "" {
		v.updateCall(c, wire.SessionToolCallUpdate{Content: []wire.ToolCallContent{wire.ToolTerminalRef(shown.terminal)}})
		return
	}
	if e.Time.Sub(shown.at) < progressEvery {
		return // no one reads faster, and the next update includes it
	}
	shown.at = e.Time
	v.updateCall(c, wire.SessionToolCallUpdate{Content: []wire.ToolCallContent{textContent(text.Fenced("", words.Result(c.Printed())))}})
}

func (v *view) endCall(c *transcript.Call) {
	b := c.Ended
	delete(v.calls, c)
	status := wire.ToolCallStatusCompleted
	if words.Failed(b) != "" {
		status = wire.ToolCallStatusFailed
	}
	data := map[string]any{"outcome": string(b.Outcome)} // for programs
	if b.Exit != nil {
		data["exit"] = *b.Exit
	}
	u := wire.SessionToolCallUpdate{Status: &status, Content: v.result(c), RawOutput: data}
	for _, f := range b.Files {
		line := lineOf(c.Call)
		if hunks, _ := parseHunks(f.Diff); len(hunks) > 0 {
			line = &hunks[0].line
		}
		if len(u.Locations) < 20 {
			u.Locations = append(u.Locations, wire.ToolCallLocation{Path: f.Path, Line: line})
		}
	}
	v.updateCall(c, u)
	if b.Todo != nil {
		v.report(plan(b.Todo))
	}
}

// result returns the result of a call: its changes if it made any, otherwise its text and images, and its text
// for the person. Output in a terminal is not repeated, unless there is more to say than how the command ended.
func (v *view) result(c *transcript.Call) []wire.ToolCallContent {
	b := c.Ended
	var out []wire.ToolCallContent
	for _, f := range b.Files {
		if f.Written && f.Diff != "" {
			out = append(out, diffContent(f.Diff, func(string) string { return f.Path })...)
		}
	}
	terminal := v.session.terminal(b.Call)
	if terminal != "" {
		out = append(out, wire.ToolTerminalRef(terminal))
	}
	if len(out) == 0 || b.Outcome != event.OutcomeOK && (terminal == "" || b.Exit == nil) {
		if shown := words.Result(b.Parts.Text()); shown != "" {
			head, tail, dropped := text.CutMiddle(shown, maxShown)
			if dropped > 0 {
				shown = head + "\n…\n" + tail
			}
			if kindOf(c.Call.Name, c.Effects()) != wire.ToolKindThink {
				shown = text.Fenced("", shown)
			}
			out = append(out, textContent(shown))
		}
	}
	for _, part := range b.Parts {
		if image, ok := part.(llm.Image); ok {
			out = append(out, wire.ToolContent(v.session.image(image)))
		}
	}
	if b.Show != "" {
		out = append(out, textContent(text.Clean(b.Show)))
	}
	return out
}
