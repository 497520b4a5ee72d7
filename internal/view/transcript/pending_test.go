package transcript_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// TestPendingIsThatOfTheStatus checks at every event of the logs that the open questions are those that the kernel
// waits for.
func TestPendingIsThatOfTheStatus(t *testing.T) {
	asked := 0
	for _, path := range logs(t) {
		events, _ := readLog(t, path)
		var fold transcript.Fold
		for i, e := range events {
			fold.Apply(e)
			s, err := (&inspan.Agent{Model: &script.Model{}}).Open(t.Context(), event.NewMemory(e.Session, events[:i+1]...))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			var got []inspan.Pending
			for _, q := range append(fold.Raised(), fold.Waiting()...) {
				got = append(got, fold.Pending(q))
			}
			asked += len(got)
			if diff := gocmp.Diff(s.Status().Questions(), got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s, event %d: %s", path, e.Seq, diff)
			}
			_ = s.Close() // nothing was done in it
		}
	}
	if asked == 0 {
		t.Error("no log asks anything")
	}
}

func TestRequestedAheadUntilWanted(t *testing.T) {
	var s session
	s.do(event.Opened{Root: "/w"}, said("go"), calls(bash("1")), event.Judged{Call: "1", Action: tool.Allow, Caller: true}, event.Started{Call: "1"},
		event.Judged{Call: "1/1", Parent: "1", Tool: "bash", Action: tool.Ask, RequestedAhead: true}, event.Waiting{Call: "1/1"})
	if p := s.Pending(s.Waiting()[0]); !p.RequestedAhead || p.Root != "/w" || p.Parent != "1" {
		t.Errorf("%+v", p)
	}
	s.do(event.Wanted{Call: "1/1", Parent: "1"})
	if s.Pending(s.Waiting()[0]).RequestedAhead {
		t.Error("its parent has come to it")
	}
}
