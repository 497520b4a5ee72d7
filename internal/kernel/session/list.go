package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

// List implements [store.Store]. It reads the ends of the logs and a few single events, so damage further up
// goes unnoticed. A log that has not changed since it was last listed is not read.
func (s *Store) List(ctx context.Context) ([]store.Info, error) {
	infos, err := s.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	store.Sort(infos)
	return infos, nil
}

func (s *Store) info(id string) store.Info {
	info := store.NewInfo(id)
	l, left, err := s.open(id)
	if err != nil {
		info.Damage = err
		return info
	}
	err = l.describe(&info)
	if err == nil {
		err = l.suspect(left)
	}
	info.Damage = errors.Join(err, l.Close())
	return info
}

// describe adds the events that describe a session.
func (l *Log) describe(info *store.Info) (err error) {
	info.Size = l.tail.Off
	if l.tail.Seq == 0 {
		return nil
	}
	at := []cursor{{}, l.last}
	for _, c := range l.marks.single() {
		if c != nil {
			at = append(at, *c)
		}
	}
	slices.SortFunc(at, func(a, b cursor) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, c := range slices.Compact(at) {
		e, bad := l.at(c)
		if err = errors.Join(err, bad); bad == nil {
			info.Add(e)
		}
	}
	info.Events = l.tail.Seq
	return err
}

// suspect returns the damage of a log whose last left bytes did not verify; nil if that is only a torn tail, or
// an append in progress.
func (l *Log) suspect(left int64) error {
	if left == 0 || l.broken != nil {
		return l.broken
	}
	torn, err := l.torn(left)
	if err != nil || torn {
		return err
	}
	return l.tail.damage("what follows does not verify")
}

// Size is the length of a session's log.
type Size struct {
	ID   string
	Size int64 // bytes
}

// Sizes returns the lengths of the logs, newest session first. It reads none.
func (s *Store) Sizes(ctx context.Context) ([]Size, error) {
	all, err := s.stamps(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	out := make([]Size, 0, len(all))
	for _, one := range slices.Backward(all) {
		if one.err == nil { // else it is being removed, or is incomplete
			out = append(out, Size{one.id, one.Size})
		}
	}
	return out, nil
}

// Search implements [store.Store].
func (s *Store) Search(ctx context.Context, match *regexp.Regexp) iter.Seq2[store.Hit, error] {
	return func(yield func(store.Hit, error) bool) {
		ids, err := s.ids()
		if err != nil {
			yield(store.Hit{}, fmt.Errorf("search sessions: %w", err))
			return
		}
		slices.Reverse(ids)
		kinds := store.Searched()
		for some := range slices.Chunk(ids, 8*runtime.GOMAXPROCS(0)) {
			if !s.searchSome(ctx, some, kinds, match, yield) {
				return
			}
		}
	}
}

// longSearch is the number of hits of a session after which its search waits until they are wanted.
const longSearch = 1000

// searchSome searches sessions, as many at once as there are processors, and yields the hits in order.
func (s *Store) searchSome(ctx context.Context, ids []string, kinds []string, match *regexp.Regexp, yield func(store.Hit, error) bool) (more bool) {
	type found struct {
		hits []store.Hit
		err  error
	}
	all, free := make([]chan found, len(ids)), make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, id := range ids {
		all[i] = make(chan found, 1)
		go func() {
			free <- struct{}{}
			defer func() { <-free }()
			var f found
			_, f.err = s.searchOne(ctx, id, kinds, match, func(hit store.Hit, _ error) bool {
				f.hits = append(f.hits, hit)
				return len(f.hits) < longSearch
			})
			all[i] <- f
		}()
	}
	more = true
	for i, id := range ids {
		f := <-all[i]
		if !more {
			continue // until all have ended
		}
		if len(f.hits) == longSearch {
			more, f.err = s.searchOne(ctx, id, kinds, match, yield)
		} else {
			more = !slices.ContainsFunc(f.hits, func(hit store.Hit) bool { return !yield(hit, nil) })
		}
		if more && f.err != nil {
			more = yield(store.Hit{Session: id}, fmt.Errorf("search session %s: %w", id, f.err)) && ctx.Err() == nil
		}
	}
	return more
}

// searchOne searches the events of the given kinds in one session.
func (s *Store) searchOne(
	ctx context.Context, id string, kinds []string, match *regexp.Regexp, yield func(store.Hit, error) bool,
) (more bool, err error) {
	prefix, _ := match.LiteralPrefix()
	if strings.ContainsFunc(prefix, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\<>&`, r) }) {
		prefix = "" // a line may have it in another form
	}
	searched := func(kind string, line []byte) []byte {
		if slices.Contains(kinds, kind) &&
			(bytes.Contains(line, []byte(prefix)) || bytes.Count(line, []byte(`"type":"text"`)) > 1) { // a match may span parts
			return line
		}
		return nil
	}
	return s.some(ctx, id, searched, func(e event.Event, _ error) bool {
		hit, found := store.Find(id, e, match)
		return !found || yield(hit, nil)
	})
}

// Some returns the events of a session as far as they are wanted: wanted returns the part of a line to decode; an
// empty part skips the event. All lines are verified: if the log is damaged, the error follows the events before
// the damage.
func (s *Store) Some(ctx context.Context, id string, wanted func(kind string, line []byte) []byte) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if more, err := s.some(ctx, id, wanted, yield); more && err != nil {
			yield(event.Event{}, fmt.Errorf("read session %s: %w", id, err))
		}
	}
}

// some yields what [Store.Some] returns. more is false if yield returned false.
func (s *Store) some(
	ctx context.Context, id string, wanted func(kind string, line []byte) []byte, yield func(event.Event, error) bool,
) (more bool, err error) {
	l, left, err := s.open(id)
	if err != nil {
		return true, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	more, err = l.events(ctx, cursor{}, l.tail.Off, 0, wanted, yield)
	if err == nil && more {
		err = l.suspect(left)
	}
	return more || err != nil, err
}
