package inspan

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"strings"

	"github.com/inspan/inspan/llm"
)

// Code of embedders may panic: tools, judges, hooks, models, and the functions of an agent and a
// conductor. Wherever it is called, caught makes an error of that, so that it ends neither the
// program nor the session. What comes of the error is said there: a failed call, a denial, a failed
// reply, or the end of the run, after which the session can be run again.

// mostFrames is how many lines of a stack an error has.
const mostFrames = 20

// crash is a panic.
type crash struct {
	what  string // crashed
	why   any
	stack []byte
}

// Error says what crashed, why, and where.
func (c *crash) Error() string {
	lines := strings.SplitN(string(c.stack), "\n", mostFrames+1)
	return c.brief() + "\n" + strings.Join(lines[:min(mostFrames, len(lines))], "\n")
}

func (c *crash) brief() string { return fmt.Sprintf("%s crashed: %v", c.what, c.why) }

// caught, which is deferred, makes an error of a panic. It is the only place that does. While
// outside is true, which may be nil, the panic is that of whoever ranges over what is
// yielded, and goes on to them.
func caught(what string, outside *bool, err *error) {
	if outside != nil && *outside {
		return
	}
	if p := recover(); p != nil {
		*err = &crash{what: what, why: p, stack: debug.Stack()}
	}
}

// audience is whoever ranges over what is yielded. Nothing more is yielded once it has broken off,
// or panicked.
type audience[K any] struct {
	yield         func(K, error) bool
	outside, gone bool // its code runs, or has panicked; it has broken off
}

func (a *audience[K]) show(k K, err error) bool {
	if a.outside || a.gone {
		return false
	}
	a.outside = true
	a.gone = !a.yield(k, err)
	a.outside = false
	return !a.gone
}

// steady is a model of which a panic is a reply that failed.
type steady struct{ llm.Model }

func steadied(m llm.Model) llm.Model { return steady{m} }

// Stream implements [llm.Model]. What a model does once its reply is there, or nobody
// listens any more, has no say, not even with a panic.
func (m steady) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		listener := audience[llm.Chunk]{yield: yield}
		crashed := func() (err error) {
			defer caught("the model", &listener.outside, &err)
			m.Model.Stream(ctx, req)(listener.show)
			return nil
		}()
		if crashed != nil {
			listener.show(llm.Chunk{}, &llm.Error{Kind: llm.KindPanic, Err: crashed})
		}
	}
}
