package temporal

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
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
	// Host makes the agents. Its store is the one of all workers of the queue, and of their clients. If
	// it knows which sessions have lost their process, like that of engine/postgres, another worker goes
	// on with those soon after that. Else it is the heartbeat timeout of clients that counts.
	Host *inspan.Host
	// Open opens sessions in place of the host, which then makes no agents. Nil: the host does.
	Open func(ctx context.Context, id string) (*inspan.Session, error)
	// Temporal is a connection to the namespace of the sessions.
	Temporal client.Client
	// Namespace is its name; empty: "default".
	Namespace string
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
	atOnce, drain := cmp.Or(w.AtOnce, 100), cmp.Or(w.Drain, 10*time.Minute)
	host, _ := os.Hostname()
	identity := fmt.Sprint(os.Getpid(), "@", host, "@", rand.Text()) // two pods may have one name, and the same number
	r := worker.New(w.Temporal, cmp.Or(w.Queue, usualQueue), worker.Options{
		Identity:                           identity,
		MaxConcurrentActivityExecutionSize: atOnce,
		WorkerStopTimeout:                  drain,
		// What a worker that died had cached is looked for elsewhere after so long.
		StickyScheduleToStartTimeout: 250 * time.Millisecond,
	})
	r.RegisterWorkflowWithOptions(Supervise, workflow.RegisterOptions{Name: WorkflowName})
	t := newTurns(w.Host, cmp.Or(w.Beat, 5*time.Second), cmp.Or(w.Rest, time.Minute), w.Saw)
	if w.Open != nil {
		t.pool.Open = w.Open
	}
	r.RegisterActivityWithOptions(t.Turn, activity.RegisterOptions{Name: TurnName})
	rescue := rescuer{
		turns: t, client: w.Temporal, namespace: cmp.Or(w.Namespace, client.DefaultNamespace), identity: identity,
		atOnce: atOnce, drain: drain, taking: map[string]bool{},
	}
	return beside(rescue.run, r.Run, stop)
}

// beside runs one thing beside another until stop is closed or sends, or the other ends.
func beside(one func(context.Context), other func(<-chan any) error, stop <-chan any) error {
	ctx, end := context.WithCancel(context.Background())
	ends := make(chan any)
	var work sync.WaitGroup
	work.Go(func() { one(ctx) })
	work.Go(func() {
		select {
		case <-stop:
			end()
		case <-ctx.Done():
		}
		close(ends)
	})
	err := other(ends)
	end()
	work.Wait()
	return err
}
