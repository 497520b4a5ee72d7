package subagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// resultTool is the tool by which a child returns a result of a given form.
const resultTool = "return_result"

// result is what a child must bring: one call of resultTool, whose arguments have
// passed the schema. It is a hook that has the child go on without one.
type result struct {
	schema json.RawMessage

	mu    sync.Mutex
	calls map[string]json.RawMessage // of resultTool, by id
	value json.RawMessage            // nil: not yet brought
}

func newResult(schema map[string]any) (*result, error) {
	if schema["type"] != "object" {
		return nil, errors.New("result_schema must be of type object")
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err = json.Unmarshal(raw, &s); err == nil {
		_, err = s.Resolve(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("result_schema: %w", err)
	}
	return &result{schema: raw, calls: map[string]json.RawMessage{}}, nil
}

func (r *result) tool() tool.Tool {
	return tool.Tool{
		Name: resultTool, Doc: "Returns your result to the agent that you work for. Call it once, when your work is done, and then stop.",
		Schema: r.schema, Effects: none,
		Run: func(context.Context, *tool.Call) (tool.Result, error) { return tool.Text("Taken."), nil },
	}
}

// see takes the result out of the child's events.
func (r *result) see(e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch b := e.Body.(type) {
	case event.Replied:
		for _, c := range b.Parts.Calls() {
			if c.Name == resultTool {
				r.calls[c.ID] = c.Args
			}
		}
	case event.Judged:
		if _, ok := r.calls[b.Call]; ok && b.Args != nil {
			r.calls[b.Call] = b.Args // as it was repaired
		}
	case event.Ended:
		if args, ok := r.calls[b.Call]; ok && b.Outcome == event.OutcomeOK {
			r.value = args
		}
	}
}

// brought is the result; nil if there is none yet.
func (r *result) brought() json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value
}

// At implements [tool.Hook].
func (r *result) At(_ context.Context, p tool.Point) (tool.Outcome, error) {
	if p.Moment != tool.RunStop || r.brought() != nil || p.Rounds > 1 {
		return tool.Outcome{}, nil
	}
	return tool.Outcome{By: "the agent you work for", Text: "It waits for your result. Call " + resultTool + " with it."}, nil
}
