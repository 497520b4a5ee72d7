package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	logName   = "log.jsonl"
	lockName  = "lock"
	leaseName = "lease"
	indexName = "index.json"
	blobsName = "blobs"

	buildMark  = ".new-" // before the id of a session that is being made
	removeMark = ".old-" // before the id of a session that is being removed
)

// Policy says what must be on the disk before Append returns. See the table
// in the package documentation.
type Policy int

// Policies.
const (
	SyncPower Policy = iota // what event.Synced names survives power loss
	SyncKill                // the file system decides; nothing is ever synced
)

// Store is a folder of sessions. Its methods are safe for concurrent use, also
// by several processes on one folder. A Store must not be copied after use.
type Store struct {
	Dir  string // made when first needed
	Sync Policy

	disk   disk             // nil: the real one
	now    func() time.Time // nil: time.Now
	random io.Reader        // nil: crypto/rand

	mu    sync.Mutex
	bells map[string]*bell
}

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

// isID reports whether a name is that of a session: the time in UTC, four
// characters, and six more behind a dot for each parent that it works for.
func isID(name string) bool {
	own, rest, _ := strings.Cut(name, ".")
	form := "dddddddd-dddddd-cccc"
	if len(own) != len(form) || len(name) > mostID {
		return false
	}
	for i := range form {
		switch c := own[i]; form[i] {
		case 'd':
			if c < '0' || c > '9' {
				return false
			}
		case 'c':
			if strings.IndexByte(idChars, c) < 0 {
				return false
			}
		default:
			if c != form[i] {
				return false
			}
		}
	}
	for len(own) < len(name) {
		part, more, _ := strings.Cut(rest, ".")
		if len(part) != childChars || strings.Trim(part, idChars) != "" {
			return false
		}
		own, rest = own+"."+part, more
	}
	return true
}

const (
	childChars = 6                     // of an id that each parent adds
	mostID     = 20 + 8*(1+childChars) // bytes
)

// idChars is Crockford's base 32, which has no letters that look like others.
const idChars = "0123456789abcdefghjkmnpqrstvwxyz"

// newID makes an id of the time in UTC and four random characters.
func (s *Store) newID() (string, error) {
	source := s.random
	if source == nil {
		source = rand.Reader
	}
	var b [4]byte
	if _, err := io.ReadFull(source, b[:]); err != nil {
		return "", err
	}
	for i := range b {
		b[i] = idChars[b[i]%32]
	}
	return s.clock().UTC().Format("20060102-150405-") + string(b[:]), nil
}

// Create makes a new, empty session and opens it.
func (s *Store) Create(ctx context.Context) (*Log, error) {
	l, err := s.create(ctx, func(string, string) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	return l, nil
}

// Child opens the session that works for parent under a name, and creates it if
// there is none: its id is made of the two. IsNew says that it holds nothing.
func (s *Store) Child(ctx context.Context, parent, name string) (l *Log, isNew bool, err error) {
	id := childID(parent, name)
	if !isID(parent) || !isID(id) {
		return nil, false, fmt.Errorf("create session: %q can have no children", parent)
	}
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	nothing := func(string, string) error { return nil }
	err = s.build(id, nothing)
	if errors.Is(err, fs.ErrExist) {
		if l, err = s.Open(ctx, id); !errors.Is(err, fs.ErrNotExist) {
			return l, err == nil && l.tail.Seq == 0, err
		}
		// What a crash has left half made is in the way.
		if err = s.fs().Remove(filepath.Join(s.Dir, buildMark+id)); err == nil {
			err = s.build(id, nothing)
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("create session: %w", err)
	}
	l, err = s.Open(ctx, id)
	return l, true, err
}

// childID is the id of the parent and some characters of the digest of the name.
func childID(parent, name string) string {
	sum := sha256.Sum256([]byte(name))
	var b [childChars]byte
	for i := range b {
		b[i] = idChars[sum[i]%32]
	}
	return parent + "." + string(b[:])
}

// create makes a session that fill has put something into, under its id and in
// its folder. Before all of it is durable, nobody sees it.
func (s *Store) create(ctx context.Context, fill func(id, dir string) error) (*Log, error) {
	if err := mkdirAll(s.fs(), s.Dir, s.Sync == SyncPower); err != nil {
		return nil, err
	}
	for range 100 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		id, err := s.newID()
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
		return s.Open(ctx, id)
	}
	return nil, errNoRandom
}

// build makes the session in a folder that is not listed, then renames it. The
// error wraps [fs.ErrExist] if the id is taken.
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
	if err := f.Close(); err != nil {
		return err
	}
	if err := fill(id, dir); err != nil {
		return err
	}
	return s.syncDir(dir)
}

// Open opens a session by its whole id. It changes nothing and works on a disk that is
// read-only: the first append sets a torn tail that a crash left aside, cuts it and notes
// that in the log with an event.Note of topic "recovered". A damaged log opens too: see
// [Log.Read]. The error wraps [fs.ErrNotExist] if there is no such session.
func (s *Store) Open(ctx context.Context, id string) (*Log, error) {
	l, _, err := s.open(id)
	if err != nil {
		return nil, fmt.Errorf("open session %q: %w", id, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("open session %q: %w", id, err), l.Close())
	}
	return l, nil
}

// open opens a session and verifies its end, or all of it where no index
// helps. It changes nothing. left is how many bytes at the end could not be
// verified.
func (s *Store) open(id string) (l *Log, left int64, err error) {
	if !isID(id) {
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

// verify reads a log that has just been opened. What it promises is looked up first, since
// others append meanwhile.
func (l *Log) verify() (left int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.promised = l.synced()
	if l.load() {
		before := l.tail
		left, _, err = l.advance()
		if err == nil && l.tail == before { // not what the index promised
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

func (s *Store) release(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bells[id]
	if b.users--; b.users == 0 {
		delete(s.bells, id)
	}
}

// ids returns the ids of all sessions, oldest first.
func (s *Store) ids() ([]string, error) {
	names, err := s.fs().ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool { return !isID(name) }), nil
}

// Resolve returns the id of the session a person means: a whole id, the
// beginning or end of exactly one, or "last" for the one that changed last in which
// something was said and that was not spawned by another. The error wraps [fs.ErrNotExist] if there is
// none, and names the candidates if there are several.
func (s *Store) Resolve(ctx context.Context, text string) (string, error) {
	switch text {
	case "":
		return "", missing(`no session is named; "last" is the one used last`)
	case "last":
		return s.newest(ctx)
	}
	ids, err := s.ids()
	if err != nil {
		return "", fmt.Errorf("find session: %w", err)
	}
	if slices.Contains(ids, text) {
		return text, nil
	}
	ids = slices.DeleteFunc(ids, func(id string) bool {
		return !strings.HasPrefix(id, text) && !strings.HasSuffix(id, text)
	})
	switch n := len(ids); {
	case n == 0:
		return "", missing(fmt.Sprintf("no session matches %q; see 'inspan sessions list'", text))
	case n == 1:
		return ids[0], nil
	case n > 5:
		return "", fmt.Errorf("find session: %q matches %d sessions, the last ones are %s",
			text, n, strings.Join(ids[n-5:], ", "))
	}
	return "", fmt.Errorf("find session: %q matches several: %s", text, strings.Join(ids, ", "))
}

// missing is an [fs.ErrNotExist] in words of its own.
type missing string

func (m missing) Error() string        { return string(m) }
func (m missing) Is(target error) bool { return target == fs.ErrNotExist }

func (s *Store) newest(ctx context.Context) (string, error) {
	infos, err := s.List(ctx)
	if err != nil {
		return "", err
	}
	for _, info := range infos {
		if info.Parent == "" && !info.Empty {
			return info.ID, nil
		}
	}
	return "", missing("there is no session yet; start one with: inspan run \"...\"")
}

// Remove deletes a session with all that belongs to it, its children included. It fails with a
// [*BusyError] while somebody drives one of them.
func (s *Store) Remove(ctx context.Context, id string) error {
	if err := s.remove(ctx, id); err != nil {
		return fmt.Errorf("remove session %q: %w", id, err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !isID(id) {
		return fmt.Errorf("not a session id: %w", fs.ErrNotExist)
	}
	family, err := s.family(id)
	if err != nil {
		return err
	}
	for _, id := range family {
		lease, err := s.take(ctx, filepath.Join(s.Dir, id, leaseName))
		switch {
		case errors.Is(err, syscall.ENOSPC): // no lease fits on the disk, so nobody has it
			continue
		case err != nil:
			return err
		}
		defer lease.Close()
	}
	for _, id := range family {
		if err := s.fs().Rename(filepath.Join(s.Dir, id), filepath.Join(s.Dir, removeMark+id)); err != nil {
			return err
		}
	}
	if err := s.syncDir(s.Dir); err != nil {
		return err
	}
	return s.sweep()
}

// family is a session with those that work for it, or for these.
func (s *Store) family(id string) ([]string, error) {
	all, err := s.ids()
	return append([]string{id}, slices.DeleteFunc(all, func(other string) bool { return !strings.HasPrefix(other, id+".") })...), err
}

// sweep deletes what has been removed, now or before a crash.
func (s *Store) sweep() error {
	names, err := s.fs().ReadDir(s.Dir)
	for _, name := range names {
		if strings.HasPrefix(name, removeMark) {
			err = errors.Join(err, s.fs().Remove(filepath.Join(s.Dir, name)))
		}
	}
	return err
}
