package subagent

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/tool"
)

// resultTool is the tool that lets a child return a result of a given form.
const resultTool = "return_result"

// result is the required result of a child: one call of resultTool whose arguments match the schema. It is a
// hook that makes the child continue until it has one.
type result struct {
	schema json.RawMessage

	mu    sync.Mutex
	value json.RawMessage // nil means not yet returned
}

func newResult(schema map[string]any) (*result, error) {
	if schema["type"] != "object" {
		return nil, errors.New(`it must be of type object, such as {"type": "object", "properties": {...}}`)
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	r := &result{schema: raw}
	if err := r.tool().CheckSchema(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *result) tool() tool.Tool {
	return tool.Tool{
		Name: resultTool, Doc: "Returns your result to the agent that you work for. Call it once, when your work is done, and then stop.",
		Schema: r.schema, Effects: noEffects,
		Run: func(context.Context, *tool.Call) (tool.Result, error) { return tool.Text("Taken."), nil },
	}
}

// observe reads the result from the child's items.
func (r *result) observe(items []transcript.Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range items {
		if c, ok := item.(*transcript.Call); ok && c.Call.Name == resultTool && c.State == transcript.Over && c.Ended.Outcome == event.OutcomeOK {
			r.value = c.Call.Args // in its repaired form
		}
	}
}

// returned returns the result; nil if there is none yet.
func (r *result) returned() json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value
}

// Answer is an answer of a given form for a session that works for a person.
type Answer struct{ result *result }

// NewAnswer returns the answer for a JSON Schema, which must be of type object.
func NewAnswer(schema []byte) (*Answer, error) {
	var object map[string]any
	if err := json.Unmarshal(schema, &object); err != nil {
		return nil, errors.New("a schema is a JSON object")
	}
	r, err := newResult(object)
	return &Answer{r}, err
}

// Tool is the tool that lets the model give the answer.
func (a *Answer) Tool() tool.Tool {
	t := a.result.tool()
	t.Doc = "Returns your answer to the person. Call it once, when your work is done, and then stop."
	t.Run = func(_ context.Context, c *tool.Call) (tool.Result, error) {
		a.result.mu.Lock()
		defer a.result.mu.Unlock()
		a.result.value = c.Args
		return tool.Text("Taken."), nil
	}
	return t
}

// At implements [tool.Hook]: it asks the model for the answer, at most twice, when it stops without one. Subagents owe
// none.
func (a *Answer) At(_ context.Context, p tool.Point) (tool.Outcome, error) {
	if p.Who.Parent != "" || !a.result.mustAskAgain(p) {
		return tool.Outcome{}, nil
	}
	return tool.Outcome{By: "inspan", Text: "The person needs the answer in a fixed form. Call " + resultTool + " with it."}, nil
}

// Read returns the answer to the last message of a person in a session; nil if there is none.
func (a *Answer) Read(events iter.Seq2[event.Event, error]) (json.RawMessage, error) {
	var fold transcript.Fold
	found := result{schema: a.result.schema}
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if said, ok := e.Body.(event.Said); ok && len(said.Parts) > 0 {
			found.value = nil
		}
		found.observe(fold.Apply(e))
	}
	return found.value, nil
}

// At implements [tool.Hook].
func (r *result) At(_ context.Context, p tool.Point) (tool.Outcome, error) {
	if !r.mustAskAgain(p) {
		return tool.Outcome{}, nil
	}
	return tool.Outcome{By: "the agent you work for", Text: "It waits for your result. Call " + resultTool + " with it."}, nil
}

// mustAskAgain reports whether the model stops without a result, and was asked for one less than twice.
func (r *result) mustAskAgain(p tool.Point) bool {
	return p.Moment == tool.RunStop && r.returned() == nil && p.Rounds <= 1
}
