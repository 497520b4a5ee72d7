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
	// Host makes the agents. Its store is shared by all workers of the queue and their clients. If the store
	// knows which sessions have lost their process, like engine/postgres does, another worker continues them
	// soon after that. Otherwise the clients' heartbeat timeout decides.
	Host *inspan.Host
	// Open opens sessions instead of the host, which then makes no agents. Nil means the host opens them.
	Open func(ctx context.Context, id string) (*inspan.Session, error)
	// Temporal is a connection to the namespace of the sessions.
	Temporal client.Client
	// Namespace is its name; empty means "default".
	Namespace string
	// Queue is where sessions wait for a worker; empty means "inspan".
	Queue string
	// AtOnce is how many sessions are driven here at the same time; 0 means 100.
	AtOnce int
	// Drain is how long running calls and requests may continue after the worker is stopped; 0 means 10 minutes.
	Drain time.Duration
	// Beat is how often progress is reported; 0 means every 5 seconds. It should be well below the clients'
	// heartbeat timeout.
	Beat time.Duration
	// Rest is the longest wait for a model that a worker sits out. It releases a session that has to wait longer,
	// and a timer of the workflow resumes it; 0 means a minute.
	Rest time.Duration
	// OnEvent is called with every event of every session driven here, including transient ones. It must not block.
	// May be nil.
	OnEvent func(event.Event)
}

const usualQueue = "inspan"

// Run drives sessions until stop is closed. Then it accepts no more, finishes running work, and releases its
// sessions, which other workers continue at once.
func (w *Worker) Run(stop <-chan any) error {
	atOnce, drain := cmp.Or(w.AtOnce, 100), cmp.Or(w.Drain, 10*time.Minute)
	host, _ := os.Hostname()
	identity := fmt.Sprint(os.Getpid(), "@", host, "@", rand.Text()) // two pods may have one name, and the same number
	r := worker.New(w.Temporal, cmp.Or(w.Queue, usualQueue), worker.Options{
		Identity:                           identity,
		MaxConcurrentActivityExecutionSize: atOnce,
		WorkerStopTimeout:                  drain,
		// After this time, the cached state of a dead worker is rebuilt elsewhere.
		StickyScheduleToStartTimeout: 250 * time.Millisecond,
	})
	r.RegisterWorkflowWithOptions(Supervise, workflow.RegisterOptions{Name: WorkflowName})
	t := newTurns(w.Host, cmp.Or(w.Beat, 5*time.Second), cmp.Or(w.Rest, time.Minute), w.OnEvent)
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

// beside runs two functions concurrently until stop is closed or sends, or the second one ends.
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
