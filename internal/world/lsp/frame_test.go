package lsp

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/jsonrpc"
	"github.com/inspan/inspan/tool"
)

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
		if _, err := c.Write(jsonrpc.Header(body)); err != nil || c.conn.Err() != nil {
			t.Errorf("%v, %v", err, c.conn.Err())
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
			if err == nil && (len(after) != len(text)+3 || strings.Count(after, "NEW") != strings.Count(text, "NEW")+1 &&
				!strings.Contains(text, "N") && !strings.Contains(text, "W")) {
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
