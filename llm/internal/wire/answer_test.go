package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/inspan/inspan/llm"
)

// answer sends one answer through a Post, whose classify knows nothing.
func answer(t *testing.T, status int, header map[string]string, body []byte) (*Reply, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	p := Post{Provider: "p", URL: server.URL + "/v1/chat"}
	return p.Send(t.Context(), func(status int, body []byte) *llm.Error {
		return &llm.Error{Kind: llm.KindRateLimited, Status: status, Message: Excerpt(body)}
	})
}

func zstandard(w io.Writer) io.WriteCloser {
	z, _ := zstd.NewWriter(w)
	return z
}

// layered closes the encoding below it too.
type layered struct {
	io.WriteCloser
	below io.Closer
}

func (l layered) Close() error { return errors.Join(l.WriteCloser.Close(), l.below.Close()) }

// TestEncodings checks that a body is read however it was compressed, and cut in it is an error.
func TestEncodings(t *testing.T) {
	text := strings.Repeat("data: {\"a\":1}\n\n", 1000)
	packed := func(w func(io.Writer) io.WriteCloser) []byte {
		var buf bytes.Buffer
		z := w(&buf)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return buf.Bytes()
	}
	for encoding, body := range map[string][]byte{
		"": []byte(text), "identity": []byte(text),
		"gzip":    packed(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }),
		"X-GZip":  packed(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }),
		"deflate": packed(func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }),
		"Deflate": packed(func(w io.Writer) io.WriteCloser {
			z, _ := flate.NewWriter(w, 5)
			return z
		}),
		"br":             packed(func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) }),
		"utf-8":          packed(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }), // not said
		"zstd":           packed(zstandard),
		"UTF-8":          packed(zstandard), // not said
		"zstd, br":       packed(func(w io.Writer) io.WriteCloser { b := brotli.NewWriter(w); return layered{zstandard(b), b} }),
		"identity, gzip": packed(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }),
	} {
		r, err := answer(t, 200, map[string]string{"Content-Encoding": encoding}, body)
		if err != nil {
			t.Errorf("%s: %v", encoding, err)
			continue
		}
		if got, err := io.ReadAll(r); string(got) != text || err != nil {
			t.Errorf("%s: %d bytes, %v", encoding, len(got), err)
		}
		r.Close()
		if slices.Contains([]string{"", "identity", "utf-8", "UTF-8"}, encoding) {
			continue
		}
		if r, err = answer(t, 200, map[string]string{"Content-Encoding": encoding}, body[:len(body)/2]); err == nil {
			_, err = io.ReadAll(r)
			r.Close()
		}
		if e := llm.AsError(err); e == nil || e.Kind != llm.KindStreamCut {
			t.Errorf("half of %s: %v", encoding, err)
		}
	}
	r, err := answer(t, 200, map[string]string{"Content-Encoding": "compress"}, []byte("x"))
	if err == nil {
		defer r.Close()
		_, err = io.ReadAll(r)
	}
	if e := llm.AsError(err); e == nil || e.Kind != llm.KindNoReply || !strings.Contains(e.Message, "compress") {
		t.Errorf("compress: %v", err)
	}
}

// TestElsewhere checks the errors for answers that are not a model's.
func TestElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header map[string]string
		body   string
		kind   llm.Kind
		says   []string
	}{
		"a login page":  {200, map[string]string{"Content-Type": "text/html"}, "\n<!DOCTYPE html><head><TITLE lang=en>Sign in &amp; go\n on</title>", llm.KindNoReply, []string{`"Sign in & go on"`, "log in", "base_url"}},
		"no type":       {200, map[string]string{"Content-Type": "text/event-stream"}, "<html><body>hello", llm.KindNoReply, []string{`an HTML page that says "hello" came`}},
		"no title":      {200, nil, "<html><style>b{}</style><h1>Blocked &amp; logged</h1></html>", llm.KindNoReply, []string{`an HTML page that says "Blocked & logged" came`}},
		"an empty page": {200, nil, "<html></html>", llm.KindNoReply, []string{"an HTML page came"}},
		"a text":        {200, nil, "Blocked by policy 7", llm.KindNoReply, []string{`a text that says "Blocked by policy 7" came`}},
		"to elsewhere":  {307, map[string]string{"Location": "https://u:p@b.example/v2?key=1#x"}, "", llm.KindNoReply, []string{"to https://b.example/v2;", "base_url"}},
		"to a path":     {308, map[string]string{"Location": "/v2/chat"}, "", llm.KindNoReply, []string{"http://127.0.0.1:", "/v2/chat;"}},
		"a proxy":       {407, nil, "", llm.KindAuth, []string{"proxy", "HTTPS_PROXY"}},
		"a network":     {511, nil, "<html><title>Hotel</title>", llm.KindNoReply, []string{`"Hotel"`}},
		"nowhere":       {304, nil, "", llm.KindRateLimited, nil},
	} {
		r, err := answer(t, c.status, c.header, []byte(c.body))
		if err == nil {
			r.Close()
		}
		e := llm.AsError(err)
		if e == nil || e.Kind != c.kind {
			t.Errorf("%s: %v, want %s", name, err, c.kind)
			continue
		}
		for _, word := range c.says {
			if !strings.Contains(e.Message, word) {
				t.Errorf("%s: %q lacks %q", name, e.Message, word)
			}
		}
	}
}

// TestWhole checks that the first character tells a JSON value, of whatever type, from a stream.
func TestWhole(t *testing.T) {
	for body, want := range map[string]bool{
		`{"a":1}`: true, "\xef\xbb\xbf\n [1]": true, "data: {}\n\n": false, ": ping\n\ndata: {}": false, "event: x\n": false, "": false,
	} {
		r, err := answer(t, 200, map[string]string{"Content-Type": "application/json"}, []byte(body))
		if err != nil {
			t.Errorf("%q: %v", body, err)
			continue
		}
		if r.Whole() != want {
			t.Errorf("%q: whole is %v", body, !want)
		}
		if all, err := io.ReadAll(r); string(all) != strings.TrimLeft(body, "\ufeff\n ") || err != nil {
			t.Errorf("%q became %q, %v", body, all, err)
		}
		r.Close()
	}
}

// TestRetryInfo checks the wait that only the body of an error tells.
func TestRetryInfo(t *testing.T) {
	for body, want := range map[string]time.Duration{
		`{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}`: 34500 * time.Millisecond,
		`{"retry_delay": "3s"}`:      3 * time.Second,
		`{"retryDelay":"99999999s"}`: longestWait,
		`{"retryDelay":"soon"}`:      0,
	} {
		_, err := answer(t, 429, nil, []byte(body)) //nolint:bodyclose // there is none
		if e := llm.AsError(err); e == nil || e.RetryAfter != want {
			t.Errorf("%s: %+v, want %v", body, e, want)
		}
	}
}

// endless is a body that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }
func (endless) Close() error               { return nil }

func (endless) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: endless{}}, nil
}

// TestEndless checks that both bodies and replies are bounded.
func TestEndless(t *testing.T) {
	for _, c := range []struct {
		maxOutput, chunks int // chunks of 256 KiB
		body              int64
	}{
		{0, 32, 128 << 20},
		{4096, 16, 12 << 20},
		{100_000, 24, 106 << 20},
		{1 << 30, 32, 128 << 20},
	} {
		r, err := Post{URL: "http://x", HTTP: endless{}, MaxOutput: c.maxOutput}.Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		n, err := io.Copy(io.Discard, r)
		if e := llm.AsError(err); e == nil || e.Kind != llm.KindNoReply || n > c.body {
			t.Errorf("%d tokens: %d bytes, %v", c.maxOutput, n, err)
		}
		chunks := 0
		emit, over := r.Bounded(func(llm.Chunk) bool { chunks++; return true })
		for emit(llm.Chunk{Text: strings.Repeat("y", 256<<10)}) {
		}
		if emit(llm.Chunk{Call: &llm.CallDelta{Args: "{}"}}) {
			t.Error("arguments of a call don't count")
		}
		if e := llm.AsError(over()); e == nil || e.Kind != llm.KindNoReply || chunks != c.chunks {
			t.Errorf("%d tokens: %d chunks, %v", c.maxOutput, chunks, over())
		}
	}
	if emit, over := (&Reply{most: sizeOf(0)}).Bounded(func(llm.Chunk) bool { return false }); emit(llm.Chunk{Text: "a"}) || over() != nil {
		t.Errorf("a consumer that wants no more: %v", over())
	}
}
