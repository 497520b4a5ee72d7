package subagent_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
)

// TestSetOfAnAgent checks that calls which a subagent's program asks for together are one question to the person, that
// shows each, and that the answer reaches all of them.
func TestSetOfAnAgent(t *testing.T) {
	for allow, want := range map[bool]int32{true: 3, false: 0} {
		var ran atomic.Int32
		h := newHouse(t, func(task string, turn int, _ llm.Request) (llm.Parts, error) {
			switch {
			case task == "start" && turn == 0:
				return llm.Parts{spawn("c1", "leaf")}, nil
			case task == "leaf" && turn == 0:
				return llm.Parts{call("x1", "fill", nil)}, nil
			}
			return llm.Say("ok"), nil
		}, changing(&ran), testkit.Fill("change", `{"n":"one"}`, `{"n":"two"}`, `{"n":"three"}`))
		s := h.open()
		var asked []inspan.Pending
		run(t, s, func(e event.Event) {
			if r, ok := e.Body.(event.Raised); ok {
				p := inspan.PendingOf(inspan.Question{Raised: r, Seq: e.Seq})
				asked = append(asked, p)
				if err := s.Send(t.Context(), event.Decided{Call: p.Call.ID, Question: p.Question, Allow: allow, By: "ann"}); err != nil {
					t.Error(err)
				}
			}
		}, say("start"))
		if len(asked) != 1 || ran.Load() != want {
			t.Fatalf("asked %d times, ran %d", len(asked), ran.Load())
		}
		if p := asked[0]; p.Reason != "call change 3 times" || strings.Count(p.Preview, "of 3: change") != 3 {
			t.Errorf("asked %q: %s", p.Reason, p.Preview)
		}
		closed(t, s)
	}
}
