package wire

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/inspan/inspan/llm"
)

// zstdWindow bounds the memory of a zstd decoder. RFC 9659 allows no larger window in an answer.
const zstdWindow = 8 << 20

// maxEncodings bounds the encodings of one body, because each multiplies the work that a small body can cause.
const maxEncodings = 2

// unpacked decodes a body. Requests never ask for compression, because it would delay events; some gateways
// compress anyway, and some without saying so. It reads nothing before the first Read, and then no more than the
// next bytes need, so events arrive as they are sent.
func unpacked(h http.Header, r io.Reader) io.Reader {
	encodings := encodingsOf(h)
	if len(encodings) == 0 {
		return &decoder{src: bufio.NewReader(r), open: openUnsaid}
	}
	if len(encodings) > maxEncodings {
		return refused{&llm.Error{Kind: llm.KindNoReply, Message: fmt.Sprintf("the answer has %d encodings (%s); at most %d are decoded",
			len(encodings), strings.Join(encodings, ", "), maxEncodings)}}
	}
	for _, encoding := range slices.Backward(encodings) {
		d := &decoder{src: bufio.NewReader(r)}
		switch encoding {
		case "br":
			d.open = openBrotli
		case "gzip", "x-gzip", "deflate":
			d.open = openDeflated
		case "zstd":
			d.open = openZstd
		default:
			return refused{&llm.Error{Kind: llm.KindNoReply, Message: fmt.Sprintf("the answer is in the encoding %q, which was not asked for", encoding)}}
		}
		r = d
	}
	return r
}

// encodingsOf returns the encodings of a body in the order in which they were applied, in lower case and without those
// that change nothing.
func encodingsOf(h http.Header) []string {
	var out []string
	for item := range strings.SplitSeq(strings.Join(h.Values("Content-Encoding"), ","), ",") {
		switch encoding := strings.ToLower(strings.TrimSpace(item)); encoding {
		case "", "identity", "utf-8": // the last is a slip for a character set
		default:
			out = append(out, encoding)
		}
	}
	return out
}

// refused is a body that is not read.
type refused struct{ err error }

func (r refused) Read([]byte) (int, error) { return 0, r.err }

// decoder opens an encoding when its first byte is there. A body without any bytes is empty in every encoding.
type decoder struct {
	src  *bufio.Reader
	open func(*bufio.Reader) (io.Reader, error)
	z    io.Reader
	err  error // why z could not be opened
}

func (d *decoder) Read(b []byte) (int, error) {
	if d.z == nil && d.err == nil {
		if _, err := d.src.Peek(1); err != nil {
			return 0, err
		}
		d.z, d.err = d.open(d.src)
	}
	if d.err != nil {
		return 0, d.err
	}
	return d.z.Read(b)
}

// openUnsaid opens a body that claims not to be compressed. No text begins like gzip or zstd.
func openUnsaid(src *bufio.Reader) (io.Reader, error) {
	switch head, _ := src.Peek(2); string(head) {
	case "\x1f\x8b":
		return openDeflated(src)
	case "\x28\xb5":
		return openZstd(src)
	}
	return src, nil
}

func openBrotli(src *bufio.Reader) (io.Reader, error) { return brotli.NewReader(src), nil }

// openZstd decodes in the goroutine of the reader, so nothing has to be closed.
func openZstd(src *bufio.Reader) (io.Reader, error) {
	return zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
}

// openDeflated looks at the first bytes, because servers mix up gzip and deflate, and some omit the two-byte header
// of zlib that RFC 9110 wants.
func openDeflated(src *bufio.Reader) (io.Reader, error) {
	head, err := src.Peek(2)
	switch {
	case err == io.EOF: //nolint:errorlint // bufio returns EOF unwrapped
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	case head[0] == 0x1f && head[1] == 0x8b:
		return gzip.NewReader(src)
	case head[0]&0x0f == 8 && (int(head[0])<<8+int(head[1]))%31 == 0:
		return zlib.NewReader(src)
	}
	return flate.NewReader(src), nil
}
