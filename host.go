package inspan

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/drive"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// Host keeps sessions in a store and makes agents for them. A front end uses it to create, open, list and fork
// sessions. It is safe for concurrent use.
type Host struct {
	// Dir is the folder for sessions; it is created when needed. It is ignored if Store is set.
	Dir string
	// Store keeps the sessions. If nil, they are files in Dir.
	Store store.Store
	// Agent makes the agent for one session.
	Agent func(ctx context.Context, at SessionSpec) (*Agent, error)

	storeOnce sync.Once
	folder    store.Store // in Dir, if Store is nil
	keyOnce   sync.Once
	key       string // for the placeholders of agents without a key
}

// SessionSpec describes the session that [Host.Agent] makes an agent for.
type SessionSpec struct {
	ID     string     // id of the session
	Root   string     // the workspace, an absolute path
	Blobs  tool.Blobs // blobs of the session
	New    bool       // the session is being created
	Parent string     // session that a new one works for; empty if none
	Route  string     // the session's current model; empty if new
	Mode   tool.Mode  // permission mode of the session; empty if new
	// Workflow names the workflow that drives the session, see [Status].
	Workflow string
	Limits   event.Limits // of the session; zero if new
	Folders  []string     // additional folders of an existing session, see [Workspace]
	Corpus   event.Corpus // text that an existing session answers questions about
}

// New creates a session in the workspace root, a folder of this machine or of the agent's own [tool.Env]. The caller must
// close it.
func (h *Host) New(ctx context.Context, root string) (*Session, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("new session: %w", err)
	}
	switch resolved, err := filepath.EvalSymlinks(root); {
	case err == nil:
		root = resolved
	case !errors.Is(err, fs.ErrNotExist): // else Agent knows whether it is elsewhere
		return nil, fmt.Errorf("new session: %w", err)
	}
	log, err := h.Sessions().Create(ctx)
	if err != nil {
		return nil, err
	}
	return h.openNew(ctx, log, SessionSpec{Root: root, New: true})
}

// NewWithID is like New, for a session with this full id whose empty log [store.Store.Create] has already made. If the
// log is not empty, the error wraps [fs.ErrExist], so only one of several callers can create the session.
func (h *Host) NewWithID(ctx context.Context, id, root string) (*Session, error) {
	log, err := h.Sessions().Open(ctx, id)
	if err != nil {
		return nil, err
	}
	state, err := drive.Fold(ctx, log)
	if err == nil && state.Seq > 0 {
		err = fmt.Errorf("session %s has begun: %w", id, fs.ErrExist)
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return h.open(ctx, log, SessionSpec{Root: root, New: true}, state)
}

// openNew opens a session with a new log. If that fails, it removes the log.
func (h *Host) openNew(ctx context.Context, log store.Log, at SessionSpec) (*Session, error) {
	s, err := h.open(ctx, log, at, &loop.State{})
	if err != nil {
		return nil, errors.Join(err, h.Sessions().Remove(ctx, log.ID()))
	}
	return s, nil
}

// Child opens the session that works for parent under this name. If there is none, it creates one in the workspace
// root. The same parent and name always mean the same session. The caller must close it.
func (h *Host) Child(ctx context.Context, parent, name, root string) (*Session, error) {
	log, isNew, err := h.Sessions().Child(ctx, parent, name)
	if err != nil {
		return nil, err
	}
	if isNew {
		return h.openNew(ctx, log, SessionSpec{Root: root, New: true, Parent: parent})
	}
	return h.resume(ctx, log)
}

// Branch is like Child, but a new session begins as a copy of the session with the full id of. It needs a
// [store.Brancher].
func (h *Host) Branch(ctx context.Context, of, parent, name string) (*Session, error) {
	b, ok := h.Sessions().(store.Brancher)
	if !ok {
		return nil, errors.New("branch: the store of the sessions does not implement store.Brancher")
	}
	log, _, err := b.Branch(ctx, of, parent, name)
	if err != nil {
		return nil, err
	}
	return h.resume(ctx, log)
}

// Open opens the session with this id or a unique part of it; "last" means the most recently used one. The
// caller must close it.
func (h *Host) Open(ctx context.Context, id string) (*Session, error) {
	id, err := store.Resolve(ctx, h.Sessions(), id)
	if err != nil {
		return nil, err
	}
	log, err := h.Sessions().Open(ctx, id)
	if err != nil {
		return nil, err
	}
	return h.resume(ctx, log)
}

func (h *Host) resume(ctx context.Context, log store.Log) (*Session, error) {
	state, err := drive.Fold(ctx, log)
	switch {
	case err == nil && state.Seq == 0:
		err = fmt.Errorf("session %s is empty: the program that created it ended too early", log.ID())
	case err == nil && state.Session == "":
		err = fmt.Errorf("session %s can't be resumed: the beginning of its log, with its workspace and mode, is missing", log.ID())
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return h.open(ctx, log, SessionSpec{
		Root: state.Root, Route: state.Route, Mode: state.Mode, Limits: state.Limits, Workflow: state.Steps[event.Workflow].Title,
		Corpus: state.Corpus, Folders: state.Folders,
	}, state)
}

// Fork creates a session from the events of another up to seq, or from all if seq is 0, and opens it. The caller
// must close it.
func (h *Host) Fork(ctx context.Context, id string, seq uint64) (*Session, error) {
	id, err := store.Resolve(ctx, h.Sessions(), id)
	if err != nil {
		return nil, err
	}
	log, err := h.Sessions().Fork(ctx, id, seq)
	if err != nil {
		return nil, err
	}
	s, err := h.resume(ctx, log)
	if err != nil {
		return nil, errors.Join(err, h.Sessions().Remove(ctx, log.ID()))
	}
	return s, nil
}

// List yields the sessions, the most recently used first.
func (h *Host) List(ctx context.Context) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		list, err := h.Sessions().List(ctx)
		if err != nil {
			yield(store.Info{}, err)
			return
		}
		for _, info := range list {
			if !yield(info, nil) {
				return
			}
		}
	}
}

// Events yields the stored events of a session without opening it, even while another process drives it.
func (h *Host) Events(ctx context.Context, id string) iter.Seq2[event.Event, error] {
	return store.Events(ctx, h.Sessions(), id)
}

// Remove deletes the session with this full id and all sessions that work for it. It fails while one of them is
// being driven.
func (h *Host) Remove(ctx context.Context, id string) error {
	return h.Sessions().Remove(ctx, id)
}

// Sessions returns the store of the host. It is always the same store, so an append through it wakes waiting readers at
// once.
func (h *Host) Sessions() store.Store {
	if h.Store != nil {
		return h.Store
	}
	h.storeOnce.Do(func() { h.folder = &session.Store{Dir: h.Dir} })
	return h.folder
}

// open makes the agent of a session and opens the session with it. If that fails, nothing stays open.
func (h *Host) open(ctx context.Context, log store.Log, at SessionSpec, state *loop.State) (*Session, error) {
	at.ID, at.Blobs = log.ID(), log.Blobs()
	agent, err := h.agent(ctx, at)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if agent.Env.Blobs == nil {
		agent.Env.Blobs = at.Blobs
	}
	if agent.Secrets.Key == nil {
		h.keyOnce.Do(func() { h.key = rand.Text() })
		agent.Secrets.Key = []byte(h.key)
	}
	s, err := agent.attach(ctx, log, state, at.Parent)
	if err != nil {
		return nil, errors.Join(err, agent.release(), log.Close())
	}
	return s, nil
}

func (h *Host) agent(ctx context.Context, at SessionSpec) (a *Agent, err error) {
	defer fault.Recover("Host.Agent", nil, &err)
	return h.Agent(ctx, at)
}

func (a *Agent) release() (err error) {
	defer fault.Recover("Lifecycle.Close", nil, &err)
	if a.Lifecycle.Close == nil {
		return nil
	}
	return a.Lifecycle.Close()
}
