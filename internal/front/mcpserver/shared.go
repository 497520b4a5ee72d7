package mcpserver

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// shared is the common state of the sessions of a connection, so that the client sees them as one: the files that
// were read, the directory of the shell, the sessions of jobs, and the taint that makes outgoing calls ask. Only
// exported variables of commands stay in their session.
type shared struct {
	seen map[string]string // digest of each file when it was last read or written
	cwd  string            // directory that calls start from; empty means the workspace
	jobs map[string]*slot  // by id; of two with the same id, the later counts
	last *slot             // of the latest job
	event.Taint
}

// recordEnd records how a call has ended in a session.
func (d *connection) recordEnd(s *slot, end event.Ended) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shared.seen == nil {
		d.shared.seen, d.shared.jobs = map[string]string{}, map[string]*slot{}
	}
	for _, f := range end.Files {
		if !f.Partial {
			d.shared.seen[f.Path] = f.Digest
		}
	}
	if end.Cwd != "" {
		s.cwd, d.shared.cwd = end.Cwd, end.Cwd
	}
	if end.Job != nil {
		d.shared.jobs[end.Job.ID], d.shared.last = s, s
	}
}

// shareKnowledge shares the others' knowledge with a session, and returns its taint.
func (d *connection) shareKnowledge(s *slot) event.Taint {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.seen = maps.Clone(d.shared.seen)
	return d.shared.Taint
}

// recordSeen records what a session has seen.
func (d *connection) recordSeen(s *slot) {
	st := s.session.Status()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shared.Untrusted, d.shared.Private = d.shared.Untrusted || st.Untrusted, d.shared.Private || st.Private
}

// withKnownFiles returns a tool whose calls know the files that the client has read in any session.
func (s *slot) withKnownFiles(t tool.Tool) tool.Tool {
	known := func(c *tool.Call) *tool.Call {
		with, seen := *c, s.seen
		with.Seen = func(path string) (digest string, ok bool) {
			digest, ok = seen[path]
			return digest, ok
		}
		return &with
	}
	if effects := t.Effects; effects != nil {
		t.Effects = func(ctx context.Context, c *tool.Call) ([]tool.Effect, error) { return effects(ctx, known(c)) }
	}
	if preview := t.Preview; preview != nil {
		t.Preview = func(ctx context.Context, c *tool.Call) (string, error) { return preview(ctx, known(c)) }
	}
	if run := t.Run; run != nil {
		t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) { return run(ctx, known(c)) }
	}
	return t
}

// slotOfJob returns the session that a call must be made in: that of the job which it is about; nil if any will do.
func (d *connection) slotOfJob(name string, args json.RawMessage) *slot {
	var in struct {
		ID string `json:"id"`
	}
	if name != "jobs" || unmarshal(args, &in) != nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.shared.jobs[in.ID]; s != nil {
		return s
	}
	return d.shared.last
}

// syncDirectory changes a session's directory to that of the client's shell, by a call of its own, so that the judges
// of the next call see it.
func (d *connection) syncDirectory(w *clientCall, s *slot) (event.Ended, error) {
	d.mu.Lock()
	cwd := d.shared.cwd
	d.mu.Unlock()
	if cwd == "" || cwd == s.cwd {
		return event.Ended{Outcome: event.OutcomeOK}, nil
	}
	args, err := json.Marshal(map[string]string{"command": "cd '" + strings.ReplaceAll(cwd, "'", `'\''`) + "'"})
	if err != nil {
		return event.Ended{}, err
	}
	end, err := d.makeCall(w, s, "bash", args)
	if err == nil && end.Outcome != event.OutcomeOK { // the directory may be gone; the client is told, and the next call is made here
		d.mu.Lock()
		d.shared.cwd = s.cwd
		d.mu.Unlock()
	}
	return end, err
}
