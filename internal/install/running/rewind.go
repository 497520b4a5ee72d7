package running

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/snapshot"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
)

// Rewinds plans rewinds for all workspaces and sessions.
type Rewinds struct {
	*config.Installation
	Sessions store.Store
	Places   func(root string) places.Map
}

// snapshots returns the store of checkpoints of a workspace; nil if there are none, because they are switched
// off, or because the workspace is more than a project.
func (w *Rewinds) snapshots(root string) *snapshot.Store {
	if w.Config.Checkpoints.Off || text.Inside(root, keep.Home()) {
		return nil
	}
	return &snapshot.Store{
		Dir:  w.CheckpointDir(root),
		Root: root, Skip: w.skipped(root), Quota: w.Config.Checkpoints.Quota << 20,
	}
}

// skipped returns a function that reports what is never saved and never restored: folders that package managers
// fill, and sensitive places, which calls only change with a person's consent. Files that git ignores are
// saved, since a call could make git ignore them.
func (w *Rewinds) skipped(root string) func(path string, dir bool) bool {
	at := w.Places(root)
	made := []string{
		"node_modules", ".venv", "venv", "__pycache__", ".tox",
		".mypy_cache", ".pytest_cache", ".ruff_cache", ".gradle", ".next", ".terraform",
	}
	return func(path string, dir bool) bool {
		return dir && slices.Contains(made, filepath.Base(path)) || at.Of(filepath.Join(root, filepath.FromSlash(path))).Guard != places.Plain
	}
}

// Checkpointing returns the function that takes checkpoints for a session, and finishes a rewind that a crash
// has cut off.
func (w *Rewinds) Checkpointing(ctx context.Context, root string,
	warn func(string),
) (func(context.Context) (event.Checkpoint, error), error) {
	store := w.snapshots(root)
	if store == nil {
		return nil, nil
	}
	if _, err := os.Stat(store.Dir); err == nil {
		done, err := store.Recover(ctx)
		if err != nil {
			return nil, fmt.Errorf("finish a rewind that was cut off: %w", err)
		}
		if done != nil {
			warn(fmt.Sprintf("a rewind that was cut off has been finished: %d files", len(done.Changes)))
		}
	}
	return func(ctx context.Context) (event.Checkpoint, error) { return take(ctx, store) }, nil
}

// checkpointTime is how long a checkpoint may take. A workspace that needs longer is not a project, and no one
// would wait for it at each call.
const checkpointTime = 30 * time.Second

func take(ctx context.Context, store *snapshot.Store) (event.Checkpoint, error) {
	limited, cancel := context.WithTimeout(ctx, checkpointTime)
	defer cancel()
	c, err := store.Take(limited)
	if errors.Is(err, snapshot.ErrFull) {
		if _, err := store.Clean(limited); err != nil {
			return event.Checkpoint{}, err
		}
		c, err = store.Take(limited)
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("it takes longer than %v", checkpointTime)
	}
	return event.Checkpoint{ID: c.ID, Left: c.Left}, err
}

// Point is a place that a session can be rewound to: before a person's message.
type Point struct {
	Seq  uint64    `json:"seq"` // of the message
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// Points lists where a session can be rewound to: before each message of a person, the oldest first.
func (w *Rewinds) Points(ctx context.Context, id string) ([]Point, error) {
	var all []Point
	var fold transcript.Fold
	for e, err := range store.Events(ctx, w.Sessions, id) {
		if err != nil {
			return nil, err
		}
		for _, item := range fold.Apply(e) {
			said, is := item.(*transcript.Said)
			if !is || said.Seq != e.Seq || len(said.Parts) == 0 {
				continue
			}
			// Without a run, a steering message begins one.
			if own := said.Origin == event.OriginPerson; own && (!said.Steered || said.Heard) || !said.Steered && said.Origin == "" {
				all = append(all, Point{e.Seq, e.Time, said.Parts.Text()})
			}
		}
	}
	return slices.DeleteFunc(all, func(p Point) bool { return fold.Gone(p.Seq) }), nil
}

// Way is a planned rewind of files, the conversation or both.
type Way struct {
	To    uint64 // event that the conversation goes back to; 0 if it stays
	Plan  snapshot.Plan
	store *snapshot.Store // nil if the files stay
	at    string          // checkpoint that they go back to
	spans []snapshot.Span
	// files that background agents have changed since, which stay
	beside []FileBack
	// files that calls have written since outside of the workspace, such as in a folder next to it
	apart []FileBack
}

// Lines describes the rewind in lines without control characters: each file that changes, each that stays
// because someone else has changed it since, and where the conversation goes. There is always at least one.
// Force is as in [Way.Restore].
func (r *Way) Lines(force bool) []string {
	changed, kept := r.Files()
	return WayLines(r.To, changed, kept, force)
}

// WayLines returns the lines for a rewind to an event that changes some files and keeps others.
func WayLines(to uint64, changed, kept []FileBack, force bool) []string {
	var out []string
	for _, f := range changed {
		out = append(out, words.OneLine(f.Path, 200)+" "+f.What)
	}
	verb := "stays"
	if force {
		verb = "is overwritten, where that is possible"
	}
	for _, f := range kept {
		does := verb
		if f.Agent != "" || filepath.IsAbs(f.Path) {
			does = "stays"
		}
		out = append(out, fmt.Sprintf("%s %s: %s", words.OneLine(f.Path, 200), does, words.OneLine(f.What, 200)))
	}
	if len(out) == 0 {
		out = append(out, "no file changes")
	}
	if to > 0 {
		out = append(out, fmt.Sprintf("the conversation returns to event %d", to))
	}
	return out
}

// FileBack is a path, relative to the workspace if it lies there, and what happens to it, or why it stays as it is.
type FileBack struct {
	Path string `json:"path"`
	What string `json:"what" jsonschema:"what becomes of it, or why it stays"`
	// Agent is the session of the background agent that has changed it.
	Agent string `json:"agent,omitempty" jsonschema:"session of the background agent that changed it, whose rewind undoes that"`
}

// Files returns the files that the rewind changes, and those that differ and stay.
func (r *Way) Files() (changed, kept []FileBack) {
	changed, kept = []FileBack{}, []FileBack{}
	for _, c := range r.Plan.Changes {
		changed = append(changed, FileBack{Path: c.Path, What: becomes(c)})
	}
	for _, c := range r.Plan.Kept {
		kept = append(kept, FileBack{Path: c.Path, What: c.Why})
	}
	for _, f := range r.beside {
		if !slices.ContainsFunc(slices.Concat(changed, kept), func(o FileBack) bool { return o.Path == f.Path }) {
			kept = append(kept, f)
		}
	}
	return changed, append(kept, r.apart...)
}

func becomes(c snapshot.Change) string {
	if c.Why == snapshot.Merged {
		return "loses the changes of the agent; " + c.Why
	}
	switch c.Kind {
	case snapshot.Create:
		return "comes back"
	case snapshot.Delete:
		return "is removed, because the agent created it"
	case snapshot.ChangeMod:
		return fmt.Sprintf("gets its permissions back: %v", c.Mode)
	case snapshot.Retype:
		return "returns to its earlier state"
	}
	return "gets its content back"
}

// ErrNothingToRewind means that there is nothing to go back to, and ErrNothingToRedo that there is no rewind to
// undo.
var (
	ErrNothingToRewind = errors.New("no changes since then, according to the checkpoints")
	ErrNothingToRedo   = errors.New("nothing to redo")
)

// Back plans the way back to before an event of a session that works in root, and changes nothing.
func (w *Rewinds) Back(ctx context.Context, id, root string, seq uint64, files, conversation bool) (*Way, error) {
	r := &Way{}
	if conversation {
		r.To = seq - 1
	}
	if !files {
		return r, nil
	}
	if r.store = w.snapshots(root); r.store == nil {
		return nil, config.Error{Err: errors.New("checkpoints are off for this workspace")}
	}
	if _, err := r.store.Recover(ctx); err != nil {
		return nil, err
	}
	var err error
	if err = r.collect(ctx, w.Sessions, id, root, seq); err == nil {
		r.beside, err = w.beside(ctx, id, root, seq)
	}
	if err != nil {
		return nil, err
	}
	if r.at == "" && conversation {
		r.store = nil
		return r, nil
	}
	if r.at == "" && len(r.beside) > 0 {
		return nil, fmt.Errorf("%w; %s stays: %s", ErrNothingToRewind, words.OneLine(r.beside[0].Path, 200), r.beside[0].What)
	}
	if r.at == "" {
		return nil, ErrNothingToRewind
	}
	r.Plan, err = r.store.Plan(ctx, r.at, r.spans)
	return r, err
}

// beside returns the files of the workspace that background agents have changed since an event. The work of an
// agent for a call that waits for it belongs to the call.
func (w *Rewinds) beside(ctx context.Context, id, root string, since uint64) (files []FileBack, err error) {
	var agents []string // agents that are working, at the event and later
	for e, err := range store.Events(ctx, w.Sessions, id) {
		if err != nil {
			return nil, err
		}
		switch b := e.Body.(type) {
		case event.Spawned:
			if b.Background && b.Root == "" && !slices.Contains(agents, b.Child) {
				agents = append(agents, b.Child)
			}
		case event.Returned:
			if e.Seq < since {
				agents = slices.DeleteFunc(agents, func(a string) bool { return a == b.Child })
			}
		}
	}
	for _, agent := range agents {
		list, err := w.Changed(ctx, agent, root)
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			if f.Agent == "" {
				f.Agent = agent
			}
			f.What = fmt.Sprintf("agent %s changed it in the background; 'inspan rewind %s' takes that back", f.Agent, f.Agent)
			files = append(files, f)
		}
	}
	return files, nil
}

// Changed returns the files that a session has changed, and their present state, according to its checkpoints:
// including those changed by commands, and without those that were fully undone.
func (w *Rewinds) Changed(ctx context.Context, id, root string) (files []FileBack, err error) {
	way, err := w.Back(ctx, id, root, 0, true, false)
	if err != nil {
		if errors.Is(err, ErrNothingToRewind) {
			return w.beside(ctx, id, root, 0)
		}
		return nil, err
	}
	for _, c := range way.Plan.Changes {
		what := "changed"
		switch c.Kind {
		case snapshot.Create:
			what = "deleted"
		case snapshot.Delete:
			what = "created"
		case snapshot.ChangeMod:
			what = "permissions changed"
		}
		files = append(files, FileBack{Path: c.Path, What: what})
	}
	return append(files, way.beside...), nil
}

// collect finds the changes by the calls of a session since an event: the differences between the checkpoints
// around them.
func (r *Way) collect(ctx context.Context, sessions store.Store, id, root string, since uint64) error {
	open := ""
	add := func(before, after string) {
		if r.at == "" {
			r.at = before
		}
		r.spans = append(r.spans, snapshot.Span{Before: before, After: after})
	}
	for e, err := range store.Events(ctx, sessions, id) {
		if err != nil {
			return err
		}
		if e.Seq < since {
			continue
		}
		switch b := e.Body.(type) {
		case event.Checkpoint:
			if open != "" { // or a crash has taken the second one
				add(open, b.ID)
			}
			if open = b.ID; b.After {
				open = ""
			}
		case event.Restored:
			add(b.Before, b.After)
		case event.Ended:
			for _, f := range b.Files {
				known := slices.ContainsFunc(r.apart, func(o FileBack) bool { return o.Path == f.Path })
				if f.Written && !known && filepath.IsAbs(f.Path) && !text.Inside(root, f.Path) {
					r.apart = append(r.apart, FileBack{Path: f.Path, What: "it is outside the workspace, and checkpoints cover only the workspace"})
				}
			}
		}
	}
	if open == "" {
		return nil
	}
	now, err := r.store.Take(ctx)
	if err == nil {
		add(open, now.ID)
	}
	return err
}

// To plans the way back of a session with this status, to before the named event: its number, or "last" for the
// last message. An empty name undoes the last rewind, see [Rewinds.Redo]. An unknown name is a [words.Misuse].
func (w *Rewinds) To(ctx context.Context, st inspan.Status, named string, files, conversation bool) (*Way, error) {
	if named == "" {
		return w.Redo(ctx, st.Session, st.Root)
	}
	points, err := w.Points(ctx, st.Session)
	if err != nil {
		return nil, err
	}
	if len(points) == 0 {
		return nil, words.Misuse{Err: errors.New("this session has no messages")}
	}
	seq := points[len(points)-1].Seq
	if named != "last" {
		n, err := strconv.ParseUint(named, 10, 64)
		if err != nil || n < points[0].Seq || n > st.Seq {
			return nil, words.Misuse{Err: fmt.Errorf("no message or event %s; 'inspan rewind %s' lists the messages", named, st.Session)}
		}
		seq = n
	}
	return w.Back(ctx, st.Session, st.Root, seq, files, conversation)
}

// Redo plans how to undo the last rewind of a session: its files until the same ones change again, and the
// conversation until the next message.
func (w *Rewinds) Redo(ctx context.Context, id, root string) (*Way, error) {
	r := &Way{}
	for e, err := range store.Events(ctx, w.Sessions, id) {
		if err != nil {
			return nil, err
		}
		switch b := e.Body.(type) {
		case event.Restored:
			r.store, r.at, r.spans, r.To = w.snapshots(root), b.Before, []snapshot.Span{{Before: b.Before, After: b.After}}, 0
		case event.Rewound:
			r.To = b.Of
		case event.Said, event.Steered: // the conversation has continued; the files may still be restored
			r.To = 0
		}
	}
	if r.store == nil && r.To == 0 {
		return nil, ErrNothingToRedo
	}
	if r.store == nil {
		return r, nil
	}
	if _, err := r.store.Recover(ctx); err != nil {
		return nil, err
	}
	var err error
	r.Plan, err = r.store.Plan(ctx, r.at, r.spans)
	return r, err
}

// Parked opens a session that can be looked at and rewound but not run, so it needs no model. The caller must
// close it.
func (w *Rewinds) Parked(ctx context.Context, id string) (*inspan.Session, error) {
	log, err := w.Sessions.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	s, err := (&inspan.Agent{Model: &script.Model{}}).Open(ctx, log)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return s, nil
}

// Restore returns the function that restores the files, for [inspan.Session.Rewind]. Force also overwrites what
// someone else has changed since.
func (r *Way) Restore(force bool) inspan.Restore {
	return func(ctx context.Context, done *event.Restored) (*event.Restored, error) {
		forced := force && len(r.Plan.Kept) > 0
		switch {
		case done != nil:
			return r.restore(ctx, done.Before, []snapshot.Span{{Before: done.Before, After: done.After}}, false)
		case r.store == nil || len(r.Plan.Changes) == 0 && !forced:
			return nil, nil
		}
		return r.restore(ctx, r.at, r.spans, force)
	}
}

func (r *Way) restore(ctx context.Context, to string, spans []snapshot.Span, force bool) (*event.Restored, error) {
	done, err := r.store.Restore(ctx, to, spans, force)
	if err != nil {
		return nil, err
	}
	body := &event.Restored{To: to, Before: done.Before, After: done.After, Kept: len(done.Kept)}
	for _, c := range done.Changes[:min(100, len(done.Changes))] {
		path := strings.ToValidUTF8(c.Path, "\uFFFD")
		if body.Files = append(body.Files, path); c.Kind == snapshot.Delete {
			body.Removed = append(body.Removed, path)
		}
	}
	return body, nil
}
