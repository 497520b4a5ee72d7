// Package openai speaks the Chat Completions API of OpenAI and of the many servers that imitate it ([Model]), and
// OpenAI's Responses API ([Responses]), over plain HTTP.
//
// Wire reference: https://platform.openai.com/docs/api-reference/chat and its sibling /responses. The table in
// dialect.go has the differences of the imitators in requests; their answers are all read leniently.
//
// Don't use it for Ollama if the context window matters: package ollama can set it. Prefer [Responses] for OpenAI
// itself, and [Model] for all other servers.
package openai

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// Model is one model after a Chat Completions endpoint. It never retries.
//
// BaseURL is where "/chat/completions" is, such as "http://localhost:1234/v1". Dialect is one of [Dialects]; empty
// means see [DialectOf]. A model of an unknown dialect answers every request with KindInvalid. The first byte has
// 300 s unless OpenAI or Azure serves the model: a local server reads a long prompt for minutes.
type Model llm.Endpoint

var _ llm.Model = (*Model)(nil)

// Info implements [llm.Model].
func (m *Model) Info() llm.Info {
	d, _ := dialectOf(llm.Endpoint(*m)) // Stream returns the error
	return m.info(d)
}

func (m *Model) info(d dialect) llm.Info {
	var info llm.Info
	if d.own {
		info = known(m.ID)
		if regionalHost.MatchString(m.BaseURL) {
			info.Prices = info.Prices.In("region")
		}
	}
	return llm.Endpoint(*m).Describe("openai", info)
}

// Stream implements [llm.Model].
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		s, err := m.server("/chat/completions", req)
		if err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		a := newAliases(req, s.ids())
		s.body = encode(s.info, s.dialect, a, req)
		s.exchange(ctx, newDecoder(s.info.Route(), req, a), yield)
	}
}

// server is the destination of one request.
type server struct {
	llm.Endpoint
	dialect
	info    llm.Info
	url     string
	session string
	most    int // output tokens; 0 if unknown
	body    []byte
}

func (m *Model) server(path string, req llm.Request) (server, error) {
	at := llm.Endpoint(*m)
	d, err := dialectOf(at)
	s := server{Endpoint: at, dialect: d, info: m.info(d), session: req.Session}
	s.most = cmp.Or(req.MaxOutput, s.info.MaxOutput)
	if err == nil {
		s.url, err = d.base(at)
		s.url += path
	}
	if err != nil {
		err = &llm.Error{Kind: llm.KindInvalid, Provider: s.info.Provider, Message: err.Error()}
	}
	return s, err
}

// base returns the base URL without a slash at its end.
func (d dialect) base(at llm.Endpoint) (string, error) {
	base := at.BaseURL
	if base == "" {
		base = d.BaseURL
	}
	if base == "" {
		return "", errors.New("the base URL is missing: " + d.Name + " has one for each account")
	}
	return strings.TrimSuffix(base, "/"), nil
}

// replyReader builds a reply from the body of an answer.
type replyReader interface {
	// read reads a stream, or a complete reply from a server that does not stream. It returns true if the reply is
	// complete, false without an error if the consumer stopped.
	read(r io.Reader, streamed bool, emit func(llm.Chunk) bool) (bool, error)
	// result returns the complete reply to a request of this size in bytes.
	result(requestBytes int) *llm.Reply
}

// exchange sends the body and yields the chunks that d reads from the answer.
func (s server) exchange(ctx context.Context, d replyReader, yield func(llm.Chunk, error) bool) {
	s.post().Exchange(ctx, s.classify, yield, func(r *wire.Reply, emit func(llm.Chunk) bool) (*llm.Reply, error) {
		done, err := d.read(r, !r.Whole(), emit)
		if err != nil || !done {
			return nil, err
		}
		result := d.result(len(s.body))
		return result, s.cutPrompt(result.Usage)
	})
}

// cutPrompt returns an error if the usage shows that the server has cut an overlong prompt without saying so.
func (s server) cutPrompt(u llm.Usage) error {
	if !s.silentOverflow || u.Estimated || s.info.Window == 0 || u.Prompt() <= s.info.Window {
		return nil
	}
	return &llm.Error{Kind: llm.KindWindow, Message: "the server took a prompt larger than the window", Used: u.Prompt(), Limit: s.info.Window}
}

func (s server) post() wire.Post {
	deadlines := s.Deadlines
	if !s.own {
		deadlines = deadlines.Or(llm.Deadlines{FirstByte: 300 * time.Second})
	}
	header := http.Header{}
	if s.sessionHeader != "" && s.session != "" {
		header.Set(s.sessionHeader, wire.ShortID(s.session, 64))
	}
	return wire.Post{
		Provider: s.info.Provider, URL: s.url, Header: header, Extra: s.Header, KeyHeader: s.carrier(s.Bearer), Key: s.Key,
		Body: s.body, HTTP: s.HTTP, Deadlines: deadlines, MaxOutput: s.most,
	}
}

// carrier returns the header for the key.
func (d dialect) carrier(bearer bool) string {
	if bearer || d.keyHeader == "" {
		return "Authorization"
	}
	return d.keyHeader
}
