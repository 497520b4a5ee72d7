package server

import (
	"testing"

	"github.com/inspan/inspan/event"
)

// TestStages checks which moves there are, and that every stage has a way to each end.
func TestStages(t *testing.T) {
	all := []event.Stage{
		StageSubmitted, StageQueued, StageHydrating, StageRunning, StageWaiting, StageIdle,
		StageFinalizing,
		StageCompleted, StageFailed, StageCancelled, StageTimedOut,
	}
	for _, from := range all {
		for _, to := range all {
			if over(from) && may(from, to) {
				t.Errorf("%s is not the end: %s follows", from, to)
			}
			if !over(from) && over(to) && to != StageCompleted && !may(from, to) {
				t.Errorf("%s can't become %s", from, to)
			}
		}
	}
	at := event.Stage("")
	for _, next := range []event.Stage{
		"submitted", "queued", "hydrating", "running", "waiting", "running", "idle", "running", "idle", "waiting", "running", "finalizing",
		"completed",
	} {
		if !may(at, next) {
			t.Errorf("%q can't become %s", at, next)
		}
		at = next
	}
	for _, wrong := range [][2]event.Stage{
		{"", "queued"},
		{"", "failed"},
		{"submitted", "running"},
		{"queued", "completed"},
		{"running", "queued"},
		{"waiting", "completed"},
		{"idle", "completed"},
		{"x", "queued"},
		{"x", "failed"},
	} {
		if may(wrong[0], wrong[1]) {
			t.Errorf("%q can become %s", wrong[0], wrong[1])
		}
	}
}
