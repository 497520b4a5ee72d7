package limit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// recordSize is the size of a record's file in bytes.
const recordSize = 256

// longestLock is how long to wait for a lock. Writing a line takes a moment, and computing the amount spent
// takes seconds; a holder that has it for longer was stopped.
const longestLock = 15 * time.Second

// record is a small state that processes share: a line of JSON with its checksum, padded with blanks to a fixed
// length, in a file. Its user holds the lock of the file, which the system releases when a process dies.
//
// The line is always written whole, by one call, over the old one. A killed process leaves the old line or the
// new one; the checksum detects damage by a power failure.
//
// The zero value has an unknown state. Safe for concurrent use.
type record[S comparable] struct {
	mu    sync.Mutex
	own   S // where there is not a file
	known bool
}

// update changes the state under its lock: in the file at path or, if path is empty, in memory. change gets the
// state, or the zero value and false if it is missing or unreadable. If change fails, nothing is changed.
func (r *record[S]) update(ctx context.Context, path string, change func(s *S, known bool) error) (err error) {
	if path == "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		s := r.own
		if err := change(&s, r.known); err != nil {
			return err
		}
		r.own, r.known = s, true
		return nil
	}
	f, err := open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // which unlocks it
	if err := lock(ctx, f); err != nil {
		return err
	}
	r.mu.Lock() // where files can't be locked
	defer r.mu.Unlock()
	s, known, err := read[S](f)
	if err != nil {
		return err
	}
	before := s
	if err := change(&s, known); err != nil || known && s == before {
		return err
	}
	return write(f, s)
}

func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	}
	return f, err
}

// lock waits for the lock of a file. It polls, since a wait in the kernel can't be interrupted.
func lock(ctx context.Context, f *os.File) error {
	for began := time.Now(); ; {
		got, err := tryLock(f)
		switch {
		case err != nil:
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		case got:
			return nil
		case time.Since(began) > longestLock:
			return fmt.Errorf("%s has held the lock %s for %v: end that process, and try again", keep.Locker(f.Name()), f.Name(), longestLock)
		case keep.Sleep(ctx, time.Millisecond+rand.N(2*time.Millisecond)) != nil:
			return ctx.Err()
		}
	}
}

// read returns the state in a file, and whether there is one.
func read[S comparable](f *os.File) (s S, known bool, err error) {
	line := make([]byte, recordSize+1)
	n, err := f.ReadAt(line, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return s, false, err
	}
	line, ok := bytes.CutSuffix(line[:n], []byte("\n"))
	if !ok || n != recordSize {
		return s, false, nil
	}
	sum, text, _ := bytes.Cut(line, []byte(" "))
	var found S
	if known = string(sum) == checksum(text) && json.Unmarshal(text, &found) == nil; known {
		s = found
	}
	return s, known, nil
}

// write writes the state to a file.
func write[S comparable](f *os.File, s S) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	room := recordSize - len("00000000 \n")
	if len(text) > room {
		return fmt.Errorf("write %s: %d bytes do not fit into %d", f.Name(), len(text), room)
	}
	text = append(text, bytes.Repeat([]byte(" "), room-len(text))...)
	if _, err := f.WriteAt(fmt.Appendf(nil, "%s %s\n", checksum(text), text), 0); err != nil {
		return err
	}
	if info, err := f.Stat(); err != nil || info.Size() == recordSize {
		return err
	}
	return f.Truncate(recordSize)
}

func checksum(text []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(text)) }
