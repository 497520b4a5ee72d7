// Package mcp connects to servers of the Model Context Protocol and offers their tools. Servers are programs in
// the sandbox, or addresses over HTTP. The package speaks revision 2026-07-28, with the extension for tasks,
// and 2025-11-25 to 2024-11-05.
//
// Every text of a server is untrusted: names, descriptions, schemas, results, errors. It is bounded and cleaned
// of hidden characters. A server's claims about its own tools are ignored unless the person trusts the server.
//
// A tool is identified by the digest of its definition. A tool that the person has not approved is held back:
// it is not offered and can't be called, while the server's other tools work. Approved tools are offered before
// the server is connected; calls wait for the connection.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
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

	// readyAfter is the delay before servers that are about to be needed are started: the request to the model
	// goes first, and a call that comes at once starts its own server.
	readyAfter = 10 * time.Millisecond
)

// Manager keeps the connections to the servers of a session. Its fields, and its functions, must not change
// once it has started. Safe for concurrent use, and so must its functions be. Close it when the session ends.
type Manager struct {
	// Env starts programs, in a box of Level that opens the hosts of the server.
	Env tool.Env
	// Level is the sandbox level of programs; empty means [tool.BoxWorkspace].
	Level tool.Level
	// HTTP returns the client for a remote server; it must restrict requests to that server, as
	// [netguard.Guard.Client] does. Its timeout is not used, and redirects are not followed. Nil means remote
	// servers can't be reached.
	HTTP func(Server) *http.Client
	// Servers are the session's servers. If two have the same name, the first counts.
	Servers []Server
	// Expand returns the value of a variable in a server's configuration; empty means there is none. Nil means
	// there are no variables.
	Expand func(s Server, name string) string
	// Withheld reports whether a variable has a value that the server does not get before the settings name it. Nil
	// means nothing is withheld.
	Withheld func(s Server, name string) bool
	// Auth has access tokens for servers over HTTP. May be nil.
	Auth Authorizer
	// Pins stores the approved definitions. Zero means all definitions are approved.
	Pins Pins
	// Sample lets a model answer a server's request, after the person has approved it. Nil means servers are told
	// that they can't ask a model.
	Sample func(ctx context.Context, req llm.Request) (reply *llm.Reply, cost float64, err error)
	// Warn is called with problems that no [Status] tells, once each, maybe at the same time. May be nil.
	Warn func(text string)
	// Patience is how long a server may take to connect; 0 means 15 seconds.
	Patience time.Duration

	mu      sync.Mutex
	slots   []*slot
	life    context.Context    //nolint:containedctx // of what goes on in the background
	stop    context.CancelFunc // not nil once it is started
	closed  bool
	told    map[string]bool
	news    chan struct{} // closed when something has changed with a server
	soon    *time.Timer   // until those that rest are connected to; nil means that was not asked for
	working sync.WaitGroup

	starting chan struct{} // has one entry for each program that is being started
}

// slot is the state of a server. The lock of the Manager guards it, except for server, and legacy, which only
// keep uses.
type slot struct {
	server  Server
	state   State
	why     string
	client  *client  // nil means it is not connected
	tools   *toolset // as the server defines them now; nil means it is not connected
	pin     *toolset // as they were agreed to; nil means they never were
	looked  bool     // pin has been looked for
	unread  bool     // it can't be read, so that nothing is agreed to
	prompts []Prompt
	// challenge is the server's latest login challenge.
	challenge string
	restarts  int
	kept      bool // it is being kept connected,
	resting   bool // from when it is first needed
	legacy    bool // it is only spoken to with a handshake
	silent    bool // it was waited for in vain
	took      []time.Duration
}

// Start connects to all servers in the background and returns at once. Later calls only connect servers that
// Rest has left.
func (m *Manager) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.prepare() {
		for _, s := range m.slots {
			m.wake(s)
		}
	}
}

// Rest is like Start, but leaves servers whose tools are approved: these tools are offered, and the Manager
// connects when someone waits for the server or calls a tool, or after Ready.
func (m *Manager) Rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.prepare() {
		for _, s := range m.slots {
			if m.agreed(s) == nil {
				m.wake(s)
			}
		}
	}
}

// Ready connects soon to servers that Rest has left, as one may be called.
func (m *Manager) Ready() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.soon == nil && !m.closed {
		m.soon = time.AfterFunc(readyAfter, m.Start)
	}
}

// prepare lists the servers, all disconnected, and reports whether they can be connected. The lock is held.
func (m *Manager) prepare() bool {
	if m.stop != nil || m.closed {
		return !m.closed
	}
	m.life, m.stop = context.WithCancel(context.Background())
	m.news, m.starting = make(chan struct{}), make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))
	names := map[string]bool{}
	for _, server := range m.Servers {
		s := &slot{server: server.clone(), state: Connecting, silent: m.pins(server).silent(server, m.Env.Root)}
		err := server.Check()
		if err == nil && names[server.Name] {
			err = errors.New("another server has this name")
		}
		names[server.Name] = true
		m.slots = append(m.slots, s)
		switch {
		case err != nil:
			s.state, s.why = Failed, err.Error()
		case server.Off:
			s.state = Off
		default:
			s.kept, s.resting = true, true
		}
	}
	return true
}

// wake starts keeping a resting server connected. The lock is held.
func (m *Manager) wake(s *slot) {
	if s.resting && !m.closed {
		m.begin(s)
	}
}

// begin starts keeping a server connected. The lock is held.
func (m *Manager) begin(s *slot) {
	s.kept, s.resting, s.state, s.why = true, false, Connecting, ""
	m.working.Go(func() {
		m.keep(m.life, s)
		m.mu.Lock()
		defer m.mu.Unlock()
		s.kept = false
		m.ring()
	})
}

// ring wakes goroutines that wait for a server. The lock is held.
func (m *Manager) ring() {
	close(m.news)
	m.news = make(chan struct{})
}

// Again connects in the background to a server that was given up or is off. The error gives the reason why that
// can't help.
func (m *Manager) Again(server string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.slots, func(s *slot) bool { return s.server.Name == server })
	if i < 0 || m.closed {
		return errors.New("there is no MCP server " + text.Cut(server, 60))
	}
	s := m.slots[i]
	if s.kept && !s.resting {
		return fmt.Errorf("the MCP server %s is %s", server, s.state)
	}
	if err := s.server.Check(); err != nil {
		return err
	}
	m.begin(s)
	return nil
}

// Close ends all connections and programs, and returns when they are gone, in less than two seconds. Running
// calls fail.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	if m.stop != nil {
		m.stop()
	}
	if m.soon != nil {
		m.soon.Stop()
	}
	m.mu.Unlock()
	m.working.Wait()
}

// keep keeps a server connected until ctx is done or it has failed too often.
func (m *Manager) keep(ctx context.Context, s *slot) {
	for failures := 1; ; failures++ {
		began := time.Now()
		c, tools, took, err := m.connect(ctx, s)
		if err == nil {
			m.connected(s, c, tools, took)
			m.readPrompts(ctx, s, c)
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
		var login *loginError
		var silent *silentError
		if errors.As(err, &silent) {
			m.silence(s)
		}
		if errors.As(err, &login) {
			m.challenged(s, login)
			return
		}
		if errors.As(err, &final) || failures >= maxFailures {
			m.set(s, Failed, err.Error())
			return
		}
		m.set(s, Failed, err.Error())
		if keep.Sleep(ctx, min(firstRest<<(failures-1), mostRest)) != nil {
			m.set(s, Off, "")
			return
		}
		m.again(s)
	}
}

// attend returns when a connection has ended. Meanwhile it reads the tools again when they change.
func (m *Manager) attend(ctx context.Context, s *slot, c *client) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.done:
			return c.ending(errClosed)
		case <-c.life.Done():
			return c.ending(errClosed)
		case <-c.changed:
		}
		limited, cancel := context.WithTimeout(ctx, askTime)
		began := time.Now()
		tools, err := c.list(limited)
		cancel()
		if err != nil {
			return c.ending(err)
		}
		m.connected(s, c, tools, time.Since(began))
		m.readPrompts(ctx, s, c)
		if err := keep.Sleep(ctx, quiet); err != nil { // a server can say so all the time
			return err
		}
	}
}

// quiet is the minimum time between two readings of a server's tools.
const quiet = 200 * time.Millisecond

// connected records a server's current tools. Those at the first connection are approved together with the server.
func (m *Manager) connected(s *slot, c *client, tools *toolset, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.latency = took
	if s.client != c {
		s.client, s.state, s.why = c, Ready, ""
	}
	s.tools = tools
	if s.silent {
		s.silent = false
		m.pins(s.server).note(s.server, m.Env.Root, false)
	}
	if m.agreed(s) == nil && !s.unread && m.pins(s.server).Dir != "" {
		s.pin = tools
		if err := m.Pins.store(s.server, m.Env.Root, tools); err != nil {
			s.why = "its tools can't be stored: " + err.Error()
		}
	}
	m.ring()
}

// Settle waits until each server is connected or has failed, or for ctx.
func (m *Manager) Settle(ctx context.Context) {
	m.Start()
	m.await(ctx, func(s *slot) bool { return s.state == Connecting })
}

// Meet is like Settle, but only waits for servers about which nothing is known yet, and calls tell with their
// names. A server that was waited for until the deadline of ctx is not waited for again, even by other processes,
// until it has answered once or a day has passed.
func (m *Manager) Meet(ctx context.Context, tell func(names []string)) {
	unmet := func(s *slot) bool { return s.state == Connecting && m.agreed(s) == nil && !s.silent }
	names := func() []string {
		var out []string
		for _, s := range m.slots {
			if unmet(s) {
				out = append(out, words.OneLine(s.server.Name, 60))
			}
		}
		return out
	}
	m.mu.Lock()
	missing := names()
	m.mu.Unlock()
	if len(missing) == 0 {
		return
	}
	tell(missing)
	m.await(ctx, unmet)
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return
	}
	for _, s := range m.slots {
		m.mu.Lock()
		late := unmet(s)
		m.mu.Unlock()
		if late {
			m.silence(s)
		}
	}
}

// silence records that a server did not answer.
func (m *Manager) silence(s *slot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.silent = true
	m.pins(s.server).note(s.server, m.Env.Root, true)
}

// await waits while holds is true for any server. It is called with the lock held.
func (m *Manager) await(ctx context.Context, holds func(*slot) bool) {
	for ctx.Err() == nil {
		m.mu.Lock()
		news := m.news
		busy := slices.ContainsFunc(m.slots, holds)
		m.mu.Unlock()
		if !busy {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

// set records the state of a server that is not connected.
func (m *Manager) set(s *slot, state State, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.client, s.tools = nil, nil
	s.state, s.why = state, why
	m.ring()
}

// challenged records a server's login challenge before its state becomes visible.
func (m *Manager) challenged(s *slot, e *loginError) {
	m.mu.Lock()
	s.challenge = e.challenge
	m.mu.Unlock()
	m.set(s, Login, e.Error())
}

func (m *Manager) again(s *slot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.restarts++
	s.state, s.why = Connecting, ""
	m.ring()
}

// warn warns the person once.
func (m *Manager) warn(text string) { m.warnOf(text, text) }

// warnOf warns the person once about a problem, whatever its text is then.
func (m *Manager) warnOf(problem, text string) {
	if m.Warn == nil {
		return
	}
	m.mu.Lock()
	if m.told == nil {
		m.told = map[string]bool{}
	}
	known := m.told[problem] || len(m.told) > maxTold
	m.told[problem] = true
	m.mu.Unlock()
	if !known {
		m.Warn(text)
	}
}

const maxTold = 200 // problems that are told of

// find returns the connection to an approved server.
func (m *Manager) find(name string) (*client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.slots, func(s *slot) bool { return s.server.Name == name })
	switch {
	case i < 0:
		return nil, errors.New("there is no MCP server " + text.Cut(name, 60))
	case m.slots[i].client == nil:
		return nil, errors.New("the MCP server " + name + " is not connected")
	case m.agreed(m.slots[i]) == nil:
		return nil, errors.New("the person has not approved the tools of the MCP server " + name + " offers")
	}
	return m.slots[i].client, nil
}
