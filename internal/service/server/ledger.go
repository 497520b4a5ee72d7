package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// ledger is the log of the book across disk faults. A log accepts nothing after a failed sync, so a failed one
// is reopened before the next write. Calls that wait for it, or read its blobs, don't notice.
type ledger struct {
	open   func(context.Context) (store.Log, error)
	fenced func()      // is called when another process has taken the lease
	faulty func(error) // is called for each disk fault

	mu     sync.RWMutex // write-locked while one log replaces another
	log    store.Log
	failed bool // an append has failed
}

// newLedger opens the log and leases it.
func newLedger(ctx context.Context, open func(context.Context) (store.Log, error)) (*ledger, error) {
	l := &ledger{open: open, failed: true}
	err := l.mend(ctx)
	if err != nil && l.log != nil {
		err = errors.Join(err, l.log.Close())
	}
	return l, err
}

// newReader opens the log in a store for reading only. Another process has the lease.
func newReader(ctx context.Context, s store.Store) (*ledger, error) {
	books, ok := s.(store.Booker)
	if !ok {
		return nil, errors.New("the store keeps no books")
	}
	log, err := books.Book(ctx, bookName)
	return &ledger{log: log}, err
}

// mend reopens a log whose disk has failed. The lease belongs to one log, so the old log is closed first.
func (l *ledger) mend(ctx context.Context) error {
	l.mu.RLock()
	failed := l.failed
	l.mu.RUnlock()
	if !failed {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.failed {
		return nil // another goroutine has reopened it
	}
	log, err := l.open(ctx)
	if err != nil {
		return err
	}
	if l.log != nil {
		_ = l.log.Close() // its write error is already reported
	}
	l.log = log
	if err := log.Lease(ctx); err != nil {
		return fmt.Errorf("another server has this state folder: %w", err)
	}
	l.failed = false
	return nil
}

// Append implements [event.Log].
func (l *ledger) Append(ctx context.Context, bodies ...event.Body) error {
	if err := l.mend(ctx); err != nil {
		return err
	}
	log := l.now()
	_, err := log.Append(ctx, bodies...)
	if errors.Is(err, event.ErrFenced) && l.fenced != nil {
		l.fenced()
	}
	if keep.DiskFault(err) {
		l.mu.Lock()
		l.failed = l.failed || l.log == log
		l.mu.Unlock()
		if l.faulty != nil {
			l.faulty(err)
		}
	}
	return err
}

// Read implements [event.Log].
func (l *ledger) Read(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		l.mu.RLock()
		defer l.mu.RUnlock()
		l.log.Read(ctx, after)(yield)
	}
}

// Wait implements [event.Waiter].
func (l *ledger) Wait(ctx context.Context, after uint64) error {
	for {
		log := l.now()
		err := log.Wait(ctx, after)
		if !errors.Is(err, fs.ErrClosed) || log == l.now() {
			return err
		}
	}
}

// Blobs returns the blobs of the log.
func (l *ledger) Blobs() tool.Blobs { return l.now().Blobs() }

// Close closes the log.
func (l *ledger) Close() error { return l.now().Close() }

func (l *ledger) now() store.Log {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.log
}
