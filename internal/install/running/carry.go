package running

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/snapshot"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// Carriers move workspaces between this machine and the store. It is safe for concurrent use.
type Carriers struct {
	// Dir is the folder for records about them, outside of the workspaces.
	Dir string
	// Sessions keeps the sessions, and the states of their workspaces among their blobs.
	Sessions store.Store
	// Most is the largest workspace, in bytes, that can move; 0 means 8 GiB.
	Most int64
	// Spare is how many bytes must stay free where the workspaces are.
	Spare int64

	mu  sync.Mutex
	all map[string]*Carrier // by root
}

const mostCarried = 8 << 30

// At returns the carrier of the workspace at root.
func (cs *Carriers) At(root string) *Carrier {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.all[root]
	if c == nil {
		most := cs.Most
		if most == 0 {
			most = mostCarried
		}
		dir := filepath.Join(cs.Dir, tool.Digest([]byte(root)))
		c = &Carrier{of: cs, mark: dir + markSuffix, store: &snapshot.Store{Dir: dir, Root: root, Whole: true, Quota: most, MaxFile: most}}
		if cs.all == nil {
			cs.all = map[string]*Carrier{}
		}
		cs.all[root] = c
	}
	return c
}

// Roots lists the workspaces that have a copy here.
func (cs *Carriers) Roots() (roots []string, err error) {
	list, err := os.ReadDir(cs.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range list {
		if m, err := readMark(filepath.Join(cs.Dir, e.Name())); err == nil && strings.HasSuffix(e.Name(), markSuffix) {
			roots = append(roots, m.Root)
		}
	}
	return roots, err
}

// Drop removes the workspace at root from this machine. Its state stays in the store.
func (cs *Carriers) Drop(root string) error {
	c := cs.At(root)
	c.mu.Lock()
	defer c.mu.Unlock()
	cs.mu.Lock()
	delete(cs.all, root)
	cs.mu.Unlock()
	// The mark goes last: while it exists, a crash leaves something that can be dropped.
	return errors.Join(c.store.Drop(), remove(c.mark))
}

// Forget removes the state of a workspace from the store. Its session can't continue after that.
func (cs *Carriers) Forget(ctx context.Context, session string) error {
	log, err := cs.Sessions.Open(ctx, session)
	if err != nil {
		return err
	}
	defer log.Close()
	return snapshot.RemoveStates(ctx, log.Blobs())
}

// State returns the newest state of a session's workspace.
func (cs *Carriers) State(ctx context.Context, session string) (event.Workspace, error) {
	newest, _, err := cs.newest(ctx, session)
	return newest, err
}

// Held returns the size in bytes of the files in a workspace's state in the store.
func (cs *Carriers) Held(ctx context.Context, session string) (int64, error) {
	newest, _, err := cs.newest(ctx, session)
	if err != nil || newest.Manifest == "" {
		return newest.Bytes, err
	}
	log, err := cs.Sessions.Open(ctx, session)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	if _, err = snapshot.Needed(ctx, log.Blobs(), newest.Manifest); errors.Is(err, os.ErrNotExist) {
		return 0, nil // it was removed
	}
	return newest.Bytes, err
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Carrier stores the workspace of a session, and of all that work for it there, and fetches it to this machine.
type Carrier struct {
	of    *Carriers
	mark  string // file that identifies the copy in the folder
	store *snapshot.Store

	mu      sync.Mutex
	session string                   // the one at the top
	blobs   tool.Blobs               // of that session
	copy    string                   // name of the folder here
	last    event.Workspace          // newest state, in a log or on its way into one
	logged  bool                     // it is in a log
	adopts  bool                     // nothing has run here since the folder was created
	moved   bool                     // the session was elsewhere before
	known   map[event.Workspace]bool // states that the log of the session may name
	gone    []string                 // blobs that last does not need
	before  []string                 // blobs of earlier states that no one returns to
}

// mark identifies the copy in a folder. Once adopted by the Nth state it belongs to the session; until then
// nothing has run in it, and it is still the state of the manifest.
type mark struct {
	Root, Copy, Manifest string
	N                    uint64
	Boot                 string // of the machine: after a restart the disk may have lost files
}

const markSuffix = ".copy"

// ErrMoved means that a session has run elsewhere since its workspace was fetched.
var ErrMoved = errors.New("its workspace has changed on another machine")

// StaysError means that a workspace is on another machine and can't leave it.
type StaysError struct{ Why string }

func (e *StaysError) Error() string {
	return "its workspace can't leave its machine: " + e.Why
}

// RoomError means that a workspace does not fit here, but may fit elsewhere. Free excludes what must stay free.
type RoomError struct{ Bytes, Free int64 } // Free: besides what must stay so

func (e *RoomError) Error() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("it has %s bytes, and %s has room for %s", text.Thousands(int(e.Bytes)), host, text.Thousands(int(e.Free)))
}

// Begin makes the existing folder the first copy of a workspace that no session has yet.
func (c *Carrier) Begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arrived("", event.Workspace{}, event.Workspace{})
	c.copy = rand.Text()
	return c.writeMark(mark{Copy: c.copy, N: 1})
}

// Arrive makes the folder the newest state of a session's workspace, unless it is that already or newer. Call
// it before driving the session, or looking at its work.
func (c *Carrier) Arrive(ctx context.Context, session string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest, own, err := c.of.newest(ctx, session)
	if err != nil {
		return err
	}
	if own.Root != c.store.Root {
		return fmt.Errorf("its workspace is %s, and here it would be %s: the path must be the same on all machines", own.Root, c.store.Root)
	}
	if err := os.MkdirAll(c.of.Dir, 0o700); err != nil {
		return err
	}
	lock, err := keep.LockFile(ctx, c.mark+".lock", 0)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	m, marked := readMark(c.mark)
	_, there := os.Stat(c.store.Root)
	here := marked == nil && there == nil
	switch {
	case here && newest.N > 0 && m.Copy == newest.Copy && (m.Boot == boot() || newest.Stays != ""):
	case here && m.N == newest.N+1 && m.Manifest == newest.Manifest && m.Boot == boot():
	case newest.N == 0 && there == nil: // it did not move before
		m = mark{Copy: rand.Text(), N: 1}
		err = c.writeMark(m)
	case newest.N == 0:
		err = there
	case newest.Stays != "":
		err = &StaysError{newest.Stays}
	default:
		m, err = c.fetch(ctx, session, newest)
	}
	if err != nil {
		return err
	}
	c.arrived(session, newest, own.Workspace)
	c.copy, c.moved = m.Copy, own.Turns > 0 && newest.N > 0 && m.Copy != newest.Copy
	return nil
}

// arrived resets the carrier to a state.
func (c *Carrier) arrived(session string, newest, own event.Workspace) {
	c.session, c.last, c.logged, c.adopts, c.moved = session, newest, true, true, false
	c.known, c.gone, c.before = map[event.Workspace]bool{newest: true, own: true}, nil, nil
}

// fetch creates the folder again.
func (c *Carrier) fetch(ctx context.Context, session string, newest event.Workspace) (mark, error) {
	log, err := c.of.Sessions.Open(ctx, session)
	if err != nil {
		return mark{}, err
	}
	defer log.Close()
	if free, err := keep.Free(filepath.Dir(c.store.Root)); err == nil && free < uint64(newest.Bytes+c.of.Spare) {
		return mark{}, &RoomError{newest.Bytes, max(0, int64(free)-c.of.Spare)}
	}
	if err := remove(c.mark); err != nil {
		return mark{}, err
	}
	if _, err := c.store.Fetch(ctx, log.Blobs(), newest.Manifest); err != nil {
		return mark{}, err
	}
	m := mark{Copy: rand.Text(), Manifest: newest.Manifest, N: newest.N + 1}
	return m, c.writeMark(m)
}

// newest returns the newest state in the log of a session or of one that works for it in the same folder. Own
// is the status of the session itself.
func (cs *Carriers) newest(ctx context.Context, session string) (newest event.Workspace, own inspan.Status, err error) {
	w, err := (&inspan.Host{Store: cs.Sessions}).Watch(ctx, session)
	if err != nil {
		return newest, own, err
	}
	own = w.Status()
	if err := w.Close(); err != nil {
		return newest, own, err
	}
	newest = own.Workspace
	for _, child := range own.Children {
		if child.Root != "" {
			continue // it has a workspace of its own
		}
		its, _, err := cs.newest(ctx, child.Child)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was never begun
		}
		if err != nil {
			return newest, own, err
		}
		if its.N > newest.N {
			newest = its
		}
	}
	return newest, own, nil
}

// Wire makes an agent in the workspace store its state. Top means that the agent's session owns the workspace,
// and does not work for another.
func (c *Carrier) Wire(agent *inspan.Agent, at inspan.SessionSpec, top bool) {
	if at.Root != c.store.Root {
		return // it has a workspace of its own, which stays here
	}
	agent.Workspace.Checkpoint = nil // checkpoints would stay here
	if top {
		c.mu.Lock()
		c.session, c.blobs = at.ID, at.Blobs
		c.mu.Unlock()
	}
	agent.Workspace.Sync = func(ctx context.Context, last event.Workspace) ([]event.Body, error) { return c.carry(ctx, last, top) }
}

func (c *Carrier) carry(ctx context.Context, last event.Workspace, top bool) ([]event.Body, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.current(ctx, last, top); err != nil {
		return nil, err
	}
	if last == c.last {
		c.logged = true
	}
	if c.last.Stays != "" && c.copy == c.last.Copy {
		return nil, nil
	}
	c.sweep(ctx)
	sent, err := c.store.Send(ctx, c.blobs, c.last.Manifest)
	if errors.Is(err, snapshot.ErrFull) {
		return c.stays(sent.Bytes), nil
	}
	if err != nil {
		return nil, err
	}
	adopts := c.last.Copy != c.copy
	if sent.New == 0 && !adopts && (last == c.last || !top && c.logged) {
		return nil, nil
	}
	if sent.New > 0 || adopts {
		c.next(event.Workspace{Copy: c.copy, Manifest: sent.Manifest, Bytes: sent.Bytes, Left: sent.Left})
		c.gone = append(c.gone, sent.Gone...)
	}
	bodies := []event.Body{c.last}
	if c.moved {
		bodies = append(bodies, event.Added{Where: event.PlaceTail, Source: "workspace", Text: movedNote(c.last.Left)})
	}
	c.adopts, c.moved = false, false
	return bodies, nil
}

// next makes a state the newest.
func (c *Carrier) next(w event.Workspace) {
	w.N = c.last.N + 1
	if c.logged {
		c.before, c.gone = append(c.before, c.gone...), nil
	}
	c.last, c.logged, c.known[w] = w, false, true
}

// stays returns the events for a workspace that can't move any more.
func (c *Carrier) stays(bytes int64) []event.Body {
	host, _ := os.Hostname()
	why := fmt.Sprintf("its workspace on %s has %s bytes or more, and travels up to %s", host,
		text.Thousands(int(bytes)), text.Thousands(int(c.store.Quota)))
	c.next(event.Workspace{Copy: c.copy, Stays: why, Bytes: bytes})
	c.adopts, c.moved = false, false
	return []event.Body{c.last, event.Note{
		Topic: "workspace", Text: "the session stays on this machine from now on: " + why,
	}}
}

// current fails if the session has run elsewhere since the folder was created.
func (c *Carrier) current(ctx context.Context, last event.Workspace, top bool) error {
	if c.known == nil {
		return errors.New("the workspace could not be fetched to this machine")
	}
	if last.N > c.last.N || top && last.N > 0 && !c.known[last] {
		return ErrMoved
	}
	if !top || !c.adopts || last.N == 0 {
		return nil
	}
	newest, _, err := c.of.newest(ctx, c.session)
	if err == nil && newest.N > c.last.N {
		err = ErrMoved
	}
	return err
}

// sweep removes blobs that no state needs any more, some at a time. Their successor is in a log.
func (c *Carrier) sweep(ctx context.Context) {
	const some = 16
	if c.logged {
		c.before, c.gone = append(c.before, c.gone...), nil
	}
	from, can := c.blobs.(store.BlobRemover)
	if len(c.before) < some || !can {
		return
	}
	for _, name := range c.before {
		_ = from.Remove(ctx, name) // what remains is removed with the session
	}
	c.before = nil
}

// movedNote tells the model what it does not find here.
func movedNote(left int) string {
	but := ""
	if left > 0 {
		but = fmt.Sprintf(", but for %d files that could not be read", left)
	}
	return "[this session now runs on another machine. The workspace is as it was at the last result" + but +
		". What was outside of it is not here: files in /tmp, installed programs, processes, variables, copies that subagents worked in.]"
}

func (c *Carrier) writeMark(m mark) error {
	m.Root, m.Boot = c.store.Root, boot()
	data, err := json.Marshal(m)
	if err == nil {
		err = os.MkdirAll(c.of.Dir, 0o700)
	}
	if err == nil {
		err = keep.Write(c.mark, data)
	}
	return err
}

func readMark(path string) (m mark, err error) {
	data, err := keep.Read(path)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	return m, err
}

// boot identifies this start of the machine; empty if the system does not say.
func boot() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
}

// Readable returns the blobs of a session as its agent and people see them, without the states of its
// workspace.
func Readable(blobs tool.Blobs) tool.Blobs { return snapshot.WithoutStates(blobs) }
