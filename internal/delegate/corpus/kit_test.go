package corpus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/delegate/corpus"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// world is a workspace, and a session in it that has the tools.
type world struct {
	t     testing.TB
	root  string
	set   *corpus.Set
	store *session.Store
	log   store.Log
	env   tool.Env
}

func newWorld(t testing.TB, model llm.Model) *world {
	t.Helper()
	w := &world{t: t, store: &session.Store{Dir: t.TempDir(), Sync: session.SyncKill}}
	log, err := w.store.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	w.log = log
	if w.env, err = sandbox.Local(t.TempDir(), log.Blobs(), sandbox.Options{}); err != nil {
		t.Fatal(err)
	}
	w.root = w.env.Root
	w.set = &corpus.Set{
		Sessions: w.store, Key: []byte("a key of a user"), Cache: filepath.Join(t.TempDir(), "answers"),
		Model: func(context.Context) (llm.Model, error) { return model, nil },
	}
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// appended begins a log with events, as the driver of its session does.
func appended(t testing.TB, log store.Log, bodies ...event.Body) {
	t.Helper()
	if err := log.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := log.AppendAs(t.Context(), event.Driver{}, bodies...); err != nil {
		t.Fatal(err)
	}
}

// object is a value of JSON.
type object = map[string]any

// try makes a call as a driver does: it checks the arguments and asks for the effects. It returns the result, and
// decodes it into out unless that is nil.
func (w *world) try(name string, args object, out any) (tool.Result, error) {
	w.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, t := range w.set.Tools() {
		if t.Name != name {
			continue
		}
		if raw, err = t.Check(raw); err != nil {
			return tool.Result{}, err
		}
		c := &tool.Call{
			ID: "c", Name: name, Args: raw, Session: w.log.ID(), Env: w.env, Cwd: w.root, Mode: tool.ModePlan, Progress: func(string) {},
		}
		if _, err := t.Effects(w.t.Context(), c); err != nil {
			return tool.Result{}, err
		}
		res, err := t.Run(w.t.Context(), c)
		if text := res.Parts.Text(); text != "" && out != nil {
			if err := json.Unmarshal([]byte(text), out); err != nil {
				w.t.Fatalf("%s brings %.200q: %v", name, text, err)
			}
		}
		return res, err
	}
	w.t.Fatalf("there is no tool %s", name)
	return tool.Result{}, nil
}

func (w *world) call(name string, args object, out any) {
	w.t.Helper()
	if _, err := w.try(name, args, out); err != nil {
		w.t.Fatalf("%s %v: %v", name, args, err)
	}
}

// open opens a corpus, and returns its name.
func (w *world) open(sources ...string) string {
	w.t.Helper()
	var out struct{ Corpus string }
	w.call("corpus_list", object{"sources": sources}, &out)
	return out.Corpus
}

// asked is the result of ask_pieces.
type asked struct {
	Pieces, Silent, Failed, Asked, Cached, Next int

	Cost    float64
	Answers []struct {
		Piece, Source string
		Answer        any
		Evidence      []object
	}
	Failures []struct{ Piece, Error string }
}

// reader is a small model that answers by a function of the piece, at a dollar for a million
// tokens.
type reader struct {
	answer func(piece string) (string, error)
	stop   llm.Stop
	asked  atomic.Int64
	bytes  atomic.Int64
	mu     sync.Mutex
	seen   []llm.Request // the first few
	each   func()
}

func (m *reader) Info() llm.Info {
	return llm.Info{Provider: "test", Model: "small", Prices: llm.Prices{{Input: 1, Output: 1}}}
}

func (m *reader) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		m.asked.Add(1)
		m.mu.Lock()
		if m.seen = append(m.seen, req); len(m.seen) > 100 {
			m.seen = m.seen[:100]
		}
		if m.each != nil {
			m.each()
		}
		m.mu.Unlock()
		text := req.Messages[0].Parts.Text()
		m.bytes.Add(int64(len(text)))
		mark, rest, _ := strings.Cut(text, "\n")
		piece, _, whole := strings.Cut(rest, "\n</"+strings.Trim(mark, "<>")+">\n")
		if !whole {
			yield(llm.Chunk{}, llm.AsError(fmt.Errorf("there is no end of the piece")))
			return
		}
		said, err := m.answer(piece)
		if err != nil {
			yield(llm.Chunk{}, llm.AsError(err))
			return
		}
		stop := m.stop
		if stop == "" {
			stop = llm.StopEnd
		}
		yield(llm.Chunk{Reply: &llm.Reply{
			Parts: llm.Say(said), Stop: stop, Route: "test/small", Usage: llm.Usage{Input: len(text) / 4, Output: len(said) / 4},
		}}, nil)
	}
}

// literal answers with the planted sentences of a piece, by simple search.
func literal(piece string) (string, error) {
	var facts, quotes []string
	for line := range strings.Lines(piece) {
		if i := strings.Index(line, "The code of vault "); i >= 0 {
			quotes = append(quotes, strings.TrimSuffix(line[i:], "\n"))
			facts = append(facts, line[i:])
		}
	}
	if facts == nil {
		return `{"answer": null}`, nil
	}
	raw, err := json.Marshal(object{"answer": facts, "quotes": quotes})
	return string(raw), err
}

func facts() object { return object{"type": "array", "items": object{"type": "string"}} }
