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
	"github.com/inspan/inspan/tool"
)

const (
	maxBusy    = 1000     // things a server is said to be doing
	maxRetries = 5        // of what a server asks to ask again
	maxWaiting = 64 << 20 // bytes that wait for a server to read them
)

// A client is one running server.
type client struct {
	server Server
	root   string // of the project
	env    tool.Env

	conn     *jsonrpc.Conn
	out      *keep.Input
	decoder  jsonrpc.Decoder
	came     bool // something has come from the server
	errors   keep.Tail
	process  tool.Process
	cancel   context.CancelFunc
	dead     chan struct{} // closed when the process has ended; exit is set before
	exit     int
	used     time.Time   // guarded by the lock of the Manager
	answered atomic.Bool // a query has been answered

	caps capabilities // set by initialize
	utf8 bool

	// syncing is held while the server is told of files; it guards docs and watch.
	syncing chan struct{}
	docs    map[string]*document
	watch   watch

	mu         sync.Mutex
	pushed     map[string]pushed
	busy       map[string]bool // by token of its progress
	loads      int             // how often it began to be busy
	loaded     bool            // firstLoad was true
	registered map[string]bool // methods
	news       chan struct{}   // closed when any of these changed
	touched    time.Time       // when the server last heard of a change
}

// errEnded is what calls of a server that has ended get.
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

// Write takes what the server writes. One that does not speak the protocol is
// ended.
func (c *client) Write(p []byte) (int, error) {
	c.came = c.came || len(p) > 0
	n, err := c.decoder.Write(p)
	if err != nil {
		c.conn.Close(fmt.Errorf("%s: %w: %w", c.server.Name, errEnded, err))
		c.cancel()
	}
	return n, err
}

// handle answers requests of the server and takes its notifications.
func (c *client) handle(method string, params json.RawMessage, request bool) jsonrpc.Work {
	return func(context.Context) (any, error) {
		if request {
			return c.asked(method, params)
		}
		c.heard(method, params)
		return nil, nil
	}
}

// launch keeps standard output apart from standard error: the protocol comes
// through descriptor 3. A program that is not there ends it with 127.
const launch = `command -v "$1" >/dev/null 2>&1 || exit 127; exec "$@" 1>&3 3>&-`

// missing is how launch ends if there is no such program.
const missing = 127

// start starts the process. See is to be called then.
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

// see waits for the end of the process and cleans up behind it.
func (c *client) see() {
	code, err := c.process.Wait()
	c.exit = code
	c.conn.Close(c.ending(code, err))
	_ = c.out.Close()
	if l, ok := c.process.(tool.Leaver); !ok || l.Left() {
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

// stop ends the server: it is asked to, then it must.
func (c *client) stop() {
	ctx, done := context.WithTimeout(context.Background(), 2*time.Second)
	defer done()
	if c.conn.Call(ctx, "shutdown", nil, nil) == nil {
		_ = c.conn.Notify("exit", nil) // closing its input says the same
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

// initialize introduces the two. The process id is not told, as the server may
// have numbers of its own and would take us for dead.
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

// abilities are what we can do. What is not listed a server must not do.
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

// asked answers what servers ask.
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
	_ = json.Unmarshal(params, &in) // what can't be read asks for nothing
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
	_ = json.Unmarshal(params, &in) // what can't be read registers nothing
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range in.Registrations {
		if len(c.registered) < maxBusy {
			c.registered[r.Method] = true
		}
	}
}

// heard takes what servers tell.
func (c *client) heard(method string, params json.RawMessage) {
	switch method {
	case "textDocument/publishDiagnostics":
		c.publish(params)
	case "$/progress":
		c.progress(params)
	}
}

// progress keeps what the server is doing.
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

// stir wakes who waits for news. The lock is held.
func (c *client) stir() {
	close(c.news)
	c.news = make(chan struct{})
}

// ask sends a request that the server can answer, again if it says so.
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

// offers reports whether the server can answer a method.
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

// begun is how often the server became busy.
func (c *client) begun() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loads
}

// firstLoad is true once, after the server was first busy: what it said until
// then may be the half of it.
func (c *client) firstLoad() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.loads > 0 && !c.loaded
	c.loaded = c.loaded || first
	return first
}

// idle waits until the server is not busy. The error is that of ctx, or says
// that the server ended.
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

// await returns at news, or when the time is over; 0 is no limit.
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
