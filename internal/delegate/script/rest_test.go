package script

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
)

// TestRestIsOlderThanACall checks that a status of the process does not count for a later call: it may be read after
// the answer to the call before.
func TestRestIsOlderThanACall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &run{
		Script: Script{
			Limits: Limits{Calls: 10},
			Call: func(context.Context, string, json.RawMessage) func() Answer {
				return func() Answer { return Answer{Never: true} }
			},
		},
		ctx: ctx, answers: make(chan settled), early: map[int]settled{}, next: 1, rests: -1,
	}
	hear := func(line string) error {
		_, err := r.heard([]byte(line))
		return err
	}
	if err := errors.Join(hear(`{"rest":1}`), hear(`{"call":{"id":2,"name":"check"}}`), r.settle(<-r.answers), r.idle()); err != nil {
		t.Errorf("it is held before it rests: %v", err)
	}
	if err := hear(`{"rest":1}`); !errors.Is(err, ErrHeld) {
		t.Errorf("it rests on a call without an end: %v", err)
	}
}
