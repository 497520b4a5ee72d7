package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Bucket is a place for big blobs that speaks Amazon's S3 protocol.
type Bucket struct {
	Endpoint  string // host and port
	Name      string
	Prefix    string // prefix of every object's name; may be empty
	Region    string // empty means it is looked up
	AccessKey string
	SecretKey string
	Plain     bool // HTTP instead of HTTPS
}

// bucket is an open bucket.
type bucket struct {
	client       *minio.Client
	name, prefix string
}

func (b *Bucket) open(ctx context.Context) (*bucket, error) {
	client, err := minio.New(b.Endpoint, &minio.Options{
		Creds: credentials.NewStaticV4(b.AccessKey, b.SecretKey, ""), Secure: !b.Plain, Region: b.Region,
	})
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", b.Name, err)
	}
	there, err := client.BucketExists(ctx, b.Name)
	if err == nil && !there {
		err = errors.New("it is not there")
	}
	if err != nil {
		return nil, fmt.Errorf("bucket %s at %s: %w", b.Name, b.Endpoint, err)
	}
	return &bucket{client, b.Name, b.Prefix}, nil
}

func (b *bucket) put(ctx context.Context, object string, c *content) error {
	options := minio.PutObjectOptions{ContentType: "application/octet-stream"}
	_, err := b.client.PutObject(ctx, b.name, b.prefix+object, c.from(), c.size, options)
	return b.failed("write", err)
}

func (b *bucket) get(ctx context.Context, object string) (io.ReadCloser, error) {
	from, err := b.client.GetObject(ctx, b.name, b.prefix+object, minio.GetObjectOptions{})
	if err != nil {
		return nil, b.failed("read", err)
	}
	if _, err := from.Stat(); err != nil { // nothing was sent before
		return nil, errors.Join(b.failed("read", err), from.Close())
	}
	return from, nil
}

// remove removes an object. A missing one is not an error.
func (b *bucket) remove(ctx context.Context, object string) error {
	err := b.client.RemoveObject(ctx, b.name, b.prefix+object, minio.RemoveObjectOptions{})
	if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound {
		return nil
	}
	return b.failed("clear", err)
}

func (b *bucket) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s bucket %s: %w", what, b.name, err)
}

// mostSwept is the largest number of objects that one removal sweeps.
const mostSwept = 1000

// sweep removes objects without a blob. A new object gets a day to get one.
func (s *Store) sweep(ctx context.Context) error {
	if s.bucket == nil {
		return nil
	}
	const query = "SELECT object FROM loose_objects WHERE since < now() - interval '1 day' ORDER BY since LIMIT $1"
	loose, err := many(ctx, s, pgx.RowTo[string], query, mostSwept)
	for _, object := range loose {
		if err == nil {
			err = s.bucket.remove(ctx, object)
		}
		if err == nil {
			_, err = s.pool.Exec(ctx, "DELETE FROM loose_objects WHERE object = $1", object)
		}
	}
	return err
}
