// Package recursion_test reproduces by simulation what can be of recursive language models (arXiv 2512.24601): the
// machine is the real one (programs, requests, limits, log), the models are simulated. The root is a fixed program,
// the leaf an oracle of known error, so the figures show what decompositions do to errors and costs, and not
// whether a model finds a good one.
package recursion_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/delegate/corpus"
	"github.com/inspan/inspan/internal/delegate/script"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	scripted "github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	if ran, code := script.Child(); ran {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// chance returns a number in [0, 1) that depends on its arguments alone, so neither the order of requests nor a crash
// changes it.
func chance(seed int, of ...any) float64 {
	h := fnv.New64a()
	fmt.Fprintln(h, append([]any{seed}, of...)...)
	x := h.Sum64() // finalized as in MurmurHash3, since FNV alone leaves similar texts similar
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// leaf is the simulated model: an oracle that knows the truth, and errs as it is told to.
type leaf struct {
	seed       int
	base       float64 // probability of an error in a short text
	begins     float64 // tokens from which it grows
	decays     float64 // tokens in which what it gets right falls to 1/e
	malformed  float64 // probability of a reply that can't be used
	correlated bool    // the errors of all samples of a row are the same
	window     int
	price      llm.Price
	does       func(l *leaf, q question, text string) string

	mu    sync.Mutex
	asked int
}

// question is what programs ask, as JSON.
type question struct {
	Do     string `json:"do"`
	Of     string `json:"of,omitempty"`
	Sample int    `json:"sample,omitempty"`
}

// errs returns the probability of an error about a text of so many characters.
func (l *leaf) errs(chars int) float64 {
	beyond := max(0, float64(chars)/charsPerToken-l.begins)
	return 1 - (1-l.base)*math.Exp(-beyond/l.decays)
}

const charsPerToken = 4

func (l *leaf) Info() llm.Info {
	return llm.Info{Provider: "sim", Model: "leaf", Window: l.window, Prices: llm.Prices{l.price}}
}

func (l *leaf) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		l.mu.Lock()
		l.asked++
		l.mu.Unlock()
		all := req.Messages[0].Parts.Text()
		mark, rest, _ := strings.Cut(all, "\n")
		text, words, _ := strings.Cut(rest, "\n</"+strings.Trim(mark, "<>")+">\n\n")
		var q question
		if err := json.Unmarshal([]byte(words), &q); err != nil {
			yield(llm.Chunk{}, llm.AsError(fmt.Errorf("%w in %.80q", err, words)))
			return
		}
		said := l.does(l, q, text)
		if chance(l.seed, "malformed", q, text, len(req.Messages)) < l.malformed {
			said = "I am sorry,"
		}
		reply := &llm.Reply{Stop: llm.StopEnd, Route: "sim/leaf", Usage: llm.Usage{Input: req.Tokens(), Output: len(said) / charsPerToken}}
		if most := req.MaxOutput * charsPerToken; len(said) > most {
			reply.Stop, said = llm.StopLength, said[:most]
		}
		reply.Parts = llm.Say(said)
		yield(llm.Chunk{Reply: reply}, nil)
	}
}

// outcome is how a program answered.
type outcome struct {
	answer   string
	none     bool // there is no answer
	cost     float64
	requests int
	failed   int
	read     float64 // part of the text
	why      string
}

// play runs programs over sources in a session of the real machine, with a leaf behind it.
func play(t testing.TB, l *leaf, sources map[string]string, asks int, codes ...string) outcome {
	t.Helper()
	root := t.TempDir()
	for name, text := range sources {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sessions := &session.Store{Dir: t.TempDir(), Sync: session.SyncKill}
	log, err := sessions.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	env, err := sandbox.Local(root, log.Blobs(), sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	model := func(context.Context) (llm.Model, error) { return l, nil }
	var running *inspan.Session
	set := &corpus.Set{
		Only: []event.Source{{Name: "."}}, Self: sandbox.Self(), Limits: event.Programs{Depth: 1, Asks: asks}, Model: model, Main: model,
		Left: func() (float64, bool) {
			st := running.Status()
			return st.Limits.Cost - st.Cost, true
		},
	}
	shown, hidden := set.Programs()
	var steps []scripted.Step
	for _, code := range codes {
		raw, err := json.Marshal(map[string]string{"code": code})
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, scripted.Step{Parts: llm.Parts{llm.Call{Name: corpus.ProgramTool, Args: raw}}})
	}
	a := &inspan.Agent{
		Model: &scripted.Model{Steps: append(steps, scripted.Step{Parts: llm.Say("Done.")})}, Mode: tool.ModeYolo, Env: env, Tools: shown,
		Unattended: true, Limits: inspan.Limits{Cost: 1000},
	}
	a.Dynamic.Tools = func(context.Context) ([]tool.Tool, []tool.Tool) { return nil, hidden }
	a.Lifecycle.Started = func(s *inspan.Session) { running = s }
	s, err := a.Open(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	out := outcome{}
	for e, err := range s.Run(t.Context(), event.Say("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if b, is := e.Body.(event.Ended); is && b.Parent == "" && b.Outcome != event.OutcomeOK {
			out.why = b.Parts.Text()
		}
	}
	out.cost = s.Status().Cost
	found, err := corpus.Answered(t.Context(), log.Blobs(), store.Events(t.Context(), sessions, log.ID()))
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	out.requests = l.asked
	if out.none = found == nil || found.Nothing; !out.none {
		out.answer, out.failed = found.Answer, found.Requests.Failed
		out.read = float64(found.Coverage.Read) / float64(found.Coverage.Bytes)
	}
	return out
}
