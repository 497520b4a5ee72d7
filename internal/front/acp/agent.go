package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/jsonrpc"
	"github.com/inspan/inspan/internal/install/config"
)

// agent serves one client.
type agent struct {
	*Server
	conn *jsonrpc.Conn

	mu       sync.Mutex
	client   wire.ClientCapabilities
	extras   extras
	sessions map[string]*session // open sessions, by id

	looking sync.Once
	found   []string // models of local servers; guarded by mu
}

// slowPart is the slow part of a request.
type slowPart = jsonrpc.Work

func newAgent(ctx context.Context, s *Server, out *jsonrpc.Outbox) *agent {
	a := &agent{Server: s, sessions: map[string]*session{}}
	a.conn = jsonrpc.New(ctx, jsonrpc.Options{
		Send: func(body []byte) error {
			out.Put(body)
			return nil // the outbox reports failed writes
		},
		Handle: a.answer, Withdraw: "$/cancel_request", WithdrawnID: "requestId", Log: s.logf,
	})
	return a
}

// read reads the client's messages until in ends or the conversation does.
func (a *agent) read(in io.Reader) error {
	err := jsonrpc.Lines(in, func(body []byte) bool {
		switch {
		case a.conn.Err() != nil:
			return false
		case body == nil:
			a.conn.TooLong(jsonrpc.MaxLine)
		default:
			a.conn.Receive(body)
		}
		return true
	})
	if err != nil && a.conn.Err() == nil {
		return fmt.Errorf("read from the client: %w", err)
	}
	return nil // errors after the end are not failures
}

// answer handles a message. A request without a result is answered with an object, as clients expect.
func (a *agent) answer(method string, params json.RawMessage, _ bool) jsonrpc.Work {
	do := a.handle(method, params)
	if do == nil {
		return nil
	}
	return func(ctx context.Context) (any, error) {
		result, err := do(ctx)
		if result == nil && err == nil {
			result = struct{}{}
		}
		return result, err
	}
}

// notify sends a notification.
func (a *agent) notify(method string, params any) {
	if err := a.conn.Notify(method, params); err != nil {
		a.logf("%v", err)
	}
}

// handle does the part of a request that must happen in order, and returns the rest.
func (a *agent) handle(method string, params json.RawMessage) slowPart {
	switch method {
	case wire.AgentMethodInitialize:
		return decodeThen(params, a.initialize)
	case wire.AgentMethodAuthenticate:
		return decodeThen(params, a.authenticate)
	case wire.AgentMethodSessionNew:
		return decodeThen(params, a.newSession)
	case wire.AgentMethodSessionLoad:
		return decodeThen(params, a.load)
	case wire.AgentMethodSessionResume:
		return decodeThen(params, a.resume)
	case wire.AgentMethodSessionFork:
		return decodeThen(params, a.fork)
	case wire.AgentMethodSessionList:
		return decodeThen(params, a.list)
	case wire.AgentMethodSessionClose:
		return decodeThen(params, a.closeSession)
	case wire.AgentMethodSessionDelete:
		return decodeThen(params, a.remove)
	case methodSetTitle:
		return decodeThen(params, a.setTitle)
	case wire.AgentMethodSessionPrompt:
		return inOrder(params, a.prompt)
	case wire.AgentMethodSessionCancel:
		return inOrder(params, a.cancel)
	case wire.AgentMethodSessionSetMode:
		return inOrder(params, a.setMode)
	case wire.AgentMethodSessionSetConfigOption:
		return inOrder(params, a.setOption)
	case methodSteer:
		return decodeThen(params, a.steer)
	case methodQueue:
		return decodeThen(params, a.queue)
	}
	return failWith(&jsonrpc.Error{Code: jsonrpc.UnknownMethod, Message: "Method not found", Data: map[string]any{"method": method}})
}

// failWith returns work that fails at once.
func failWith(err error) slowPart {
	return func(context.Context) (any, error) { return nil, err }
}

// decodeThen decodes params for work in the background.
func decodeThen[P any](params json.RawMessage, do func(context.Context, P) (any, error)) slowPart {
	return inOrder(params, func(p P) slowPart {
		return func(ctx context.Context) (any, error) { return do(ctx, p) }
	})
}

// inOrder decodes params for work that begins before the next message is handled.
func inOrder[P any](params json.RawMessage, begin func(P) slowPart) slowPart {
	var p P
	if len(bytes.TrimSpace(params)) == 0 {
		params = json.RawMessage("{}")
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return failWith(invalid("%v", err))
	}
	return begin(p)
}

// initialization is initialize, with fields that the SDK does not read.
type initialization struct {
	wire.InitializeRequest
	extras extras
}

func (i *initialization) UnmarshalJSON(raw []byte) error {
	var more struct {
		Client extras `json:"clientCapabilities"`
	}
	_ = json.Unmarshal(raw, &more) // fields of other types are ignored
	i.extras = more.Client
	return json.Unmarshal(raw, &i.InitializeRequest)
}

func (a *agent) initialize(ctx context.Context, p initialization) (any, error) {
	a.mu.Lock()
	a.client, a.extras = p.ClientCapabilities, p.extras
	a.mu.Unlock()
	meta := map[string]any{"inspan": map[string]any{"steer": methodSteer, "queue": methodQueue}}
	return addFields(wire.InitializeResponse{
		ProtocolVersion: wire.ProtocolVersionNumber,
		AgentInfo:       &wire.Implementation{Name: "inspan", Title: wire.Ptr("inspan"), Version: inspan.Version},
		AuthMethods:     a.authMethods(ctx),
		AgentCapabilities: wire.AgentCapabilities{
			Meta: meta, LoadSession: true,
			PromptCapabilities: wire.PromptCapabilities{Image: true, EmbeddedContext: true},
			McpCapabilities:    wire.McpCapabilities{Http: true, Sse: true},
			SessionCapabilities: wire.SessionCapabilities{
				AdditionalDirectories: &wire.SessionAdditionalDirectoriesCapabilities{},
				Close:                 &wire.SessionCloseCapabilities{}, Delete: &wire.SessionDeleteCapabilities{},
				Fork: &wire.SessionForkCapabilities{},
				List: &wire.SessionListCapabilities{}, Resume: &wire.SessionResumeCapabilities{},
			},
		},
	})
}

// The authentication methods: to set up a model outside of the editor, or in a terminal of it.
const (
	setUp         = "setup"
	terminalSetUp = "terminal-setup"
)

// authMethods is empty if there is a usable model. Otherwise it says how to get one, since there is nothing to
// log in to here.
func (a *agent) authMethods(ctx context.Context) []wire.AuthMethod {
	err := a.noModel(ctx)
	if err == nil {
		return []wire.AuthMethod{}
	}
	text := err.Error() + "\nThen start inspan again."
	list := []wire.AuthMethod{{Agent: &wire.AuthMethodAgent{Id: setUp, Name: "Set up a model", Description: &text}}}
	if client, _ := a.capabilities(); client.Auth.Terminal {
		here := "inspan asks for a model, and for a key if it needs one."
		list = slices.Insert(list, 0, wire.AuthMethod{Terminal: &wire.AuthMethodTerminalInline{
			Id: terminalSetUp, Name: "Set up a model in the terminal", Description: &here, Args: []string{"--setup"}, Type: "terminal",
		}})
	}
	return list
}

// noModel returns the reason why there is no usable model.
func (a *agent) noModel(ctx context.Context) error {
	if a.App == nil || a.Host != nil {
		return nil
	}
	if a.Options.Replay != "" {
		return nil
	}
	_, err := a.App.Providers.Model(ctx, a.Options.Model, "")
	return err
}

func (a *agent) authenticate(ctx context.Context, p wire.AuthenticateRequest) (any, error) {
	if err := a.noModel(ctx); err != nil {
		return nil, unconfigured(err)
	}
	if p.MethodId != setUp {
		return nil, invalid("there is nothing to log in to: keys are read from the environment and the settings")
	}
	return wire.AuthenticateResponse{}, nil
}

// unconfigured turns an error about missing settings, model or key into one that the client shows as such.
func unconfigured(err error) error {
	if errors.Is(err, config.ErrSettings) {
		return &jsonrpc.Error{Code: codeAuth, Message: err.Error()}
	}
	return err
}

// capabilities returns the client's capabilities.
func (a *agent) capabilities() (wire.ClientCapabilities, extras) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.client, a.extras
}

// session returns the open session with this id.
func (a *agent) session(id wire.SessionId) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if st, ok := a.sessions[string(id)]; ok {
		return st, nil
	}
	return nil, missing(string(id))
}

// add adds an open session.
func (a *agent) add(st *session) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions[st.id] != nil {
		return busy("session %s is open already", st.id)
	}
	a.sessions[st.id] = st
	return nil
}

// interruptAll interrupts the runs, and waits a while for them.
func (a *agent) interruptAll() {
	a.mu.Lock()
	all := slices.Collect(maps.Values(a.sessions))
	a.mu.Unlock()
	var wg sync.WaitGroup
	for _, st := range all {
		wg.Go(st.leave)
	}
	wg.Wait()
}

// close closes the sessions. No runs may be in progress.
func (a *agent) close() error {
	a.mu.Lock()
	sessions := a.sessions
	a.sessions = map[string]*session{}
	a.mu.Unlock()
	var errs []error
	for _, st := range sessions {
		errs = append(errs, st.close())
	}
	return errors.Join(errs...)
}

// update tells the client what happened in a session.
func (a *agent) update(id string, updates ...wire.SessionUpdate) {
	for _, u := range updates {
		a.notify(wire.ClientMethodSessionUpdate, wire.SessionNotification{SessionId: wire.SessionId(id), Update: u})
	}
}
