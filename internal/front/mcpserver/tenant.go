package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/tool"
)

// sessionless is the first revision without sessions and without requests to clients.
const sessionless = "2026-07-28"

// tenant holds everything of one principal, inaccessible to others.
type tenant struct {
	server    *Server
	principal string
	tools     []tool.Tool
	sdk       *sdk.Server
	stateful  http.Handler
	stateless http.Handler

	ctx    context.Context // of all work in it
	cancel context.CancelFunc
	wg     sync.WaitGroup // calls, and waits for the end of connections

	mu          sync.Mutex
	works       int
	connections map[string]*connection // by HTTP session; "" is for requests without one
	parked      map[string]*parked     // questions that a client was told about, by key
	prompts     []string               // names of the offered skills
	closed      bool
}

// serveHTTP passes a request to the handler for its revision.
func (r *tenant) serveHTTP(w http.ResponseWriter, req *http.Request) {
	newer, err := isSessionless(req)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
	case err != nil:
		http.Error(w, "the body can't be read", http.StatusBadRequest)
	case newer:
		r.stateless.ServeHTTP(w, req)
	default:
		if req.Method == http.MethodDelete {
			r.mu.Lock()
			id := req.Header.Get("Mcp-Session-Id")
			if d := r.connections[id]; d != nil && id != "" {
				d.cancel() // the end of the HTTP session would wait for its work
			}
			r.mu.Unlock()
		}
		r.stateful.ServeHTTP(w, req)
	}
}

// isSessionless reports whether a request is of a revision without sessions. A request whose header lacks that
// may still say so in its body: then the handler of that revision must report the mistake.
func isSessionless(req *http.Request) (bool, error) {
	if v := req.Header.Get("Mcp-Protocol-Version"); v != "" || req.Method != http.MethodPost {
		return v >= sessionless, nil
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	if err != nil {
		return false, err
	}
	req.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), req.Body), req.Body}
	var m struct {
		Params struct {
			Meta map[string]any `json:"_meta"`
		} `json:"params"`
	}
	_ = json.Unmarshal(body, &m) // the next reader reports errors
	v, _ := m.Params.Meta[sdk.MetaKeyProtocolVersion].(string)
	return v != "", nil
}

// registerTools registers the tools, and the agent if there is one.
func (r *tenant) registerTools() {
	for _, t := range r.tools {
		r.sdk.AddTool(toolForClient(t), func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return r.handle(ctx, req, func(w *clientCall, d *connection) *sdk.CallToolResult { return d.call(w, t.Name, req.Params.Arguments) })
		})
	}
	if r.server.Host != nil {
		r.sdk.AddTool(agentTool(), r.runAgent)
		r.sdk.AddResourceTemplate(&sdk.ResourceTemplate{
			URITemplate: sessionScheme + "{id}", Name: "session", MIMEType: "text/markdown",
			Description: "The transcript of a session that run_agent returned, as far as it is",
		}, r.transcript)
	}
}

// toolForClient returns a tool in the form for clients.
func toolForClient(t tool.Tool) *sdk.Tool {
	closed := false
	out := &sdk.Tool{Name: t.Name, Description: t.Doc, InputSchema: t.Schema, Annotations: &sdk.ToolAnnotations{}}
	if slices.Contains([]string{"read_file", "list_files", "find_files", "search_files", "view_image", "lsp"}, t.Name) {
		out.Annotations.ReadOnlyHint, out.Annotations.OpenWorldHint = true, &closed
	}
	return out
}

// connection returns the connection that a request came on.
func (r *tenant) connection(ss *sdk.ServerSession) (*connection, error) {
	id := ss.ID()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	if d := r.connections[id]; d != nil {
		return d, nil
	}
	d := &connection{tenant: r}
	d.ctx, d.cancel = context.WithCancel(r.ctx)
	r.connections[id] = d
	if id != "" {
		r.wg.Go(func() { // until the HTTP session ends
			_ = ss.Wait() // regardless of how it ended
			r.mu.Lock()
			d := r.connections[id]
			delete(r.connections, id)
			r.mu.Unlock()
			if d != nil {
				d.close()
			}
		})
	}
	return d, nil
}

// close ends all work, and waits for it.
func (r *tenant) close() {
	r.cancel()
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	for ss := range r.sdk.Sessions() {
		_ = ss.Close() // regardless of how it ended
	}
	r.wg.Wait()
	r.mu.Lock()
	connections := r.connections
	r.connections = nil
	r.mu.Unlock()
	for _, d := range connections {
		d.close()
	}
}
