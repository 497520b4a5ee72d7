package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

const (
	logName   = "log.jsonl"
	lockName  = "lock"
	leaseName = "lease"
	indexName = "index.json"
	blobsName = "blobs"

	buildMark  = ".new-" // before the id of a session that is being made
	removeMark = ".old-" // before the id of a session that is being removed
	putMark    = ".put-" // before a random name of a blob that is being written
)

// Policy determines which data must be on the disk before Append returns. See the table in the package
// documentation.
type Policy int

// Policies.
const (
	SyncPower Policy = iota // events named by event.Synced survive power loss
	SyncKill                // the file system decides; nothing is ever synced
)

// Store is a folder of sessions, a [store.Store]. Its methods are safe for concurrent use, even by several
// processes on one folder. A Store must not be copied after use.
type Store struct {
	Dir  string // made when first needed
	Sync Policy

	disk   disk             // nil means the real one
	now    func() time.Time // nil means time.Now
	random io.Reader        // nil means crypto/rand

	patience time.Duration // 0 means lockPatience

	mu       sync.Mutex
	bells    map[string]*bell
	notifier notifier // rings them for other processes
	specs    specs
}

var (
	_ store.Store        = (*Store)(nil)
	_ store.RecentLister = (*Store)(nil)
	_ store.Booker       = (*Store)(nil)
)

func (s *Store) fs() disk {
	if s.disk == nil {
		return osDisk{}
	}
	return s.disk
}

func (s *Store) clock() time.Time {
	if s.now == nil {
		return time.Now()
	}
	return s.now()
}

// sync makes f durable, if that is the policy.
func (s *Store) sync(f file) error {
	if s.Sync == SyncKill {
		return nil
	}
	return f.Sync()
}

func (s *Store) syncDir(path string) error {
	if s.Sync == SyncKill {
		return nil
	}
	return s.fs().SyncDir(path)
}

var errNoRandom = errors.New("no unused session id found")

// Create implements [store.Store].
func (s *Store) Create(ctx context.Context) (store.Log, error) {
	l, err := s.create(ctx, empty)
	if err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	return l, nil
}

// Child implements [store.Store].
func (s *Store) Child(ctx context.Context, parent, name string) (store.Log, bool, error) {
	var l *Log
	var isNew bool
	id, err := store.ChildID(parent, name)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		l, isNew, err = s.made(ctx, id, empty)
	}
	if err != nil {
		return nil, false, fmt.Errorf("create session: %w", err)
	}
	return l, isNew, nil
}

// Book implements [store.Booker].
func (s *Store) Book(ctx context.Context, name string) (store.Log, error) {
	id, err := store.BookID(name)
	if err == nil {
		err = mkdirAll(s.fs(), s.Dir, s.Sync == SyncPower)
	}
	if err != nil {
		return nil, err
	}
	l, err := s.opened(ctx, id)
	if errors.Is(err, fs.ErrNotExist) {
		l, _, err = s.made(ctx, id, empty)
	}
	if err != nil {
		return nil, fmt.Errorf("open book %q: %w", name, err)
	}
	return l, nil
}

// empty fills a session with nothing.
func empty(string, string) error { return nil }

// made opens the log with an id that its maker has chosen, or makes and fills it if there is none.
func (s *Store) made(ctx context.Context, id string, fill func(id, dir string) error) (l *Log, isNew bool, err error) {
	err = s.build(id, fill)
	if errors.Is(err, fs.ErrExist) {
		if l, err = s.opened(ctx, id); !errors.Is(err, fs.ErrNotExist) {
			return l, err == nil && l.tail.Seq == 0, err
		}
		// An incomplete one of a crash is in the way.
		if err = s.fs().Remove(filepath.Join(s.Dir, buildMark+id)); err == nil {
			err = s.build(id, fill)
		}
		if errors.Is(err, fs.ErrExist) { // it was not a crash: another process has just made it
			l, err = s.opened(ctx, id)
			return l, err == nil && l.tail.Seq == 0, err
		}
	}
	if err != nil {
		return nil, false, err
	}
	l, err = s.opened(ctx, id)
	return l, true, err
}

// create makes a session with the content from fill, under its id and in its folder. It is invisible until it
// is durable.
func (s *Store) create(ctx context.Context, fill func(id, dir string) error) (*Log, error) {
	if err := mkdirAll(s.fs(), s.Dir, s.Sync == SyncPower); err != nil {
		return nil, err
	}
	source := s.random
	if source == nil {
		source = rand.Reader
	}
	for range 100 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		id, err := store.NewID(s.clock(), source)
		if err != nil {
			return nil, err
		}
		err = s.build(id, fill)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return s.opened(ctx, id)
	}
	return nil, errNoRandom
}

// build makes the session in a folder that is not listed, then renames it. The error wraps [fs.ErrExist] if the
// id is taken.
func (s *Store) build(id string, fill func(id, dir string) error) error {
	d := s.fs()
	tmp, dir := filepath.Join(s.Dir, buildMark+id), filepath.Join(s.Dir, id)
	if err := d.Mkdir(tmp); err != nil {
		return err
	}
	err := s.fillNew(id, tmp, fill)
	if err == nil {
		err = d.Rename(tmp, dir)
	}
	if err != nil {
		return errors.Join(err, d.Remove(tmp))
	}
	return s.syncDir(s.Dir)
}

func (s *Store) fillNew(id, dir string, fill func(id, dir string) error) error {
	f, err := s.fs().Open(filepath.Join(dir, logName), os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = f.TryLock() // without locks no session could ever be driven here
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fill(id, dir); err != nil {
		return err
	}
	return s.syncDir(dir)
}

// Open implements [store.Store]. It changes nothing and works on a read-only disk: the first append sets a torn
// tail aside, cuts it and records that in the log with an event.Note of topic "recovered".
func (s *Store) Open(ctx context.Context, id string) (store.Log, error) {
	l, err := s.opened(ctx, id)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (s *Store) opened(ctx context.Context, id string) (*Log, error) {
	l, _, err := s.open(id)
	if err != nil {
		return nil, fmt.Errorf("open session %q: %w", id, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("open session %q: %w", id, err), l.Close())
	}
	return l, nil
}

// open opens a session and verifies its end, or all of it if no index helps. It changes nothing. left is the
// number of bytes at the end that could not be verified.
func (s *Store) open(id string) (l *Log, left int64, err error) {
	if !store.IsID(id) && !store.IsBook(id) {
		return nil, 0, fmt.Errorf("not a session id: %w", fs.ErrNotExist)
	}
	dir := filepath.Join(s.Dir, id)
	f, err := s.fs().Open(filepath.Join(dir, logName), os.O_RDONLY)
	if err != nil {
		return nil, 0, err
	}
	l = &Log{store: s, id: id, dir: dir, f: f, turn: make(chan struct{}, 1), bell: s.hold(id)}
	if left, err = l.verify(); err != nil {
		return nil, 0, errors.Join(err, l.Close())
	}
	return l, left, nil
}

// verify reads a log that was just opened. It looks up first what the log promises, since others append
// meanwhile.
func (l *Log) verify() (left int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.promised = l.synced()
	if l.load() {
		before := l.tail
		left, _, err = l.advance()
		if err == nil && l.tail == before { // differs from the index
			l.tail, l.marks, l.saved = cursor{}, marks{}, 0
		}
	}
	if err == nil && l.tail == (cursor{}) {
		left, _, err = l.advance()
	}
	if d := l.lacking(); d != nil && err == nil {
		l.broken = d
	}
	return left, err
}

// hold returns the bell of a session; give it back with release.
func (s *Store) hold(id string) *bell {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bells[id]
	if b == nil {
		if s.bells == nil {
			s.bells = make(map[string]*bell)
		}
		b = new(bell)
		s.bells[id] = b
	}
	b.users++
	return b
}

// crowded reports whether too many logs are open to check them one by one.
func (s *Store) crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := 0
	for _, b := range s.bells {
		if open += b.users; open > fewLogs {
			return true
		}
	}
	return false
}

func (s *Store) logPath(id string) string { return filepath.Join(s.Dir, id, logName) }

func (s *Store) release(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bells[id]
	if b.users--; b.users == 0 {
		delete(s.bells, id)
		s.notifier.remove(s.logPath(id))
	}
}

// IDs implements [store.Store].
func (s *Store) IDs(context.Context) ([]string, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return ids, nil
}

// ids returns the names of folders, which ReadDir sorts.
func (s *Store) ids() ([]string, error) {
	names, err := s.names(s.Dir)
	return slices.DeleteFunc(names, func(name string) bool { return !store.IsID(name) }), err
}

// Resolve is [store.Resolve] on this store.
func (s *Store) Resolve(ctx context.Context, text string) (string, error) {
	return store.Resolve(ctx, s, text)
}

// Events is [store.Events] on this store.
func (s *Store) Events(ctx context.Context, id string) iter.Seq2[event.Event, error] {
	return store.Events(ctx, s, id)
}
