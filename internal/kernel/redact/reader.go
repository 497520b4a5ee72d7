package redact

import (
	"bytes"
	"io"

	"github.com/inspan/inspan/internal/safety/secret"
)

// chunkSize is how many bytes of a stream are searched together. It is large enough to make the overhead of a chunk
// insignificant.
const chunkSize = 128 << 10

// Reader returns the text of r with secrets replaced.
func (s *Secrets) Reader(r io.Reader) io.Reader {
	c := &reader{from: r}
	c.w = s.Vault.Writer(&c.out)
	return c
}

type reader struct {
	from  io.Reader
	w     *secret.Writer // into out
	chunk []byte
	out   bytes.Buffer
	err   error // error of from, returned once out is empty
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	if r.chunk == nil {
		r.chunk = make([]byte, chunkSize)
	}
	for r.out.Len() == 0 && r.err == nil {
		n, err := r.from.Read(r.chunk)
		_, _ = r.w.Write(r.chunk[:n]) // a buffer accepts every write
		if r.err = err; err != nil {
			_ = r.w.Close()
		}
	}
	if r.out.Len() == 0 {
		return 0, r.err
	}
	return r.out.Read(p)
}
