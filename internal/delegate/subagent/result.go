package subagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/tool"
)

// resultTool is the tool with which a child returns a result of a given form.
const resultTool = "return_result"

// result is the required result of a child: one call of resultTool whose arguments match the schema. It is a
// hook that makes the child continue until it has one.
type result struct {
	schema json.RawMessage

	mu    sync.Mutex
	value json.RawMessage // nil: not yet returned
}

func newResult(schema map[string]any) (*result, error) {
	if schema["type"] != "object" {
		return nil, errors.New("result_schema must be of type object")
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	r := &result{schema: raw}
	if err := r.tool().CheckSchema(); err != nil {
		return nil, fmt.Errorf("result_schema: %w", err)
	}
	return r, nil
}

func (r *result) tool() tool.Tool {
	return tool.Tool{
		Name: resultTool, Doc: "Returns your result to the agent that you work for. Call it once, when your work is done, and then stop.",
		Schema: r.schema, Effects: none,
		Run: func(context.Context, *tool.Call) (tool.Result, error) { return tool.Text("Taken."), nil },
	}
}

// see reads the result from the child's items.
func (r *result) see(items []transcript.Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range items {
		if c, ok := item.(*transcript.Call); ok && c.Call.Name == resultTool && c.State == transcript.Over && c.Ended.Outcome == event.OutcomeOK {
			r.value = c.Call.Args // in its repaired form
		}
	}
}

// brought returns the result; nil if there is none yet.
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
