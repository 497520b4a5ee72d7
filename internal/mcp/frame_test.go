package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
)

// FuzzFrames passes on messages, whole and in order, however they are cut.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("hello\n{\"a\":1}\r\n\n[1]\n{\"half\n7\n"), 3)
	f.Add([]byte("{}\n{}"), 1)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		var want bytes.Buffer
		lines := bytes.Split(data, []byte("\n"))
		for _, line := range lines[:len(lines)-1] {
			if line = bytes.TrimSpace(line); json.Valid(line) && (line[0] == '{' || line[0] == '[') {
				want.Write(append(bytes.Clone(line), '\n'))
			}
		}
		var got bytes.Buffer
		fr := frames{to: &got, noise: io.Discard}
		for rest := bytes.Clone(data); len(rest) > 0; {
			n := min(len(rest), max(size, 1))
			if wrote, err := fr.Write(rest[:n]); err != nil || wrote != n {
				t.Fatalf("%d of %d, %v", wrote, n, err)
			}
			rest = rest[n:]
		}
		if got.String() != want.String() {
			t.Errorf("%q becomes %q, want %q", data, got.String(), want.String())
		}
	})
}

// TestFramesOfNobody are not read on.
func TestFramesOfNobody(t *testing.T) {
	gone := errors.New("gone")
	fr := frames{to: failing{gone}, noise: io.Discard}
	if _, err := fr.Write([]byte("{}\n")); !errors.Is(err, gone) {
		t.Error(err)
	}
	if _, err := fr.Write([]byte("x\n")); !errors.Is(err, gone) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
