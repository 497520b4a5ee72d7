package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/inspan/inspan/store"
)

// attemptFor is how long one statement may take before its connection counts as lost.
const attemptFor = 10 * time.Second

// brokenOffAfter is how long a statement may continue after its caller has stopped waiting. A cancelled one
// costs its connection, and a new one costs more than most statements.
const brokenOffAfter = 100 * time.Millisecond

// lasting returns ctx for one statement, which outlasts it a little.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptFor)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(brokenOffAfter, cancel) })
	return longer, func() { stop(); cancel() }
}

// try calls do again as long as the database can't be reached, within the store's patience. Do must be harmless
// if it was done already.
func (s *Store) try(ctx context.Context, do func(ctx context.Context) error) error {
	return s.again(ctx, func(ctx context.Context) error {
		ctx, stop := lasting(ctx)
		defer stop()
		return do(ctx)
	})
}

// again is try for an operation without a time limit.
func (s *Store) again(ctx context.Context, do func(ctx context.Context) error) error {
	end := time.Now().Add(s.patience)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		err := do(ctx)
		if ctx.Err() != nil && err != nil {
			return context.Cause(ctx)
		}
		switch {
		case err == nil || !passing(err):
			return err
		case time.Now().Add(pause).After(end):
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// inTx calls do in a transaction, again if that fails as in try. The transaction must be harmless if it was
// done already.
func (s *Store) inTx(ctx context.Context, do func(tx pgx.Tx) error) error {
	return s.again(ctx, func(ctx context.Context) error { return pgx.BeginFunc(ctx, s.pool, do) })
}

// passing reports whether an error is temporary: of the connection, or of a server that starts, stops or has
// aborted one of two transactions.
func passing(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "57P01", "57P02", "57P03", // the server stops or starts
			"40001", "40P01", // a conflict with another transaction
			"53300", // too many connections
			"25006": // a standby before its promotion
			return true
		}
		return strings.HasPrefix(pg.Code, "08") // the connection
	}
	if _, unreached := errors.AsType[*pgconn.ConnectError](err); unreached {
		return true
	}
	if _, network := errors.AsType[net.Error](err); network || pgconn.SafeToRetry(err) {
		return true
	}
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed}, func(of error) bool { return errors.Is(err, of) })
}

// violates reports whether a statement was refused because of this constraint or index.
func violates(err error, constraint string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.ConstraintName == constraint
}
