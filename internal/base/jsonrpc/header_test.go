package jsonrpc

import (
	"slices"
	"strings"
	"testing"
)

// cut decodes a stream that comes in pieces of n bytes.
func cut(stream []byte, n int) ([]string, error) {
	var got []string
	d := &Decoder{Take: func(body []byte) { got = append(got, string(body)) }}
	for piece := range slices.Chunk(stream, n) {
		if _, err := d.Write(piece); err != nil {
			return got, err
		}
	}
	return got, nil
}

func TestFrames(t *testing.T) {
	two := string(Header([]byte("{}"))) + string(Header([]byte("語")))
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
	d := &Decoder{Take: func(body []byte) { n += len(body) }}
	if _, err := d.Write(append(Header(make([]byte, 8<<20)), "Con"...)); err != nil || n != 8<<20 {
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
		back, err := cut(append(Header(stream), Header(stream)...), int(n)+1)
		if err != nil || len(back) != 2 || back[0] != string(stream) || back[1] != string(stream) {
			t.Errorf("%q comes back as %q, %v", stream, back, err)
		}
	})
}
