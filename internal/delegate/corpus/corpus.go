// Package corpus lets a model work with text that is far larger than its context window.
//
// A corpus is a list of sources: files, blobs, pages and logs of sessions. The model gets handles (a source and
// a range of bytes) and no content: it greps and cuts, has a small model read pieces, and cites. Its rules:
//
//  1. The content of a source is fixed when the corpus is opened: size and digest. A later change is an error
//     that names
//     the source, unless the source has only grown.
//  2. A corpus is a blob of the session, named by its digest, so it is found again after a crash, and the same
//     call has
//     the same result.
//  3. Every call names the places that it reads as effects, including those that the small model reads. A list
//     of sources
//     is not a permission: files are opened with the permissions of the call.
//  4. An answer without a quote that is in the text is an error, never an answer. An answer with figures or
//     names that no
//     quote has is not verified. If the small model can't answer, the answer is null, and a failure is reported for its
//     piece.
//  5. No more of the text is in memory than the pieces being read.
package corpus

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/safety/guard"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// Kind is the kind of agent that has the tools.
const Kind = "corpus"

// Agent is the file of that kind.
//
//go:embed agent.md
var Agent []byte

// AnswerTool is the tool that gives an answer.
const AnswerTool = "corpus_answer"

// Set is the shared state of the tools of one session. Set the fields before use; it is safe for concurrent
// use.
type Set struct {
	// Sessions has the logs that can be sources. Nil means none can.
	Sessions store.Store
	// Only are the sources that can be opened, and files below them. Nil means every source that calls may read.
	Only []event.Source
	// Alone says that the only session that can be a source is the one of the call.
	Alone bool
	// Model returns the model that is asked about pieces. Nil means there is none. It is called once.
	Model func(ctx context.Context) (llm.Model, error)
	// Left returns how many US dollars the session may still spend; limited is false if it has no limit. Nil means
	// it has none.
	Left func() (dollars float64, limited bool)
	// Key seals the stored form of a corpus. With another key it can't be used any more; empty means the key of
	// this process.
	Key []byte
	// Main returns the model of the agent, for programs that ask it. Nil means they can't.
	Main func(ctx context.Context) (llm.Model, error)
	// Self is the path of this program, which runs programs in another process.
	Self string
	// Limits are those of programs.
	Limits event.Programs
	// Cache is a folder for answers, so that no piece is paid for twice. Empty means none are stored.
	Cache string

	purses purses

	mu       sync.Mutex
	model    llm.Model
	main     llm.Model
	variable *variable            // the last one used
	opened   map[string]*manifest // by the name of the corpus
	held     float64              // dollars that running calls have spent, or may spend
	seen     map[string]*seen     // the parts read, by the name of the corpus
	checked  map[string]string    // stamps of files with verified content, by corpus and file
}

// Tools returns the tools.
func (s *Set) Tools() []tool.Tool {
	return []tool.Tool{
		s.listTool(),
		over(s, "corpus_grep", grepDoc, runGrep),
		over(s, "corpus_read", readDoc, runRead),
		over(s, "corpus_pieces", piecesDoc, runPieces),
		s.askTool(),
		over(s, AnswerTool, answerDoc, runAnswer),
	}
}

// Names returns the names of the tools.
func Names() []string {
	return []string{"corpus_list", "corpus_grep", "corpus_read", "corpus_pieces", "ask_pieces", AnswerTool}
}

// over makes a tool whose calls use an open corpus.
func over[In interface{ corpus() string }](
	s *Set, name, doc string, run func(ctx context.Context, r *reading, in In) (tool.Result, error),
) tool.Tool {
	t := tool.New(name, doc, func(ctx context.Context, c *tool.Call, in In) (tool.Result, error) {
		m, err := s.manifest(ctx, c, in.corpus())
		if err != nil {
			return tool.Result{}, err
		}
		res, err := run(ctx, &reading{set: s, call: c, manifest: m}, in)
		res.Untrusted = true
		return res, err
	})
	t.Effects = func(ctx context.Context, c *tool.Call) ([]tool.Effect, error) {
		in, err := tool.Args[In](c)
		if err != nil {
			return nil, err
		}
		m, err := s.manifest(ctx, c, in.corpus())
		if err != nil {
			return nil, fmt.Errorf("%w: %w", tool.ErrInvalid, err)
		}
		return reads(m.Roots), nil
	}
	return t
}

func reads(paths []string) []tool.Effect {
	out := []tool.Effect{}
	for _, p := range paths {
		out = append(out, tool.Effect{Kind: tool.Read, Path: p})
	}
	return out
}

// mostShown is the limit for the JSON of a call in bytes, so that none of it is cut.
const mostShown = 26_000

// result returns a value as JSON in which nothing looks like a mark, and nothing is hidden.
func result(v any) (tool.Result, error) {
	text, err := encoded(v)
	if err != nil {
		return tool.Result{}, err
	}
	if len(text) > mostShown {
		return tool.Result{}, fmt.Errorf("the result has %d bytes, at most %d can be shown", len(text), mostShown)
	}
	return tool.Text(text), nil
}

func encoded(v any) (string, error) {
	raw, err := json.Marshal(v)
	return guard.EscapeHidden(string(raw)), err
}

// shown returns the number of bytes that a value takes in a result.
func shown(v any) int {
	text, _ := encoded(v) // encoding errors are reported when it is shown
	return len(text) + 1
}

var errNoBlobs = errors.New("a corpus can't be opened here: the session stores no blobs")

// valid returns text in the form that JSON can have.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
