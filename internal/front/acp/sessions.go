package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/jsonrpc"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/view/words"
)

// opening says which session to open, and how.
type opening struct {
	cwd     string
	folders []string // additional folders
	servers []mcp.Server
	fresh   bool   // a new session
	id      string // otherwise the id of an existing one
	fork    bool   // a copy of that
}

func (a *agent) newSession(ctx context.Context, p wire.NewSessionRequest) (any, error) {
	list, err := servers(p.McpServers)
	if err != nil {
		return nil, err
	}
	st, err := a.open(ctx, opening{cwd: p.Cwd, folders: p.AdditionalDirectories, servers: list, fresh: true})
	if err != nil {
		return nil, err
	}
	return st.opened(), nil
}

func (a *agent) load(ctx context.Context, p wire.LoadSessionRequest) (any, error) {
	st, err := a.enter(ctx, a.reopen, p.McpServers, opening{cwd: p.Cwd, folders: p.AdditionalDirectories, id: string(p.SessionId)}, true)
	if err != nil {
		return nil, err
	}
	return jsonrpc.Then{Result: wire.LoadSessionResponse{Modes: st.modes(), ConfigOptions: st.configOptions()}, Do: st.tellExtras}, nil
}

func (a *agent) resume(ctx context.Context, p wire.ResumeSessionRequest) (any, error) {
	st, err := a.enter(ctx, a.reopen, p.McpServers, opening{cwd: p.Cwd, folders: p.AdditionalDirectories, id: string(p.SessionId)}, false)
	if err != nil {
		return nil, err
	}
	return jsonrpc.Then{Result: wire.ResumeSessionResponse{Modes: st.modes(), ConfigOptions: st.configOptions()}, Do: st.tellExtras}, nil
}

func (a *agent) fork(ctx context.Context, p forkRequest) (any, error) {
	o := opening{cwd: p.Cwd, folders: p.AdditionalDirectories, id: string(p.SessionId), fork: true}
	st, err := a.enter(ctx, a.open, p.McpServers, o, false)
	if err != nil {
		return nil, err
	}
	return st.opened(), nil
}

// enter opens a session that has a past, and folds that. Show: the client is told about it.
func (a *agent) enter(
	ctx context.Context, open func(context.Context, opening) (*session, error), list []wire.McpServer, o opening, show bool,
) (st *session, err error) {
	if o.servers, err = servers(list); err != nil {
		return nil, err
	}
	if st, err = open(ctx, o); err != nil {
		return nil, err
	}
	if err := st.replay(ctx, show); err != nil {
		return nil, errors.Join(err, st.dismiss())
	}
	return st, nil
}

// opened answers a request for a new session.
func (st *session) opened() jsonrpc.Then {
	return jsonrpc.Then{Result: wire.NewSessionResponse{
		SessionId: wire.SessionId(st.id), Modes: st.modes(),
		ConfigOptions: st.configOptions(),
	}, Do: st.tellExtras}
}

// forkRequest is the params of session/fork; the SDK has other types for the same servers there.
type forkRequest = wire.ResumeSessionRequest

// reopen opens a session that may be open here already: then it closes it first, and no run may be in progress.
func (a *agent) reopen(ctx context.Context, o opening) (*session, error) {
	old, err := a.session(wire.SessionId(o.id))
	if err != nil {
		return a.open(ctx, o)
	}
	if old.isBusy() {
		return nil, busy("session %s is at work; cancel that first", o.id)
	}
	fresh := old.fresh
	old.fresh = false // it stays, although it has no messages yet
	if err := old.dismiss(); err != nil {
		return nil, err
	}
	st, err := a.open(ctx, o)
	if err == nil {
		st.fresh = fresh
	}
	return st, err
}

// open opens a session and adds it.
func (a *agent) open(ctx context.Context, o opening) (*session, error) {
	cwd := cmp.Or(o.cwd, a.Root)
	root, err := realFolder("cwd", cwd)
	if err != nil {
		return nil, err
	}
	if found, err := a.App.Store().Resolve(ctx, o.id); !o.fresh && (err != nil || found != o.id) {
		return nil, missing(o.id) // a part of an id is not enough
	}
	var folders []string
	for _, path := range o.folders {
		at, err := realFolder("additionalDirectories", path)
		if err != nil {
			return nil, err
		}
		folders = append(folders, at)
	}
	st := newSession(a, filepath.Clean(cwd), root, o.servers)
	st.options.OnlyFolders, st.options.Folders = true, folders
	if !o.fresh {
		st.options.Model, st.options.Mode = "", ""
	}
	s, err := st.enter(func(h *inspan.Host) (*inspan.Session, error) {
		switch {
		case o.fresh:
			return h.New(ctx, root)
		case o.fork:
			return h.Fork(ctx, o.id, 0)
		}
		return h.Open(ctx, o.id)
	})
	if err != nil {
		st.stop()
		return nil, unconfigured(err)
	}
	st.session, st.id, st.fresh = s, s.ID(), o.fresh
	st.view = newView(st)
	if at := s.Status().Root; at != root {
		err = invalid("session %s works in %s, not in %s", cmp.Or(o.id, st.id), at, root)
	}
	if err == nil {
		err = a.add(st)
	}
	if err != nil {
		return nil, errors.Join(err, st.close())
	}
	return st, nil
}

// realFolder returns the path of a folder without links. Errors name the field.
func realFolder(field, path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", invalid("%s: %.200q is not an absolute path", field, path)
	}
	at, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", invalid("%s: %v", field, err)
	}
	if info, err := os.Stat(at); err != nil || !info.IsDir() {
		return "", invalid("%s: %s is not a folder", field, path)
	}
	return at, nil
}

// pageSize is how many sessions are listed at once.
const pageSize = 50

// list lists the sessions with messages, the most recently used first. A cursor names the last session of the
// previous page.
func (a *agent) list(ctx context.Context, p wire.ListSessionsRequest) (any, error) {
	root := ""
	if p.Cwd != nil && *p.Cwd != "" {
		root = filepath.Clean(*p.Cwd)
		if real, err := filepath.EvalSymlinks(root); err == nil {
			root = real // otherwise the folder is gone, but its sessions may be there
		}
	}
	var after time.Time
	var last string
	if p.Cursor != nil {
		stamp, id, ok := strings.Cut(*p.Cursor, "/")
		var err error
		if after, err = time.Parse(time.RFC3339Nano, stamp); err != nil || !ok {
			return nil, invalid("cursor: %.100q is none of ours", *p.Cursor)
		}
		last = id
	}
	all, err := a.App.Store().List(ctx)
	if err != nil {
		return nil, err
	}
	out := wire.ListSessionsResponse{Sessions: []wire.SessionInfo{}}
	for _, s := range all {
		title := cmp.Or(s.Title, s.Preview)
		begun := last == "" || s.Modified.Before(after) || s.Modified.Equal(after) && s.ID < last
		if !begun || s.Parent != "" || title == "" || root != "" && s.Root != root {
			continue
		}
		if n := len(out.Sessions); n == pageSize {
			end := out.Sessions[n-1]
			cursor := *end.UpdatedAt + "/" + string(end.SessionId)
			out.NextCursor = &cursor
			break
		}
		stamp, title := s.Modified.UTC().Format(time.RFC3339Nano), words.OneLine(title, 100)
		out.Sessions = append(out.Sessions, wire.SessionInfo{SessionId: wire.SessionId(s.ID), Cwd: s.Root, Title: &title, UpdatedAt: &stamp})
	}
	return out, nil
}

func (a *agent) closeSession(_ context.Context, p wire.CloseSessionRequest) (any, error) {
	st, err := a.session(p.SessionId)
	if err != nil {
		return nil, err
	}
	st.leave()
	return wire.CloseSessionResponse{}, st.dismiss()
}

func (a *agent) remove(ctx context.Context, p wire.UnstableDeleteSessionRequest) (any, error) {
	if st, err := a.session(p.SessionId); err == nil {
		st.leave()
		if err := st.dismiss(); err != nil {
			return nil, err
		}
	}
	err := a.App.Running.Remove(ctx, string(p.SessionId), false)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it is gone, as it should be
	}
	return wire.UnstableDeleteSessionResponse{}, err
}

func (a *agent) setTitle(ctx context.Context, p titleRequest) (any, error) {
	title := words.OneLine(p.Title, 200)
	if title == "" {
		return nil, invalid("the title is empty")
	}
	body := event.Titled{Title: title}
	if st, err := a.session(wire.SessionId(p.SessionID)); err == nil {
		if err := st.send(ctx, body); err != nil {
			return nil, err
		}
	} else if err := a.sendTo(ctx, p.SessionID, body); err != nil {
		return nil, err
	}
	a.update(p.SessionID, wire.SessionUpdate{SessionInfoUpdate: &wire.SessionSessionInfoUpdate{Title: &title}})
	return struct{}{}, nil
}

// sendTo sends an input to a session that is not open here.
func (a *agent) sendTo(ctx context.Context, id string, body event.Body) error {
	if id == "" || id == "last" {
		return missing(id)
	}
	w, err := a.store().Watch(ctx, id)
	if errors.Is(err, fs.ErrNotExist) {
		return missing(id)
	}
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	defer func() { _ = w.Close() }()
	if w.ID() != id {
		return missing(id)
	}
	return w.Send(ctx, body)
}
