package lsp

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/inspan/inspan/tool"
)

// cut decodes a stream that comes in pieces of n bytes.
func cut(stream []byte, n int) ([]string, error) {
	var got []string
	d := &decoder{handle: func(body []byte) { got = append(got, string(body)) }}
	for piece := range slices.Chunk(stream, n) {
		if _, err := d.Write(piece); err != nil {
			return got, err
		}
	}
	return got, nil
}

func TestFrames(t *testing.T) {
	two := string(frame([]byte("{}"))) + string(frame([]byte("語")))
	for _, row := range []struct {
		stream string
		want   []string
		bad    bool
	}{
		{two, []string{"{}", "語"}, false},
		{"content-length:2\r\nContent-Type: x; charset=utf-8\r\n\r\nabX", []string{"ab"}, false},
		{"Content-Length: 3\r\n\r\nab", nil, false},
		{"", nil, false},
		{"Content-Length: 0\r\n\r\n", nil, true},
		{"Content-Length: -1\r\n\r\n", nil, true},
		{"Content-Length: 1e9\r\n\r\n", nil, true},
		{"Content-Length: 33554433\r\n\r\n", nil, true},
		{"Content-Length: 33554432\r\n\r\n", nil, false},
		{"Content-Length: 99999999999999999999\r\n\r\n", nil, true},
		{"Content-Type: x\r\n\r\n", nil, true},
		{"hello\r\n\r\n", nil, true},
		{"\r\n\r\n", nil, true},
		{strings.Repeat("x", maxHeader), nil, true},
		{two + "junk\r\n\r\n" + two, []string{"{}", "語"}, true},
	} {
		for _, n := range []int{1, 2, 7, 1 << 20} {
			got, err := cut([]byte(row.stream), n)
			if !slices.Equal(got, row.want) || (err != nil) != row.bad {
				t.Errorf("%.60q by %d: %q, %v", row.stream, n, got, err)
			}
		}
	}
}

// TestDecoderLetsGo keeps no big buffer after a big message.
func TestDecoderLetsGo(t *testing.T) {
	n := 0
	d := &decoder{handle: func(body []byte) { n += len(body) }}
	if _, err := d.Write(append(frame(make([]byte, 8<<20)), "Con"...)); err != nil || n != 8<<20 {
		t.Fatal(n, err)
	}
	if cap(d.buf) > maxKept || string(d.buf) != "Con" {
		t.Errorf("%d bytes are kept for %q", cap(d.buf), d.buf)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("Content-Length: 2\r\n\r\n{}Content-Length: 1\r\n\r\n1"), uint8(3))
	f.Add([]byte("content-length: 00\r\n\r\n"), uint8(1))
	f.Add([]byte("a: b\r\nContent-Length: 1\r\n\r\n\r\n\r\n"), uint8(2))
	f.Fuzz(func(t *testing.T, stream []byte, n uint8) {
		whole, wholeErr := cut(stream, len(stream)+1)
		pieces, err := cut(stream, int(n)+1)
		if !slices.Equal(whole, pieces) || (wholeErr == nil) != (err == nil) {
			t.Errorf("as a whole %q, %v; by %d %q, %v", whole, wholeErr, int(n)+1, pieces, err)
		}
		if len(stream) == 0 {
			return
		}
		back, err := cut(append(frame(stream), frame(stream)...), int(n)+1)
		if err != nil || len(back) != 2 || back[0] != string(stream) || back[1] != string(stream) {
			t.Errorf("%q comes back as %q, %v", stream, back, err)
		}
	})
}

// FuzzMessages throws any message at a client, which must live and stay usable.
func FuzzMessages(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"result":null}`, `{"method":"$/progress","params":{"token":1,"value":{"kind":"begin"}}}`,
		`{"method":"textDocument/publishDiagnostics","params":{"uri":"file:///a","diagnostics":[{"code":1}]}}`,
		`{"id":"a","method":"workspace/configuration","params":{"items":[{}]}}`, `{"id":1,"error":{"code":"x"}}`, `[]`,
		`{"id":1,"method":"client/registerCapability","params":{"registrations":[{"method":"a"}]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) == 0 {
			return
		}
		c := newClient(testEnv(), Server{Name: "fuzzed"}, "/w")
		c.cancel = func() {}
		if _, err := c.Write(frame(body)); err != nil || c.conn.failure() != nil {
			t.Errorf("%v, %v", err, c.conn.failure())
		}
	})
}

func FuzzPositions(f *testing.F) {
	f.Add("a😀b語c\r\nsecond\n", 0, 3)
	f.Add("\n\n", 2, 0)
	f.Add("\xff\xf0😀", 0, 2)
	f.Fuzz(func(t *testing.T, text string, line, at int) {
		for _, inBytes := range []bool{false, true} {
			s := newSheet(text, inBytes)
			p := s.position(wirePosition{line, at})
			if p.Byte < 0 || p.Byte > len(s.line(p.Line)) {
				t.Fatalf("%d:%d is byte %d of %q", line, at, p.Byte, s.line(p.Line))
			}
			if back := s.position(s.wire(p)); back != p && utf8.ValidString(text) {
				t.Errorf("%+v comes back as %+v", p, back)
			}
			after, err := s.edit([]textEdit{{wireRange{wirePosition{line, at}, wirePosition{line, at}}, "NEW"}})
			if err == nil && (len(after) != len(text)+3 || strings.Count(after, "NEW") != strings.Count(text, "NEW")+1 && !strings.Contains(text, "N") && !strings.Contains(text, "W")) {
				t.Errorf("%q becomes %q", text, after)
			}
		}
	})
}

func FuzzURIs(f *testing.F) {
	f.Add("/a b/日本/%41#?x:@.go")
	f.Fuzz(func(t *testing.T, name string) {
		path := "/" + strings.Trim(name, "/")
		if bytes.ContainsAny([]byte(path), "\x00\\") || strings.Contains(path, "//") || strings.Contains(path, "/.") {
			return
		}
		if back, err := pathOf(uri(path)); err != nil || back != path {
			t.Errorf("%q is %s, which is %q, %v", path, uri(path), back, err)
		}
		_, _ = pathOf(name) // must not panic
	})
}

func testEnv() tool.Env { return tool.Env{Root: "/w"} }
