// Command inspan-worker drives sessions that Temporal gives it. The sessions are in PostgreSQL;
// models, tools and permissions are those of this machine's settings, as for inspan.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/engine/temporal"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/tool"
)

const usage = `inspan-worker drives sessions that Temporal gives it, until SIGTERM. Then it finishes the calls and model
requests that run, and other workers go on with its sessions at once.

Sessions are in PostgreSQL. Each works in its folder, which is the same on all workers. Models, tools and
permissions are those of this machine's settings, as for inspan. A call that asks waits for an answer.

TLS, keys and namespaces of Temporal are also taken from its usual variables, such as TEMPORAL_API_KEY and
TEMPORAL_TLS_CLIENT_CERT_PATH. Commands of agents get neither these nor INSPAN_STORE.

Flags:
`

// flags are those of the command.
type flags struct {
	temporal, store, schema, model, mode string
	lease                                time.Duration

	worker temporal.Worker
}

func main() {
	if ran, code := app.Helper(); ran {
		os.Exit(code)
	}
	var f flags
	fs := flag.CommandLine
	fs.StringVar(&f.temporal, "temporal", "", "`host:port` of Temporal (default $TEMPORAL_ADDRESS, or 127.0.0.1:7233)")
	fs.StringVar(&f.worker.Namespace, "namespace", "", "namespace (default $TEMPORAL_NAMESPACE, or default)")
	fs.StringVar(&f.worker.Queue, "queue", "inspan", "task queue")
	fs.StringVar(&f.store, "store", "", "`URL` of the sessions' database, postgres://...; with a password better in $INSPAN_STORE")
	fs.StringVar(&f.schema, "schema", "", "schema of the tables (default inspan)")
	fs.DurationVar(&f.lease, "lease", 1200*time.Millisecond, "how long this worker may be silent to the database until others take its sessions")
	fs.IntVar(&f.worker.AtOnce, "at-once", 100, "`number` of sessions at the same time")
	fs.DurationVar(&f.worker.Drain, "drain", 10*time.Minute, "how long what runs may go on after SIGTERM")
	fs.StringVar(&f.model, "model", "", "model of new children and of sessions without one, as `provider/model`")
	fs.StringVar(&f.mode, "mode", "", "permission `mode` of sessions (default: the one that each has)")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), usage)
		fs.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "inspan-worker: unexpected argument %q; see inspan-worker -help\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := f.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "inspan-worker:", err)
		os.Exit(1)
	}
}

// run drives sessions until the process is asked to end.
func (f *flags) run(ctx context.Context) (err error) {
	conn, s, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { conn.Close(); err = errors.Join(err, s.Close()) }()
	a, err := app.Load(app.Self())
	if err != nil {
		return err
	}
	app.Use(a, s)
	warn := func(text string) { fmt.Fprintln(os.Stderr, "inspan-worker: "+text) }
	f.worker.Host = a.Host(app.Options{Model: f.model, Mode: tool.Mode(f.mode), Limits: inspan.Limits{RetryLong: true}}, warn)
	f.worker.Temporal = conn
	return f.worker.Run(worker.InterruptCh())
}

// connect connects to Temporal and the database, and removes the variables for that from the environment.
func (f *flags) connect(ctx context.Context) (client.Client, *postgres.Store, error) {
	url := app.StoreOf(f.store)
	if url == "" {
		return nil, nil, errors.New("the database is missing: set --store or INSPAN_STORE")
	}
	if err := os.Unsetenv(app.StoreVariable); err != nil {
		return nil, nil, err
	}
	o, err := temporal.Options(f.temporal, f.worker.Namespace)
	if err != nil {
		return nil, nil, err
	}
	f.worker.Namespace = o.Namespace
	s, err := postgres.Open(ctx, postgres.Config{URL: url, Schema: f.schema, Lease: f.lease})
	if err != nil {
		return nil, nil, err
	}
	conn, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("connect to Temporal at %s: %w", o.HostPort, err), s.Close())
	}
	return conn, s, nil
}
