package netguard

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// ErrTooLarge is the error of reading a body over [Guard.MaxBytes].
var ErrTooLarge = errors.New("the answer is too large")

// bound applies the limits to the body of a response. Bytes are counted before and after decompression, as
// either can be much larger.
func (g *Guard) bound(resp *http.Response, host string) error {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return nil // not a response, but a connection in both directions
	}
	if err := g.checkType(resp, host); err != nil {
		return err
	}
	b := &body{host: host, max: g.MaxBytes, Closer: resp.Body}
	if b.max <= 0 {
		b.max = 10 << 20
	}
	sent := &counted{r: resp.Body, left: b.max}
	switch encoding := strings.ToLower(resp.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		b.r = sent
	case "gzip", "x-gzip":
		b.r = &counted{r: &gunzip{src: sent}, left: b.max}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
	default:
		return fmt.Errorf("host %q answered in the encoding %q, which was not asked for", host, encoding)
	}
	resp.Body = b
	return nil
}

// body is the bounded body of a response. Its errors name the host.
type body struct {
	io.Closer
	r    io.Reader
	host string
	max  int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	var late net.Error
	switch {
	case err == nil || err == io.EOF: //nolint:errorlint // io.Reader returns EOF unwrapped
	case errors.Is(err, ErrTooLarge):
		err = fmt.Errorf("host %q: %w: over %d bytes", b.host, ErrTooLarge, b.max)
	case errors.As(err, &late) && late.Timeout():
		err = fmt.Errorf("host %q: the answer took too long: %w", b.host, err)
	default:
		err = fmt.Errorf("host %q: read answer: %w", b.host, err)
	}
	return n, err
}

// counted reads a limited number of bytes and fails if there are more.
type counted struct {
	r    io.Reader
	left int64
	over bool
}

func (c *counted) Read(p []byte) (int, error) {
	if c.over {
		return 0, ErrTooLarge
	}
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.r.Read(p)
	if int64(n) <= c.left {
		c.left -= int64(n)
		return n, err
	}
	n, c.left, c.over = int(c.left), 0, true
	return n, ErrTooLarge
}

// gunzip reads the gzip header only when the body is read.
type gunzip struct {
	src io.Reader
	z   *gzip.Reader
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.z == nil {
		z, err := gzip.NewReader(g.src)
		if err != nil {
			return 0, err // io.EOF for the empty body of a HEAD
		}
		g.z = z
	}
	return g.z.Read(p)
}
