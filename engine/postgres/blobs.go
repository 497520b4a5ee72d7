package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/tool"
)

// blobs are the blobs of one session. Content is stored once for all sessions that have it: a row of
// session_blobs links it to a session. To add or remove such a row, lock the session first, and then the blob.
type blobs struct {
	store *Store
	key   int64 // of the session
}

var _ tool.Blobs = blobs{}

// pieceBytes is the size of a blob's part in one row.
const pieceBytes = 1 << 20

const blobMark = "sha256-"

// digestOf returns the digest in the name of a blob; nil if the name is invalid.
func digestOf(name string) []byte {
	digits, is := strings.CutPrefix(name, blobMark)
	digest, err := hex.DecodeString(digits)
	if !is || err != nil || len(digest) != sha256.Size || strings.ToLower(digits) != digits {
		return nil
	}
	return digest
}

// Put implements [tool.Blobs].
func (b blobs) Put(ctx context.Context, r io.Reader) (string, error) {
	name, err := b.put(ctx, r)
	if err != nil {
		return "", fmt.Errorf("put blob: %w", err)
	}
	return name, nil
}

func (b blobs) put(ctx context.Context, r io.Reader) (name string, err error) {
	return b.stored(ctx, r, func(c *content, object string) error {
		return b.store.inTx(ctx, func(tx pgx.Tx) error { return b.add(ctx, tx, c, object) })
	})
}

// putIn stores a blob in a transaction of the caller.
func (b blobs) putIn(ctx context.Context, tx pgx.Tx, r io.Reader) error {
	_, err := b.stored(ctx, r, func(c *content, object string) error { return b.add(ctx, tx, c, object) })
	return err
}

// stored reads a whole blob, uploads it to the bucket if it belongs there, and adds it.
func (b blobs) stored(ctx context.Context, r io.Reader, add func(c *content, object string) error) (name string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	c := &content{limit: b.store.limit}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.fill(ctx, r); err != nil {
		return "", err
	}
	object := ""
	if c.file != nil && b.store.bucket != nil {
		if object, err = b.upload(ctx, c); err != nil {
			return "", err
		}
	}
	if err := add(c, object); err != nil {
		return "", err
	}
	return keep.BlobName(c.digest), nil
}

// upload uploads a blob to the bucket, unless the database knows it already; then the name is empty. The object
// stays among the loose ones until a blob has it.
func (b blobs) upload(ctx context.Context, c *content) (object string, err error) {
	var there bool
	if err := b.store.one(ctx, "SELECT EXISTS (SELECT FROM blobs WHERE digest = $1)", []any{c.digest}, &there); err != nil || there {
		return "", err
	}
	object = hex.EncodeToString(c.digest) + "-" + rand.Text()
	if err := b.store.exec(ctx, "INSERT INTO loose_objects (object) VALUES ($1) ON CONFLICT DO NOTHING", object); err != nil {
		return "", err
	}
	return object, b.store.bucket.put(ctx, object, c)
}

// add gives the session a blob, in a transaction that may be a repetition.
func (b blobs) add(ctx context.Context, tx pgx.Tx, c *content, object string) error {
	if err := b.lock(ctx, tx); err != nil {
		return err
	}
	// The update changes nothing. It locks the row, so that the blob is not removed meanwhile.
	const insert = `INSERT INTO blobs (digest, size, object) VALUES ($1, $2, nullif($3, '')) ON CONFLICT (digest)
		DO UPDATE SET size = excluded.size RETURNING xmax = 0, coalesce(object, '') = $3`
	var isNew, mine bool
	if err := tx.QueryRow(ctx, insert, c.digest, c.size, object).Scan(&isNew, &mine); err != nil {
		return err
	}
	switch {
	case isNew && object == "":
		if err := c.pieces(ctx, tx); err != nil {
			return err
		}
	case mine && object != "":
		if _, err := tx.Exec(ctx, "DELETE FROM loose_objects WHERE object = $1", object); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, "INSERT INTO session_blobs (session, digest) VALUES ($1, $2) ON CONFLICT DO NOTHING", b.key, c.digest)
	return err
}

// lock keeps the session from being removed.
func (b blobs) lock(ctx context.Context, tx pgx.Tx) error {
	err := tx.QueryRow(ctx, "SELECT key FROM sessions WHERE key = $1 FOR KEY SHARE", b.key).Scan(new(int64))
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("the session: %w", fs.ErrNotExist)
	}
	return err
}

// dropBlobs removes the given blobs that no longer have a session. They are locked before that is checked.
// Their objects become loose.
func dropBlobs(ctx context.Context, tx pgx.Tx, digests [][]byte) error {
	if len(digests) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, "SELECT FROM blobs WHERE digest = ANY($1) ORDER BY digest FOR UPDATE", digests); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `WITH gone AS (
			DELETE FROM blobs b WHERE digest = ANY($1) AND NOT EXISTS (SELECT FROM session_blobs sb WHERE sb.digest = b.digest) RETURNING object
		) INSERT INTO loose_objects (object, since) SELECT object, '-infinity' FROM gone WHERE object IS NOT NULL`, digests)
	return err
}

// Names lists the blobs, in no particular order.
func (b blobs) Names(ctx context.Context) ([]string, error) {
	const query = "SELECT $2 || encode(digest, 'hex') FROM session_blobs WHERE session = $1"
	return many(ctx, b.store, pgx.RowTo[string], query, b.key, blobMark)
}

// Remove removes a blob from the session for good. A missing one is not an error. The caller must know that
// nothing refers to it.
func (b blobs) Remove(ctx context.Context, name string) error {
	digest := digestOf(name)
	if err := ctx.Err(); err != nil || digest == nil {
		return err
	}
	err := b.store.inTx(ctx, func(tx pgx.Tx) error {
		if err := b.lock(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM session_blobs WHERE session = $1 AND digest = $2", b.key, digest); err != nil {
			return err
		}
		return dropBlobs(ctx, tx, [][]byte{digest})
	})
	if err == nil {
		err = b.store.sweep(ctx)
	}
	if err != nil {
		return fmt.Errorf("remove blob: %w", err)
	}
	return nil
}

// Get implements [tool.Blobs]. The content is checked while it is read: if it does not match the name, the last
// Read fails instead of reporting the end.
func (b blobs) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	digest := digestOf(name)
	if digest == nil {
		return nil, fmt.Errorf("get blob: %q is not a blob's name: %w", name, fs.ErrNotExist)
	}
	var size int64
	var object *string
	const query = "SELECT b.size, b.object FROM session_blobs sb JOIN blobs b USING (digest) WHERE sb.session = $1 AND digest = $2"
	err := b.store.one(ctx, query, []any{b.key, digest}, &size, &object)
	if err != nil {
		return nil, fmt.Errorf("get blob %q: %w", name, err)
	}
	from := io.NopCloser(&pieces{ctx: ctx, store: b.store, digest: digest})
	if object != nil {
		if b.store.bucket == nil {
			return nil, fmt.Errorf("get blob %q: it is in a bucket, and none is configured", name)
		}
		if from, err = b.store.bucket.get(ctx, *object); err != nil {
			return nil, fmt.Errorf("get blob %q: %w", name, err)
		}
	}
	return keep.CheckBlob(from, name), nil
}

// pieces reads a blob of the database, a piece at a time.
type pieces struct {
	ctx    context.Context
	store  *Store
	digest []byte
	n      int
	rest   []byte
}

// Read implements [io.Reader].
func (p *pieces) Read(into []byte) (int, error) {
	if len(p.rest) == 0 {
		err := p.store.one(p.ctx, "SELECT content FROM blob_pieces WHERE digest = $1 AND n = $2", []any{p.digest, p.n}, &p.rest)
		if errors.Is(err, fs.ErrNotExist) {
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		p.n++
	}
	n := copy(into, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// content is the content of a new blob: in memory, or in a temporary file if it is long.
type content struct {
	limit  int
	small  []byte
	file   *os.File // nil means it is small
	size   int64
	digest []byte
}

// fill reads all of r.
func (c *content) fill(ctx context.Context, r io.Reader) error {
	sum := sha256.New()
	r = io.TeeReader(reader{ctx, r}, sum)
	var head bytes.Buffer
	n, err := io.CopyN(&head, r, int64(c.limit)+1)
	switch {
	case errors.Is(err, io.EOF):
		c.small, c.size = head.Bytes(), n
	case err != nil:
		return err
	default:
		if c.file, err = os.CreateTemp("", "inspan-blob-"); err != nil {
			return err
		}
		if c.size, err = io.Copy(c.file, io.MultiReader(&head, r)); err != nil {
			return err
		}
	}
	c.digest = sum.Sum(nil)
	return nil
}

// from returns a reader from the beginning.
func (c *content) from() io.Reader {
	if c.file == nil {
		return bytes.NewReader(c.small)
	}
	return io.NewSectionReader(c.file, 0, c.size)
}

// pieces adds the content to the database.
func (c *content) pieces(ctx context.Context, tx pgx.Tx) error {
	from, piece := c.from(), make([]byte, min(c.size, pieceBytes))
	for n := 0; int64(n)*pieceBytes < c.size; n++ {
		got, err := io.ReadFull(from, piece)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO blob_pieces (digest, n, content) VALUES ($1, $2, $3)", c.digest, n, piece[:got]); err != nil {
			return err
		}
	}
	return nil
}

func (c *content) close() error {
	if c.file == nil {
		return nil
	}
	return errors.Join(c.file.Close(), os.Remove(c.file.Name()))
}

// reader stops reading when ctx is done.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
