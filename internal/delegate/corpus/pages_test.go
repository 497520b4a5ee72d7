package corpus_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/delegate/corpus"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/tool"
)

// TestPagesAreFixed checks that a page of a question is fetched once, before the agent begins: it and every later
// session read the text of that time, without a request, and places in it are exact.
func TestPagesAreFixed(t *testing.T) {
	w := newWorld(t, nil)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch r.URL.Path {
		case "/away":
			http.Redirect(rw, r, "http://elsewhere.test/", http.StatusFound)
		case "/long":
			rw.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(rw, strings.Repeat("0123456789\n", 600_000))
		case "/empty":
			rw.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(rw, "<main> </main>")
		case "/broken":
			http.Error(rw, "out of order\n[1] guide, line 1\n> real", http.StatusInternalServerError)
		default:
			rw.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(rw, "<main><h1>Terms</h1><p>Refunds take %d days.<p>The key is hunter2.</main>", 13+asked.Load())
		}
	}))
	defer server.Close()
	env := w.env
	env.HTTP = netguard.For(server.URL, nil).Unredirected()
	env.Clean = func(r io.Reader) io.Reader {
		raw, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		return strings.NewReader(strings.ReplaceAll(string(raw), "hunter2", "***"))
	}
	fine := func([]tool.Effect) error { return nil }
	for path, want := range map[string]string{
		"/away": "fetch that address instead", "/long": "save it as a file", "/empty": "has no text", "/broken": "out of order [1] guide",
	} {
		_, err := corpus.Fixed(t.Context(), env, []string{server.URL + path}, nil, fine)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", path, err)
		}
	}
	asked.Store(0)
	denied := errors.New("a rule denies it")
	var hosts []tool.Effect
	_, err := corpus.Fixed(t.Context(), env, []string{server.URL}, nil, func(e []tool.Effect) error { hosts = e; return denied })
	if !errors.Is(err, denied) || asked.Load() != 0 || len(hosts) != 1 || hosts[0].Kind != tool.Network {
		t.Errorf("%v, %d requests, %+v", err, asked.Load(), hosts)
	}
	only, err := corpus.Fixed(t.Context(), env, []string{server.URL + "/terms#refunds", "docs"}, nil, fine)
	if err != nil || len(only) != 2 || only[0].Blob == "" || only[1].Blob != "" || asked.Load() != 1 {
		t.Fatalf("%+v, %v, %d requests", only, err, asked.Load())
	}
	w.env.Clean = env.Clean
	w.set = &corpus.Set{Sessions: w.store, Key: w.set.Key, Only: []event.Source{{Name: server.URL + "/terms?key=***", Blob: only[0].Blob}}}
	w.open(server.URL + "/terms?key=hunter2")
	if err := filepath.WalkDir(w.store.Dir, func(path string, _ fs.DirEntry, err error) error {
		if raw, bad := os.ReadFile(path); bad == nil && strings.Contains(string(raw), "hunter2") {
			t.Errorf("%s has a secret", path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	w.env.HTTP, w.env.Clean = nil, nil
	for range 2 { // the second one is another process
		w.set = &corpus.Set{Sessions: w.store, Only: only, Key: w.set.Key}
		name := w.open(server.URL + "/terms#refunds")
		var out struct{ Text string }
		w.call("corpus_read", object{"source": server.URL + "/terms", "from": 0, "to": 100}, &out)
		if out.Text != "# Terms\n\nRefunds take 14 days.\n\nThe key is ***." {
			t.Errorf("%q", out.Text)
		}
		w.call("corpus_answer", object{"corpus": name, "answer": "14 days.", "evidence": []object{
			{"source": server.URL + "/terms", "from": 22, "to": 29, "quote": "14 days"},
		}}, nil)
		if _, err := w.try("corpus_list", object{"sources": []string{server.URL + "/other"}}, nil); err == nil {
			t.Error("another page was opened")
		}
	}
	if asked.Load() != 1 {
		t.Errorf("%d requests", asked.Load())
	}
}
