package server

import (
	"slices"

	"github.com/inspan/inspan/event"
)

// Stages of a task, in order. The last four are final.
const (
	StageSubmitted  event.Stage = "submitted"  // it was admitted
	StageQueued     event.Stage = "queued"     // it waits for its turn
	StageHydrating  event.Stage = "hydrating"  // its workspace and context are being prepared
	StageRunning    event.Stage = "running"    // its agent works
	StageWaiting    event.Stage = "waiting"    // its agent waits for a decision
	StageIdle       event.Stage = "idle"       // its agent has nothing left to do, and accepts messages
	StageFinalizing event.Stage = "finalizing" // evidence is collected and the workspace is removed
	StageCompleted  event.Stage = "completed"
	StageFailed     event.Stage = "failed"
	StageCancelled  event.Stage = "cancelled"
	StageTimedOut   event.Stage = "timed_out"
)

// follow returns the stages that may follow one. A task in a stage that is not final can also be cancelled,
// fail, and run out of time. After a crash, the next server repeats the stage that it finds.
func follow(from event.Stage) []event.Stage {
	switch from {
	case "":
		return []event.Stage{StageSubmitted}
	case StageSubmitted:
		return []event.Stage{StageQueued}
	case StageQueued:
		return []event.Stage{StageHydrating}
	case StageHydrating:
		return []event.Stage{StageRunning, StageIdle}
	case StageRunning:
		return []event.Stage{StageWaiting, StageIdle, StageFinalizing}
	case StageWaiting:
		return []event.Stage{StageRunning, StageIdle, StageFinalizing}
	case StageIdle:
		return []event.Stage{StageRunning, StageWaiting, StageFinalizing}
	case StageFinalizing:
		return []event.Stage{StageCompleted}
	}
	return nil
}

// stages returns all stages.
func stages() []event.Stage {
	return []event.Stage{
		StageSubmitted, StageQueued, StageHydrating, StageRunning, StageWaiting, StageIdle,
		StageFinalizing, StageCompleted, StageFailed, StageCancelled, StageTimedOut,
	}
}

// over reports whether a stage is final.
func over(s event.Stage) bool {
	switch s {
	case StageCompleted, StageFailed, StageCancelled, StageTimedOut:
		return true
	}
	return false
}

// may reports whether a task may go from one stage to another.
func may(from, to event.Stage) bool {
	if next := follow(from); len(next) > 0 && from != "" && over(to) && to != StageCompleted {
		return true
	}
	return slices.Contains(follow(from), to)
}
