package server

import (
	"slices"

	"github.com/inspan/inspan/event"
)

// follow returns the stages that may follow one. A task in a stage that is not final can also be cancelled,
// fail, and run out of time. After a crash, the next server repeats the stage that it finds.
func follow(from event.Stage) []event.Stage {
	switch from {
	case "":
		return []event.Stage{event.StageSubmitted}
	case event.StageSubmitted:
		return []event.Stage{event.StageQueued}
	case event.StageQueued:
		return []event.Stage{event.StageHydrating}
	case event.StageHydrating:
		return []event.Stage{event.StageRunning, event.StageIdle}
	case event.StageRunning:
		return []event.Stage{event.StageWaiting, event.StageIdle, event.StageFinalizing}
	case event.StageWaiting:
		return []event.Stage{event.StageRunning, event.StageIdle, event.StageFinalizing}
	case event.StageIdle:
		return []event.Stage{event.StageRunning, event.StageWaiting, event.StageFinalizing}
	case event.StageFinalizing:
		return []event.Stage{event.StageCompleted}
	}
	return nil
}

// stages returns all stages.
func stages() []event.Stage {
	return []event.Stage{
		event.StageSubmitted, event.StageQueued, event.StageHydrating, event.StageRunning, event.StageWaiting, event.StageIdle,
		event.StageFinalizing, event.StageCompleted, event.StageFailed, event.StageCancelled, event.StageTimedOut,
	}
}

// over reports whether a stage is final.
func over(s event.Stage) bool {
	switch s {
	case event.StageCompleted, event.StageFailed, event.StageCancelled, event.StageTimedOut:
		return true
	}
	return false
}

// may reports whether a task may go from one stage to another.
func may(from, to event.Stage) bool {
	if next := follow(from); len(next) > 0 && from != "" && over(to) && to != event.StageCompleted {
		return true
	}
	return slices.Contains(follow(from), to)
}
