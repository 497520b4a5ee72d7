package acp

import (
	"encoding/json"
	"path/filepath"
	"time"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const (
	maxShown = 32 << 10 // bytes of text of one call
	maxInput = 1 << 20  // bytes of arguments that are passed on

	progressEvery = 100 * time.Millisecond // of one call, at most
)

// call is a call that has not ended.
type call struct {
	call    llm.Call
	effects []tool.Effect
	printed string // what it has shown while it runs, the end of it
	shown   time.Time
	// terminal is the one of the client that it runs in, once the client knows; empty:
	// none.
	terminal string
}

// description is a call in the words of the protocol.
type description struct {
	title     string
	kind      wire.ToolKind
	locations []wire.ToolCallLocation
	input     any
}

// describe says what a call is. The effects are those it was judged by, if it was.
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
		line = nil // it is of the first
	}
	return d
}

// lineOf is the line that a call is about, from its arguments.
func lineOf(c llm.Call) *int {
	var args struct {
		Offset int `json:"offset"`
		First  int `json:"first_line"`
		Line   int `json:"line"`
	}
	_ = json.Unmarshal(c.Args, &args) // others have none
	for _, n := range []int{args.Offset, args.First, args.Line} {
		if n > 0 {
			return &n
		}
	}
	return nil
}

// kindOf is the picture for a tool: of ours by name, of others by what it would do.
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

// called tells of a call that the model made.
func (v *view) called(c llm.Call) {
	v.calls[c.ID] = &call{call: c}
	d := describe(c, nil)
	v.tell(wire.SessionUpdate{ToolCall: &wire.SessionUpdateToolCall{
		ToolCallId: wire.ToolCallId(c.ID), Title: d.title, Kind: d.kind, Status: wire.ToolCallStatusPending, RawInput: d.input,
	}})
}

// call folds what becomes of a call.
func (v *view) call(e event.Event) {
	switch b := e.Body.(type) {
	case event.Judged:
		v.judged(b)
	case event.Waiting:
		if c := v.calls[b.Call]; c != nil {
			v.changed(b.Call, wire.SessionToolCallUpdate{Content: previewed(b.Preview, c.effects, v.seat.root)})
		}
	case event.Started:
		v.changed(b.Call, wire.SessionToolCallUpdate{Status: wire.Ptr(wire.ToolCallStatusInProgress)})
	case event.Progress:
		v.progress(e, b)
	case event.Ended:
		v.ended(b)
	}
}

// changed tells what is new of a call.
func (v *view) changed(id string, u wire.SessionToolCallUpdate) {
	u.ToolCallId = wire.ToolCallId(id)
	v.tell(wire.SessionUpdate{ToolCallUpdate: &u})
}

func (v *view) judged(b event.Judged) {
	v.cost += b.Cost
	c := v.calls[b.Call]
	if c == nil {
		return
	}
	c.call, c.effects = words.Judged(c.call, b), b.Effects
	d := describe(c.call, c.effects)
	v.changed(b.Call, wire.SessionToolCallUpdate{Title: &d.title, Kind: &d.kind, Locations: d.locations, RawInput: d.input})
}

// progress shows the end of what a running call prints.
func (v *view) progress(e event.Event, b event.Progress) {
	c := v.calls[b.Call]
	if c == nil || b.Wait > 0 {
		v.rest(e)
		return
	}
	if c.terminal != "" {
		return // there it is seen as it happens
	}
	if c.terminal = v.seat.terminal(b.Call); c.terminal != "" {
		v.changed(b.Call, wire.SessionToolCallUpdate{Content: []wire.ToolCallContent{wire.ToolTerminalRef(c.terminal)}})
		return
	}
	_, tail, _ := tool.Cut(c.printed+b.Text, maxShown)
	if c.printed += b.Text; len(c.printed) > maxShown {
		c.printed = tail
	}
	if e.Time.Sub(c.shown) < progressEvery {
		return // nobody reads faster, and the next one shows it too
	}
	c.shown = e.Time
	v.changed(b.Call, wire.SessionToolCallUpdate{Content: []wire.ToolCallContent{textContent(fenced(words.Result(c.printed)))}})
}

func (v *view) ended(b event.Ended) {
	c := v.calls[b.Call]
	if c == nil {
		c = &call{}
	}
	delete(v.calls, b.Call)
	status := wire.ToolCallStatusCompleted
	if b.Outcome != event.OutcomeOK {
		status = wire.ToolCallStatusFailed
	}
	u := wire.SessionToolCallUpdate{Status: &status, Content: v.result(c, b), RawOutput: output(b)}
	for _, f := range b.Files {
		line := lineOf(c.call)
		if hunks, _ := hunksOf(f.Diff); len(hunks) > 0 {
			line = &hunks[0].line
		}
		if len(u.Locations) < 20 {
			u.Locations = append(u.Locations, wire.ToolCallLocation{Path: f.Path, Line: line})
		}
	}
	v.changed(b.Call, u)
	if b.Todo != nil {
		v.tell(plan(b.Todo))
	}
}

// output is what programs may want to know of the end of a call.
func output(b event.Ended) any {
	out := map[string]any{"outcome": string(b.Outcome)}
	if b.Exit != nil {
		out["exit"] = *b.Exit
	}
	return out
}

// result is what a call brought: the changes it made if it made some, else its text
// and images, and what it has for the person. What a terminal shows is not said again,
// unless there is more to say than how the command ended.
func (v *view) result(c *call, b event.Ended) []wire.ToolCallContent {
	var out []wire.ToolCallContent
	for _, f := range b.Files {
		if f.Written && f.Diff != "" {
			out = append(out, diffs(f.Diff, func(string) string { return f.Path })...)
		}
	}
	terminal := v.seat.terminal(b.Call)
	if terminal != "" {
		out = append(out, wire.ToolTerminalRef(terminal))
	}
	if len(out) == 0 || b.Outcome != event.OutcomeOK && (terminal == "" || b.Exit == nil) {
		if text := words.Result(b.Parts.Text()); text != "" {
			head, tail, dropped := tool.Cut(text, maxShown)
			if dropped > 0 {
				text = head + "\n…\n" + tail
			}
			if kindOf(c.call.Name, c.effects) != wire.ToolKindThink {
				text = fenced(text)
			}
			out = append(out, textContent(text))
		}
	}
	for _, part := range b.Parts {
		if image, ok := part.(llm.Image); ok {
			out = append(out, wire.ToolContent(v.seat.image(image)))
		}
	}
	if b.Show != "" {
		out = append(out, textContent(text.Clean(b.Show)))
	}
	return out
}
