// Package ollama speaks Ollama's own chat wire, /api/chat, over plain HTTP. Unlike its OpenAI-compatible endpoint
// this one lets the caller set the context window, and refuses a prompt that does not fit.
//
// Wire reference: https://docs.ollama.com/api/chat and its pages on streaming, tool calling, thinking and the
// context length.
//
// Don't use it for llama.cpp, vLLM and similar servers, which speak the wire of package openai.
package ollama

import (
	"cmp"
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
// Requests go to BaseURL + "/api/chat"; empty means http://localhost:11434. Key is for servers behind a proxy and
// for ollama.com. The first byte may take ten minutes: a model may have to be loaded, and a long prompt read.
//
// Window is the context window to load the model with, in tokens. Changing it makes the server reload the model. 0
// leaves it to the server, whose default is small and not visible to clients.
type Model llm.Endpoint

var _ llm.Model = (*Model)(nil)

// Info implements [llm.Model].
func (m *Model) Info() llm.Info {
	return llm.Endpoint(*m).Describe("ollama", llm.Info{})
}

// trimBase returns the address of a server, even from that of its OpenAI-compatible endpoint.
func trimBase(base string) string {
	if base == "" {
		base = "http://localhost:11434"
	}
	return strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1")
}

// Stream implements [llm.Model]. It compares the window that the server has loaded the model with: if it is below
// Window, the reply fails with KindWindow.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		post := wire.Post{
			Provider: m.Info().Provider, URL: trimBase(m.BaseURL) + "/api/chat", Extra: m.Header, KeyHeader: "Authorization", Key: m.Key,
			Body: encode(m.Info(), req), HTTP: m.HTTP, Deadlines: m.Deadlines.Or(llm.Deadlines{FirstByte: 10 * time.Minute}),
			MaxOutput: cmp.Or(req.MaxOutput, m.Info().MaxOutput),
		}
		classify := func(status int, body []byte) *llm.Error { return classify(m.ID, status, body) }
		reply, err := post.Send(ctx, classify)
		if err != nil {
			yield(llm.Chunk{}, m.measured(ctx, err))
			return
		}
		defer reply.Close()
		d := decoder{model: m.ID, history: req.Messages, reply: llm.Reply{Route: m.Info().Route()}}
		emit, over := reply.Bounded(func(c llm.Chunk) bool { return yield(c, nil) })
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

// verifyTime bounds the request for the loaded window. A server that does not answer within it has at least been
// told to refuse an overlong prompt.
const verifyTime = 200 * time.Millisecond

// window returns the window that the model is loaded with; 0 if unknown.
func (m *Model) window(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, verifyTime)
	defer cancel()
	p, _, _ := newClient(llm.Endpoint(*m)).loaded(ctx)
	return p.Count
}

// verify returns an error if the server has not loaded the model with the requested window. Another program's
// request may make it reload the model, so one check for all replies would not be enough.
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

// measured adds the size that would fit to the error of a refused prompt, if the server has not stated it.
func (m *Model) measured(ctx context.Context, err error) error {
	var e *llm.Error
	if errors.As(err, &e) && e.Kind == llm.KindWindow && e.Limit == 0 {
		e.Limit = m.window(ctx)
	}
	return err
}

// overflowed returns an error if the server has silently cut the prompt, as servers do that are too old to know
// "truncate". The prompt was cut if it may have more tokens than the window (three bytes make one), and the server
// read fewer than it must have (eight bytes make one), or filled the window. read is the number that the server
// states, including cached tokens, and 0 if it states none.
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
