package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
)

// Salvaged is one piece of a log that may be damaged.
type Salvaged struct {
	// Event is the content of the piece. Its Body is nil if it can't be read.
	Event event.Event
	// Damage is the reason why the event, if there is one, can't be trusted: the piece or the one before it has
	// been changed. Nil means the event is as it was written.
	Damage *DamageError
}

// salvage reads all pieces between c, the end of the good lines, and end.
func (l *Log) salvage(c cursor, end int64) iter.Seq2[Salvaged, error] {
	return func(yield func(Salvaged, error) bool) {
		in := lines{f: l.f, off: c.Off, end: end}
		number := int(c.Seq)
		for {
			start := in.off
			line, whole, err := in.next()
			number++
			if errors.Is(err, io.EOF) {
				return
			}
			if errors.Is(err, errLongLine) {
				yield(Salvaged{Damage: &DamageError{number, start, err.Error()}}, nil)
				return
			}
			if err != nil {
				yield(Salvaged{}, err)
				return
			}
			for more := true; more; {
				piece := c.piece(line)
				line = line[len(piece):]
				more = len(line) > 0
				if !yield(l.rescue(&c, piece, number, start, whole && !more), nil) {
					return
				}
				start += int64(len(piece))
			}
		}
	}
}

// piece returns the line, or if it is damaged the part of it up to where another record seems to begin: a
// newline may have been lost.
func (c cursor) piece(line []byte) []byte {
	if _, why := c.take(line); why == "" {
		return line
	}
	if n := bytes.Index(line[min(1, len(line)):], []byte(crcHead)); n >= 0 {
		return line[:n+1]
	}
	return line
}

// rescue reads as much as it can from a piece: a line, or a part of one that begins like a record. It moves c after
// the piece as far as possible.
func (l *Log) rescue(c *cursor, piece []byte, number int, start int64, whole bool) (s Salvaged) {
	c.Off = start
	_, why := c.take(piece)
	if why == "" && !whole {
		why = "the line has no end"
	}
	before := c.Seq
	if stated, _, ok := splitLine(piece); ok {
		e, err := l.store.decode(piece)
		if errors.Is(err, errSpec) || errors.Is(err, errSpecRead) { // there is an event, though incomplete
			if why == "" {
				why = err.Error()
			}
			e, err = event.Decode(piece[headLen-1:])
		}
		switch {
		case err == nil:
			s.Event = e
			*c = cursor{Seq: e.Seq, CRC: stated}
		case why == "":
			why = err.Error()
		default:
			c.CRC = stated
		}
	}
	if why != "" {
		s.Damage = &DamageError{Line: number, Offset: start, Why: why}
		c.Seq = max(c.Seq, before)
	}
	return s
}

// Report is the result of Fsck for a session.
type Report struct {
	ID       string
	Events   uint64         // good ones, from the first on
	Size     int64          // of the log in bytes
	Torn     int64          // bytes at the end that a crash left half written
	Damage   []*DamageError // all other damage of the log
	Missing  []string       // blobs that the log names and that are missing
	Bad      []string       // blobs whose content does not match their name
	Index    string         // "ok", "missing" or "wrong"; the last two cost only time
	Repaired bool           // the torn tail was set aside and cut
}

// OK reports whether nothing acknowledged is lost. A torn tail was not acknowledged: a power loss leaves it,
// and opening the session for an append sets it aside.
func (r Report) OK() bool { return len(r.Damage) == 0 && len(r.Missing) == 0 && len(r.Bad) == 0 }

// Fsck reads a whole session and reports its damage. Appends wait meanwhile. It changes nothing, except that
// with repair set a torn tail is cut as by an append. To continue a damaged session, fork it before the
// damage.
func (s *Store) Fsck(ctx context.Context, id string, repair bool) (Report, error) {
	r, err := s.fsck(ctx, id)
	if err == nil && repair && r.Torn > 0 {
		var l *Log
		if l, err = s.opened(ctx, id); err == nil {
			err = l.exclusive(ctx, true, l.catchUp)
			r.Repaired = l.tail.Seq > r.Events
			err = errors.Join(err, l.Close())
		}
	}
	if err != nil {
		return r, fmt.Errorf("check session %q: %w", id, err)
	}
	return r, nil
}

func (s *Store) fsck(ctx context.Context, id string) (r Report, err error) {
	r.ID = id
	l, _, err := s.open(id)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	named := make(map[string]bool)
	if err := l.alone(ctx, func() error { return l.check(ctx, &r, named) }); err != nil {
		return r, err
	}
	return r, l.checkBlobs(ctx, &r, named)
}

// check reads the log from its start. The caller holds the append lock and l.mu.
func (l *Log) check(ctx context.Context, r *Report, named map[string]bool) (err error) {
	r.Index = l.checkIndex()
	if r.Size, err = l.f.Size(); err != nil {
		return err
	}
	l.tail, l.last, l.marks = cursor{}, cursor{}, marks{}
	left, _, err := l.advance()
	if err != nil {
		return err
	}
	r.Events = l.tail.Seq
	torn := false
	if left > 0 {
		if torn, err = l.torn(left); err != nil {
			return err
		}
	}
	var sound uint64 // the last event before the first damage
	for rec, err := range l.salvage(cursor{}, r.Size) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		switch {
		case rec.Damage != nil && !torn:
			r.Damage = append(r.Damage, rec.Damage)
		case len(r.Damage) == 0:
			sound = max(sound, rec.Event.Seq)
		}
		nameBlobs(rec.Event, named)
	}
	if torn {
		r.Torn = left
	}
	if len(r.Damage) > 0 {
		r.Events = min(r.Events, sound)
	}
	if d := l.lacking(); d != nil && len(r.Damage) == 0 {
		r.Damage = append(r.Damage, d)
	}
	return nil
}

// nameBlobs collects the blobs an event names, in a field or in its text.
func nameBlobs(e event.Event, named map[string]bool) {
	if e.Body == nil {
		return
	}
	line, err := event.Encode(e)
	if err != nil {
		return
	}
	if bytes.Contains(line, []byte("sha256-")) {
		for _, name := range blobName.FindAll(line, -1) {
			named[string(name)] = true
		}
	}
}

// checkIndex verifies every place that the index names.
func (l *Log) checkIndex() string {
	names, err := l.store.fs().ReadDir(l.dir)
	if err == nil && !slices.Contains(names, indexName) {
		return "missing"
	}
	x, ok := l.readIndex()
	size, err := l.f.Size()
	if !ok || err != nil || !x.fits(size) {
		return "wrong"
	}
	m := x.Marks
	places := slices.Concat(m.Points, m.Compacted, []cursor{x.Last})
	for _, c := range m.single() {
		if c != nil {
			places = append(places, *c)
		}
	}
	for _, c := range places {
		if _, err := l.at(c); err != nil {
			return "wrong"
		}
	}
	return "ok"
}

// checkBlobs reads the blobs that exist or should exist.
func (l *Log) checkBlobs(ctx context.Context, r *Report, named map[string]bool) error {
	there, err := l.store.names(filepath.Join(l.dir, blobsName))
	if err != nil {
		return err
	}
	for _, name := range there {
		if isBlob(name) {
			named[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		content, err := l.Blobs().Get(ctx, name)
		if err == nil {
			_, err = io.Copy(io.Discard, keep.Reading(ctx, content)) // which compares the content with the name
			err = errors.Join(err, content.Close())
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.Missing = append(r.Missing, name)
		case errors.Is(err, keep.ErrBlob):
			r.Bad = append(r.Bad, name)
		case err != nil:
			return err
		}
	}
	return nil
}
