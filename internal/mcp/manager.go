// Package mcp talks to servers of the Model Context Protocol and makes tools of
// what they offer. Servers are programs that run in the sandbox, or are reached
// over HTTP. Revisions 2026-07-28 and 2025-11-25 to 2024-11-05 are spoken.
//
// Whatever a server says is untrusted: names, descriptions, schemas, results,
// errors. It is bounded and cleaned of hidden characters, and what it says of
// its own tools counts for nothing unless the person trusts it.
//
// Tools of a server are known by the digest of all their definitions. Those that
// the person has not agreed to are not offered and can't be called.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const (
	connectTime = 15 * time.Second
	callTime    = 2 * time.Minute  // without the time that a person takes to answer
	askTime     = 20 * time.Second // for lists, prompts and resources
	forgiven    = 10 * time.Minute // a server that ran this long has not failed for good
	maxFailures = 10               // in succession; then a server is given up
	firstRest   = time.Second      // before a server is started again; it doubles
	mostRest    = time.Minute
)

// Manager keeps the connections to the servers of a session. Its fields must
// not be changed once it is started. Safe for concurrent use; functions that it
// is given must be so too. Close it when the session ends.
type Manager struct {
	// Env starts programs, in a box of Level that opens the hosts of the server.
	Env tool.Env
	// Level is that of the walls around programs; empty: [tool.BoxWorkspace].
	Level tool.Level
	// HTTP reaches servers that are no programs; it must be held to what may be
	// reached, as [netguard.Guard.Client] is. Its timeout is not used, redirects
	// are not followed. Nil: there is no way to them.
	HTTP *http.Client
	// Servers are those of the session, by unique names. Of two with one name
	// the first counts.
	Servers []Server
	// Expand gives the value of a variable in what servers are started or reached
	// with; empty: there is none. Nil: there are none at all.
	Expand func(name string) string
	// Pinned reports whether the person has agreed to the definitions of a server
	// with this digest. It is asked each time that tools are listed or called, so
	// that agreeing is enough to have them. Nil: all are agreed to.
	Pinned func(server, digest string) bool
	// Sample has a model answer a server that asks it, once the person has agreed to
	// that. Nil: servers are told that there is no model for them.
	Sample func(ctx context.Context, req llm.Request) (*llm.Reply, error)
	// Warn is told of what a person should know, in words that say what to do. A
	// problem is told once for as long as it stays the same. Nil: nobody is told.
	Warn func(text string)
	// Patience is how long a server may take to connect; 0: 15 seconds.
	Patience time.Duration

	mu      sync.Mutex
	slots   []*slot
	life    context.Context    //nolint:containedctx // of what goes on in the background
	stop    context.CancelFunc // not nil once it is started
	closed  bool
	told    map[string]bool
	working sync.WaitGroup
}

// slot is a server and how it is. But for server, and for legacy that only keep
// uses, it is guarded by the lock of the Manager.
type slot struct {
	server   Server
	state    State
	why      string
	since    time.Time
	client   *client // nil: it is not connected
	tools    *toolset
	restarts int
	kept     bool // it is being kept connected
	legacy   bool // it is only spoken to with a handshake
	took     []time.Duration
}

// Start connects to all servers in the background and returns at once. Calls
// after the first do nothing.
func (m *Manager) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stop != nil || m.closed {
		return
	}
	m.life, m.stop = context.WithCancel(context.Background())
	names := map[string]bool{}
	for _, server := range m.Servers {
		s := &slot{server: server.clone(), state: Connecting, since: time.Now()}
		err := server.check()
		if err == nil && names[server.Name] {
			err = errors.New("there is another server of this name")
		}
		names[server.Name] = true
		m.slots = append(m.slots, s)
		switch {
		case err != nil:
			s.state, s.why = Failed, err.Error()
		case server.Off:
			s.state = Off
		default:
			m.begin(s)
		}
	}
}

// begin keeps a server connected from now on. The lock is held.
func (m *Manager) begin(s *slot) {
	s.kept, s.state, s.why, s.since = true, Connecting, "", time.Now()
	m.working.Go(func() {
		m.keep(m.life, s)
		m.mu.Lock()
		defer m.mu.Unlock()
		s.kept = false
	})
}

// Again connects to a server that was given up, or that is off, in the background.
// The error says why that makes no sense.
func (m *Manager) Again(server string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.slots, func(s *slot) bool { return s.server.Name == server })
	if i < 0 || m.closed {
		return errors.New("there is no MCP server " + short(server, 60))
	}
	s := m.slots[i]
	if s.kept {
		return fmt.Errorf("the MCP server %s is %s", server, s.state)
	}
	if err := s.server.check(); err != nil {
		return err
	}
	m.begin(s)
	return nil
}

// Close ends all connections and programs, and returns when they are gone, which
// takes less than two seconds. Calls that go on fail.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	if m.stop != nil {
		m.stop()
	}
	m.mu.Unlock()
	m.working.Wait()
}

// keep connects to a server again and again, until ctx is done or it has failed
// too often.
func (m *Manager) keep(ctx context.Context, s *slot) {
	for failures := 1; ; failures++ {
		began := time.Now()
		c, tools, err := m.connect(ctx, s)
		if err == nil {
			m.connected(s, c, tools)
			err = m.attend(ctx, s, c)
			m.set(s, Connecting, "")
			c.close()
			if time.Since(began) > forgiven {
				failures = 1
			}
		}
		if ctx.Err() != nil {
			m.set(s, Off, "")
			return
		}
		var final *finalError
		if errors.As(err, &final) || failures >= maxFailures {
			m.set(s, Failed, err.Error())
			m.warn("The MCP server " + s.server.Name + " is not there: " + err.Error())
			return
		}
		m.set(s, Failed, err.Error()+"; it is tried again")
		if rest(ctx, min(firstRest<<(failures-1), mostRest)) != nil {
			m.set(s, Off, "")
			return
		}
		m.again(s)
	}
}

// attend returns when a connection is over. Meanwhile it reads the tools again
// when they change.
func (m *Manager) attend(ctx context.Context, s *slot, c *client) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.done:
			return c.ending(errors.New("the connection was closed"))
		case <-c.changed:
		}
		limited, cancel := context.WithTimeout(ctx, askTime)
		tools, err := c.list(limited)
		cancel()
		if err != nil {
			return c.ending(err)
		}
		m.mu.Lock()
		s.tools = tools
		m.mu.Unlock()
		if err := rest(ctx, quiet); err != nil { // a server can say so all the time
			return err
		}
	}
}

// quiet is the least time between two readings of the tools of a server.
const quiet = 200 * time.Millisecond

func (m *Manager) connected(s *slot, c *client, tools *toolset) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.client, s.tools, s.state, s.why, s.since = c, tools, Ready, "", time.Now()
}

// set says how a server is that is not connected.
func (m *Manager) set(s *slot, state State, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.client, s.tools = nil, nil
	s.state, s.why, s.since = state, why, time.Now()
}

func (m *Manager) again(s *slot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.restarts++
	s.state, s.why, s.since = Connecting, "", time.Now()
}

// warn tells the person something once.
func (m *Manager) warn(text string) {
	if m.Warn == nil {
		return
	}
	m.mu.Lock()
	if m.told == nil {
		m.told = map[string]bool{}
	}
	known := m.told[text] || len(m.told) > maxTold
	m.told[text] = true
	m.mu.Unlock()
	if !known {
		m.Warn(text)
	}
}

const maxTold = 200 // problems that are told of

func (m *Manager) pinned(server, digest string) bool {
	return m.Pinned == nil || m.Pinned(server, digest)
}

// find returns the connection to a server that the person has agreed to.
func (m *Manager) find(name string) (*client, error) {
	m.mu.Lock()
	i := slices.IndexFunc(m.slots, func(s *slot) bool { return s.server.Name == name })
	var c *client
	digest := ""
	if i >= 0 && m.slots[i].client != nil {
		c, digest = m.slots[i].client, m.slots[i].tools.digest
	}
	m.mu.Unlock()
	switch {
	case i < 0:
		return nil, errors.New("there is no MCP server " + short(name, 60))
	case c == nil:
		return nil, errors.New("the MCP server " + name + " is not connected")
	case !m.pinned(name, digest):
		return nil, errors.New("the person has not agreed to what the MCP server " + name + " offers now")
	}
	return c, nil
}

func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
