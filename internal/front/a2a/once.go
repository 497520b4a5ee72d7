package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/tool"
)

// A message is taken once: one that comes again, with the same id, the same words and for
// the same task or context, is a client's second try, and gets the task that it came to the
// first time. A client that has sent something to a task knows of it, so the message that
// began it is a new one from then on: there are clients that use their ids again. What was
// taken is read from the logs (event.Said.Message and its like).

// remembered is how long a message is known after its task has last changed, if another
// process of ours has taken it.
const remembered = 24 * time.Hour

// keyOf stands for a message; empty: it has no id, and is never known again.
func keyOf(m *sdk.Message) string {
	parts, err := json.Marshal([]any{m.ID, m.TaskID, m.ContextID, m.Parts})
	if m.ID == "" || err != nil {
		return ""
	}
	return tool.Digest(parts)[:32]
}

// taken are the messages of one principal by which tasks were begun, with these.
type taken map[string]string

// hold waits until nobody else takes the message of a principal. Whoever has it lets go.
func (s *Server) hold(ctx context.Context, key string) (letGo func(), err error) {
	for {
		s.mu.Lock()
		busy := s.taking[key]
		if busy == nil {
			mine := make(chan struct{})
			if s.taking == nil {
				s.taking = map[string]chan struct{}{}
			}
			s.taking[key] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.taking, key)
				s.mu.Unlock()
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// begun is the task that a message has begun, if its client may not know that; empty: none.
// What the logs say is read for the first message of a principal.
func (v *handler) begun(ctx context.Context, key string) (string, error) {
	id, err := v.noted(ctx, key)
	if id == "" || key == "" || err != nil {
		return "", err
	}
	r, err := v.find(ctx, id)
	switch {
	case errors.Is(err, sdk.ErrTaskNotFound): // it was removed
		return "", nil
	case err != nil || r.known:
		return "", err
	}
	return id, nil
}

// noted is the last task that a message has begun.
func (v *handler) noted(ctx context.Context, key string) (string, error) {
	s := v.server
	s.mu.Lock()
	known, looked := s.taken[v.sender]
	id := known[key]
	s.mu.Unlock()
	if looked {
		return id, nil
	}
	found := taken{}
	for info, err := range s.Host.List(ctx) { // the last one first
		if err != nil {
			return "", err
		}
		if time.Since(info.Modified) > remembered {
			continue
		}
		if r, err := v.find(ctx, info.ID); err == nil && r.first != "" && found[r.first] == "" {
			found[r.first] = r.id
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == nil {
		s.taken = map[string]taken{}
	}
	if s.taken[v.sender] == nil {
		s.taken[v.sender] = found
	}
	return s.taken[v.sender][key], nil
}

// remember notes which task a message has begun.
func (v *handler) remember(key, id string) {
	if key == "" {
		return
	}
	v.server.mu.Lock()
	defer v.server.mu.Unlock()
	v.server.taken[v.sender][key] = id
}

// again is a task that a message has come to before, and who drives it.
func (v *handler) again(ctx context.Context, id string) (string, *running.Run, error) {
	r, err := v.find(ctx, id)
	if err != nil {
		return "", nil, err
	}
	run, err := v.revive(ctx, r)
	return id, run, err
}
