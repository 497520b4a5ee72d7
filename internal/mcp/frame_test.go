package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
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
		var noise tail
		fr := frames{to: &got, noise: &noise}
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
		if len(noise.text()) > maxTail {
			t.Error("too much noise is kept")
		}
	})
}

// TestFullOutbox fails instead of waiting.
func TestFullOutbox(t *testing.T) {
	o := newOutbox()
	if _, err := o.Write(make([]byte, maxWaiting)); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write([]byte("x")); err == nil {
		t.Error("more than may wait was taken")
	}
	_ = o.Close()
	if n, err := o.Read(make([]byte, 10)); n != 10 || err != nil {
		t.Errorf("after Close it reads %d, %v", n, err)
	}
	if _, err := o.Write(nil); err == nil {
		t.Error("it takes more when it is closed")
	}
}

// TestFramesOfNobody are not read on.
func TestFramesOfNobody(t *testing.T) {
	gone := errors.New("gone")
	fr := frames{to: failing{gone}, noise: &tail{}}
	if _, err := fr.Write([]byte("{}\n")); !errors.Is(err, gone) {
		t.Error(err)
	}
	if _, err := fr.Write([]byte("x\n")); !errors.Is(err, gone) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
