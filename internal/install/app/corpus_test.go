package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/delegate/corpus"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
)

// scholar is a model with a price that follows commands in messages, and reads a piece by taking its first line.
type scholar struct {
	script.Model
	pieces atomic.Int64
}

func (*scholar) Info() llm.Info {
	return llm.Info{Provider: "test", Model: "scholar", Prices: llm.Prices{{Input: 1, Output: 10}}}
}

func (m *scholar) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	if req.Purpose != corpus.Purpose {
		return m.Model.Stream(ctx, req)
	}
	return func(yield func(llm.Chunk, error) bool) {
		m.pieces.Add(1)
		line := strings.Split(req.Messages[0].Parts.Text(), "\n")[1]
		yield(llm.Chunk{Reply: &llm.Reply{
			Parts: llm.Say(fmt.Sprintf(`{"answer": %q, "quotes": [%q]}`, line, line)), Stop: llm.StopEnd, Route: "test/scholar",
			Usage: llm.Usage{Input: 500, Output: 50},
		}}, nil)
	}
}

// library is a workspace with so many files, and the calls that ask about each of them.
func library(t *testing.T, files int) (root, calls string) {
	t.Helper()
	root = t.TempDir()
	for i := range files {
		if err := os.WriteFile(filepath.Join(root, fmt.Sprintf("%02d.txt", i)), fmt.Appendf(nil, "Book %d.\n", i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var pieces []string
	for i := range files {
		pieces = append(pieces, fmt.Sprintf(`"%d:0-8"`, i))
	}
	return root, `call: corpus_list {"sources":["."]}` + "\n" +
		`call: ask_pieces {"pieces":[` + strings.Join(pieces, ",") + `],"question":"Which book?"}` + "\n" +
		`call: corpus_answer {"answer":"It is book 0.","evidence":[{"source":"00.txt","from":0,"to":7,"quote":"Book 0."}]}`
}

func libraryApp(t *testing.T, model llm.Model) *app.App {
	t.Helper()
	state := t.TempDir()
	a := app.New(&config.Installation{
		StateDir: state, ConfigPath: filepath.Join(state, "config.toml"), Config: config.Config{Agents: config.Agents{Corpus: true}},
	})
	a.Providers.Given = model
	return a
}

// TestBudgetOfAnAnswer checks that the cost of pieces is the session's, and that its limit holds while they are read:
// no request is sent that could exceed it.
func TestBudgetOfAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		budget float64
		all    bool
	}{{0.2, true}, {0.04, false}} {
		model := &scholar{}
		root, calls := library(t, 20) // a request costs 0.001, and can cost 0.0206
		s, err := libraryApp(t, model).Host(app.Options{Sources: []string{"."}, Limits: inspan.Limits{Cost: tc.budget}}, func(string) {}).New(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		var failed string
		cost := 0.0
		for e, err := range s.Run(t.Context(), event.Say(calls)) {
			if err != nil {
				t.Fatal(err)
			}
			if b, ok := e.Body.(event.Ended); ok && b.Cost > 0 {
				cost += b.Cost
				failed = b.Parts.Text()
			}
		}
		st := s.Status()
		if cost == 0 || st.Cost < cost || st.Cost > tc.budget {
			t.Errorf("$%v of pieces, $%v of the session, of $%v", cost, st.Cost, tc.budget)
		}
		if tc.all != (model.pieces.Load() == 20) || tc.all == strings.Contains(failed, "what is left of the session's limit") {
			t.Errorf("budget %v: %d requests, %s", tc.budget, model.pieces.Load(), failed)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDepthOfACorpus checks that a custom kind of agent has others answer about parts, which have none below them, and
// that the limit of the session above bounds the spending of them all.
func TestDepthOfACorpus(t *testing.T) {
	const request = 0.01 // of an agent, the last one of which may go beyond
	for _, tc := range []struct {
		budget float64
		all    bool
	}{{0.2, true}, {0.05, false}} {
		model := &scholar{}
		root, calls := library(t, 20)
		kind := filepath.Join(root, ".inspan", "agents", "deep.md")
		if err := errors.Join(os.MkdirAll(filepath.Dir(kind), 0o700), os.WriteFile(kind, []byte("---\nname: deep\ndescription: Answers by others.\n"+
			"tools: spawn_agent, "+strings.Join(corpus.Names(), ", ")+"\npermissionMode: plan\n---\nHave others answer.\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		a := libraryApp(t, model)
		s, err := a.Host(app.Options{Limits: inspan.Limits{Cost: tc.budget}}, func(string) {}).New(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		spawn := func(kind, task string) string {
			raw, err := json.Marshal(map[string]any{"agent": kind, "task": task, "budget": 1})
			if err != nil {
				t.Fatal(err)
			}
			return "call: spawn_agent " + string(raw)
		}
		for _, err := range s.Run(t.Context(), event.Say(spawn("deep", spawn("corpus", calls+"\n"+spawn("corpus", "deeper"))))) {
			if err != nil {
				t.Fatal(err)
			}
		}
		list, err := a.Running.Sessions.List(t.Context())
		if st := s.Status(); err != nil || len(list) != 3 || st.Cost < 0.01 || st.Cost > tc.budget+request ||
			tc.all != (model.pieces.Load() == 20) {
			t.Errorf("budget %v: $%v, %d requests, %d sessions, %v", tc.budget, st.Cost, model.pieces.Load(), len(list), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAskCorpus checks that a session gets a verified answer by an agent of its own, which has the tools that the
// session has not, and spends from its budget.
func TestAskCorpus(t *testing.T) {
	model := &scholar{}
	root, calls := library(t, 3)
	a := libraryApp(t, model)
	s, err := a.Host(app.Options{}, func(string) {}).New(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	question := fmt.Sprintf(`call: ask_corpus {"question":%q,"sources":["."],"budget":0.1}`, calls)
	var brought *event.Ended
	for e, err := range s.Run(t.Context(), event.Say(question+"\ncall: corpus_list {\"sources\":[\".\"]}")) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(event.Ended); ok && brought == nil {
			brought = &b
		}
	}
	if brought == nil || brought.Outcome != event.OutcomeOK || !brought.Untrusted ||
		!strings.Contains(brought.Parts.Text(), `"answer":"It is book 0.","evidence":[{"source":"00.txt","line":1,`) {
		t.Fatalf("%+v", brought)
	}
	st := s.Status()
	if len(st.Children) != 1 || st.Children[0].Agent != corpus.Kind || st.Children[0].Cost < 0.003 || st.Cost < st.Children[0].Cost {
		t.Errorf("%+v", st.Children)
	}
	if _, err := corpus.Answered(t.Context(), nil, store.Events(t.Context(), a.Running.Sessions, s.ID())); err != nil {
		t.Error(err)
	}
	for e, err := range store.Events(t.Context(), a.Running.Sessions, s.ID()) {
		if b, ok := e.Body.(event.Ended); err == nil && ok && b.Call != brought.Call && b.Outcome != event.OutcomeInvalid {
			t.Errorf("the session itself has the tools: %+v", b)
		}
	}
}
