package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/view/words"
)

const (
	maxAsks = 100 // that a server has during one call
	maxKey  = 4 << 10
)

// answer answers the questions of a task. It does not ask a question twice: a server may show it until it has
// processed the answer.
func (f *follower) answer(ctx context.Context, asks map[string]json.RawMessage) error {
	for _, key := range slices.Sorted(maps.Keys(asks)) {
		if f.asked[key] {
			continue
		}
		if len(f.asked) >= maxAsks || len(key) > maxKey {
			return &taskError{"was abandoned, because its server asks too often; its effects until then are unknown", false}
		}
		f.asked[key] = true
		answer, err := f.one(ctx, asks[key])
		if err != nil {
			return &taskError{"was abandoned, because its request can't be met: " + err.Error() + "; its effects until then are unknown", false}
		}
		f.answers[key] = answer
	}
	if len(f.answers) == 0 {
		return nil
	}
	_, err := f.send(ctx, "tasks/update", f.answers)
	if err != nil {
		return f.final(err) // nil means they are sent again
	}
	clear(f.answers)
	return nil
}

// one answers one question of a server.
func (f *follower) one(ctx context.Context, data json.RawMessage) (sdk.InputResponse, error) {
	var asks struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(data, &asks); err != nil {
		return nil, fmt.Errorf("it can't be read")
	}
	by := f.by
	if by.call.Ask == nil {
		by = nil
	}
	switch model := f.manager.Sample; {
	case asks.Method == "elicitation/create":
		p := &sdk.ElicitParams{}
		if json.Unmarshal(asks.Params, p) != nil {
			return nil, fmt.Errorf("it can't be read")
		}
		return f.conn.elicit(ctx, by, p)
	case asks.Method == "sampling/createMessage" && model != nil:
		p := &sdk.CreateMessageParams{} //nolint:staticcheck // see sample.go
		if json.Unmarshal(asks.Params, p) != nil {
			return nil, fmt.Errorf("it can't be read")
		}
		return f.conn.sample(ctx, by, model, p)
	}
	return nil, fmt.Errorf("%q", words.OneLine(asks.Method, 60))
}
