package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/inspan/inspan/internal/base/jsonrpc"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/tool"
)

const (
	maxBusy    = 1000     // things in progress at a server
	maxRetries = 5        // of a request that the server asks to repeat
	maxWaiting = 64 << 20 // bytes queued for a server
)

// A client is one running server.
type client struct {
	server Server
	root   string // of the project
	env    tool.Env

	conn     *jsonrpc.Conn
	out      *keep.Input
	decoder  jsonrpc.Decoder
	came     bool // the server has sent something
	errors   keep.Tail
	process  tool.Process
	cancel   context.CancelFunc
	dead     chan struct{} // closed when the process has ended; exit is set before
	exit     int
	used     time.Time   // guarded by the lock of the Manager
	answered atomic.Bool // a query has been answered

	caps capabilities // set by initialize
	utf8 bool

	// syncing is held while the server is informed of files; it guards docs and watch.
	syncing chan struct{}
	docs    map[string]*document
	watch   watch

	mu         sync.Mutex
	pushed     map[string]pushed
	busy       map[string]bool // by progress token
	loads      int             // how often it began to be busy
	loaded     bool            // firstLoad has returned true
	registered map[string]bool // methods
	news       chan struct{}   // closed when any of these changed
	touched    time.Time       // when the server last heard of a change
}

// errEnded is the error of calls to an ended server.
var errEnded = errors.New("the language server ended")

func newClient(env tool.Env, server Server, root string) *client {
	c := &client{
		server: server, root: root, env: env, out: keep.NewInput(maxWaiting), dead: make(chan struct{}), syncing: make(chan struct{}, 1),
		docs: map[string]*document{}, pushed: map[string]pushed{}, busy: map[string]bool{}, registered: map[string]bool{},
		news: make(chan struct{}),
	}
	c.conn = jsonrpc.New(context.Background(), jsonrpc.Options{
		Send: func(body []byte) error {
			_, err := c.out.Write(jsonrpc.Header(body))
			return err
		},
		Handle: c.handle, Inline: true, Lenient: true, Withdraw: "$/cancelRequest", WithdrawnID: "id",
	})
	c.decoder.Take = c.conn.Receive
	return c
}

// Write handles the server's output. A server that violates the protocol is ended.
func (c *client) Write(p []byte) (int, error) {
	c.came = c.came || len(p) > 0
	n, err := c.decoder.Write(p)
	if err != nil {
		c.conn.Close(fmt.Errorf("%s: %w: %w", c.server.Name, errEnded, err))
		c.cancel()
	}
	return n, err
}

// handle responds to requests of the server and handles its notifications.
func (c *client) handle(method string, params json.RawMessage, request bool) jsonrpc.Work {
	return func(context.Context) (any, error) {
		if request {
			return c.asked(method, params)
		}
		switch method {
		case "textDocument/publishDiagnostics":
			c.publish(params)
		case "$/progress":
			c.progress(params)
		}
		return nil, nil
	}
}

// launch separates standard output from standard error: the protocol uses descriptor 3. If the program is
// missing it exits with 127.
const launch = `command -v "$1" >/dev/null 2>&1 || exit 127; exec "$@" 1>&3 3>&-`

// missing is the exit code of launch if the program is missing.
const missing = 127

// start starts the process. Then call see.
func (c *client) start(box tool.Box) error {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	process, err := c.env.Procs.Start(ctx, tool.Command{
		Args: append([]string{"sh", "-c", launch, "sh"}, c.server.Command...),
		Dir:  c.root, Stdin: c.out, Output: &c.errors, Report: c, Box: box, Serves: true,
	})
	if err != nil {
		cancel()
		_ = c.out.Close() // never fails
		return err
	}
	c.process = process
	return nil
}

// see waits for the end of the process and cleans up.
func (c *client) see() {
	code, err := c.process.Wait()
	c.exit = code
	c.conn.Close(c.ending(code, err))
	_ = c.out.Close()
	if l, ok := c.process.(ability.Leaver); !ok || l.Left() {
		c.process.Kill()
	}
	c.cancel()
	close(c.dead)
}

func (c *client) ending(code int, err error) error {
	why := fmt.Sprintf("exit code %d", code)
	if err != nil {
		why = err.Error()
	}
	if said := strings.TrimSpace(c.errors.Text()); said != "" {
		why += "; it said last: " + endsOf(said, maxText)
	}
	return fmt.Errorf("%s: %w (%s)", c.server.Name, errEnded, why)
}

// stop ends the server: it requests a shutdown, then kills it.
func (c *client) stop() {
	ctx, done := context.WithTimeout(context.Background(), 2*time.Second)
	defer done()
	if c.conn.Call(ctx, "shutdown", nil, nil) == nil {
		_ = c.conn.Notify("exit", nil) // closing its input has the same meaning
	}
	_ = c.out.Close()
	select {
	case <-c.dead:
	case <-ctx.Done():
	}
	c.cancel()
	<-c.dead
}

func (c *client) alive() bool {
	select {
	case <-c.dead:
		return false
	default:
		return c.conn.Err() == nil
	}
}

// initialize performs the handshake. It sends no process id: in the server's namespace that id may not exist,
// and the server would exit.
func (c *client) initialize(ctx context.Context) error {
	var answer struct {
		Capabilities capabilities `json:"capabilities"`
	}
	params := map[string]any{
		"processId": nil, "clientInfo": map[string]any{"name": "inspan"}, "locale": "en",
		"rootUri": uri(c.root), "rootPath": c.root, "workspaceFolders": []folder{c.folder()},
		"capabilities": abilities(), "initializationOptions": c.server.Options, "trace": "off",
	}
	if err := c.conn.Call(ctx, "initialize", params, &answer); err != nil {
		return err
	}
	c.caps = answer.Capabilities
	c.utf8 = c.caps.PositionEncoding == "utf-8"
	if err := c.conn.Notify("initialized", struct{}{}); err != nil {
		return err
	}
	if c.server.Settings == nil {
		return nil
	}
	return c.conn.Notify("workspace/didChangeConfiguration", map[string]any{"settings": c.server.Settings})
}

func (c *client) folder() folder { return folder{uri(c.root), filepath.Base(c.root)} }

// abilities returns our capabilities. A server must not use others.
func abilities() map[string]any {
	type m = map[string]any
	links := m{"linkSupport": true}
	return m{
		"general": m{"positionEncodings": []string{"utf-8", "utf-16"}},
		"window":  m{"workDoneProgress": true},
		"workspace": m{
			"workspaceFolders": true, "configuration": true, "applyEdit": false,
			"workspaceEdit":         m{"documentChanges": true},
			"didChangeWatchedFiles": m{"dynamicRegistration": true},
			"symbol":                m{},
		},
		"textDocument": m{
			"synchronization": m{"didSave": true},
			"definition":      links, "typeDefinition": links, "implementation": links, "references": m{},
			"hover":              m{"contentFormat": []string{"plaintext", "markdown"}},
			"documentSymbol":     m{"hierarchicalDocumentSymbolSupport": true},
			"rename":             m{},
			"publishDiagnostics": m{"versionSupport": true},
			"diagnostic":         m{"dynamicRegistration": true, "relatedDocumentSupport": false},
		},
	}
}

// asked responds to requests of servers.
func (c *client) asked(method string, params json.RawMessage) (any, error) {
	switch method {
	case "workspace/configuration":
		return c.configuration(params), nil
	case "workspace/workspaceFolders":
		return []folder{c.folder()}, nil
	case "workspace/applyEdit":
		return map[string]any{"applied": false, "failureReason": "edits are not made for servers"}, nil
	case "window/showDocument":
		return map[string]any{"success": false}, nil
	case "client/registerCapability":
		c.register(params)
		return nil, nil
	case "client/unregisterCapability", "window/workDoneProgress/create", "window/showMessageRequest", "workspace/diagnostic/refresh",
		"workspace/semanticTokens/refresh", "workspace/inlayHint/refresh", "workspace/codeLens/refresh", "workspace/inlineValue/refresh", "workspace/foldingRange/refresh":
		return nil, nil
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.UnknownMethod, Message: fmt.Sprintf("%.100q is not known here", method)}
}

func (c *client) configuration(params json.RawMessage) []any {
	var in struct {
		Items []struct {
			Section string `json:"section"`
		} `json:"items"`
	}
	_ = json.Unmarshal(params, &in) // invalid params request nothing
	out := make([]any, len(in.Items))
	for i, item := range in.Items {
		out[i] = c.server.Settings[item.Section]
	}
	return out
}

func (c *client) register(params json.RawMessage) {
	var in struct {
		Registrations []struct {
			Method string `json:"method"`
		} `json:"registrations"`
	}
	_ = json.Unmarshal(params, &in) // invalid params register nothing
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range in.Registrations {
		if len(c.registered) < maxBusy {
			c.registered[r.Method] = true
		}
	}
}

// progress records the server's progress.
func (c *client) progress(params json.RawMessage) {
	var in struct {
		Token json.RawMessage `json:"token"`
		Value struct {
			Kind string `json:"kind"`
		} `json:"value"`
	}
	if json.Unmarshal(params, &in) != nil || len(in.Token) > maxText {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch token := string(in.Token); {
	case in.Value.Kind == "begin" && len(c.busy) < maxBusy:
		c.busy[token] = true
		c.loads++
	case in.Value.Kind == "end":
		delete(c.busy, token)
	default:
		return
	}
	c.stir()
}

// stir wakes the waiters for news. The caller holds the lock.
func (c *client) stir() {
	close(c.news)
	c.news = make(chan struct{})
}

// ask sends a request that the server supports, and repeats it if the server asks for that.
func (c *client) ask(ctx context.Context, method string, params, result any) error {
	if !c.offers(method) {
		return fmt.Errorf("%s does not offer %s", c.server.Name, method)
	}
	for try := 1; ; try++ {
		err := c.conn.Call(ctx, method, params, result)
		if err == nil || errors.Is(err, errEnded) {
			return err
		}
		var refused *jsonrpc.Error
		if !errors.As(err, &refused) || refused.Code != codeContentModified && refused.Code != codeServerCancelled || try >= maxRetries {
			return fmt.Errorf("%s: %w", c.server.Name, err)
		}
		if err := keep.Sleep(ctx, time.Duration(try)*100*time.Millisecond); err != nil {
			return err
		}
	}
}

// offers reports whether the server supports a method.
func (c *client) offers(method string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.registered[method] || offered(c.caps.offer(method))
}

// loading reports whether the server says that it is busy.
func (c *client) loading() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.busy) > 0
}

// begun returns how often the server became busy.
func (c *client) begun() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loads
}

// firstLoad returns true once, after the server was first busy: its earlier results may be incomplete.
func (c *client) firstLoad() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.loads > 0 && !c.loaded
	c.loaded = c.loaded || first
	return first
}

// idle waits until the server is not busy. The error is that of ctx, or says that the server ended.
func (c *client) idle(ctx context.Context) error {
	for {
		c.mu.Lock()
		busy, news := len(c.busy) > 0, c.news
		c.mu.Unlock()
		if !busy {
			return nil
		}
		if err := c.await(ctx, news, 0); err != nil {
			return err
		}
	}
}

// await waits for news, at most limit; 0 is no limit.
func (c *client) await(ctx context.Context, news <-chan struct{}, limit time.Duration) error {
	var late <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-news:
	case <-late:
	case <-c.dead:
		return c.conn.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
