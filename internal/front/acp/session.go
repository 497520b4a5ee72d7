package acp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// session is an open session and its work in progress.
type session struct {
	agent     *agent
	cwd, root string // the workspace in the client's form, and without links
	servers   []mcp.Server
	id        string
	fresh     bool            // it was begun here
	ctx       context.Context // context of its runs
	stop      context.CancelFunc

	driving sync.Mutex // held by the driver of the session; guards view
	view    *view      // what the client was told

	mu        sync.Mutex
	options   app.Options
	session   *inspan.Session
	blobs     tool.Blobs
	turn      *turn                   // the prompt in progress; nil if none
	held      []event.Body            // inputs for the beginning of the next run
	model     string                  // model from the next run on; empty if unchanged
	effort    string                  // as far as known
	patient   bool                    // from the next run on, an unavailable model is retried for long
	mine      []string                // the client's own messages that are not folded yet, which it knows
	warned    []string                // warnings that the person was not told yet
	offered   []wire.AvailableCommand // commands that the client knows
	terminals map[string]string       // of the client, by the call that runs in one
	closed    bool
}

func newSession(a *agent, cwd, root string, list []mcp.Server) *session {
	st := &session{agent: a, options: a.Options, servers: list, cwd: cwd, root: root, patient: a.Options.Limits.RetryLong}
	st.ctx, st.stop = context.WithCancel(context.WithoutCancel(a.conn.Context()))
	return st
}

// enter opens the session on a host whose agents work with the client.
func (st *session) enter(open func(*inspan.Host) (*inspan.Session, error)) (*inspan.Session, error) {
	st.mu.Lock()
	o := st.options
	st.mu.Unlock()
	o.Servers = st.servers
	h := st.agent.host(o, st.warn)
	made := h.Agent
	h.Agent = func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
		agent, err := made(ctx, at)
		if err != nil {
			return nil, err
		}
		st.mu.Lock()
		st.blobs = at.Blobs
		if st.effort != "" {
			agent.Effort = st.effort
		}
		st.mu.Unlock()
		st.shareFiles(agent, at.ID)
		st.lendTerminals(agent, at.ID)
		return agent, nil
	}
	return open(h)
}

// current returns the session as it is open now: a change of the model opens it again.
func (st *session) current() *inspan.Session {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.session
}

// isBusy reports whether a prompt is in progress.
func (st *session) isBusy() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.turn != nil
}

// expectEcho records a message by the client, so that the client is not told about it.
func (st *session) expectEcho(parts llm.Parts) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.mine = append(st.mine, parts.Text())
}

// isEcho reports whether the client has sent this message.
func (st *session) isEcho(parts llm.Parts) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	i := slices.Index(st.mine, parts.Text())
	if i >= 0 {
		st.mine = slices.Delete(st.mine, i, i+1)
	}
	return i >= 0
}

// send appends an input.
func (st *session) send(ctx context.Context, body event.Body) error {
	return st.current().Send(ctx, body)
}

// leave interrupts a run in progress, and waits a while for its end. Calls that wait for a decision continue to
// wait.
func (st *session) leave() {
	st.mu.Lock()
	t := st.turn
	st.mu.Unlock()
	if t == nil {
		return
	}
	t.interruptIfWorking()
	select {
	case <-t.done:
	case <-time.After(patience):
		st.stop() // now it ends as in a crash
		<-t.done
	}
}

// dismiss closes the session and removes it.
func (st *session) dismiss() error {
	st.agent.mu.Lock()
	there := st.agent.sessions[st.id] == st
	if there {
		delete(st.agent.sessions, st.id)
	}
	st.agent.mu.Unlock()
	if !there {
		return nil
	}
	return st.close()
}

// close closes the session. A session without messages leaves nothing behind.
func (st *session) close() error {
	st.mu.Lock()
	was := st.closed
	st.closed = true
	st.mu.Unlock()
	if was {
		return nil
	}
	st.leave()
	st.driving.Lock() // a change of mode may be in progress
	defer st.driving.Unlock()
	st.stop()
	s := st.current()
	status := s.Status()
	err := s.Close()
	if st.fresh && status.Task == "" && status.Turns == 0 && status.Title == "" {
		err = errors.Join(err, st.agent.App.Store().Remove(context.WithoutCancel(st.ctx), st.id))
	}
	return err
}

// replay folds the past, and tells the client about it if show is set. Rewound parts are not shown.
func (st *session) replay(ctx context.Context, show bool) error {
	st.driving.Lock()
	defer st.driving.Unlock()
	st.view.quiet, st.view.past = !show, true
	defer func() { st.view.quiet, st.view.past = false, false }()
	gone, err := transcript.Rewound(st.agent.store().Events(ctx, st.id))
	if err != nil {
		return err
	}
	for e, err := range st.agent.store().Events(ctx, st.id) {
		if err != nil {
			return err
		}
		if !gone(e.Seq) {
			st.view.apply(e)
		}
	}
	return nil
}

// warn records a warning for the person about the session.
func (st *session) warn(text string) {
	st.agent.logf("%s", text)
	st.mu.Lock()
	defer st.mu.Unlock()
	st.warned = append(st.warned, text)
}

// tellExtras tells the client what it may show outside the conversation, once it knows the session.
func (st *session) tellExtras() {
	st.mu.Lock()
	warned := st.warned
	st.warned = nil
	st.mu.Unlock()
	for _, text := range warned {
		st.agent.notice(st.id, text, true)
	}
	st.tellCommands()
	st.agent.lookForModels()
}
