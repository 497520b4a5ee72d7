package temporal_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/engine/postgres/dispatch"
	"github.com/inspan/inspan/engine/temporal"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// asWorker has this program be a worker, by a [conf].
const asWorker = "INSPAN_TEST_WORKER"

// Who decides which worker drives a session.
const (
	byTemporal = ""
	byDatabase = "PostgreSQL alone"
	byFolder   = "local folder"
)

// conf is the configuration that the workers of a test share.
type conf struct {
	Temporal, Queue, URL, Schema, Dir, Root, Script string
	Lease, Beat                                     time.Duration
	Kind                                            string           // who decides
	State                                           string           // folder of the sessions, if they are local
	Open                                            bool             // gates let everything through
	Apart                                           bool             // each session has a ledger of its own
	Greedy                                          bool             // it tries to drive what others drive
	Bulk                                            int              // so many bytes are in each result
	Version                                         int              // of the agents
	AtOnce                                          int              // sessions that a worker drives
	Spaces, Copies                                  string           // folders of workspaces that travel, and of what is known of them here
	Bucket                                          *postgres.Bucket // of large blobs
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
	host := c.host(s)
	open := c.carried(host, c.carriers(s))
	if c.Kind == byDatabase && !c.Greedy {
		ctx, stop := context.WithCancel(context.Background())
		go func() { <-worker.InterruptCh(); stop() }()
		err := c.engine(s).Work(ctx, running.Work{Open: open, AtOnce: c.AtOnce, Drain: 10 * time.Second, OnEvent: c.saw})
		return errors.Join(err, s.Close())
	}
	if c.Kind != byTemporal {
		p := peer{host: host, open: open, lease: c.Lease, greedy: c.Greedy, saw: c.saw}
		p.run(worker.InterruptCh())
		return s.Close()
	}
	conn, err := client.Dial(client.Options{HostPort: c.Temporal})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	defer conn.Close()
	w := temporal.Worker{Host: host, Open: open, Temporal: conn, Queue: c.Queue, AtOnce: c.AtOnce, Beat: c.Beat, OnEvent: c.saw}
	return errors.Join(w.Run(worker.InterruptCh()), s.Close())
}

// closing is a store that is closed after use.
type closing interface {
	store.Store
	Close() error
}

// folder is a store that need not be.
type folder struct{ *session.Store }

func (folder) Close() error { return nil }

func (c conf) open(ctx context.Context) (closing, error) {
	if c.Kind == byFolder {
		return folder{&session.Store{Dir: cmp.Or(c.State, filepath.Join(c.Dir, "state"))}}, nil
	}
	return postgres.Open(ctx, postgres.Config{URL: c.URL, Schema: c.Schema, Lease: c.Lease, Conns: 8, Bucket: c.Bucket})
}

// engine is the engine of a store in PostgreSQL.
func (c conf) engine(s store.Store) *dispatch.Engine {
	return &dispatch.Engine{Store: s.(*postgres.Store)}
}

// append appends a line to a file that all workers append to.
func (c conf) append(name, line string) error {
	f, err := os.OpenFile(filepath.Join(c.Dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// saw keeps which events the store has acknowledged, if sessions are apart.
func (c conf) saw(e event.Event) {
	if line, err := event.Encode(e); err == nil && e.Seq > 0 && c.Apart {
		_ = c.append("acknowledged."+e.Session, string(line)) // the log of the test would tell less
	}
}

func (c conf) gate(n int) string { return filepath.Join(c.Dir, fmt.Sprint("gate", n)) }

// note appends to the ledger.
func (c conf) note(call *tool.Call, what string, n int) error {
	name := "ledger"
	if c.Apart {
		name += "." + call.Session
	}
	return c.append(name, fmt.Sprintf("%s%d,%d", what, n, os.Getpid()))
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

// host makes agents that follow the script. Their tools write into the ledger: step changes something at once, look
// only reads and waits at a gate, push changes something in front of a gate and after it, and ask asks before it
// does.
func (c conf) host(s store.Store) *inspan.Host {
	do := func(name string, effects []tool.Effect, f func(ctx context.Context, call *tool.Call, n int) error) tool.Tool {
		about := "Does " + name + []string{".", "!"}[c.Version]
		t := tool.New(name, about, func(ctx context.Context, call *tool.Call, in step) (tool.Result, error) {
			return tool.Text(fmt.Sprint("finished ", in.N, noise(in.N, c.Bulk))), f(ctx, call, in.N)
		})
		t.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return effects, nil }
		return t
	}
	changes := []tool.Effect{{Kind: tool.External, Text: "the ledger", SendsOnly: true}}
	steps := func(_ context.Context, call *tool.Call, n int) error { return c.note(call, "step", n) }
	look := func(ctx context.Context, call *tool.Call, n int) error {
		return errors.Join(c.note(call, "look", n), c.pass(ctx, n))
	}
	push := func(ctx context.Context, call *tool.Call, n int) error {
		if err := errors.Join(c.note(call, "push", n), c.pass(ctx, n)); err != nil {
			return err
		}
		return c.note(call, "pushed", n)
	}
	tools := []tool.Tool{
		do("step", changes, steps), do("look", nil, look), do("push", changes, push),
		do("ask", []tool.Effect{{Kind: tool.Question, Text: "May I?"}}, steps),
	}
	if c.Spaces != "" {
		tools = append(tools, c.inWorkspace()...)
	}
	return &inspan.Host{Store: s, Dir: c.Dir, Agent: func(context.Context, inspan.SessionSpec) (*inspan.Agent, error) {
		model, err := script.Parse([]byte(c.Script))
		return &inspan.Agent{Model: model, Tools: tools, Mode: "yolo"}, err
	}}
}

// noise is a text that does not compress.
func noise(seed, size int) string {
	out, random := make([]byte, size), rand.New(rand.NewPCG(uint64(seed), 1))
	for i := range out {
		out[i] = 'a' + byte(random.IntN(26))
	}
	return string(out)
}
