package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations/*.sql
var migrations embed.FS

// ErrTooNew says that a later version of this package has changed the database in ways that this one does not
// know.
var ErrTooNew = errors.New("the database is of a later version of inspan")

// oldest is the oldest tested version of PostgreSQL.
const oldest = 150000

// migrateLock is the key of the advisory lock that guards the creation of the tables: "inspan" in ASCII.
const migrateLock = 0x696e7370616e

// migrate brings the tables up to the version of this program. Several processes may do so at once. There is no
// downgrade.
func (s *Store) migrate(ctx context.Context, schema string) error {
	files, err := fs.ReadDir(migrations, "migrations")
	if err != nil {
		return err
	}
	have, err := s.version(ctx, s.pool)
	if err == nil && have == len(files) {
		return nil
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(migrateLock)); err != nil {
			return err
		}
		if err := begun(ctx, tx, schema); err != nil {
			return err
		}
		have, err := s.version(ctx, tx)
		if err != nil {
			return err
		}
		if have > len(files) {
			return fmt.Errorf("%w: it has version %d, and this one knows %d; use a newer inspan", ErrTooNew, have, len(files))
		}
		for i, file := range files[have:] {
			if err := apply(ctx, tx, file.Name(), have+i+1); err != nil {
				return fmt.Errorf("migration %s: %w", file.Name(), err)
			}
		}
		return nil
	})
}

// begun makes the schema and the table of its versions if they are missing. A user without the right to make a
// schema can use an existing one.
func begun(ctx context.Context, tx pgx.Tx, schema string) error {
	var there bool
	var version int
	const query = "SELECT to_regnamespace(quote_ident($1)) IS NOT NULL, current_setting('server_version_num')::int"
	if err := tx.QueryRow(ctx, query, schema).Scan(&there, &version); err != nil {
		return err
	}
	if version < oldest {
		return fmt.Errorf("it is PostgreSQL %d, and it must be %d or newer", version/10000, oldest/10000)
	}
	if !there {
		if _, err := tx.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{schema}.Sanitize()); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS migrations
		(version integer PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL DEFAULT now())`)
	return err
}

func apply(ctx context.Context, tx pgx.Tx, name string, version int) error {
	sql, err := migrations.ReadFile("migrations/" + name)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, string(sql)); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO migrations (version, name) VALUES ($1, $2)", version, name)
	return err
}

// version returns the version of the tables, 0 for none. The error may say that there are none.
func (s *Store) version(ctx context.Context, db querier) (have int, err error) {
	err = db.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM migrations").Scan(&have)
	return have, err
}

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}
