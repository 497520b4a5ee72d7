package server

import (
	"fmt"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// TestMetersAreBounded checks that a model that invents tools does not fill the memory.
func TestMetersAreBounded(t *testing.T) {
	var m meters
	for i := range 5000 {
		id := fmt.Sprint("call-", i)
		m.count(event.Event{Seq: 1, Session: "s", Body: event.Replied{Parts: llm.Parts{llm.Call{ID: id, Name: fmt.Sprint("tool-", i)}}}})
		m.count(event.Event{Seq: 2, Session: "s", Body: event.Ended{Call: id, Outcome: event.OutcomeInvalid}})
	}
	if len(m.calls) > maxMeters+1 || m.calls["other"].outcomes["invalid"] != 5000-maxMeters || len(m.tools["s"]) > 0 {
		t.Errorf("%d tools, %+v, %d open calls", len(m.calls), m.calls["other"], len(m.tools["s"]))
	}
}
