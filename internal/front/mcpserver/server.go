package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/tool"
)

// Server offers tools and agents in one workspace. Set the fields, serve, and Close it. Don't change the fields
// while it serves; the methods are safe for concurrent use.
type Server struct {
	// Host opens the sessions of run_agent. Its agents must not be Unattended, or no one is asked. If nil, there is
	// no run_agent.
	Host *inspan.Host
	// Tools opens the sessions for calls of tools. It ignores the model, the system prompt, the limits and
	// the dynamic tools and instructions of its agents. If nil, there are no tools.
	Tools *inspan.Host
	// Names lists the tools to offer, among those of the agents of Tools. If nil, the [Usual] ones that exist
	// are offered.
	Names []string
	// Skills are offered as prompts, if there are Tools. Nil means there are none.
	Skills *skill.Library
	// Root is the workspace.
	Root string
	// Name and Version identify the server; empty means inspan and its version.
	Name, Version string
	// Patience is how long the answer to a question may take; after that it is a no. 0 means 10 minutes.
	Patience time.Duration

	prepare func(*sdk.ServerOptions) // lets a test offer more; may be nil
	extend  func(*sdk.Server)

	mu      sync.Mutex
	tenants map[string]*tenant // by principal
	specs   []tool.Tool        // the offered tools; nil if not known yet
	closed  bool
}

// ErrClosed means that the server was closed.
var ErrClosed = errors.New("the server is shutting down")

const (
	patience = 10 * time.Minute
	idle     = time.Hour // for an HTTP session without requests
	replay   = 8 << 20   // bytes kept for clients that reconnect to a broken stream
	maxBody  = 16 << 20
)

// Usual returns the tools that are offered by default: those that work in the workspace and beyond, and none
// about a conversation.
func Usual() []string {
	return []string{
		"read_file", "write_file", "edit_file", "edit_lines", "delete_file", "list_files", "find_files", "search_files", "view_image",
		"notebook_edit", "bash", "jobs", "git", "lsp", "web_fetch", "web_search", "http_request",
	}
}

// ServeStdio serves the client at the other end of in and out until in ends, which is not an error, or ctx
// does. It interrupts calls in progress, closes both, and leaves nothing running.
func (s *Server) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	s.mu.Lock()
	r, err := s.newRoomLocked(context.WithoutCancel(ctx), "")
	s.mu.Unlock()
	if err != nil {
		return err
	}
	defer r.close()
	stop := context.AfterFunc(ctx, r.cancel)
	defer stop()
	err = r.sdk.Run(ctx, &lines{in: in, out: out})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) {
		return nil // the client is gone, perhaps during a write
	}
	return err
}

// Handler serves streamable HTTP, in revisions with and without sessions. It does not authenticate requests:
// put a [netguard.Gate] before it. Principals see nothing of each other. Close ends all work.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r, err := s.tenant(req.Context(), netguard.Principal(req.Header))
		if err != nil {
			http.Error(w, "the server can't serve: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		r.serveHTTP(w, req)
	})
}

// Close interrupts the calls of all HTTP clients, and waits for them.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	tenants := s.tenants
	s.tenants = nil
	s.mu.Unlock()
	for _, r := range tenants {
		r.cancel()
	}
	for _, r := range tenants {
		r.close()
	}
}

// tenant returns the tenant of a principal, and creates it at the first request.
func (s *Server) tenant(ctx context.Context, principal string) (*tenant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if r := s.tenants[principal]; r != nil {
		return r, nil
	}
	r, err := s.newRoomLocked(context.WithoutCancel(ctx), principal)
	if err != nil {
		return nil, err
	}
	if s.tenants == nil {
		s.tenants = map[string]*tenant{}
	}
	s.tenants[principal] = r
	return r, nil
}

func (s *Server) newRoomLocked(ctx context.Context, principal string) (*tenant, error) {
	if err := s.findTools(ctx); err != nil {
		return nil, err
	}
	r := &tenant{server: s, principal: principal, tools: s.specs, connections: map[string]*connection{}, parked: map[string]*parked{}}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.sdk = sdk.NewServer(&sdk.Implementation{Name: cmp.Or(s.Name, "inspan"), Version: cmp.Or(s.Version, inspan.Version)}, s.options())
	r.registerTools()
	if s.Tools != nil && s.Skills != nil {
		r.sdk.AddReceivingMiddleware(r.withSkills)
	}
	if s.extend != nil {
		s.extend(r.sdk)
	}
	get := func(*http.Request) *sdk.Server { return r.sdk }
	events := sdk.NewMemoryEventStore(nil)
	events.SetMaxBytes(replay)
	// The gate has checked Host and Origin, and knows names that the SDK does not.
	r.stateful = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		EventStore: events, SessionTimeout: idle, MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true,
	})
	r.stateless = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true,
	})
	return r, nil
}

func (s *Server) options() *sdk.ServerOptions {
	o := &sdk.ServerOptions{
		Instructions: "These tools work in the folder " + s.Root +
			". Calls are judged: what is not allowed asks the person, where the client can do that, and is denied else.",
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
	}
	if s.Tools != nil && s.Skills != nil {
		o.Capabilities.Prompts = &sdk.PromptCapabilities{}
	}
	if s.Host != nil {
		o.Capabilities.Resources = &sdk.ResourceCapabilities{}
	}
	if s.prepare != nil {
		s.prepare(o)
	}
	return o
}

// findTools finds out which tools exist, once.
func (s *Server) findTools(ctx context.Context) error {
	if s.Tools == nil || s.specs != nil {
		return nil
	}
	a, err := s.Tools.Agent(ctx, inspan.SessionSpec{Root: s.Root})
	if err != nil {
		return err
	}
	if a.Lifecycle.Close != nil {
		defer func() { _ = a.Lifecycle.Close() }() // it has started nothing
	}
	s.specs, err = selectTools(a.Tools, s.Names)
	return err
}

// selectTools returns the tools with these names, or the usual ones if there are no names.
func selectTools(list []tool.Tool, names []string) ([]tool.Tool, error) {
	var have []string
	for _, t := range list {
		have = append(have, t.Name)
	}
	for _, name := range names {
		if slices.Contains(have, name) {
			continue
		}
		if near := text.Nearest(name, have); near != "" {
			return nil, fmt.Errorf("there is no tool %q; did you mean %q?", name, near)
		}
		return nil, fmt.Errorf("there is no tool %q", name)
	}
	if names == nil {
		names = Usual()
	}
	return slices.DeleteFunc(slices.Clone(list), func(t tool.Tool) bool { return !slices.Contains(names, t.Name) }), nil
}
