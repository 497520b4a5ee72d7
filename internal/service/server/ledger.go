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

// ledger is the log of the book over faults of its disk: one that could not be written is opened
// anew before it is written again, as a log takes no more after a sync that failed. Whoever waits
// for it, or asks for its blobs, sees nothing of that.
type ledger struct {
	open   func(context.Context) (store.Log, error)
	fenced func()      // is told that another process has the lease, which it lost
	faulty func(error) // is told of each fault of the disk

	mu     sync.RWMutex // held for writing while one log takes the place of another
	log    store.Log
	failed bool // its disk has, at an append
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

// newReader opens the log to read it. Another process has the lease.
func newReader(ctx context.Context, open func(context.Context) (store.Log, error)) (*ledger, error) {
	log, err := open(ctx)
	return &ledger{open: open, log: log}, err
}

// mend opens a log anew whose disk has failed. The lease is that of one log, so the other one is
// closed before.
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
		return nil // somebody else has
	}
	log, err := l.open(ctx)
	if err != nil {
		return err
	}
	if l.log != nil {
		_ = l.log.Close() // what it could not write it has said
	}
	l.log = log
	if err := log.Lease(ctx); err != nil {
		return fmt.Errorf("another server has this state folder: %w", err)
	}
	l.failed = false
	return nil
}

// Append is that of [event.Log].
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

// Read is that of [event.Log].
func (l *ledger) Read(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		l.mu.RLock()
		defer l.mu.RUnlock()
		l.log.Read(ctx, after)(yield)
	}
}

// Wait is that of [event.Waiter].
func (l *ledger) Wait(ctx context.Context, after uint64) error {
	for {
		log := l.now()
		err := log.Wait(ctx, after)
		if !errors.Is(err, fs.ErrClosed) || log == l.now() {
			return err
		}
	}
}

// Blobs are those of the log.
func (l *ledger) Blobs() tool.Blobs { return l.now().Blobs() }

// Close closes the log.
func (l *ledger) Close() error { return l.now().Close() }

func (l *ledger) now() store.Log {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.log
}
