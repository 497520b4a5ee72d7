package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/view/words"
)

// lastHandshake is the newest revision of the protocol that begins with a handshake.
const lastHandshake = "2025-11-25"

// client is one connection to a server.
type client struct {
	server  Server
	life    context.Context //nolint:containedctx // ends with the connection, as all that goes on for it must
	cancel  context.CancelCauseFunc
	program *program // nil means it is reached over HTTP
	session *sdk.ClientSession
	conn    sdk.Connection // of the transport; nil means there is none yet
	done    chan struct{}  // closed when the connection is over
	changed chan struct{}  // holds one token when the tools or prompts may have changed
	working sync.WaitGroup

	latency time.Duration // of the last reading of the tools; guarded by the Manager

	mu       sync.Mutex
	last     int
	progress map[string]func(string)
	calls    []*patience // of the calls that go on, the one begun last at the end
}

// connect connects to a server and reads its tools. If the newest revision fails, it tries once more with a
// handshake: some old servers end, or say nothing, if the first message is not a handshake.
func (m *Manager) connect(ctx context.Context, s *slot) (*client, *toolset, time.Duration, error) {
	server, err := m.expanded(s.server)
	if err != nil {
		return nil, nil, 0, err
	}
	c, tools, took, err := m.try(ctx, server, s.legacy)
	var final *finalError
	if err == nil || s.legacy || ctx.Err() != nil || errors.As(err, &final) {
		return c, tools, took, err
	}
	c, tools, took, again := m.try(ctx, server, true)
	if again != nil {
		return nil, nil, 0, err
	}
	s.legacy = true
	return c, tools, took, nil
}

// try connects once. Took is the time of reading the tools.
func (m *Manager) try(ctx context.Context, server Server, legacy bool) (_ *client, _ *toolset, took time.Duration, _ error) {
	c := &client{server: server, done: make(chan struct{}), changed: make(chan struct{}, 1), progress: map[string]func(string){}}
	c.life, c.cancel = context.WithCancelCause(context.Background()) // its end can take longer than ctx lasts
	abort := context.AfterFunc(ctx, func() { c.cancel(ctx.Err()) })
	defer abort()
	patience := m.patience()
	slow := time.AfterFunc(patience, func() { c.cancel(&silentError{patience}) })
	defer slow.Stop()
	err := c.open(m, server, legacy)
	var tools *toolset
	began := time.Now()
	if err == nil {
		tools, err = c.list(c.life)
	}
	if err != nil {
		err = c.ending(err)
		c.close()
		var silent *silentError
		if errors.As(err, &silent) && c.program != nil { // it may have waited for what it does not get
			err = c.program.withRefusals(err)
		}
		return nil, nil, 0, err
	}
	return c, tools, time.Since(began), nil
}

// silentError says that a server did not answer.
type silentError struct{ patience time.Duration }

func (e *silentError) Error() string { return fmt.Sprintf("it did not answer in %v", e.patience) }

func (m *Manager) patience() time.Duration {
	if m.Patience == 0 {
		return connectTime
	}
	return m.Patience
}

// open starts the server, or connects to it, and introduces itself.
func (c *client) open(m *Manager, server Server, legacy bool) error {
	transport, err := c.transport(m, server, legacy)
	if err != nil {
		close(c.done)
		return err
	}
	options := &sdk.ClientSessionOptions{}
	if legacy {
		options.ProtocolVersion = lastHandshake
	}
	peer := sdk.NewClient(&sdk.Implementation{Name: "inspan", Version: "1"}, c.options(m))
	if err := taskMethods(peer); err != nil {
		close(c.done)
		return err
	}
	if c.program != nil {
		//nolint:staticcheck // see options
		peer.AddRoots(&sdk.Root{URI: (&url.URL{Scheme: "file", Path: filepath.ToSlash(m.Env.Root)}).String(), Name: filepath.Base(m.Env.Root)})
	}
	c.session, err = peer.Connect(c.life, &capture{transport, c}, options)
	if err != nil {
		if c.conn != nil {
			_ = c.conn.Close() // it is given up
		}
		close(c.done)
		return err
	}
	c.working.Go(func() {
		defer close(c.done)
		_ = c.session.Wait() // why it is over is asked of the program
	})
	return nil
}

func (c *client) transport(m *Manager, server Server, legacy bool) (sdk.Transport, error) {
	switch server.kind() {
	case Stdio:
	case Inside:
		stream, err := server.Dial(c.life)
		if err != nil {
			return nil, err
		}
		return &sdk.IOTransport{Reader: stream, Writer: stream, MaxLineLength: maxFrame + 1}, nil
	default:
		return remoteTransport(c.life, c.cancel, m, server)
	}
	p, err := c.startProgram(m, server, legacy)
	if err != nil {
		return nil, err
	}
	c.program = p
	c.working.Go(p.awaitExit)
	return p.transport(), nil
}

// startProgram starts the process of a server. It starts at most as many at once as there are processors, so
// that the first ones are ready sooner, and Close has fewer to wait for.
func (c *client) startProgram(m *Manager, server Server, legacy bool) (*program, error) {
	select {
	case m.starting <- struct{}{}:
		defer func() { <-m.starting }()
	case <-c.life.Done():
	}
	if c.life.Err() != nil {
		return nil, context.Cause(c.life)
	}
	return startProgram(m.Env, m.Level, server, legacy, func(line []byte) { m.noise(server, line) })
}

// noise warns the person once if a server sends data that is not a message.
func (m *Manager) noise(server Server, data []byte) {
	m.warnOf("noise of "+server.Name, fmt.Sprintf("The MCP server %s sends invalid messages, which inspan skips, for example: %s",
		server.Name, words.OneLine(printed(string(data[:min(len(data), 500)])), 120)))
}

// capture keeps the transport's connection, which the SDK leaves open after some failures.
type capture struct {
	sdk.Transport
	client *client
}

// Connect implements [sdk.Transport].
func (t *capture) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	if _, is := t.Transport.(*sdk.IOTransport); is && err == nil {
		conn = taskedConn{conn}
	}
	t.client.conn = conn
	return conn, err
}

// options declares the client's capabilities; a server must not ask for others. Programs get their folder as a
// root as long as servers ask for it: revision 2026-07-28 has deprecated that. Remote servers don't need it.
func (c *client) options(m *Manager) *sdk.ClientOptions {
	o := &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{
			Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}},
			Extensions:  map[string]any{taskExtension: map[string]any{}},
		},
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { c.stir() },
		PromptListChangedHandler:    func(context.Context, *sdk.PromptListChangedRequest) { c.stir() },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.heard(r.Params) },
	}
	if c.program != nil {
		o.Capabilities.RootsV2 = &sdk.RootCapabilities{} //nolint:staticcheck // see above
	}
	o.ElicitationHandler = func(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		ctx, stop := c.bound(ctx)
		defer stop()
		return c.elicit(ctx, c.whom(), r.Params)
	}
	if m.Sample != nil {
		c.sampling(o, m.Sample)
	}
	return o
}

func (c *client) stir() {
	select {
	case c.changed <- struct{}{}:
	default: // it is known already
	}
}

// bound returns a ctx that also ends with the connection.
func (c *client) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(context.Cause(c.life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// ending explains an error by the end of the connection, if it has ended.
func (c *client) ending(err error) error {
	if c.program != nil {
		if why := c.program.ended(); why != nil {
			return why
		}
	}
	var known *finalError
	if cause := context.Cause(c.life); cause != nil && !errors.As(err, &known) {
		return cause
	}
	return &saidError{err, words.OneLine(err.Error(), 1000)}
}

// saidError is an error with a server's words, cleaned.
type saidError struct {
	error
	text string
}

func (e *saidError) Error() string { return e.text }
func (e *saidError) Unwrap() error { return e.error }

// close ends the connection and returns when nothing of it is left. Running calls fail.
func (c *client) close() {
	if c.program != nil {
		c.program.stop()
	}
	if c.session != nil {
		late := time.AfterFunc(endTime, func() { c.cancel(errClosed) })
		_ = c.session.Close() // it is over in any case
		late.Stop()
	}
	c.cancel(errClosed)
	c.working.Wait()
}

var errClosed = errors.New("the connection was closed")

// watch calls a function with the progress of a call, identified by the token.
func (c *client) watch(tell func(string)) (token string, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	token = "call-" + strconv.Itoa(c.last)
	c.progress[token] = tell
	return token, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.progress, token)
	}
}

// heard passes progress on.
func (c *client) heard(p *sdk.ProgressNotificationParams) {
	if p == nil {
		return
	}
	token, _ := p.ProgressToken.(string)
	c.mu.Lock()
	tell := c.progress[token]
	c.mu.Unlock()
	if tell == nil {
		return
	}
	text := strconv.FormatFloat(p.Progress, 'g', 6, 64)
	if p.Total > 0 {
		text += " of " + strconv.FormatFloat(p.Total, 'g', 6, 64)
	}
	if said := words.OneLine(p.Message, 300); said != "" {
		text += ": " + said
	}
	tell(text + "\n")
}
