package wiretest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/base/memo"
	"github.com/inspan/inspan/llm"
)

// Golden is a request whose bytes are all checked.
type Golden struct {
	// Model makes the model that sends it with a transport.
	Model   func(http.RoundTripper) llm.Model
	Request llm.Request
	// Valid returns the reason why the vendor would refuse a body. Nil means unknown.
	Valid func(body []byte) error
}

// TestRequests proves that each request is sent with the content of testdata/NAME.json, indented, that it is
// sent in the same bytes again, and that sending it does not change it. Update writes the files.
func TestRequests(t *testing.T, update bool, table map[string]Golden) {
	for name, g := range table {
		before, err := json.Marshal(g.Request)
		if err != nil {
			t.Fatal(err)
		}
		sent, again := g.sent(t), g.sent(t)
		if !bytes.Equal(sent, again) {
			t.Errorf("%s: the same request has other bytes:\n%s\n%s", name, sent, again)
		}
		if after, err := json.Marshal(g.Request); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the request was changed (%v):\n%s\n%s", name, err, before, after)
		}
		if g.Valid != nil {
			if err := g.Valid(sent); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		golden(t, name, sent, update)
		g.remembers(t, name)
	}
}

// remembers checks that a request has the same bytes with the cached encodings of earlier ones.
func (g Golden) remembers(t *testing.T, name string) {
	t.Helper()
	g.Request = LongRequest()
	g.Request.Messages = append(g.Request.Messages, llm.Message{Role: llm.User, Parts: llm.Parts{
		llm.Text{Text: strings.Repeat("<\xff\"\u2028\x00", 200)}, llm.Image{MediaType: "image/png", Data: bytes.Repeat([]byte{7}, 1000)},
	}})
	want := g.sent(t)
	g.Request.Memo = &memo.Memo{}
	for n := range 3 {
		if got := g.sent(t); !bytes.Equal(got, want) {
			t.Errorf("%s: request %d with a memo has other bytes", name, n+1)
		}
	}
}

// sent returns the body of a request.
func (g Golden) sent(t *testing.T) []byte {
	t.Helper()
	var body []byte
	m := g.Model(tripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost && body == nil {
			body, _ = io.ReadAll(r.Body)
		}
		return nil, errors.New("nobody answers")
	}))
	for _, err := range m.Stream(t.Context(), g.Request) {
		if err == nil {
			t.Error("nobody answered, yet something came back")
		}
	}
	return body
}

func golden(t *testing.T, name string, sent []byte, update bool) {
	t.Helper()
	var indented bytes.Buffer
	if err := json.Indent(&indented, sent, "", " "); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, sent)
	}
	indented.WriteByte('\n')
	file := filepath.Join("testdata", name+".json")
	if update {
		if err := os.WriteFile(file, indented.Bytes(), 0o644); err != nil { //nolint:gosec // of the repository
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n, got, want := firstDifference(indented.String(), string(want)); n > 0 {
		t.Errorf("%s, line %d:\n got %s\nwant %s", file, n, got, want)
	}
}
