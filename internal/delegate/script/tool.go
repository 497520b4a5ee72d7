package script

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

//go:embed tool.md
var toolDoc string

//go:embed tools.js
var toolSetup string

const (
	mostPrinted = 200_000   // bytes that a script prints in total
	mostStored  = 1_000_000 // bytes stored for later scripts; tools.js has a lower limit
	mostMoved   = 64 << 20  // bytes of arguments and results of its calls: all of it is in the log
	mostDenied  = 3         // number of denied calls that stops it
)

type toolArgs struct {
	Code string         `json:"code" jsonschema:"body of an async function"`
	Args map[string]any `json:"args,omitempty" jsonschema:"seen as args"`
}

// Tool lets a model write a script instead of single calls: code mode. The engine starts its processes in the
// environment of the call.
func Tool(self string) tool.Tool {
	t := tool.New("script", strings.TrimSpace(toolDoc), func(ctx context.Context, c *tool.Call, in toolArgs) (tool.Result, error) {
		return Perform(ctx, c, self, in.Code, in.Args, Limits{})
	})
	t.Calls, t.AsksAhead = true, true
	return t
}

// Perform runs the script of a call of a tool with Calls. Its result is the printed text and the return value.
func Perform(ctx context.Context, c *tool.Call, self, code string, args any, within Limits) (tool.Result, error) {
	m := &mode{call: c, left: map[string]json.RawMessage{}}
	input, err := json.Marshal(map[string]any{"args": args, "store": c.Store})
	if err != nil {
		return tool.Result{}, err
	}
	value, err := Engine{Self: self, Env: c.Env, Open: c.Mode == tool.ModeYolo}.Run(ctx, Script{
		Code: code, Setup: toolSetup, Input: input, Seed: c.Key, Now: c.Time, Call: m.begin, Print: m.printLine, Tell: m.tell, Rests: c.Waiting,
		Limits: within,
	})
	return m.result(value, err)
}

// mode is one script of code mode.
type mode struct {
	call    *tool.Call
	printed strings.Builder
	more    int // printed bytes beyond those stored
	left    map[string]json.RawMessage

	mu      sync.Mutex
	made    int
	given   int // bytes of arguments of calls
	brought int // bytes of their results
	denied  []string
}

// begin makes a call for the script.
func (m *mode) begin(ctx context.Context, name string, args json.RawMessage) func() Answer {
	if name == "script" {
		return func() Answer { return Answer{Err: errors.New("scripts can't call script")} }
	}
	m.mu.Lock()
	m.made++
	m.given += len(args)
	full := m.given+m.brought > mostMoved
	m.mu.Unlock()
	if full {
		return func() Answer {
			return Answer{End: &Error{fmt.Sprintf("the script moves more than %d MB through its calls", mostMoved>>20)}}
		}
	}
	wait := m.call.Start(ctx, name, args)
	return func() Answer {
		res, err := wait()
		return m.answer(name, args, res, err)
	}
}

// answer returns the result of a call in the form for tools.js.
func (m *mode) answer(name string, args json.RawMessage, res tool.Result, err error) Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.brought += len(res.Parts.Text())
	failed, isFailed := errors.AsType[*tool.CallError](err)
	switch {
	case errors.Is(err, tool.ErrHeld):
		return Answer{Held: true}
	case isFailed:
		if failed.Outcome == string(event.OutcomeDenied) {
			m.denied = append(m.denied, fmt.Sprintf("%s %s: %s", name, text.Short(string(args), 200), failed.Text))
		}
		if len(m.denied) >= mostDenied {
			return Answer{End: &Error{text.Count(len(m.denied), "call") + " of the script were denied, so it was stopped"}}
		}
		err = &Thrown{map[string]string{"tool": name, "outcome": failed.Outcome, "text": failed.Text}}
		return Answer{Err: err, Nth: res.Position}
	case err != nil:
		return Answer{Err: err, Nth: res.Position}
	}
	value := map[string]any{"text": res.Parts.Text()}
	if res.Exit != nil {
		value["exit"] = *res.Exit
	}
	return Answer{Value: value, Nth: res.Position}
}

func (m *mode) printLine(line string) {
	if room := mostPrinted - m.printed.Len(); len(line)+1 > room {
		m.more += len(line) + 1
		return
	}
	m.printed.WriteString(line + "\n")
}

// tell handles the messages of tools.js that are not calls.
func (m *mode) tell(kind, what string) error {
	switch kind {
	case "notify":
		m.call.Progress(text.Clean(what))
	case "store":
		var kept struct {
			Key   string          `json:"key"`
			Value json.RawMessage `json:"value"`
		}
		if err := json.Unmarshal([]byte(what), &kept); err != nil {
			return err
		}
		m.left[kept.Key] = kept.Value
	}
	return nil
}

// result returns the model's result.
func (m *mode) result(value json.RawMessage, err error) (tool.Result, error) {
	out := m.printed.String() + m.refusals()
	if m.more > 0 {
		out += fmt.Sprintf("[%d more bytes were printed]\n", m.more)
	}
	var own *Error
	switch {
	case errors.Is(err, ErrHeld):
		return tool.Result{}, tool.ErrHeld
	case errors.As(err, &own):
		return tool.Text(out), fmt.Errorf("%w%s", err, m.nothingKept())
	case err != nil:
		return tool.Text(out), err
	}
	if err := m.fits(); err != nil {
		return tool.Text(out), err
	}
	var line string
	switch {
	case string(value) == "null":
	case json.Unmarshal(value, &line) == nil:
		out += line
	default:
		out += string(value)
	}
	if out == "" {
		out = "[the script has ended; it printed and returned nothing]"
	}
	r := tool.Text(strings.TrimSuffix(out, "\n"))
	r.Store, r.Show = m.left, m.saved(len(out))
	return r, nil
}

// refusals tells the model about denied calls, however the script handled them.
func (m *mode) refusals() string {
	var b strings.Builder
	for _, d := range m.denied {
		b.WriteString("[denied: " + d + "]\n")
	}
	return b.String()
}

func (m *mode) nothingKept() string {
	if len(m.left) == 0 {
		return ""
	}
	return "; what it has stored is not kept"
}

// fits returns an error if too much is stored for later scripts.
func (m *mode) fits() error {
	all, size := maps.Clone(m.call.Store), 0
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	maps.Copy(all, m.left)
	for key, value := range all {
		size += len(key) + len(value)
	}
	if size > mostStored {
		return &Error{fmt.Sprintf("store would hold %d bytes; it has room for %d. Write a file instead", size, mostStored)}
	}
	return nil
}

// saved tells the person how much the script has left out of the conversation: each of its calls would
// otherwise have returned its whole result.
func (m *mode) saved(shown int) string {
	if m.made == 0 {
		return ""
	}
	line := fmt.Sprintf("%s in one script", text.Count(m.made, "call"))
	if tokens := (m.brought - shown) / 4; tokens >= 100 {
		line += fmt.Sprintf("; about %d tokens of their results stayed out of the conversation", tokens)
	}
	return line
}
