// Package postgres stores sessions in PostgreSQL, so that servers and workers on many machines share them.
//
// A [Store] is a [store.Store] over a database of version 15 or newer. An append is one statement: it moves the
// head of the session and adds the events, if the driver's lease, epoch and last event are still those of the head.
// An append whose answer was lost is recognized by its writer id, so it is neither lost nor stored twice. Leases
// end by the database's clock; the clocks of clients don't matter. docs/decisions/049-postgres.md gives the reason
// why.
//
// # What survives what
//
// Acknowledged events are committed, with synchronous_commit on: they survive a kill of this process and of the
// database, and power loss unless the database runs with fsync off. After a failover, synchronous_standby_names
// determines what the standby has.
package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/inspan/inspan/store"
)

// Config says where sessions are stored. All fields except URL can be left empty.
type Config struct {
	// URL is that of the database, such as postgres://user:password@host:5432/name?sslmode=require, or a list
	// of keywords as for libpq. No error ever contains the password.
	URL string

	// Schema is the schema of the tables. It is made if it is missing. Default: inspan.
	Schema string

	// Lease is how long a process keeps its sessions without a beat to the database, until another may take
	// them over. It sends three beats in that time, for all sessions at once. A shorter lease gives sessions of
	// a dead process to another sooner. A longer one leaves them to a process that was only stopped for a
	// moment. Default: 1.2 s.
	Lease time.Duration

	// Poll is how often a wait checks for events without a notification. Default: 1 s.
	Poll time.Duration

	// Patience is how long an operation retries while the database can't be reached. Default: 15 s.
	Patience time.Duration

	// Conns is the largest number of open connections, in addition to the one for notifications and the one for
	// leases. All processes together must stay below max_connections of the database. Default: 16.
	Conns int

	// BlobLimit is the largest size in bytes of blobs that are stored in the database even if there is a
	// Bucket. Default: 1 MiB.
	BlobLimit int

	// Bucket stores larger blobs. Nil means they are in the database too, in pieces.
	Bucket *Bucket
}

// Store is a [store.Store] in PostgreSQL, safe for concurrent use, even by several processes. Make one with [Open].
type Store struct {
	pool     *pgxpool.Pool
	channel  string // of notifications
	lease    time.Duration
	beats    beats
	poll     time.Duration
	patience time.Duration
	limit    int
	bucket   *bucket // nil means none
	rings    rings
	turns    turns

	mu   sync.Mutex
	logs map[*log]bool // open ones

	stop context.CancelFunc
	work sync.WaitGroup // ends after stop
}

var (
	_ store.Store        = (*Store)(nil)
	_ store.Booker       = (*Store)(nil)
	_ store.Brancher     = (*Store)(nil)
	_ store.Mover        = (*Store)(nil)
	_ store.RecentLister = (*Store)(nil)
)

// Open connects to the database and brings its tables up to date. It fails at once if the database can't be
// reached, and with [ErrTooNew] if a later version has changed it. Close the store after use.
func Open(ctx context.Context, c Config) (*Store, error) {
	s, err := open(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("open the database of sessions: %w", err)
	}
	return s, nil
}

func open(ctx context.Context, c Config) (*Store, error) {
	schema := cmp.Or(c.Schema, "inspan")
	conf, err := pooled(c, schema)
	if err != nil {
		return nil, err
	}
	s := &Store{
		channel:  channelOf(schema),
		lease:    cmp.Or(c.Lease, 1200*time.Millisecond),
		poll:     cmp.Or(c.Poll, time.Second),
		patience: cmp.Or(c.Patience, 15*time.Second),
		limit:    cmp.Or(c.BlobLimit, 1<<20),
		logs:     map[*log]bool{},
	}
	if c.Bucket != nil {
		if s.bucket, err = c.Bucket.open(ctx); err != nil {
			return nil, err
		}
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, conf); err != nil {
		return nil, err
	}
	if err = s.migrate(ctx, schema); err != nil {
		s.pool.Close()
		return nil, err
	}
	s.beats = beats{token: newToken(), lease: s.lease, conf: conf.ConnConfig.Copy()}
	s.beats.conf.RuntimeParams["synchronous_commit"] = "off" // a beat need not survive a crash of the database
	s.run()
	return s, nil
}

// errURL gives no details: the unreadable part may be the password.
var errURL = errors.New("its URL can't be read; it looks like postgres://user:password@host:5432/name")

// pooled returns the configuration of the connections.
func pooled(c Config, schema string) (*pgxpool.Config, error) {
	conf, err := pgxpool.ParseConfig(c.URL)
	if err != nil || c.URL == "" {
		return nil, errURL
	}
	conf.MaxConns = int32(cmp.Or(c.Conns, 16))
	conn := conf.ConnConfig
	conn.ConnectTimeout = cmp.Or(conn.ConnectTimeout, 5*time.Second)
	dialer := &net.Dialer{Timeout: conn.ConnectTimeout, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: attemptFor, Interval: attemptFor / 4, Count: 4,
	}}
	conn.DialFunc = dialer.DialContext
	conn.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize()
	// All statements find their rows by an index, so a generic plan is good enough. Otherwise the plan of an
	// append would be made again each time.
	conn.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	conn.RuntimeParams["default_transaction_isolation"] = "read committed"
	conn.RuntimeParams["application_name"] = cmp.Or(conn.RuntimeParams["application_name"], "inspan")
	conf.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
		return err
	}
	return conf, nil
}

// run starts the background work of the store.
func (s *Store) run() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.rings.news, s.rings.turns = make(chan struct{}, 1), make(chan struct{}, 1)
	s.work.Go(func() { s.keep(ctx) })
	s.work.Go(func() { s.listen(ctx) })
	s.work.Go(func() { s.tell(ctx) })
}

// Close closes all logs that are still open, and the connections.
func (s *Store) Close() error {
	var errs error
	for _, l := range s.opened() {
		errs = errors.Join(errs, l.Close())
	}
	s.stop()
	s.work.Wait()
	s.beats.end()
	s.pool.Close()
	return errs
}

func (s *Store) opened() []*log {
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []*log
	for l := range s.logs {
		open = append(open, l)
	}
	return open
}

// newToken makes a unique token.
func newToken() (token [16]byte) {
	_, _ = rand.Read(token[:]) // it never fails
	return token
}

// Create implements [store.Store]. The time in the id is the database's.
func (s *Store) Create(ctx context.Context) (store.Log, error) {
	l, err := s.create(ctx)
	if err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	return l, nil
}

func (s *Store) create(ctx context.Context) (*log, error) {
	for range 100 {
		id, err := s.newID(ctx)
		if err != nil {
			return nil, err
		}
		l, isNew, err := s.made(ctx, id, newToken())
		if err != nil || isNew {
			return l, err
		}
		if err := l.Close(); err != nil { // it belongs to another
			return nil, err
		}
	}
	return nil, errNoID
}

var errNoID = errors.New("no unused session id found")

// newID makes an id of the database's time and four random characters.
func (s *Store) newID(ctx context.Context) (string, error) {
	var now time.Time
	err := s.try(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	})
	if err != nil {
		return "", err
	}
	return store.NewID(now, rand.Reader)
}

// made opens a session or a book, and makes it if it is missing. isNew says that it was made with this token.
func (s *Store) made(ctx context.Context, id string, token [16]byte) (l *log, isNew bool, err error) {
	info := store.NewInfo(id)
	var key, last int64
	err = s.try(ctx, func(ctx context.Context) error {
		const insert = `INSERT INTO sessions (id, book, made, created, modified, parent) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (id) DO NOTHING`
		if _, err := s.pool.Exec(ctx, insert, id, store.IsBook(id), token, info.Created, info.Modified, info.Parent); err != nil {
			return err
		}
		return s.pool.QueryRow(ctx, "SELECT key, last_seq, made = $2 FROM sessions WHERE id = $1", id, token).Scan(&key, &last, &isNew)
	})
	if errors.Is(err, pgx.ErrNoRows) { // it was removed just now
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, false, err
	}
	return s.logOf(key, id, last), isNew, nil
}

// Child implements [store.Store].
func (s *Store) Child(ctx context.Context, parent, name string) (l store.Log, isNew bool, err error) {
	id, err := store.ChildID(parent, name)
	if err == nil {
		l, isNew, err = s.child(ctx, id)
	}
	if err != nil {
		return nil, false, fmt.Errorf("create session: %w", err)
	}
	return l, isNew, nil
}

func (s *Store) child(ctx context.Context, id string) (*log, bool, error) {
	l, _, err := s.made(ctx, id, newToken())
	if err != nil {
		return nil, false, err
	}
	return l, l.bell.at() == 0, nil
}

// Book implements [store.Booker].
func (s *Store) Book(ctx context.Context, name string) (store.Log, error) {
	id, err := store.BookID(name)
	if err != nil {
		return nil, err
	}
	l, _, err := s.made(ctx, id, newToken())
	if err != nil {
		return nil, fmt.Errorf("open book %q: %w", name, err)
	}
	return l, nil
}

// Open implements [store.Store].
func (s *Store) Open(ctx context.Context, id string) (store.Log, error) {
	l, err := s.found(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("open session %q: %w", id, err)
	}
	return l, nil
}

func (s *Store) found(ctx context.Context, id string) (*log, error) {
	if !store.IsID(id) && !store.IsBook(id) {
		return nil, fmt.Errorf("not a session id: %w", fs.ErrNotExist)
	}
	var key, last int64
	err := s.one(ctx, "SELECT key, last_seq FROM sessions WHERE id = $1", []any{id}, &key, &last)
	if err != nil {
		return nil, err
	}
	return s.logOf(key, id, last), nil
}

// one reads one row. If there is none, the error is [fs.ErrNotExist].
func (s *Store) one(ctx context.Context, sql string, args []any, into ...any) error {
	err := s.try(ctx, func(ctx context.Context) error { return s.pool.QueryRow(ctx, sql, args...).Scan(into...) })
	if errors.Is(err, pgx.ErrNoRows) {
		return fs.ErrNotExist
	}
	return err
}

// many reads rows.
func many[T any](ctx context.Context, s *Store, scan pgx.RowToFunc[T], sql string, args ...any) (all []T, err error) {
	err = s.try(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, scan)
		return err
	})
	return all, err
}

// exec runs one statement, whatever it finds.
func (s *Store) exec(ctx context.Context, sql string, args ...any) error {
	return s.try(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, sql, args...)
		return err
	})
}
