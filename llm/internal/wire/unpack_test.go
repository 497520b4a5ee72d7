package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/inspan/inspan/llm"
)

// packer compresses what is written to it, and can flush.
type packer interface {
	io.WriteCloser
	Flush() error
}

// packers returns compressors by encoding; a second word in the key names a form that the encoding does not say.
func packers(t *testing.T) map[string]func(io.Writer) packer {
	t.Helper()
	return map[string]func(io.Writer) packer{
		"gzip":        func(w io.Writer) packer { return gzip.NewWriter(w) },
		"x-gzip":      func(w io.Writer) packer { return gzip.NewWriter(w) },
		"deflate":     func(w io.Writer) packer { return zlib.NewWriter(w) },
		"deflate raw": func(w io.Writer) packer { z, _ := flate.NewWriter(w, 5); return z },
		"deflate gz":  func(w io.Writer) packer { return gzip.NewWriter(w) },
		"gzip zlib":   func(w io.Writer) packer { return zlib.NewWriter(w) },
		"br":          func(w io.Writer) packer { return brotli.NewWriter(w) },
		"zstd": func(w io.Writer) packer {
			z, err := zstd.NewWriter(w)
			if err != nil {
				t.Fatal(err)
			}
			return z
		},
	}
}

// TestUnpacked checks that each encoding is decoded as the bytes arrive, that an empty body is empty, and that a torn one is
// an error.
func TestUnpacked(t *testing.T) {
	for name, pack := range packers(t) {
		encoding, _, _ := strings.Cut(name, " ")
		in, out := io.Pipe()
		header := http.Header{"Content-Encoding": {encoding}}
		body := unpacked(header, in)
		events, read := []string{"event 1\n", "event 2\n"}, make(chan struct{})
		z := pack(out)
		go func() { // waits until an event was read, so a reader that wants more would wait forever
			for _, event := range events {
				_, _ = io.WriteString(z, event)
				_ = z.Flush()
				<-read
			}
			_ = z.Close()
			_ = out.Close()
		}()
		for _, event := range events {
			line := make([]byte, len(event))
			if _, err := io.ReadFull(body, line); err != nil || string(line) != event {
				t.Fatalf("%s: %q, %v", name, line, err)
			}
			read <- struct{}{}
		}
		if rest, err := io.ReadAll(body); len(rest) > 0 || err != nil {
			t.Errorf("%s: %q, %v", name, rest, err)
		}

		var whole bytes.Buffer
		z = pack(&whole)
		_, _ = io.WriteString(z, strings.Repeat("some text, ", 1000))
		_ = z.Close()
		for cut := range whole.Len() {
			body := unpacked(header, bytes.NewReader(whole.Bytes()[:cut]))
			if got, err := io.ReadAll(body); (err != nil) != (cut > 0) || cut == 0 && len(got) > 0 {
				t.Errorf("%s, %d of %d bytes: %d bytes, %v", name, cut, whole.Len(), len(got), err)
			}
		}
	}
}

// TestEncodingsOf checks the header, and that encodings that can't be decoded are errors.
func TestEncodingsOf(t *testing.T) {
	for _, c := range []struct {
		header []string
		want   []string
		err    string
	}{
		{nil, nil, ""},
		{[]string{"identity", "UTF-8, "}, nil, ""},
		{[]string{"GZip, identity", " br"}, []string{"gzip", "br"}, ""},
		{[]string{"compress"}, []string{"compress"}, `"compress"`},
		{[]string{"gzip,gzip,gzip"}, []string{"gzip", "gzip", "gzip"}, "3 encodings"},
	} {
		header := http.Header{"Content-Encoding": c.header}
		got := encodingsOf(header)
		_, err := io.ReadAll(unpacked(header, strings.NewReader("")))
		if !slices.Equal(got, c.want) || (err != nil) != (c.err != "") || err != nil && !strings.Contains(llm.AsError(err).Message, c.err) {
			t.Errorf("%q: %q, %v", c.header, got, err)
		}
	}
}

// TestUnsaid checks that compression is found without a header, and nothing else is changed.
func TestUnsaid(t *testing.T) {
	for name, pack := range packers(t) {
		if name != "gzip" && name != "zstd" {
			continue
		}
		var buf bytes.Buffer
		z := pack(&buf)
		_, _ = io.WriteString(z, "text")
		_ = z.Close()
		if got, err := io.ReadAll(unpacked(nil, &buf)); string(got) != "text" || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, plain := range []string{"", "(", "{}", "\x1f", "(\xc2\xb5", "data: {}\n\n"} {
		if got, err := io.ReadAll(unpacked(nil, strings.NewReader(plain))); string(got) != plain || err != nil {
			t.Errorf("%q became %q, %v", plain, got, err)
		}
	}
}

// TestWindow checks that a body can't make the decoder hold more than 8 MiB.
func TestWindow(t *testing.T) {
	var buf bytes.Buffer
	z, err := zstd.NewWriter(&buf, zstd.WithWindowSize(16<<20))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = z.Write(make([]byte, 32<<20))
	_ = z.Close()
	if n, err := io.Copy(io.Discard, unpacked(http.Header{"Content-Encoding": {"zstd"}}, &buf)); !errors.Is(err, zstd.ErrWindowSizeExceeded) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// packed answers with a body in an encoding.
type packed struct {
	encoding string
	body     io.Reader
}

func (p packed) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Encoding": {p.encoding}}, Body: io.NopCloser(p.body)}, nil
}

// TestUnpackedSize checks that a small body that decodes to a long one is bounded like a long one.
func TestUnpackedSize(t *testing.T) {
	for name, pack := range packers(t) {
		encoding, _, _ := strings.Cut(name, " ")
		var buf bytes.Buffer
		z := pack(&buf)
		_, _ = z.Write(append([]byte("{"), make([]byte, 9<<20)...))
		_ = z.Close()
		r, err := Post{URL: "http://x", HTTP: packed{encoding, &buf}, MaxOutput: 1}.Ask(t.Context(), 1<<30, nil)
		if e := llm.AsError(err); e == nil || e.Kind != llm.KindNoReply || len(r) > 0 {
			t.Errorf("%s: %d bytes, %v", name, len(r), err)
		}
	}
}
