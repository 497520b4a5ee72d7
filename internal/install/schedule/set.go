package schedule

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/words"
)

// Set is all schedules of a person on this machine. It is safe for concurrent use, even by several processes.
type Set struct {
	Table   *running.Table
	Program string // that runs are started with, see [running.Table.Detach]
	// Failed is called for each occasion whose run could not start. May be nil.
	Failed func(ctx context.Context, s Schedule, o Occasion)
	// Now returns the time. Nil means that of the machine.
	Now func() time.Time
}

func (s *Set) now() time.Time {
	if s.Now != nil {
		return s.Now().UTC()
	}
	return time.Now().UTC().Round(0)
}

// ErrNone says that the schedule does not exist.
var ErrNone = errors.New("unknown schedule")

const (
	suffix   = ".json"
	lockWait = 10 * time.Second
)

func (s *Set) dir() string             { return filepath.Join(s.Table.StateDir, "schedules") }
func (s *Set) file(name string) string { return filepath.Join(s.dir(), name) }

// looking returns the lock file that a process holds while it starts runs of a schedule.
func (s *Set) looking(id string) string { return s.file(id + ".looking") }

// Add stores a new schedule. It reacts to events from now on. Without an ID it gets one.
func (s *Set) Add(ctx context.Context, one Schedule) (Schedule, error) {
	taken := func(id string) bool { _, err := s.Find(id); return !errors.Is(err, ErrNone) }
	base := one.ID
	if base == "" {
		base = one.named()
	}
	for n := 2; one.ID == "" || one.ID != base && taken(one.ID); n++ {
		if one.ID = base; taken(base) {
			one.ID = fmt.Sprint(base, "-", n)
		}
	}
	if err := one.Check(); err != nil {
		return one, err
	}
	one.Made, one.Since = s.now(), s.now()
	if one.Files != "" {
		if err := one.look(ctx, s.now(), true); err != nil {
			return one, err
		}
	}
	if err := keep.MakeDir(s.dir()); err != nil {
		return one, err
	}
	return s.change(ctx, one.ID, func(kept *Schedule) error {
		if kept.ID != "" {
			return misused("schedule %s already exists; remove it first: inspan schedule remove %s", one.ID, one.ID)
		}
		*kept = one
		return nil
	})
}

// named returns a name for a schedule that has none.
func (s *Schedule) named() string {
	name := "task"
	if len(s.Flow) > 0 {
		name = strings.TrimSuffix(filepath.Base(s.Flow[0]), filepath.Ext(s.Flow[0]))
	}
	if !known(name) || len(name) > 48 {
		name = "workflow"
	}
	return name
}

// List lists the schedules by name. The error is about unreadable ones; the others are returned anyway.
func (s *Set) List(ctx context.Context) (list []Schedule, err error) {
	entries, err := os.ReadDir(s.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || !known(id) {
			continue
		}
		one, bad := s.read(id)
		switch {
		case ctx.Err() != nil:
			return list, ctx.Err()
		case errors.Is(bad, ErrNone): // it was removed meanwhile
		case bad != nil:
			err = errors.Join(err, bad)
		default:
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b Schedule) int { return strings.Compare(a.ID, b.ID) })
	return list, err
}

// Find returns a schedule by its name. The error wraps ErrNone if it does not exist.
func (s *Set) Find(id string) (Schedule, error) {
	if !known(id) {
		return Schedule{}, ErrNone
	}
	return s.read(id)
}

func (s *Set) read(id string) (one Schedule, err error) {
	raw, err := keep.Read(s.file(id + suffix))
	if errors.Is(err, fs.ErrNotExist) {
		return one, ErrNone
	}
	if err == nil {
		err = json.Unmarshal(raw, &one)
	}
	if err == nil && one.ID != id {
		err = errors.New("another schedule has it")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", s.file(id+suffix), err)
	}
	return one, err
}

// change calls f with a schedule, whose ID is empty if it does not exist, and stores the result. If f fails, it
// stores nothing.
func (s *Set) change(ctx context.Context, id string, f func(*Schedule) error) (one Schedule, err error) {
	lock, err := keep.LockFile(ctx, s.file(id+".lock"), lockWait)
	if err != nil {
		return one, err
	}
	defer func() { _ = lock.Close() }()
	if one, err = s.read(id); err != nil && !errors.Is(err, ErrNone) {
		return one, err
	}
	was, err := json.Marshal(one)
	if err != nil {
		return one, err
	}
	if err := f(&one); err != nil {
		return one, err
	}
	raw, err := json.Marshal(one)
	if err != nil || bytes.Equal(was, raw) {
		return one, err
	}
	return one, keep.Write(s.file(id+suffix), raw)
}

// update is change for an existing schedule.
func (s *Set) update(ctx context.Context, id string, f func(*Schedule) error) (Schedule, error) {
	if _, err := s.Find(id); err != nil {
		return Schedule{}, noSchedule(id, err)
	}
	return s.change(ctx, id, func(one *Schedule) error {
		if one.ID == "" {
			return noSchedule(id, ErrNone)
		}
		return f(one)
	})
}

func noSchedule(id string, err error) error {
	if errors.Is(err, ErrNone) {
		return words.Misuse{Err: fmt.Errorf("%w: %s; see 'inspan schedule list'", err, words.OneLine(id, 80))}
	}
	return err
}

// Remove removes a schedule. Runs in progress continue.
func (s *Set) Remove(ctx context.Context, id string) error {
	if _, err := s.Find(id); errors.Is(err, ErrNone) { // an unreadable one is removed too
		return noSchedule(id, err)
	}
	lock, err := keep.LockFile(ctx, s.file(id+".lock"), lockWait)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // the lock file stays: another process may wait for it
	return noSchedule(id, keep.Remove(s.file(id+suffix)))
}

// Pause pauses a schedule, or resumes it from now on.
func (s *Set) Pause(ctx context.Context, id string, paused bool) (Schedule, error) {
	return s.update(ctx, id, func(one *Schedule) error {
		if one.Paused && !paused {
			one.Since = s.now()
			if one.Files != "" {
				if err := one.look(ctx, s.now(), true); err != nil {
					return err
				}
			}
		}
		one.Paused = paused
		return nil
	})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
