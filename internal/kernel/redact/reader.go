package redact

import (
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
	out   texts
	err   error // error of from, returned once out is empty
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	if r.chunk == nil {
		r.chunk = make([]byte, chunkSize)
	}
	for len(r.out) == 0 && r.err == nil {
		n, err := r.from.Read(r.chunk)
		_, _ = r.w.Write(r.chunk[:n]) // texts accept every write
		if r.err = err; err != nil {
			_ = r.w.Close()
		}
	}
	if len(r.out) == 0 {
		return 0, r.err
	}
	return r.out.read(p), nil
}

// texts is a list of strings to be read. Writing doesn't copy them.
type texts []string

// Write implements [io.Writer].
func (t *texts) Write(p []byte) (int, error) { return t.WriteString(string(p)) }

// WriteString implements [io.StringWriter].
func (t *texts) WriteString(s string) (int, error) {
	if s != "" {
		*t = append(*t, s)
	}
	return len(s), nil
}

func (t *texts) read(p []byte) (n int) {
	list := *t
	for len(list) > 0 && n < len(p) {
		k := copy(p[n:], list[0])
		n, list[0] = n+k, list[0][k:]
		if list[0] == "" {
			list = list[1:]
		}
	}
	if *t = list; len(list) == 0 {
		*t = nil
	}
	return n
}
