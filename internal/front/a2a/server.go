// Package a2a lets other agents give tasks to ours, over the Agent2Agent protocol 1.0.
//
// A task is a session: its id is the session's, and everything reported about it is read from the session's log
// (task.go), so it is the same after a restart. The context of tasks is the lineage of their sessions: a
// message in a context, but to no task in it, goes to a fork of the last one, which remembers the whole
// conversation. The states:
//
//	submitted       nothing has been done yet
//	working         a run is in progress
//	input-required  a call needs consent, or asks something; a message answers it
//	auth-required   the model refused our key; a message tries again
//	completed       done
//	canceled        interrupted
//	rejected        the model, or a filter, declined
//	failed          a limit was reached, the model is unavailable, or it repeats itself
//
// A run continues whether or not a client is watching. A run that a crash has cut off continues when its task
// is next requested.
//
// The SDK speaks the protocol; none of its types leave this package.
package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/llm"
)

// Server gives tasks to agents that work in one workspace. Set the fields, serve, and Close it. Don't change
// the fields while it serves; the methods are safe for concurrent use.
type Server struct {
	// Host opens the sessions. Its agents must not be Unattended, or no one is asked.
	Host *inspan.Host
	// Root is the workspace.
	Root string
	// Name, Description and Version are for the card; empty means inspan's own.
	Name, Description, Version string
	// DecideHere means that clients may not decide on calls that need consent; someone on this machine decides, for
	// instance with 'inspan send --allow'. Clients may still answer other questions.
	DecideHere bool
	// URL is the address for other agents to reach the server; empty means the address that the card was requested
	// from.
	URL string

	poolOnce sync.Once
	pool     *running.Pool // of the sessions that are driven here

	mu     sync.Mutex
	looks  map[*context.CancelFunc]bool // the cancel functions of requests that only watch
	taken  map[string]begunTasks        // by principal; without an entry, the logs were not read for it yet
	taking map[string]chan struct{}     // messages that are being accepted; closed when that is over
	closed bool
}

const (
	maxRuns = 32               // most runs in progress
	letGo   = 10 * time.Minute // how long a session that waits for an answer stays open
)

func (s *Server) runs() *running.Pool {
	s.poolOnce.Do(func() { s.pool = &running.Pool{Open: s.Host.Open, Most: maxRuns, LetGo: letGo} })
	return s.pool
}

// Handler serves the card below /.well-known, and the JSON-RPC binding everywhere else. It does not
// authenticate requests: put [Gate] before it. Principals see nothing of each other.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+a2asrv.WellKnownAgentCardPath, s.serveCard)
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		v := &handler{server: s, sender: sender(netguard.Principal(r.Header))}
		if version := r.Header.Get(sdk.SvcParamVersion); version != "" && version != "1" && !strings.HasPrefix(version, "1.") {
			v.refused = sdk.ErrVersionNotSupported
		}
		v.serve(w, r)
	})
	return mux
}

// serve lets the SDK read a request.
func (v *handler) serve(w http.ResponseWriter, r *http.Request) {
	req, err := peekRequest(r)
	if err != nil {
		Refuse(w, r, http.StatusBadRequest, "the body can't be read")
		return
	}
	if err := req.paramError(); err != nil {
		v.refused = cmp.Or(v.refused, err)
		id := cmp.Or(string(req.ID), "null")
		r.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{}}`, id, req.Method)))
	}
	if req.Method == "SendStreamingMessage" || req.Method == "SubscribeToTask" {
		w = &earlyError{ResponseWriter: w}
	}
	a2asrv.NewJSONRPCHandler(v).ServeHTTP(w, r)
}

// Gate returns the gate for a server. Anyone may read the card, as the protocol requires.
func Gate() *netguard.Gate {
	return &netguard.Gate{Open: []string{a2asrv.WellKnownAgentCardPath}, Refuse: Refuse}
}

// sender names a principal in the log.
func sender(principal string) string {
	if principal == "" {
		return "a2a"
	}
	return "a2a:" + principal
}

func (s *Server) serveCard(w http.ResponseWriter, r *http.Request) {
	raw, err := json.Marshal(s.card(r))
	if err != nil {
		http.Error(w, "the card can't be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw) // the client may be gone
}

func (s *Server) card(r *http.Request) *sdk.AgentCard {
	url := s.URL
	if url == "" {
		url = "http://" + r.Host + "/"
	}
	name := cmp.Or(s.Name, "inspan")
	about := cmp.Or(s.Description, "Works in the files of one workspace: reads, edits, runs commands, and checks what it did.")
	return &sdk.AgentCard{
		Name: name, Description: about, Version: cmp.Or(s.Version, inspan.Version),
		SupportedInterfaces: []*sdk.AgentInterface{sdk.NewAgentInterface(url, sdk.TransportProtocolJSONRPC)},
		Capabilities:        sdk.AgentCapabilities{Streaming: true},
		DefaultInputModes:   append([]string{"text/plain", "application/json"}, llm.ImageTypes()...),
		DefaultOutputModes:  []string{"text/plain", "application/json"},
		// No securityRequirements: the SDK writes them in a form that readers of the protocol's own definition
		// refuse, and fails on theirs. See docs/decisions/023.
		SecuritySchemes: sdk.NamedSecuritySchemes{"token": sdk.HTTPAuthSecurityScheme{Scheme: "Bearer"}},
		Skills: []sdk.AgentSkill{{
			ID: "work", Name: "Work in the workspace", Description: about, Tags: []string{"code", "files", "commands"},
			Examples: []string{"A test fails. Find the bug, fix it, and show that the tests pass."},
		}},
	}
}

// Close stops all work here like a crash: the logs keep all events so far, and tasks continue when they are next
// requested. It waits for the end.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for end := range s.looks {
		(*end)()
	}
	s.mu.Unlock()
	s.runs().Close()
}

// untilServerEnds returns ctx, also ended by the server's end, for a client that waits for the work of others.
func (s *Server) untilServerEnds(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		cancel()
	}
	if s.looks == nil {
		s.looks = map[*context.CancelFunc]bool{}
	}
	s.looks[&cancel] = true
	return ctx, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.looks, &cancel)
	}
}

// handler is one request of one principal.
type handler struct {
	server  *Server
	sender  string
	refused error // why the request is refused
}

var _ a2asrv.RequestHandler = (*handler)(nil)

// GetTaskPushConfig implements [a2asrv.RequestHandler], like those below.
func (v *handler) GetTaskPushConfig(context.Context, *sdk.GetTaskPushConfigRequest) (*sdk.PushConfig, error) {
	return nil, sdk.ErrPushNotificationNotSupported
}

func (v *handler) ListTaskPushConfigs(context.Context, *sdk.ListTaskPushConfigRequest) (*sdk.ListTaskPushConfigResponse, error) {
	return nil, sdk.ErrPushNotificationNotSupported
}

func (v *handler) CreateTaskPushConfig(context.Context, *sdk.PushConfig) (*sdk.PushConfig, error) {
	return nil, sdk.ErrPushNotificationNotSupported
}

func (v *handler) DeleteTaskPushConfig(context.Context, *sdk.DeleteTaskPushConfigRequest) error {
	return sdk.ErrPushNotificationNotSupported
}

func (v *handler) GetExtendedAgentCard(context.Context, *sdk.GetExtendedAgentCardRequest) (*sdk.AgentCard, error) {
	return nil, sdk.ErrExtendedCardNotConfigured
}
