package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Turn is the task of one process to drive a session that was woken, from [Store.Turns] or [Store.Rescue] until
// [Store.EndTurn]. It says who should try. Who may write is decided by the lease alone, so a turn that two processes
// have does no harm.
type Turn struct {
	Session string // full id
	Tries   int    // that failed since the session was last driven

	key, wakes int64
}

// TurnEnd tells the engine how to continue with a session whose turn has ended. The zero value: nothing until the
// next wake.
type TurnEnd struct {
	// Again says that the session is to be driven again, after a while.
	Again bool
	After time.Duration
	// Failed gives the reason why it could not be driven; empty means it could.
	Failed string
}

const (
	wakeTurn = `INSERT INTO turns (session, due) SELECT key, clock_timestamp() FROM sessions WHERE id = $1 AND NOT book
		ON CONFLICT (session) DO UPDATE SET wakes = turns.wakes + 1, due = least(turns.due, excluded.due)`

	// A session that is still driven, by a process that has no turn, stays due.
	takeTurns = `WITH free AS (
			SELECT t.session FROM turns t JOIN sessions s ON s.key = t.session
			WHERE t.driver IS NULL AND t.due <= clock_timestamp() AND s.holder IS NULL
			ORDER BY t.due LIMIT $2 FOR UPDATE OF t SKIP LOCKED
		)
		UPDATE turns t SET driver = $1 FROM free, sessions s WHERE t.session = free.session AND s.key = t.session
		RETURNING s.id, t.session, t.wakes, t.tries`

	// freeTurns frees those that this process has in the database and not here: an answer was lost.
	freeTurns = `UPDATE turns SET driver = NULL FROM sessions s
		WHERE turns.driver = $1 AND s.key = turns.session AND s.id <> ALL($2)`

	rescueTurn = `INSERT INTO turns AS t (session, due, driver) SELECT key, clock_timestamp(), $1 FROM sessions WHERE id = $2 AND NOT book
		ON CONFLICT (session) DO UPDATE SET driver = $1 WHERE t.driver IS NULL OR t.driver = $1
			OR NOT EXISTS (SELECT FROM drivers d WHERE d.token = t.driver AND d.until >= clock_timestamp())
		RETURNING session, wakes, tries`

	restTurn = `DELETE FROM turns WHERE session = $1 AND driver = $2 AND wakes = $3`

	// An input that came after the turn was taken makes the next one due at once.
	againTurn = `UPDATE turns SET driver = NULL, tries = CASE WHEN $5 = '' THEN 0 ELSE tries + 1 END, why = $5,
		due = clock_timestamp() + CASE WHEN wakes = $3 THEN $4::interval ELSE '0' END
		WHERE session = $1 AND driver = $2`
)

// Wake makes the session with this full id due for a turn. Once it has returned, the wake is not lost. A session that
// is being driven is driven again after its run, and finds nothing to do if the run has seen all.
func (s *Store) Wake(ctx context.Context, id string) error {
	err := s.try(ctx, func(ctx context.Context) error {
		done, err := s.pool.Exec(ctx, wakeTurn, id)
		if err == nil && done.RowsAffected() == 0 {
			err = fs.ErrNotExist
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wake session %s: %w", id, err)
	}
	s.rings.due()
	return nil
}

// Due has a token when a turn may have become due by a wake, here or in another process. Those that become due by
// time, or whose notification was lost, are only found by asking.
func (s *Store) Due() <-chan struct{} { return s.rings.turns }

// turns are the turns that this process has.
type turns struct {
	taking sync.RWMutex // locked while some are taken, and for reading while one is given back
	freed  time.Time    // when those were last freed that the process has in the database alone

	mu   sync.Mutex
	held map[string]bool // by session
}

func (t *turns) has(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held[id]
}

func (t *turns) list() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.AppendSeq([]string{}, maps.Keys(t.held)) // nil would be null
}

func (t *turns) took(list []Turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil {
		t.held = map[string]bool{}
	}
	for _, turn := range list {
		t.held[turn.Session] = true
	}
}

func (t *turns) ended(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held, id)
}

// Turns takes up to most turns that are due and that no process has, the oldest first. They belong to this process
// until EndTurn, unless it is silent for longer than [Config.Lease].
func (s *Store) Turns(ctx context.Context, most int) ([]Turn, error) {
	taken, err := s.take(ctx, func(ctx context.Context) ([]Turn, error) {
		rows, err := s.pool.Query(ctx, takeTurns, s.beats.token, most)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t Turn, err error) {
			return t, row.Scan(&t.Session, &t.key, &t.wakes, &t.Tries)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("look for sessions to drive: %w", err)
	}
	return taken, nil
}

// freesEvery is how often turns are freed whose statement was lost. It may be stored long after its connection is gone.
const freesEvery = time.Second

// take takes turns by a statement, once the database knows that this process is there.
func (s *Store) take(ctx context.Context, some func(ctx context.Context) ([]Turn, error)) ([]Turn, error) {
	s.turns.taking.Lock()
	defer s.turns.taking.Unlock()
	if err := s.try(ctx, s.beats.recent); err != nil {
		return nil, err
	}
	ctx, stop := lasting(ctx)
	defer stop()
	if began := time.Now(); began.Sub(s.turns.freed) >= freesEvery {
		if _, err := s.pool.Exec(ctx, freeTurns, s.beats.token, s.turns.list()); err != nil {
			return nil, err
		}
		s.turns.freed = began
	}
	taken, err := some(ctx)
	if err == nil {
		s.turns.took(taken)
	}
	return taken, err
}

// Rescue takes the turn of a session from a process that is lost, see [Store.Lost]. Ok is false if another process, or
// this one, has it by now.
func (s *Store) Rescue(ctx context.Context, id string) (t Turn, ok bool, err error) {
	if s.turns.has(id) {
		return Turn{}, false, nil
	}
	taken, err := s.take(ctx, func(ctx context.Context) ([]Turn, error) {
		t := Turn{Session: id}
		err := s.pool.QueryRow(ctx, rescueTurn, s.beats.token, id).Scan(&t.key, &t.wakes, &t.Tries)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, nil
		}
		return []Turn{t}, err
	})
	if err != nil {
		return Turn{}, false, fmt.Errorf("rescue session %s: %w", id, err)
	}
	if len(taken) == 0 {
		return Turn{}, false, nil
	}
	return taken[0], true, nil
}

// EndTurn gives a turn back. If the session was woken since the turn was taken, it is due at once. It does nothing if
// another process has the turn by now. After an error the turn is due again.
func (s *Store) EndTurn(ctx context.Context, t Turn, end TurnEnd) error {
	s.turns.taking.RLock()
	defer s.turns.taking.RUnlock()
	rests := false
	err := s.try(ctx, func(ctx context.Context) error {
		if !end.Again {
			done, err := s.pool.Exec(ctx, restTurn, t.key, s.beats.token, t.wakes)
			if rests = done.RowsAffected() > 0; err != nil || rests {
				return err
			}
		}
		_, err := s.pool.Exec(ctx, againTurn, t.key, s.beats.token, t.wakes, end.After, clean(end.Failed))
		return err
	})
	s.turns.ended(t.Session)
	if err != nil {
		return fmt.Errorf("end the turn of session %s: %w", t.Session, err)
	}
	if !rests && end.After == 0 {
		s.rings.due()
	}
	return nil
}

// Failing returns how many tries to drive a session have failed in a row, and why the last one did.
func (s *Store) Failing(ctx context.Context, id string) (tries int, why string, err error) {
	const query = `SELECT tries, coalesce(why, '') FROM turns JOIN sessions ON key = session WHERE id = $1`
	err = s.one(ctx, query, []any{id}, &tries, &why)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, "", nil
	}
	return tries, why, err
}
