// Package lsp queries language servers about code: definitions, uses, types, and problems in a file. Servers
// are started when first needed and only read the workspace; their edits are returned, never applied.
//
// Lines count from 0. Columns are bytes of UTF-8, whatever encoding the server uses. Paths are absolute and
// without symbolic links.
package lsp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

const (
	startTime  = 60 * time.Second
	queryTime  = 20 * time.Second
	backOff    = 500 * time.Millisecond // after the first end; multiplied by four after each further one
	mostOff    = 5 * time.Minute
	patience   = 3 * time.Second  // a start further in the future is not waited for
	forgiven   = 10 * time.Minute // after this run time the count of ends is reset
	maxServers = 8                // running at once; the least used one is ended
)

// ErrNoServer says that no language server is known for a file.
var ErrNoServer = errors.New("no language server is known")

// Manager runs the language servers of a workspace, one for each kind and project. An ended server is restarted
// when needed, after a delay that grows with each end. It is safe for concurrent use. Close it when the session
// ends.
type Manager struct {
	Env     tool.Env // its Root is the workspace; files outside are not served
	Servers []Server // nil means [Usual]
	Box     tool.Box // the sandbox of servers

	startIn, answerIn time.Duration // limits that tests shorten; 0 means startTime and queryTime

	mu      sync.Mutex
	slots   map[key]*slot
	absent  map[string]bool // servers whose program is missing, by name
	closed  bool
	working sync.WaitGroup
}

// key identifies a running or possible server.
type key struct{ server, root string }

// slot is the state of a server.
type slot struct {
	client   *client
	starting chan struct{} // closed when the start in progress is over; nil means none
	abort    func()        // cancels that start
	began    time.Time
	crashes  int
	next     time.Time // earliest time of the next start
	err      error     // error of the last start
}

// Needs lists the servers that a query about path may have to start, preferred ones first: the first installed
// one is started. It is empty if the responsible server is running. Path is a file, or the workspace, for which
// any server will do. The error wraps [ErrNoServer] if there is none at all, and [fs.ErrNotExist] if none is
// installed. It starts nothing.
func (m *Manager) Needs(ctx context.Context, path string) ([]Server, error) {
	list, err := m.serving(ctx, path)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Server
	for _, t := range list {
		if s := m.slots[t.key()]; s != nil && (s.starting != nil || s.client != nil) {
			return out, nil
		}
		out = append(out, t.server.clone())
	}
	return out, nil
}

// Close ends all servers and waits for that. Later queries fail.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	for _, s := range m.slots {
		if s.client != nil {
			m.working.Go(s.client.stop)
		}
		if s.starting != nil {
			s.abort()
		}
	}
	m.mu.Unlock()
	m.working.Wait()
}

// target is a server for a project.
type target struct {
	server Server
	root   string
}

func (t target) key() key { return key{t.server.Name, t.root} }

func (m *Manager) servers() []Server {
	if m.Servers == nil {
		return Usual()
	}
	return m.Servers
}

// serving lists the possible servers for a path, except those known to be missing.
func (m *Manager) serving(ctx context.Context, path string) ([]target, error) {
	if m.Env.Procs == nil {
		return nil, errors.New("processes can't be started here")
	}
	if !text.Inside(m.Env.Root, path) {
		return nil, fmt.Errorf("%s is outside of the workspace", path)
	}
	var list []target
	for _, s := range m.servers() {
		switch {
		case path == m.Env.Root:
			if root := m.projectAt(ctx, s); root != "" {
				list = m.either(ctx, list, s, root)
			}
		case s.language(path) != "":
			list = m.either(ctx, list, s, m.project(ctx, s, path))
		}
	}
	if list == nil {
		return nil, fmt.Errorf("%w for %s", ErrNoServer, filepath.Base(path))
	}
	return m.installed(list)
}

// either adds a server, and the project's own copy of it.
func (m *Manager) either(ctx context.Context, list []target, s Server, root string) []target {
	list = append(list, target{s, root})
	if local, ok := m.local(ctx, s, root); ok {
		list = append(list, target{local, root})
	}
	return list
}

// installed removes missing servers.
func (m *Manager) installed(list []target) ([]target, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var there []target
	var names []string
	for _, t := range list {
		names = append(names, t.server.Command[0])
		if !m.absent[t.server.Name] {
			there = append(there, t)
		}
	}
	if there == nil {
		return nil, fmt.Errorf("no language server for these files is installed (looked for %s): %w", strings.Join(names, ", "), fs.ErrNotExist)
	}
	return there, nil
}

// projectAt returns the project of a server in the workspace: where it is running, or the top if a marker is
// there.
func (m *Manager) projectAt(ctx context.Context, s Server) string {
	m.mu.Lock()
	best := ""
	for k, slot := range m.slots {
		if (k.server == s.Name || strings.HasPrefix(k.server, s.Name+" in ")) && slot.client != nil && (best == "" || len(k.root) < len(best)) {
			best = k.root
		}
	}
	m.mu.Unlock()
	for _, marker := range s.RootMarkers {
		if best == "" && m.exists(ctx, filepath.Join(m.Env.Root, marker)) {
			best = m.Env.Root
		}
	}
	return best
}

// project returns the nearest directory above a file that contains the first marker found at all, otherwise the
// workspace.
func (m *Manager) project(ctx context.Context, s Server, path string) string {
	for _, marker := range s.RootMarkers {
		for dir := filepath.Dir(path); text.Inside(m.Env.Root, dir); dir = filepath.Dir(dir) {
			if m.exists(ctx, filepath.Join(dir, marker)) {
				return dir
			}
			if dir == m.Env.Root {
				break
			}
		}
	}
	return m.Env.Root
}

func (m *Manager) exists(ctx context.Context, path string) bool {
	f, err := m.Env.Files.Open(ctx, path)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// query runs a query with the server for path. If the server ends meanwhile, it is repeated once with a new
// one.
func (m *Manager) query(ctx context.Context, path string, ask func(context.Context, *client) error) error {
	list, err := m.serving(ctx, path)
	if err != nil {
		return err
	}
	for _, t := range list {
		err = m.with(ctx, t, ask)
		if errors.Is(err, errEnded) && ctx.Err() == nil {
			err = m.with(ctx, t, ask)
		}
		if !errors.Is(err, errAbsent) {
			return err
		}
	}
	_, err = m.installed(list)
	return err
}

// with runs a query with one server.
func (m *Manager) with(ctx context.Context, t target, ask func(context.Context, *client) error) error {
	c, err := m.client(ctx, t)
	if err != nil {
		return err
	}
	limit := cmp.Or(m.answerIn, queryTime)
	if !c.answered.Load() {
		limit = max(limit, cmp.Or(m.startIn, startTime)) // the server is reading the project
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = ask(limited, c)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("%s did not answer in %v", t.server.Name, limit)
	}
	c.answered.Store(c.answered.Load() || err == nil)
	return err
}

// running returns the running server for a file, if any. It starts none.
func (m *Manager) running(ctx context.Context, path string) *client {
	list, err := m.serving(ctx, path)
	if err != nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range list {
		if s := m.slots[t.key()]; s != nil && s.client != nil && s.client.alive() {
			return s.client
		}
	}
	return nil
}
