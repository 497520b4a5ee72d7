package temporal

import (
	"cmp"
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
)

// Worker drives the sessions that the engine gives to this process. Host and Temporal are required.
type Worker struct {
	// Host makes the agents. Its store is the one of all workers of the queue, and of their clients.
	Host *inspan.Host
	// Open opens sessions in place of the host, which then makes no agents. Nil: the host does.
	Open func(ctx context.Context, id string) (*inspan.Session, error)
	// Temporal is a connection to the namespace of the sessions.
	Temporal client.Client
	// Queue is where sessions wait for a worker; empty: "inspan".
	Queue string
	// AtOnce is how many sessions are driven here at the same time; 0: 100.
	AtOnce int
	// Drain is how long calls and requests that run may go on once the worker stops; 0: 10 minutes.
	Drain time.Duration
	// Beat is how often progress is reported; 0: every 5 seconds. It is well below the heartbeat
	// timeout of clients.
	Beat time.Duration
	// Rest is how long a wait for a model may be that is sat out here. The worker lets go of a session
	// that has to wait for longer, and a timer of the workflow brings it back; 0: a minute.
	Rest time.Duration
	// Saw is told every event of every session that is driven here, transient ones included. It must
	// not block. Nil: nobody is.
	Saw func(event.Event)
}

const usualQueue = "inspan"

// Run drives sessions until stop is closed. Then it takes no more, finishes what runs, and lets go
// of its sessions, with which other workers go on at once.
func (w *Worker) Run(stop <-chan any) error {
	r := worker.New(w.Temporal, cmp.Or(w.Queue, usualQueue), worker.Options{
		MaxConcurrentActivityExecutionSize: cmp.Or(w.AtOnce, 100),
		WorkerStopTimeout:                  cmp.Or(w.Drain, 10*time.Minute),
		// What a worker that died had cached is looked for elsewhere after so long.
		StickyScheduleToStartTimeout: time.Second,
	})
	r.RegisterWorkflowWithOptions(Supervise, workflow.RegisterOptions{Name: WorkflowName})
	t := newTurns(w.Host, cmp.Or(w.Beat, 5*time.Second), cmp.Or(w.Rest, time.Minute), w.Saw)
	if w.Open != nil {
		t.pool.Open = w.Open
	}
	r.RegisterActivityWithOptions(t.Turn, activity.RegisterOptions{Name: TurnName})
	return r.Run(stop)
}
