package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
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
		{"data: \n\ndata\n\nevent: ping\ndata:\n\ndata: a\n\ndata: ", []plainEvent{{"", "a"}}},
		{"data: {}\ndata: [1]\r\ndata: [DONE]", []plainEvent{{"", "{}"}, {"", "[1]"}, {"", "[DONE]"}}},
		{"event: x\ndata: {}\nevent: y\ndata: {\ndata: }\n\n", []plainEvent{{"x", "{}"}, {"y", "{\n}"}}},
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

// value decodes JSON with its numbers as written, because some fit no Go type.
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

// Every byte is seen at every position among eight that are read at once.
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
