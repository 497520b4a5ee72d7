package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/tool"
)

// Memory is a [Store] in memory: its sessions end with the process. The zero value is ready to use. It must not
// be copied after first use.
type Memory struct {
	mu       sync.Mutex
	sessions map[string]*kept
	books    map[string]*kept
}

// kept is a session in memory. The store's lock guards its holder.
type kept struct {
	log    *event.Memory
	holder *memoryLog // nil if no process drives it
	since  time.Time

	mu    sync.Mutex
	blobs map[string][]byte
}

var (
	_ Store    = (*Memory)(nil)
	_ Booker   = (*Memory)(nil)
	_ Brancher = (*Memory)(nil)
)

// Create implements [Store].
func (m *Memory) Create(context.Context) (Log, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.create(func(id string) *event.Memory { return event.NewMemory(id) }, nil)
}

// create makes a session from what begin returns for its id. The caller holds m.mu.
func (m *Memory) create(begin func(id string) *event.Memory, blobs map[string][]byte) (Log, error) {
	for {
		id, err := NewID(time.Now(), rand.Reader)
		if err != nil {
			return nil, err
		}
		if m.sessions[id] == nil {
			return m.put(id, &kept{log: begin(id), blobs: blobs}), nil
		}
	}
}

func (m *Memory) put(id string, k *kept) *memoryLog {
	if m.sessions == nil {
		m.sessions = map[string]*kept{}
	}
	m.sessions[id] = k
	return m.opened(id, k)
}

func (m *Memory) opened(id string, k *kept) *memoryLog {
	ctx, end := context.WithCancelCause(context.Background())
	return &memoryLog{Memory: k.log, store: m, kept: k, id: id, open: ctx, end: end}
}

// Child implements [Store].
func (m *Memory) Child(ctx context.Context, parent, name string) (l Log, isNew bool, err error) {
	id, err := ChildID(parent, name)
	if err != nil {
		return nil, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.sessions[id]; k != nil {
		seq, err := k.last(ctx)
		return m.opened(id, k), seq == 0, err
	}
	return m.put(id, &kept{log: event.NewMemory(id)}), true, nil
}

// Book implements [Booker].
func (m *Memory) Book(_ context.Context, name string) (Log, error) {
	id, err := BookID(name)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.books == nil {
		m.books = map[string]*kept{}
	}
	if m.books[id] == nil {
		m.books[id] = &kept{log: event.NewMemory(id)}
	}
	return m.opened(id, m.books[id]), nil
}

// last returns the number of the last event.
func (k *kept) last(ctx context.Context) (seq uint64, err error) {
	for e, err := range k.log.Read(ctx, 0) {
		if err != nil {
			return 0, err
		}
		seq = e.Seq
	}
	return seq, nil
}

// Open implements [Store].
func (m *Memory) Open(_ context.Context, id string) (Log, error) {
	k, err := m.session(id)
	if err != nil {
		return nil, err
	}
	return m.opened(id, k), nil
}

func (m *Memory) session(id string) (*kept, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.sessions[id]; k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("session %q: %w", id, fs.ErrNotExist)
}

// Fork implements [Store].
func (m *Memory) Fork(ctx context.Context, id string, seq uint64) (Log, error) {
	events, blobs, err := m.copied(ctx, id, seq)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.create(func(fork string) *event.Memory { return forked(fork, id, events) }, blobs)
}

// forked returns the log of a session that begins with events of another.
func forked(id, from string, events []event.Event) *event.Memory {
	last := uint64(len(events))
	return event.NewMemory(id, append(slices.Clip(events), event.Event{
		Seq: last + 1, Time: time.Now().UTC().Truncate(time.Millisecond), Session: id, Body: event.Forked{From: from, Seq: last},
	})...)
}

// copied returns the content of a session up to seq, or all of it if seq is 0.
func (m *Memory) copied(ctx context.Context, id string, seq uint64) (events []event.Event, blobs map[string][]byte, err error) {
	from, err := m.session(id)
	if err != nil {
		return nil, nil, err
	}
	for e, err := range from.log.Read(ctx, 0) {
		if err != nil {
			return nil, nil, err
		}
		if events = append(events, e); e.Seq == seq {
			break
		}
	}
	if n := uint64(len(events)); n < seq {
		return nil, nil, fmt.Errorf("fork session %q: it has only %d events, not %d", id, n, seq)
	}
	from.mu.Lock()
	defer from.mu.Unlock()
	return events, maps.Clone(from.blobs), nil
}

// Branch implements [Brancher].
func (m *Memory) Branch(ctx context.Context, id, parent, name string) (l Log, isNew bool, err error) {
	child, err := ChildID(parent, name)
	if err != nil {
		return nil, false, err
	}
	events, blobs, err := m.copied(ctx, id, 0)
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.sessions[child]; k != nil {
		return m.opened(child, k), false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return m.put(child, &kept{log: forked(child, id, events), blobs: blobs}), true, nil
}

// IDs implements [Store].
func (m *Memory) IDs(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.sessions)), nil
}

// List implements [Store].
func (m *Memory) List(ctx context.Context) ([]Info, error) {
	var infos []Info
	for id, k := range m.all() {
		info := NewInfo(id)
		for e, err := range k.log.Read(ctx, 0) {
			if err != nil {
				return nil, err
			}
			info.Add(e)
		}
		infos = append(infos, info)
	}
	Sort(infos)
	return infos, nil
}

// all yields the present sessions, the newest first.
func (m *Memory) all() iter.Seq2[string, *kept] {
	m.mu.Lock()
	sessions := maps.Clone(m.sessions)
	m.mu.Unlock()
	return func(yield func(string, *kept) bool) {
		for _, id := range slices.Backward(slices.Sorted(maps.Keys(sessions))) {
			if !yield(id, sessions[id]) {
				return
			}
		}
	}
}

// Search implements [Store].
func (m *Memory) Search(ctx context.Context, match *regexp.Regexp) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		for id, k := range m.all() {
			for e, err := range k.log.Read(ctx, 0) {
				if err != nil {
					yield(Hit{Session: id}, err)
					return
				}
				if hit, found := Find(id, e, match); found && !yield(hit, nil) {
					return
				}
			}
		}
	}
}

// Holder implements [Store].
func (m *Memory) Holder(_ context.Context, id string) (*Holder, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.sessions[id]; k != nil && k.holder != nil {
		return k.who(id), nil
	}
	return nil, nil
}

func (k *kept) who(id string) *Holder {
	host, _ := os.Hostname()
	return &Holder{Session: id, PID: os.Getpid(), Host: host, Since: k.since}
}

// Held implements [Store].
func (m *Memory) Held(context.Context) ([]Holder, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var held []Holder
	for _, id := range slices.Sorted(maps.Keys(m.sessions)) {
		if k := m.sessions[id]; k.holder != nil {
			held = append(held, *k.who(id))
		}
	}
	return held, nil
}

// Usage implements [Store].
func (m *Memory) Usage(ctx context.Context, id string) (int64, error) {
	k, err := m.session(id)
	if err != nil {
		return 0, err
	}
	var size int64
	for e, err := range k.log.Read(ctx, 0) {
		line, bad := event.Encode(e)
		if err := errors.Join(err, bad); err != nil {
			return 0, err
		}
		size += int64(len(line))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, data := range k.blobs {
		size += int64(len(data))
	}
	return size, nil
}

// Remove implements [Store].
func (m *Memory) Remove(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions[id] == nil {
		return fmt.Errorf("remove session %q: %w", id, fs.ErrNotExist)
	}
	mine := func(other string, _ *kept) bool { return kin.In(id, other) }
	for other, k := range m.sessions {
		if mine(other, k) && k.holder != nil {
			return fmt.Errorf("remove session %q: %w", id, k.busy(other))
		}
	}
	maps.DeleteFunc(m.sessions, mine)
	return nil
}

func (k *kept) busy(id string) *BusyError {
	h := k.who(id)
	return &BusyError{PID: h.PID, Host: h.Host, Since: h.Since}
}

// memoryLog is an open log.
type memoryLog struct {
	*event.Memory
	store *Memory
	kept  *kept
	id    string
	mine  bool            // it has the lease; guarded by the store
	open  context.Context // done when the log is closed
	end   context.CancelCauseFunc
}

// ID implements [Log].
func (l *memoryLog) ID() string { return l.id }

// Lease implements [event.Leaser].
func (l *memoryLog) Lease(ctx context.Context) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	switch {
	case l.mine:
		return nil
	case l.kept.holder != nil:
		return fmt.Errorf("lease session %s: %w", l.id, l.kept.busy(l.id))
	}
	l.kept.holder, l.kept.since, l.mine = l, time.Now().UTC(), true
	return nil
}

// Release implements [event.Leaser].
func (l *memoryLog) Release() error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.mine = false; l.kept.holder == l {
		l.kept.holder = nil
	}
	return nil
}

func (l *memoryLog) usable(ctx context.Context) error {
	if l.open.Err() != nil {
		return context.Cause(l.open)
	}
	return ctx.Err()
}

// Append implements [event.Log].
func (l *memoryLog) Append(ctx context.Context, bodies ...event.Body) ([]event.Event, error) {
	if err := l.usable(ctx); err != nil {
		return nil, err
	}
	return l.Memory.Append(ctx, bodies...)
}

// AppendAs implements [event.Log].
func (l *memoryLog) AppendAs(ctx context.Context, as event.Driver, bodies ...event.Body) ([]event.Event, error) {
	if err := l.usable(ctx); err != nil {
		return nil, err
	}
	l.store.mu.Lock()
	mine := l.mine
	l.store.mu.Unlock()
	if !mine {
		return nil, fmt.Errorf("append to session %s: %w", l.id, event.ErrNotDriver)
	}
	return l.Memory.AppendAs(ctx, as, bodies...)
}

// Read implements [event.Log].
func (l *memoryLog) Read(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := l.usable(ctx); err != nil {
			yield(event.Event{}, err)
			return
		}
		l.Memory.Read(ctx, after)(yield)
	}
}

// Wait implements [event.Waiter].
func (l *memoryLog) Wait(ctx context.Context, after uint64) error {
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.open, cancel)()
	if err := l.Memory.Wait(both, after); err != nil {
		return l.usable(ctx)
	}
	return nil
}

// Start implements [event.Starter].
func (l *memoryLog) Start(ctx context.Context) (uint64, error) {
	var from uint64
	for e, err := range l.Read(ctx, 0) {
		if err != nil {
			return 0, err
		}
		switch e.Body.(type) {
		case event.Compacted, event.Rewound:
			from = e.Seq - 1
		}
	}
	return from, nil
}

// Blobs implements [Log].
func (l *memoryLog) Blobs() tool.Blobs { return l.kept }

// Close implements [Log].
func (l *memoryLog) Close() error {
	l.end(fmt.Errorf("session %s: %w", l.id, fs.ErrClosed))
	return l.Release()
}

// Put implements [tool.Blobs].
func (k *kept) Put(ctx context.Context, r io.Reader) (string, error) {
	data, err := io.ReadAll(r)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return "", fmt.Errorf("put blob: %w", err)
	}
	sum := sha256.Sum256(data)
	name := keep.BlobName(sum[:])
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.blobs == nil {
		k.blobs = map[string][]byte{}
	}
	k.blobs[name] = data
	return name, nil
}

// Get implements [tool.Blobs].
func (k *kept) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	data, ok := k.blobs[name]
	if !ok {
		return nil, fmt.Errorf("get blob %q: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}
