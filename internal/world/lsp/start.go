package lsp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// errAbsent says that the program is missing.
var errAbsent = errors.New("not installed")

var errClosed = errors.New("the session is closing")

// client returns the running server, or starts it. A start continues after ctx is done: the next query will
// need it.
func (m *Manager) client(ctx context.Context, t target) (*client, error) {
	m.mu.Lock()
	s, err := m.prepare(t)
	if err != nil {
		m.mu.Unlock()
		return nil, err
	}
	c, starting := s.client, s.starting
	m.mu.Unlock()
	if c != nil {
		return c, nil
	}
	select {
	case <-starting:
	case <-ctx.Done():
		return nil, fmt.Errorf("%s is still starting: %w", t.server.Name, ctx.Err())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.client == nil {
		return nil, s.err
	}
	s.client.used = time.Now()
	return s.client, nil
}

// prepare returns a slot with a client, or one that is starting. The caller holds the lock.
func (m *Manager) prepare(t target) (*slot, error) {
	if m.closed {
		return nil, errClosed
	}
	s := m.slots[t.key()]
	if s == nil {
		s = &slot{}
		if m.slots == nil {
			m.slots = map[key]*slot{}
		}
		m.slots[t.key()] = s
	}
	if s.client != nil && s.client.alive() {
		s.client.used = time.Now()
		return s, nil
	}
	if s.client != nil {
		s.lost(s.client.conn.Err())
		m.working.Go(s.client.stop)
		s.client = nil
	}
	switch {
	case s.starting != nil:
	case time.Until(s.next) > patience:
		return nil, fmt.Errorf("%s has ended %d times and is started again in %v: %w", t.server.Name, s.crashes,
			time.Until(s.next).Round(time.Second), s.err)
	default:
		m.begin(s, t)
	}
	return s, nil
}

// lost records an unexpected end.
func (s *slot) lost(err error) {
	if time.Since(s.began) > forgiven {
		s.crashes = 0
	}
	s.crashes++
	s.err = err
	pause := backOff
	for range s.crashes - 1 {
		pause = min(4*pause, mostOff)
	}
	s.next = time.Now().Add(pause)
}

// begin starts a server. The caller holds the lock.
func (m *Manager) begin(s *slot, t target) {
	m.crowd()
	s.starting, s.began = make(chan struct{}), time.Now()
	pause := max(time.Until(s.next), 0)
	ctx, cancel := context.WithTimeout(context.Background(), pause+cmp.Or(m.startIn, startTime))
	s.abort = cancel
	m.working.Go(func() {
		defer cancel()
		_ = keep.Sleep(ctx, pause) // cancellation is detected below
		c, err := m.launch(ctx, t)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.started(s, t, c, err)
	})
}

// started records the result of a start. The caller holds the lock.
func (m *Manager) started(s *slot, t target, c *client, err error) {
	close(s.starting)
	s.starting = nil
	switch {
	case errors.Is(err, errAbsent):
		if m.absent == nil {
			m.absent = map[string]bool{}
		}
		m.absent[t.server.Name] = true
		s.err = err
	case err != nil:
		s.lost(err)
	case m.closed:
		s.err = errClosed
		m.working.Go(c.stop)
	default:
		s.client = c
		c.used = time.Now()
	}
}

// launch starts a server and performs the handshake.
func (m *Manager) launch(ctx context.Context, t target) (*client, error) {
	c := newClient(m.Env, t.server, t.root)
	if err := c.start(m.Box); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.Join(errAbsent, err)
		}
		return nil, fmt.Errorf("start %s: %w", t.server.Name, err)
	}
	m.working.Go(c.see)
	err := c.initialize(ctx)
	if err == nil {
		return c, nil
	}
	c.cancel()
	<-c.dead
	switch {
	case c.exit == missing && !c.came:
		err = fmt.Errorf("%w: %s", errAbsent, t.server.Command[0])
	case errors.Is(err, keep.ErrClosed): // it ended before the handshake
		err = c.conn.Err()
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("it did not answer in %v", cmp.Or(m.startIn, startTime))
	}
	return nil, fmt.Errorf("start %s: %w", t.server.Name, err)
}

// crowd ends the least used server if there are too many. The caller holds the lock.
func (m *Manager) crowd() {
	var oldest *slot
	n := 0
	for _, s := range m.slots {
		if s.client == nil {
			continue
		}
		n++
		if oldest == nil || s.client.used.Before(oldest.client.used) {
			oldest = s
		}
	}
	if n < maxServers {
		return
	}
	m.working.Go(oldest.client.stop)
	oldest.client = nil
}
