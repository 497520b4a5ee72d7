package journeys_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// TestSaw checks that an agent gets every stored event of its runs once, in order, when it counts in Status, and that a
// crash of the receiver ends the run, which can be run again.
func TestSaw(t *testing.T) {
	l := &ledger{}
	a := &inspan.Agent{Model: scripted(t, oneNote, "Done.", "Done."), Tools: []tool.Tool{l.writer()}, Mode: "yolo", Env: tool.Env{Root: "/w"}}
	var saw []uint64
	crashes := false
	a.Lifecycle.Stored = func(s *inspan.Session, e event.Event) {
		if crashes {
			panic("boom")
		}
		if st := s.Status(); st.Seq != e.Seq || (e.Body.Kind() == "stopped") != (st.Stopped != nil) {
			t.Errorf("at %s the status is %+v", e.Body.Kind(), st)
		}
		saw = append(saw, e.Seq)
	}
	s := open(t, a, event.NewMemory("s"))
	var want []uint64
	for _, e := range drivenTo(t, s, said("go")) {
		if !e.Transient() {
			want = append(want, e.Seq)
		}
	}
	if !slices.Equal(saw, want) || len(l.runs) != 1 {
		t.Errorf("saw %d, want %d", saw, want)
	}
	crashes = true
	var failed error
	for _, err := range s.Run(t.Context(), said("again")) {
		failed = err
	}
	if failed == nil || !strings.HasPrefix(failed.Error(), "Lifecycle.Stored crashed: boom") {
		t.Errorf("failed: %v", failed)
	}
	crashes = false
	if st := last[event.Stopped](t, drivenTo(t, s)); st.Reason != event.ReasonDone {
		t.Errorf("stopped %+v", st)
	}
}
