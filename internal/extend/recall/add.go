package recall

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// Limits of the stored text of one document, in bytes; the middle of a longer one is omitted.
const (
	maxText   = 4 << 10
	maxResult = 2 << 10
)

// Marks returns how far each session is indexed.
func (x *Index) Marks(ctx context.Context) (map[string]Mark, error) {
	out, err := x.marks(ctx)
	return out, x.wrap(ctx, "read", err)
}

func (x *Index) marks(ctx context.Context) (map[string]Mark, error) {
	db, err := x.use(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, "SELECT name, seq, size FROM sessions")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	out := map[string]Mark{}
	for rows.Next() {
		name, m := "", Mark{}
		if err := rows.Scan(&name, &m.Seq, &m.Size); err != nil {
			return nil, err
		}
		out[name] = m
	}
	return out, rows.Err()
}

// Add indexes documents of a session, all or none, and records that it is indexed up to mark. Documents up to
// the stored mark are omitted, so that adding something twice, even by two processes at once, changes nothing.
// Docs are in order; their field Session is ignored. Text is shortened to some KiB, without hidden characters;
// a document without any text is omitted.
func (x *Index) Add(ctx context.Context, session string, mark Mark, docs []Doc) error {
	if session == "" {
		return errors.New("add to index: no session is named")
	}
	for _, d := range docs {
		if !slices.Contains([]string{Said, Replied, Call, Result, Title, Note}, d.Kind) {
			return fmt.Errorf("add to index: unknown kind %q", d.Kind)
		}
		if d.Seq > mark.Seq {
			return fmt.Errorf("add to index: event %d lies behind the mark %d", d.Seq, mark.Seq)
		}
	}
	return x.change(ctx, "add to", func(tx *sql.Tx) error { return add(ctx, tx, session, mark, docs) }, nil)
}

// change runs one change, with exclusive access, and then work that is possible only after it.
func (x *Index) change(ctx context.Context, doing string, do func(*sql.Tx) error, after func(*sql.DB) error) error {
	db, err := x.use(ctx)
	if err != nil {
		return x.wrap(ctx, doing, err)
	}
	alone, err := keep.LockFile(ctx, x.Path+".write", busyTime)
	if err != nil {
		return x.wrap(ctx, doing, err)
	}
	defer func() { _ = alone.Close() }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return x.wrap(ctx, doing, err)
	}
	if err := do(tx); err != nil {
		return x.wrap(ctx, doing, errors.Join(err, tx.Rollback()))
	}
	if err = tx.Commit(); err == nil && after != nil {
		err = after(db)
	}
	return x.wrap(ctx, doing, err)
}

func add(ctx context.Context, tx *sql.Tx, session string, mark Mark, docs []Doc) error {
	var id, last int64
	var stored uint64
	err := tx.QueryRowContext(ctx, "SELECT id, seq FROM sessions WHERE name = ?", session).Scan(&id, &stored)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = tx.QueryRowContext(ctx, "INSERT INTO sessions (name, seq) VALUES (?, 0) RETURNING id", session).Scan(&id)
	case err == nil && stored >= mark.Seq:
		return nil
	}
	if err == nil {
		err = tx.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM docs").Scan(&last)
	}
	if err != nil {
		return err
	}
	var put [3]*sql.Stmt
	for i, stmt := range []string{
		"INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", "INSERT INTO words (rowid, text, also) VALUES (?, ?, ?)",
		"INSERT OR IGNORE INTO vocabulary VALUES (?)",
	} {
		if put[i], err = tx.PrepareContext(ctx, stmt); err != nil {
			return err
		}
		defer func() { _ = put[i].Close() }()
	}
	words := map[string]bool{}
	for _, d := range docs {
		if err := ctx.Err(); err != nil {
			return err
		}
		body := kept(d)
		if body == "" || d.Seq <= stored {
			continue
		}
		last++
		if _, err := put[0].ExecContext(ctx, last, id, int64(d.Seq), d.Time.UnixMilli(), d.Root, d.Kind, d.Untrusted, body); err != nil {
			return err
		}
		var whole []string
		also := []string{filter("session", session), filter("root", d.Root), filter("kind", d.Kind)}
		for t := range each(body) {
			if words[t.text] = true; t.piece {
				also = append(also, t.text)
			} else {
				whole = append(whole, t.text)
			}
		}
		if _, err := put[1].ExecContext(ctx, last, strings.Join(whole, " "), strings.Join(also, " ")); err != nil {
			return err
		}
	}
	for word := range words {
		if _, err := put[2].ExecContext(ctx, word); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `UPDATE sessions SET seq = ?2, size = ?3, (first, last, since, until) =
		(SELECT min(id), max(id), min(time), max(time) FROM docs WHERE session = ?1) WHERE id = ?1`, id, int64(mark.Seq), mark.Size)
	return err
}

// kept returns the stored text of a document.
func kept(d Doc) string {
	most := maxText
	if d.Kind == Result {
		most = maxResult
	}
	s := strings.TrimSpace(d.Text)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most*3/4], "") + "\n…\n" + strings.ToValidUTF8(s[len(s)-most/4:], "")
	}
	return text.Clean(s)
}

// filter returns the word that stands for a property of a document. No word of a text has that mark.
func filter(what, value string) string { return "_" + what + tool.Digest([]byte(value)) }

// Forget removes sessions and their marks from the index. A missing one is not an error. The remaining words
// are written again, which takes as long for many as for one.
func (x *Index) Forget(ctx context.Context, sessions ...string) error {
	gone := int64(0)
	return x.change(ctx, "forget in", func(tx *sql.Tx) error {
		for _, name := range sessions {
			for _, stmt := range []string{
				"DELETE FROM words WHERE rowid IN (SELECT d.id FROM docs d JOIN sessions s ON s.id = d.session WHERE s.name = ?)",
				"DELETE FROM docs WHERE session = (SELECT id FROM sessions WHERE name = ?)",
				"DELETE FROM sessions WHERE name = ?",
			} {
				done, err := tx.ExecContext(ctx, stmt, name)
				if err != nil {
					return err
				}
				n, _ := done.RowsAffected()
				gone += n
			}
		}
		if gone == 0 {
			return nil
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO words (words) VALUES ('optimize');
			DELETE FROM vocabulary WHERE word NOT IN (SELECT term FROM terms)`)
		return err
	}, func(db *sql.DB) error {
		var free, all int64
		err := db.QueryRowContext(ctx, "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count").Scan(&free, &all)
		if err == nil && free > all/2 {
			_, err = db.ExecContext(ctx, "VACUUM")
		}
		if err == nil && gone > 0 { // overwritten data is also overwritten in the file
			_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(truncate)")
		}
		return err
	})
}
