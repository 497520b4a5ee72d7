package server

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/store"
)

// Content is data that an object has in addition to its value, stored as a blob outside the book. No two objects
// share a blob: each begins with random letters, so one can be removed safely, and a tenant can't find out whether
// another has the same data.
type Content struct {
	Blob string `json:"blob"`
	Size int64  `json:"size"`
}

const salt = 26 // number of letters at the start of a blob

// Store stores bytes for the objects that f puts. If no object uses them when f has returned, they are removed.
func (v *Visit) Store(data []byte, f func(Content) error) error {
	name, err := v.book.log.Blobs().Put(v, io.MultiReader(strings.NewReader(rand.Text()[:salt]), bytes.NewReader(data)))
	if err != nil {
		return err
	}
	err = f(Content{name, int64(len(data))})
	v.book.mu.Lock()
	if !v.book.contents[name] {
		v.book.dropped = append(v.book.dropped, name)
	}
	v.book.mu.Unlock()
	v.sweep()
	return err
}

// Load reads the content of an object.
func (v *Visit) Load(c Content) ([]byte, error) {
	from, err := v.book.log.Blobs().Get(v, c.Blob)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(from, salt+c.Size+1)) // to its end, where its digest is checked
	if err := errors.Join(err, from.Close()); err != nil {
		return nil, err
	}
	if int64(len(data)) != salt+c.Size {
		return nil, fmt.Errorf("blob %s has %d bytes, not %d", c.Blob, len(data), salt+c.Size)
	}
	return data[salt:], nil
}

// keeps records the change of an object's content. The caller holds the lock.
func (b *book) keeps(before, now *Object) {
	blob := ""
	if now != nil && now.Content.Blob != "" {
		blob = now.Content.Blob
		b.contents[blob] = true
		b.usage(now.Tenant).kept += now.Content.Size
	}
	if before != nil && before.Content.Blob != "" {
		b.usage(before.Tenant).kept -= before.Content.Size
		if before.Content.Blob != blob {
			delete(b.contents, before.Content.Blob)
			b.dropped = append(b.dropped, before.Content.Blob)
		}
	}
}

// kept returns the number of bytes that the objects of a tenant hold.
func (b *book) kept(tenant string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.usage(tenant).kept
}

// sweep removes the blobs that no longer have an object.
func (s *Server) sweep() {
	s.book.mu.Lock()
	names := s.book.dropped
	s.book.dropped = nil
	s.book.mu.Unlock()
	blobs, can := s.book.log.Blobs().(store.BlobRemover)
	if !can {
		return
	}
	for _, name := range names {
		if err := blobs.Remove(s.ctx, name); err != nil {
			s.warn("a blob can't be removed before the server restarts: " + err.Error())
		}
	}
}

// sweepAll removes blobs without an object, which a crash has left.
func (s *Server) sweepAll() error {
	blobs, can := s.book.log.Blobs().(store.BlobRemover)
	if !can {
		return nil
	}
	names, err := blobs.Names(s.ctx)
	if err != nil {
		return err
	}
	s.book.mu.Lock()
	s.book.dropped = slices.DeleteFunc(names, func(name string) bool { return s.book.contents[name] })
	s.book.mu.Unlock()
	s.sweep()
	return nil
}

// room reports why the objects of a tenant can't hold so many more bytes. The caller holds the book's lock.
func (v *Visit) room(tenant string, more int64) error {
	t := v.book.tenants[tenant]
	if t == nil || t.Disk == 0 || more == 0 {
		return nil
	}
	held := v.quota.held(tenant) + v.book.usage(tenant).kept
	switch {
	case held+more <= t.Disk:
		return nil
	case v.who.confined():
		return Forbidden("disk quota: the tenant has reached its limit")
	}
	return &Problem{Status: http.StatusForbidden, Type: "permission_error", Message: fmt.Sprintf(
		"disk quota: the tenant holds %s KiB and its limit is %s KiB; remove something, or raise it",
		text.Thousands(int(held>>10)), text.Thousands(int(t.Disk>>10)))}
}
