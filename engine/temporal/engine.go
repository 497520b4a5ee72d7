package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/store"
)

// Engine is Temporal as the engine of servers: [running.Engine].
type Engine struct {
	client    Client
	namespace string
}

var _ running.Engine = (*Engine)(nil)

// Connect connects to the engine at a URL such as temporal://host:7233/namespace?queue=inspan, for sessions of
// a store. Missing parts, TLS and keys come from the variables that Temporal's own programs use, which are
// removed from the environment. Parameters: queue, the task queue; heartbeat, how long a worker may be silent,
// such as 30s; searchable=true, see [Client].
func Connect(ctx context.Context, address string, s store.Store) (*Engine, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "temporal" || u.User != nil {
		return nil, errors.New("the engine's URL can't be read; it looks like temporal://host:7233/namespace")
	}
	e := &Engine{client: Client{Store: s, Queue: u.Query().Get("queue")}}
	for name, values := range u.Query() {
		switch name {
		case "queue":
		case "heartbeat":
			e.client.Heartbeat, err = time.ParseDuration(values[0])
		case "searchable":
			e.client.Searchable, err = strconv.ParseBool(values[0])
		default:
			err = errors.New("it is unknown; use queue, heartbeat or searchable")
		}
		if err != nil {
			return nil, fmt.Errorf("parameter %s of the engine's URL: %w", name, err)
		}
	}
	host := u.Host
	if host != "" && u.Port() == "" {
		host += ":7233"
	}
	o, err := Options(host, strings.Trim(u.Path, "/"))
	if err != nil {
		return nil, err
	}
	e.namespace = o.Namespace
	if e.client.Temporal, err = client.DialContext(ctx, o); err != nil {
		return nil, fmt.Errorf("connect to Temporal at %s: %w", o.HostPort, err)
	}
	return e, nil
}

// Options returns the options for connecting to Temporal: to a host:port and a namespace if they are not empty,
// and otherwise according to its usual variables. Agents don't get these: they are removed from the
// environment.
func Options(host, namespace string) (client.Options, error) {
	o, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return o, fmt.Errorf("settings of Temporal: %w", err)
	}
	o.HostPort, o.Namespace = cmp.Or(host, o.HostPort), cmp.Or(namespace, o.Namespace)
	o.Logger = log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "TEMPORAL_") {
			if err := os.Unsetenv(name); err != nil {
				return o, err
			}
		}
	}
	return o, nil
}

// Wake implements [running.Engine].
func (e *Engine) Wake(ctx context.Context, session string, said event.Body) error {
	if d, ok := said.(event.Decided); ok {
		return e.client.decided(ctx, session, d)
	}
	return e.client.Wake(ctx, session, "")
}

// severalTries is how many turns must fail before a session counts as stuck: they take 15 s.
const severalTries = 4

// Stuck implements [running.Engine].
func (e *Engine) Stuck(ctx context.Context, session string) (why string, err error) {
	d, err := e.client.Describe(ctx, session)
	switch _, none := errors.AsType[*serviceerror.NotFound](err); {
	case none:
		return "", nil
	case err != nil || !d.Resting || d.Attempt <= severalTries:
		return "", err
	}
	return d.Failure, nil
}

// Work implements [running.Engine].
func (e *Engine) Work(ctx context.Context, w running.Work) error {
	worker := Worker{
		Host: &inspan.Host{Store: e.client.Store}, Open: w.Open, Temporal: e.client.Temporal, Namespace: e.namespace,
		Queue:  e.client.Queue,
		AtOnce: w.AtOnce, Drain: w.Drain, OnEvent: w.OnEvent,
	}
	if e.client.Heartbeat > 0 {
		worker.Beat = e.client.Heartbeat / 4
	}
	stop := make(chan any)
	defer context.AfterFunc(ctx, func() { close(stop) })()
	return worker.Run(stop)
}

// Close implements [running.Engine].
func (e *Engine) Close() error {
	e.client.Temporal.Close()
	return nil
}
