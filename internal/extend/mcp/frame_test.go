package mcp

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// TestMessages are messages that the SDK can read; others would end the connection.
func TestMessages(t *testing.T) {
	t.Parallel()
	const (
		answer = `{"jsonrpc":"2.0","id":1,"result":{}}`
		notice = `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`
		orphan = `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"what?"}}`
	)
	for line, want := range map[string]string{
		answer: answer, notice: notice, `{"jsonrpc":"2.0","id":"a","method":"ping"}`: `{"jsonrpc":"2.0","id":"a","method":"ping"}`,
		"up and running": "", "": "", "7": "", "null": "", "{}": "", "[]": "", "[INFO] up": "", `"text"`: "",
		`{"level":"info","msg":"up"}`: "", `{"id":1,"result":{}}`: "", `{"jsonrpc":"1.0","id":1,"result":{}}`: "",
		orphan: "", `{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}`: "", `{"jsonrpc":"2.0"}`: "",
		"[" + answer + "," + notice + "]":             "[" + answer + "," + notice + "]",
		"[" + orphan + "," + answer + ",7,[{}],null]": "[" + answer + "]",
		"[" + orphan + "]":                            "",
	} {
		if got := string(messages([]byte(line))); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// FuzzFrames passes on messages, whole and in order, however they are cut.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("hello\n{\"a\":1}\r\n\n[1]\n{\"half\n7\n"), 3)
	f.Add([]byte("{}\n{}"), 1)
	f.Add([]byte("up\n{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}\r\n[{\"jsonrpc\":\"2.0\",\"method\":\"ping\"},1]\n"), 5)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		var want bytes.Buffer
		lines := bytes.Split(data, []byte("\n"))
		for _, line := range lines[:len(lines)-1] {
			if said := messages(bytes.TrimSpace(line)); said != nil {
				want.Write(append(bytes.Clone(said), '\n'))
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
	if _, err := fr.Write([]byte(`{"jsonrpc":"2.0","method":"ping"}` + "\n")); !errors.Is(err, gone) {
		t.Error(err)
	}
	if _, err := fr.Write([]byte("x\n")); !errors.Is(err, gone) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
