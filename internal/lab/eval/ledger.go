package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// Ledger is the file that records what was learned, from which sessions, with which effect: one JSON object a
// line, each with the digest of the line before, so that a line that was changed or removed later shows. Lines
// are only ever added.
type Ledger struct{ Path string }

// LedgerIn returns the ledger of a state folder.
func LedgerIn(stateDir string) Ledger {
	return Ledger{filepath.Join(stateDir, "evals", "learned.jsonl")}
}

// Book reads the ledger. A missing one is empty.
func (l Ledger) Book() (*Book, error) {
	book, _, _, err := l.read()
	return book, err
}

// read also returns the digest of the last line, and the length of the complete lines.
func (l Ledger) read() (book *Book, last string, size int64, err error) {
	data, err := keep.Read(l.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", 0, err
	}
	book = &Book{}
	data = data[:bytes.LastIndexByte(data, '\n')+1] // a torn line was never acknowledged
	for line := range bytes.Lines(data) {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, "", 0, fmt.Errorf("%s, line %d: %w", l.Path, len(book.Entries)+1, err)
		}
		if e.Prev != last {
			return nil, "", 0, fmt.Errorf("%s, line %d: it does not follow the line before, so one of them was changed or taken out",
				l.Path, len(book.Entries)+1)
		}
		if err := book.Apply(e); err != nil {
			return nil, "", 0, fmt.Errorf("%s, line %d: %w", l.Path, len(book.Entries)+1, err)
		}
		last = keep.SHA256(line)
	}
	return book, last, int64(len(data)), nil
}

// Add appends the entry that is made for the current state of the ledger, and returns the book with it. It is
// synced to disk. No other process appends meanwhile.
func (l Ledger) Add(ctx context.Context, now time.Time, by string, entry func(*Book) (Entry, error)) (*Book, Entry, error) {
	if err := keep.MakeDir(filepath.Dir(l.Path)); err != nil {
		return nil, Entry{}, err
	}
	lock, err := keep.LockFile(ctx, l.Path+".lock", 0)
	if err != nil {
		return nil, Entry{}, err
	}
	defer func() { _ = lock.Close() }()
	book, last, size, err := l.read()
	if err != nil {
		return nil, Entry{}, err
	}
	e, err := entry(book)
	if err != nil {
		return nil, Entry{}, err
	}
	e.Seq, e.Time, e.Prev = len(book.Entries)+1, now.UTC().Truncate(time.Second), last
	if e.By == "" {
		e.By = by
	}
	line, err := json.Marshal(e)
	if err != nil {
		return nil, Entry{}, err
	}
	if e, err = readBack(line); err != nil {
		return nil, Entry{}, err
	}
	if err := book.Apply(e); err != nil {
		return nil, Entry{}, err
	}
	return book, e, l.write(append(line, '\n'), size)
}

// readBack decodes a line that is about to be written, which must have the same content.
func readBack(line []byte) (e Entry, err error) {
	if err := json.Unmarshal(line, &e); err != nil {
		return Entry{}, err
	}
	if again, err := json.Marshal(e); err != nil || !bytes.Equal(again, line) {
		return Entry{}, errors.Join(err, errors.New("the ledger could not be read again with this entry, so it was not written; is all of its text UTF-8?"))
	}
	return e, nil
}

func (l Ledger) write(line []byte, at int64) error {
	f, err := os.OpenFile(l.Path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(line, at)
	if err == nil {
		err = errors.Join(f.Truncate(at+int64(len(line))), f.Sync())
	}
	return errors.Join(err, f.Close())
}
