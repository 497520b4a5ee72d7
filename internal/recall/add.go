package recall

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/text"
)

// Bounds of what is kept of one document, in bytes; of what is longer the middle
// is left out.
const (
	maxText   = 4 << 10
	maxResult = 2 << 10
)

// blockBits is how many documents share a span of time: 1<<blockBits.
const blockBits = 11

// kinds in the order in which they are numbered in the file.
func kinds() []string { return []string{Said, Replied, Call, Result, Title, Note} }

// Marks returns how far each session is indexed.
func (x *Index) Marks(ctx context.Context) (map[string]Mark, error) {
	out, err := x.marks(ctx)
	return out, x.wrap(ctx, "read", err)
}

func (x *Index) marks(ctx context.Context) (map[string]Mark, error) {
	rows, err := x.db.QueryContext(ctx, "SELECT name, seq, size FROM marks JOIN names ON id = session")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	out := map[string]Mark{}
	for rows.Next() {
		var name string
		var seq int64
		var m Mark
		if err := rows.Scan(&name, &seq, &m.Size); err != nil {
			return nil, err
		}
		m.Seq = uint64(seq)
		out[name] = m
	}
	return out, rows.Err()
}

// Add indexes documents of a session, all or none, and says that it is indexed up
// to mark. Documents up to the mark that is stored already are left out, so that
// adding something twice, also by two processes at once, changes nothing. Docs are
// in order; what their field Session holds is not looked at. Text is shortened to
// some KiB, and rid of hidden characters; a document without any text is left out.
func (x *Index) Add(ctx context.Context, session string, mark Mark, docs []Doc) error {
	if session == "" {
		return errors.New("add to index: no session is named")
	}
	for _, d := range docs {
		if !slices.Contains(kinds(), d.Kind) {
			return fmt.Errorf("add to index: there is no kind %q", d.Kind)
		}
		if d.Seq > mark.Seq {
			return fmt.Errorf("add to index: event %d lies behind the mark %d", d.Seq, mark.Seq)
		}
	}
	return x.change(ctx, "add to", func(tx *sql.Tx) error {
		w := writer{ctx: ctx, tx: tx, names: map[string]int64{}}
		return w.add(session, mark, docs)
	})
}

// change runs one transaction that writes.
func (x *Index) change(ctx context.Context, doing string, do func(tx *sql.Tx) error) error {
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return x.wrap(ctx, doing, err)
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback()
		return x.wrap(ctx, doing, err)
	}
	return x.wrap(ctx, doing, tx.Commit())
}

// writer adds within one transaction.
type writer struct {
	ctx   context.Context
	tx    *sql.Tx
	names map[string]int64 // ids that are known
}

func (w *writer) add(session string, mark Mark, docs []Doc) error {
	id, err := w.id(session)
	if err != nil {
		return err
	}
	var stored int64
	err = w.tx.QueryRowContext(w.ctx, "SELECT seq FROM marks WHERE session = ?", id).Scan(&stored)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if err == nil && uint64(stored) >= mark.Seq {
		return nil
	}
	docs = slices.DeleteFunc(slices.Clone(docs), func(d Doc) bool { return d.Seq <= uint64(stored) })
	if err := w.put(id, docs); err != nil {
		return err
	}
	_, err = w.tx.ExecContext(w.ctx, "INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", id, int64(mark.Seq), mark.Size)
	return err
}

// id numbers a name.
func (w *writer) id(name string) (int64, error) {
	if id, ok := w.names[name]; ok {
		return id, nil
	}
	if _, err := w.tx.ExecContext(w.ctx, "INSERT OR IGNORE INTO names (name) VALUES (?)", name); err != nil {
		return 0, err
	}
	var id int64
	err := w.tx.QueryRowContext(w.ctx, "SELECT id FROM names WHERE name = ?", name).Scan(&id)
	w.names[name] = id
	return id, err
}

func (w *writer) put(session int64, docs []Doc) error {
	doc, err := w.tx.PrepareContext(w.ctx, "INSERT INTO docs VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer func() { _ = doc.Close() }()
	word, err := w.tx.PrepareContext(w.ctx, "INSERT INTO words (rowid, word) VALUES (?, ?)")
	if err != nil {
		return err
	}
	defer func() { _ = word.Close() }()
	spans := map[int64]span{}
	for _, d := range docs {
		text := kept(d)
		if text == "" {
			continue
		}
		root, err := w.id(d.Root)
		if err != nil {
			return err
		}
		kind, at := slices.Index(kinds(), d.Kind), d.Time.UnixMilli()
		done, err := doc.ExecContext(w.ctx, session, root, int64(d.Seq), at, kind, d.Untrusted, text)
		if err != nil {
			return err
		}
		id, err := done.LastInsertId()
		if err != nil {
			return err
		}
		if _, err := word.ExecContext(w.ctx, id, indexed(text, session, root, kind)); err != nil {
			return err
		}
		spans[id>>blockBits] = spans[id>>blockBits].with(at)
	}
	return w.widen(spans)
}

// span is the time in which documents lie, in milliseconds.
type span struct {
	since, until int64
	set          bool
}

func (s span) with(at int64) span {
	if !s.set {
		return span{at, at, true}
	}
	return span{min(s.since, at), max(s.until, at), true}
}

// widen keeps the spans, so that a search within some time needs not look at
// documents of other times.
func (w *writer) widen(spans map[int64]span) error {
	for block, s := range spans {
		_, err := w.tx.ExecContext(w.ctx, `INSERT INTO spans VALUES (?, ?, ?) ON CONFLICT (block)
			DO UPDATE SET since = min(since, excluded.since), until = max(until, excluded.until)`, block, s.since, s.until)
		if err != nil {
			return err
		}
	}
	return nil
}

// kept is what is kept of the text of a document.
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

// indexed is a document as SQLite gets it: each word once, and each two words
// that are joined.
func indexed(text string, session, root int64, kind int) string {
	seen := map[string]bool{}
	var b strings.Builder
	b.Grow(len(text) + 32)
	put := func(word string) {
		if !seen[word] {
			seen[word] = true
			b.WriteString(word)
			b.WriteByte(' ')
		}
	}
	for _, m := range []string{ofSession(session), ofRoot(root), ofKind(kind)} {
		put(m)
	}
	var last token
	for t := range each(text) {
		put(t.text)
		if t.piece {
			continue
		}
		if last.to > 0 && joined(text, last, t) {
			put(pair(last.text, t.text))
		}
		last = t
	}
	return b.String()
}

// pair is the word that stands for two that are joined.
func pair(a, b string) string { return a + meta + b }

// The words that stand for what a document is. No word of a text
// begins with that mark.

func ofSession(id int64) string { return fmt.Sprint(meta, "s", id) }
func ofRoot(id int64) string    { return fmt.Sprint(meta, "r", id) }
func ofKind(n int) string       { return fmt.Sprint(meta, "k", n) }

// Forget takes a session out of the index, its mark too. A session that is not
// there is no error.
func (x *Index) Forget(ctx context.Context, session string) error {
	return x.change(ctx, "forget in", func(tx *sql.Tx) error {
		var id int64
		err := tx.QueryRowContext(ctx, "SELECT id FROM names WHERE name = ?", session).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = forget(ctx, tx, id)
		}
		return err
	})
}

// forget takes documents out. FTS5 keeps no text of its own and has to be given
// what it was given before.
func forget(ctx context.Context, tx *sql.Tx, session int64) error {
	for {
		batch, err := some(ctx, tx, session)
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			break
		}
		for _, d := range batch {
			if _, err := tx.ExecContext(ctx, "INSERT INTO words (words, rowid, word) VALUES ('delete', ?, ?)", d.id,
				indexed(d.text, session, d.root, d.kind)); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "DELETE FROM docs WHERE id = ?", d.id); err != nil {
				return err
			}
		}
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM marks WHERE session = ?", session)
	return err
}

// row is a document as it is stored.
type row struct {
	id, session, root int64
	seq               uint64
	time              time.Time
	kind              int
	untrusted         bool
	text              string
}

const columns = "d.id, d.session, d.root, d.seq, d.time, d.kind, d.untrusted, d.text"

func scan(rows *sql.Rows) (d row, err error) {
	var seq, at int64
	err = rows.Scan(&d.id, &d.session, &d.root, &seq, &at, &d.kind, &d.untrusted, &d.text)
	d.seq, d.time = uint64(seq), time.UnixMilli(at).UTC()
	return d, err
}

// some reads documents of a session.
func some(ctx context.Context, tx *sql.Tx, session int64) ([]row, error) {
	rows, err := tx.QueryContext(ctx, "SELECT "+columns+" FROM words CROSS JOIN docs d ON d.id = words.rowid WHERE words MATCH ? LIMIT 1000",
		`"`+ofSession(session)+`"`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var out []row
	for rows.Next() {
		d, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, rows.Err()
}
