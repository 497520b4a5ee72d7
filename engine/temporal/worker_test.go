package temporal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/engine/temporal"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// asWorker has this program be a worker, by a [conf].
const asWorker = "INSPAN_TEST_WORKER"

// conf is what workers of a test share.
type conf struct {
	Temporal, Queue, URL, Schema, Dir, Root, Script string
	Lease, Beat                                     time.Duration
	Open                                            bool // gates let everything through
}

// work is a worker process: it drives sessions until SIGTERM.
func work(raw string) error {
	var c conf
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		return err
	}
	s, err := c.open(context.Background())
	if err != nil {
		return err
	}
	conn, err := client.Dial(client.Options{HostPort: c.Temporal})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	defer conn.Close()
	w := temporal.Worker{Host: c.host(s), Temporal: conn, Queue: c.Queue, Beat: c.Beat}
	return errors.Join(w.Run(worker.InterruptCh()), s.Close())
}

func (c conf) open(ctx context.Context) (*postgres.Store, error) {
	return postgres.Open(ctx, postgres.Config{URL: c.URL, Schema: c.Schema, Lease: c.Lease, Conns: 8})
}

func (c conf) gate(n int) string { return filepath.Join(c.Dir, fmt.Sprint("gate", n)) }

// note appends to the ledger.
func (c conf) note(what string, n int) error {
	f, err := os.OpenFile(filepath.Join(c.Dir, "ledger"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s%d,%d\n", what, n, os.Getpid())
	return errors.Join(err, f.Close())
}

// pass waits for a gate.
func (c conf) pass(ctx context.Context, n int) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !c.Open {
		if _, err := os.Stat(c.gate(n)); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

type step struct{ N int }

// host makes agents that follow the script. Their tools write into the ledger: step changes
// something at once, look only reads and waits at a gate, push changes something in front of a gate
// and behind it, and ask asks before it does.
func (c conf) host(s store.Store) *inspan.Host {
	do := func(name string, effects []tool.Effect, f func(ctx context.Context, n int) error) tool.Tool {
		t := tool.New(name, "Does "+name+".", func(ctx context.Context, _ *tool.Call, in step) (tool.Result, error) {
			return tool.Text(fmt.Sprint("finished ", in.N)), f(ctx, in.N)
		})
		t.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return effects, nil }
		return t
	}
	changes := []tool.Effect{{Kind: tool.External, Text: "the ledger", Gives: true}}
	steps := func(_ context.Context, n int) error { return c.note("step", n) }
	look := func(ctx context.Context, n int) error { return errors.Join(c.note("look", n), c.pass(ctx, n)) }
	push := func(ctx context.Context, n int) error {
		if err := errors.Join(c.note("push", n), c.pass(ctx, n)); err != nil {
			return err
		}
		return c.note("pushed", n)
	}
	tools := []tool.Tool{
		do("step", changes, steps), do("look", nil, look), do("push", changes, push),
		do("ask", []tool.Effect{{Kind: tool.Question, Text: "May I?"}}, steps),
	}
	return &inspan.Host{Store: s, Dir: c.Dir, Agent: func(context.Context, inspan.Place) (*inspan.Agent, error) {
		model, err := script.Parse([]byte(c.Script))
		return &inspan.Agent{Model: model, Tools: tools, Mode: "yolo"}, err
	}}
}
