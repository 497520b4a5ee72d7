package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/inspan/inspan/engine/postgres"
)

// connect connects to the schema of a store, for statements that a store does not offer.
func connect(t testing.TB, c postgres.Config) (*pgx.Conn, error) {
	conf, err := pgx.ParseConfig(c.URL)
	if err != nil {
		return nil, err
	}
	conf.RuntimeParams["search_path"] = pgx.Identifier{c.Schema}.Sanitize()
	conn, err := pgx.ConnectConfig(t.Context(), conf)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

// replace puts a copy of a session in its place, like a restored backup.
func replace(t testing.TB, c postgres.Config, id string) {
	t.Helper()
	const columns = "book, made, last_seq, epoch, claim_seq, start_seq, size, created, modified, holder, held_since, held_until, driver"
	sql(t, c, "UPDATE sessions SET id = 'gone' WHERE id = $1", id)
	sql(t, c, "INSERT INTO sessions (id, "+columns+") SELECT $1, "+columns+" FROM sessions WHERE id = 'gone'", id)
	sql(t, c, `UPDATE events SET session = (SELECT key FROM sessions WHERE id = $1)
		WHERE session = (SELECT key FROM sessions WHERE id = 'gone')`, id)
	sql(t, c, "DELETE FROM sessions WHERE id = 'gone'")
}
