package eval

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// Ledger is the file that says what was learned, from what, with which effect: one JSON object a line,
// each with the digest of the line before, so that a line that was changed or taken out later shows.
// Lines are only ever added.
type Ledger struct{ Path string }

// LedgerIn is the ledger of a state folder.
func LedgerIn(stateDir string) Ledger {
	return Ledger{filepath.Join(stateDir, "evals", "learned.jsonl")}
}

// Book reads the ledger. One that is not there is empty.
func (l Ledger) Book() (*Book, error) {
	book, _, _, err := l.read()
	return book, err
}

// read also returns the digest of the last line, and how long the whole lines are.
func (l Ledger) read() (book *Book, last string, size int64, err error) {
	data, err := keep.Read(l.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", 0, err
	}
	book = &Book{}
	data = data[:bytes.LastIndexByte(data, '\n')+1] // a torn line was promised to nobody
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
		last = digest(line)
	}
	return book, last, int64(len(data)), nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Add appends the entry that is made for what the ledger says now, and returns the book with it.
// It is on the disk then. Nobody else appends meanwhile.
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

// readBack reads a line that is about to be written, which must say then what it says now.
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
