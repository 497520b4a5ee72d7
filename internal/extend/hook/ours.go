package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// version is the version of the JSON below. Adding fields does not change it.
const version = 1

// ours is the protocol that the package comment describes.
type ours struct{}

type told struct {
	Version int             `json:"version"`
	Moment  tool.Moment     `json:"moment"`
	Session string          `json:"session"`
	Agent   string          `json:"agent,omitempty"`
	Name    string          `json:"name,omitempty"`
	Parent  string          `json:"parent,omitempty"`
	Lead    string          `json:"lead,omitempty"`
	Root    string          `json:"root"`
	Mode    tool.Mode       `json:"mode"`
	Cwd     string          `json:"cwd,omitempty"`
	Call    string          `json:"call,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	Effects []tool.Effect   `json:"effects,omitempty"`
	Result  string          `json:"result,omitempty"`
	Exit    *int            `json:"exit,omitempty"`
	Failed  string          `json:"failed,omitempty"`
	Text    string          `json:"text,omitempty"`
	Why     string          `json:"why,omitempty"`
	Rounds  int             `json:"rounds,omitempty"`
}

func (ours) say(p tool.Point) ([]byte, error) {
	in := told{
		Version: version, Moment: p.Moment, Session: p.Session, Root: p.Root, Mode: p.Mode,
		Effects: p.Effects, Failed: p.Failed, Text: p.Text, Why: p.Why, Rounds: p.Rounds,
	}
	if p.Who.Parent != "" {
		in.Agent, in.Name, in.Parent, in.Lead = p.Who.Kind, p.Who.Name, p.Who.Parent, p.Who.Lead
	}
	if p.Call != nil {
		in.Cwd, in.Call, in.Tool, in.Args = p.Call.Cwd, p.Call.ID, p.Call.Name, p.Call.Args
	}
	if p.Result != nil {
		in.Result, in.Exit = p.Result.Parts.Text(), p.Result.Exit
	}
	return encode(in)
}

// encode is JSON in one line, with < and & as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// decode is one JSON value, with numbers as they are written.
func decode[T any](data []byte) (v T, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err = dec.Decode(&v); err == nil && dec.InputOffset() != int64(len(bytes.TrimRight(data, " \t\r\n"))) {
		err = errors.New("there is more than one JSON value")
	}
	return v, err
}

func (ours) plain(m tool.Moment) bool { return m == tool.SessionStart || m == tool.PromptSaid }

type replied struct {
	Action tool.Action     `json:"action"`
	Reason string          `json:"reason"`
	Args   json.RawMessage `json:"args"`
	Text   string          `json:"text"`
	Result *string         `json:"result"`
}

// hear is strict: an unknown field, or one without a meaning at the moment, is an error, since its author relies on
// it.
func (ours) hear(data []byte, p tool.Point) (out tool.Outcome, note string, err error) {
	fields, err := decode[map[string]json.RawMessage](data)
	if err != nil {
		return out, "", fmt.Errorf("its answer is not JSON: %w", err)
	}
	known := fieldsAt(p.Moment)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			return out, "", fmt.Errorf("its answer has %q, which has no meaning at %s%s", name, p.Moment, nearest(name, known))
		}
	}
	in, err := decode[replied](data)
	if err != nil {
		return out, "", fmt.Errorf("its answer has the wrong form: %w", err)
	}
	if !slices.Contains(actionsAt(p.Moment), in.Action) {
		return out, "", fmt.Errorf("its answer has the action %q, which has no meaning at %s", in.Action, p.Moment)
	}
	out = tool.Outcome{Action: in.Action, Reason: text.Printed(in.Reason), Text: text.Printed(in.Text)}
	if in.Action == tool.Deny && out.Reason == "" {
		out.Reason = "the hook gave no reason"
	}
	if in.Result != nil {
		out.Result = replaced(p.Result, *in.Result)
	}
	out.Args, err = object(in.Args)
	return out, "", err
}

// object checks arguments. Null means none.
func object(args json.RawMessage) (json.RawMessage, error) {
	if args == nil || string(args) == "null" {
		return nil, nil
	}
	if args[0] != '{' {
		return nil, errors.New("the arguments in its answer are not an object")
	}
	return args, nil
}

// fieldsAt lists the fields that an answer may have at a moment.
func fieldsAt(m tool.Moment) []string {
	switch m {
	case tool.BeforeCall:
		return []string{"action", "reason", "args", "text"}
	case tool.PromptSaid, tool.BeforeCompact, tool.TaskCompleted:
		return []string{"action", "reason", "text"}
	case tool.AfterCall:
		return []string{"text", "result"}
	case tool.SessionEnd:
		return nil
	}
	return []string{"text"}
}

func actionsAt(m tool.Moment) []tool.Action {
	switch m {
	case tool.BeforeCall:
		return []tool.Action{tool.Abstain, tool.Allow, tool.Ask, tool.Deny}
	case tool.PromptSaid, tool.BeforeCompact, tool.TaskCompleted:
		return []tool.Action{tool.Abstain, tool.Allow, tool.Deny}
	}
	return []tool.Action{tool.Abstain}
}
