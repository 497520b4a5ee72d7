package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

type plainEvent struct{ Name, Data string }

func readAll(r io.Reader, limit int) ([]plainEvent, error) {
	s := NewEvents(r, limit)
	var out []plainEvent
	for {
		e, err := s.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, plainEvent{e.Name, string(e.Data)})
	}
}

func TestEvents(t *testing.T) {
	cases := []struct {
		in   string
		want []plainEvent
	}{
		{"", nil},
		{"data: a\n\ndata: b\n\n", []plainEvent{{"", "a"}, {"", "b"}}},
		{"event: x\r\ndata: a\r\n\r\ndata:b\r\n\r\n", []plainEvent{{"x", "a"}, {"", "b"}}},
		{"data: a\r\rdata: b\r\r", []plainEvent{{"", "a"}, {"", "b"}}},
		{"\ufeffdata: a\n\n", []plainEvent{{"", "a"}}},
		{": comment\n\n: OPENROUTER PROCESSING\n\ndata: a\n\n", []plainEvent{{"", "a"}}},
		{"data: a\ndata:  b\ndata\n\n", []plainEvent{{"", "a\n b\n"}}},
		{"id: 1\nretry: 5\nevent: lost\n\ndata: a\n\n", []plainEvent{{"", "a"}}},
		{"data: unfinished", []plainEvent{{"", "unfinished"}}},
		{"data: a\n", []plainEvent{{"", "a"}}},
	}
	for _, c := range cases {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(c.in), "bytes": iotest.OneByteReader(strings.NewReader(c.in))} {
			got, err := readAll(r, 1000)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s of %q: %v\n%s", name, c.in, err, diff)
			}
		}
	}
}

func TestEventsTooBig(t *testing.T) {
	for _, in := range []string{"data: " + strings.Repeat("x", 200_000), strings.Repeat("data: xxxxxxxx\n", 20_000)} {
		if _, err := readAll(strings.NewReader(in), 100_000); !errors.Is(err, ErrTooBig) {
			t.Errorf("%d bytes: got %v, want ErrTooBig", len(in), err)
		}
	}
	if got, err := readAll(strings.NewReader("data: "+strings.Repeat("x", 99_000)+"\n\n"), 100_000); err != nil || len(got) != 1 {
		t.Errorf("got %d events, %v", len(got), err)
	}
}

func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "\ufeffevent: x\r\ndata: a\r\n\r\n", "data: a\rdata: b\r\r:c\n\n", "\xef\xbbdata: a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		whole, err1 := readAll(strings.NewReader(in), 1<<20)
		bits, err2 := readAll(iotest.OneByteReader(strings.NewReader(in)), 1<<20)
		if !cmp.Equal(whole, bits) || (err1 == nil) != (err2 == nil) {
			t.Fatalf("read at once: %q %v\nby bytes: %q %v", whole, err1, bits, err2)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	cases := []struct {
		header, value, message string
		want                   time.Duration
	}{
		{want: 0},
		{header: "Retry-After", value: "7", want: 7 * time.Second},
		{header: "Retry-After", value: "0.5", want: 500 * time.Millisecond},
		{header: "Retry-After", value: "-3", want: 0},
		{header: "Retry-After", value: "1e30", want: 365 * 24 * time.Hour},
		{header: "Retry-After", value: "soon", want: 0},
		{header: "Retry-After", value: "1m30s", want: 90 * time.Second},
		{header: "Retry-After", value: "Sat, 21 Nov 2026 12:01:00 GMT", want: time.Minute},
		{header: "Retry-After", value: "Sat, 21 Nov 2026 11:00:00 GMT", want: 0},
		{header: "Retry-After-Ms", value: "1500", want: 1500 * time.Millisecond},
		{header: "X-Ratelimit-Reset-Requests", value: "6m0s", want: 6 * time.Minute},
		{header: "X-Ratelimit-Reset-Tokens", value: "120ms", want: 120 * time.Millisecond},
		{header: "X-Ratelimit-Reset", value: "30", want: 30 * time.Second},
		{header: "X-Ratelimit-Reset", value: "1795262460", want: time.Minute},
		{header: "X-Ratelimit-Reset", value: "1795262460000", want: time.Minute},
		{message: "Please try again in 1.5s. Visit us.", want: 1500 * time.Millisecond},
		{message: "Please try again in 6m0s.", want: 6 * time.Minute},
		{message: "Please try again in 86ms.", want: 86 * time.Millisecond},
	}
	for _, c := range cases {
		h := http.Header{}
		if c.header != "" {
			h.Set(c.header, c.value)
		}
		if got := RetryAfter(h, c.message, now); got != c.want {
			t.Errorf("%s: %s %q = %v, want %v", c.header, c.value, c.message, got, c.want)
		}
	}
	h := http.Header{}
	h.Set("X-Ratelimit-Reset-Requests", "1s")
	h.Set("X-Ratelimit-Reset-Tokens", "6m0s")
	h.Set("X-Ratelimit-Remaining-Tokens", "0")
	if got := RetryAfter(h, "", now); got != 6*time.Minute {
		t.Errorf("used up tokens: %v, want 6m", got)
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("plain \"quoted\" \\ \n \x00 \x1f \xff é 😀 <b>")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		raw := AppendString(nil, s)
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		if want := strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd"); utf8.ValidString(s) && got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func FuzzAppendJSON(f *testing.F) {
	f.Add(`{"a": "<b> \\u003c & \u2028", "c": [1, 2]}`)
	f.Add(`"\\\" \u003C"`)
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) {
			return
		}
		stored, err := json.Marshal(json.RawMessage(s)) // as a log does
		if err != nil {
			t.Fatal(err)
		}
		direct, after := AppendJSON(nil, []byte(s)), AppendJSON(nil, stored)
		if !bytes.Equal(direct, after) {
			t.Fatalf("%q: %q, after a log %q", s, direct, after)
		}
		if x, y := value(t, []byte(s)), value(t, direct); !cmp.Equal(x, y) {
			t.Fatalf("%q became %q", s, direct)
		}
	})
}

// value decodes JSON with its numbers as written, as some fit no Go type.
func value(t *testing.T, raw []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestShortID(t *testing.T) {
	long := strings.Repeat("a", 41)
	if got := ShortID("toolu_01-A", 40); got != "toolu_01-A" {
		t.Errorf("good id became %q", got)
	}
	if a, b := ShortID(long, 40), ShortID(long+"b", 40); len(a) > 40 || a == b || a != ShortID(long, 40) {
		t.Errorf("long ids became %q, %q", a, b)
	}
	if got := ShortID("functions.read:0", 64); strings.ContainsAny(got, ".:") || got == "" {
		t.Errorf("foreign id became %q", got)
	}
}

// Every byte is seen wherever it stands among eight that are read at once.
func TestAppendStringSeesEveryByte(t *testing.T) {
	for c := range 256 {
		for at := range 17 {
			s := strings.Repeat("\u007f!", 8)
			s = s[:at] + string([]byte{byte(c)}) + s[at:]
			var got string
			if err := json.Unmarshal(AppendString(nil, s), &got); err != nil {
				t.Fatalf("byte %#x at %d: %v", c, at, err)
			}
			if want := strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd"); got != want {
				t.Fatalf("byte %#x at %d: got %q, want %q", c, at, got, want)
			}
		}
	}
}
