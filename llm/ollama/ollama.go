// Package ollama speaks Ollama's own chat wire, /api/chat, over plain HTTP. In
// contrast to its OpenAI-compatible endpoint this one lets the caller set the
// context window, and refuses a prompt that does not fit.
//
// Wire reference: https://docs.ollama.com/api/chat and the pages on streaming,
// tool calling, thinking and the context length beside it.
//
// Don't use it for llama.cpp, vLLM and the like, which speak the wire of package openai.
package ollama

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// Model is one model of an Ollama server. It never retries.
//
// BaseURL is where "/api/chat" is; empty means http://localhost:11434. Key is
// for servers behind a proxy and for ollama.com. The first byte has ten
// minutes: a model may have to be loaded, and a long prompt read.
//
// Window is the context window to load the model with, in tokens. To change it
// makes the server load the model anew. 0 leaves it to the server, whose
// default is small and can't be told from outside.
type Model llm.Endpoint

var _ llm.Model = (*Model)(nil)

// Info implements [llm.Model].
func (m *Model) Info() llm.Info {
	return llm.Endpoint(*m).Describe("ollama", llm.Info{})
}

// trimBase returns the address of a server, also if that of its OpenAI-compatible
// endpoint was given.
func trimBase(base string) string {
	if base == "" {
		base = "http://localhost:11434"
	}
	return strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1")
}

// Stream implements [llm.Model]. A reply is checked against the window that the
// server has loaded the model with: below Window it fails with KindWindow.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		post := wire.Post{
			Provider: m.Info().Provider, URL: trimBase(m.BaseURL) + "/api/chat", Extra: m.Header, KeyHeader: "Authorization", Key: m.Key,
			Body: encode(m.Info(), req), HTTP: m.HTTP, Deadlines: m.Deadlines.Or(llm.Deadlines{FirstByte: 10 * time.Minute}),
		}
		classify := func(status int, body []byte) *llm.Error { return classify(m.ID, status, body) }
		reply, err := post.Send(ctx, classify)
		if err != nil {
			yield(llm.Chunk{}, m.measured(ctx, err))
			return
		}
		defer reply.Close()
		d := decoder{model: m.ID, history: req.Messages, reply: llm.Reply{Route: m.Info().Route()}}
		emit, over := wire.Bounded(func(c llm.Chunk) bool { return yield(c, nil) })
		done, err := d.run(reply, emit)
		if err == nil {
			err = over()
		}
		if done {
			reply.Finish()
			if err = overflowed(m.Window, req.Bytes(), d.reply.Usage.Prompt()); err == nil {
				err = m.verify(ctx)
			}
		}
		switch {
		case err != nil:
			yield(llm.Chunk{}, reply.Complete(err))
		case done:
			d.fill(m.Window)
			reply.Name(&d.reply)
			yield(llm.Chunk{Reply: &d.reply}, nil)
		}
	}
}

// verifyTime is what the question for the loaded window may take. A server that
// does not answer within it has at least been told to refuse what does not fit.
const verifyTime = 200 * time.Millisecond

// window asks which window the model is loaded with; 0 if that can't be told.
func (m *Model) window(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, verifyTime)
	defer cancel()
	p, _, _ := newClient(llm.Endpoint(*m)).loaded(ctx)
	return p.Count
}

// verify returns an error if the server has not given the model the window that
// it was asked for. Another program's request may make it load the model anew,
// so one look for all replies would not do.
func (m *Model) verify(ctx context.Context) error {
	if m.Window <= 0 {
		return nil
	}
	got := m.window(ctx)
	if err := context.Cause(ctx); err != nil {
		return &llm.Error{Kind: llm.KindCancelled, Err: err}
	}
	if got == 0 || got >= m.Window {
		return nil
	}
	return &llm.Error{
		Kind: llm.KindWindow, Limit: got,
		Message: fmt.Sprintf("the server was asked for a context window of %d tokens and has loaded %s with %d; set its window to at most %d",
			m.Window, m.ID, got, got),
	}
}

// measured adds to a refused prompt how much would fit, where the server has not
// said so.
func (m *Model) measured(ctx context.Context, err error) error {
	var e *llm.Error
	if errors.As(err, &e) && e.Kind == llm.KindWindow && e.Limit == 0 {
		e.Limit = m.window(ctx)
	}
	return err
}

// overflowed returns an error if the server has silently cut the prompt, as
// those do that are too old to know "truncate". The prompt was cut if it may
// have more tokens than the window (three bytes make one), and the server read
// fewer than it must have (eight bytes make one), or filled the window. read is
// what the server read, cached tokens included, and 0 if it did not say.
func overflowed(window, size, read int) error {
	least, most := size/8, size/3
	if window <= 0 || read == 0 || most <= window || read >= least && read < window {
		return nil
	}
	return &llm.Error{
		Kind: llm.KindWindow, Used: size / 4, Limit: window,
		Message: "the server cut the prompt to fit its context window; the reply is dropped",
	}
}
