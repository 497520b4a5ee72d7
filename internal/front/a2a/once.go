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

// A message is accepted once. A message with the same id, the same words and the same task or context is a
// client's retry, and gets the task that it led to the first time. When a client has sent another message to a
// task, it knows the task, so a repetition of the message that began it counts as new: some clients reuse their
// ids. Accepted messages are read from the logs (event.Said.Message and the like).

// remembered is how long a message that another process has accepted is known after the last change of its
// task.
const remembered = 24 * time.Hour

// keyOf returns the key of a message; empty if it has no id, and so can't be recognised again.
func keyOf(m *sdk.Message) string {
	parts, err := json.Marshal([]any{m.ID, m.TaskID, m.ContextID, m.Parts})
	if m.ID == "" || err != nil {
		return ""
	}
	return tool.Digest(parts)[:32]
}

// begunTasks maps the messages of one principal that began tasks to these tasks.
type begunTasks map[string]string

// holdMessage waits until no one else is accepting this message of the principal. The caller must call letGo.
func (s *Server) holdMessage(ctx context.Context, key string) (letGo func(), err error) {
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

// begunBy returns the task that a message has begun, if its client may not know that; empty if none. It reads the
// logs for the first message of a principal.
func (v *handler) begunBy(ctx context.Context, key string) (string, error) {
	id, err := v.lastBegunBy(ctx, key)
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

// lastBegunBy returns the last task that a message has begun.
func (v *handler) lastBegunBy(ctx context.Context, key string) (string, error) {
	s := v.server
	s.mu.Lock()
	known, looked := s.taken[v.sender]
	id := known[key]
	s.mu.Unlock()
	if looked {
		return id, nil
	}
	found := begunTasks{}
	for info, err := range s.Host.List(ctx) { // the latest first
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
		s.taken = map[string]begunTasks{}
	}
	if s.taken[v.sender] == nil {
		s.taken[v.sender] = found
	}
	return s.taken[v.sender][key], nil
}

// recordBegun records which task a message has begun.
func (v *handler) recordBegun(key, id string) {
	if key == "" {
		return
	}
	v.server.mu.Lock()
	defer v.server.mu.Unlock()
	v.server.taken[v.sender][key] = id
}

// repeatedTask returns a task that a message has led to before, and who drives it.
func (v *handler) repeatedTask(ctx context.Context, id string) (string, *running.Run, error) {
	r, err := v.find(ctx, id)
	if err != nil {
		return "", nil, err
	}
	run, err := v.revive(ctx, r)
	return id, run, err
}
