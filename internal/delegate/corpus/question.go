package corpus

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/models/reaction"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

//go:embed question.md
var questionPrompt string

// Purpose is the [llm.Request.Purpose] of requests about a piece.
const Purpose = "piece"

const (
	mostOutput = 2_000 // tokens of an answer, reasoning included
	mostReply  = 32 << 10
	mostQuotes = 20
	mostQuote  = 2_000 // bytes
	mostValue  = 8_000 // bytes of an answer
	pieceTime  = 3 * time.Minute
)

// small returns the model for questions about pieces.
func (s *Set) small(ctx context.Context) (llm.Model, error) { return s.modelOf(ctx, "") }

// modelOf returns the small model, or the main one.
func (s *Set) modelOf(ctx context.Context, name string) (llm.Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, get := &s.model, s.Model
	if name == mainModel {
		known, get = &s.main, s.Main
	}
	if *known != nil {
		return *known, nil
	}
	if get == nil {
		return nil, errors.New("there is no model to ask")
	}
	m, err := get(ctx)
	if err != nil {
		return nil, err
	}
	*known = m
	return m, nil
}

// question is the question about each piece.
type question struct {
	text   string
	schema json.RawMessage // nil means the answer is text
	form   tool.Tool       // checks an answer
	expect *regexp.Regexp  // a piece that matches it must have an answer; nil means none must
}

func newQuestion(text string, schema map[string]any, expect string) (q question, err error) {
	q.text = strings.TrimSpace(text)
	if expect != "" {
		if q.expect, err = pattern("(?m)"+expect, false); err != nil {
			return q, fmt.Errorf("expect: %w", err)
		}
	}
	if q.text == "" || len(q.text) > mostQuestion {
		return q, fmt.Errorf("the question is empty, or has more than %d bytes", mostQuestion)
	}
	if schema == nil {
		schema = map[string]any{"type": "string"}
	}
	if q.schema, err = json.Marshal(schema); err != nil {
		return q, err
	}
	form, err := json.Marshal(map[string]any{
		"type": "object", "required": []string{"answer"}, "additionalProperties": false, "properties": map[string]any{"answer": schema},
	})
	q.form = tool.Tool{Name: "answer", Schema: form}
	if err == nil {
		err = q.form.CheckSchema()
	}
	if err != nil {
		return q, fmt.Errorf("schema: %w", err)
	}
	return q, nil
}

// key identifies a piece and everything on which its answer depends.
func (q question) key(route, text string) string {
	sum := sha256.New()
	for _, part := range []string{"2", route, questionPrompt, q.text, string(q.schema), text} {
		fmt.Fprintf(sum, "%d\n%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// framed returns a text between marks that nothing inside can imitate, because they contain a digest of it.
func framed(kind, question, text string) string {
	mark := kind + "-" + tool.Digest([]byte(question+"\x00"+text))
	return "<" + mark + ">\n" + text + "\n</" + mark + ">"
}

// request returns a request about a piece.
func (q question) request(text string) llm.Request {
	return llm.Request{
		System: []string{questionPrompt, "The question:\n" + q.text + "\n\nJSON Schema of answer:\n" + string(q.schema)},
		Messages: []llm.Message{{Role: llm.User, Parts: llm.Say(
			framed("piece", q.text, text) + "\n\nAnswer the question about the text above with one JSON object.",
		)}},
		MaxOutput: mostOutput, Purpose: Purpose,
	}
}

// corrected returns a request that explains the mistake in an answer.
func corrected(req llm.Request, reply, why string) llm.Request {
	if strings.TrimSpace(reply) == "" {
		return req // vendors accept no empty answers
	}
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: llm.Say(reply)}, llm.Message{Role: llm.User, Parts: llm.Say(
		"That can't be used: " + why + ". Answer again with one JSON object, by the same rules.",
	)})
	return req
}

// attempts asks until check accepts an answer, at most mostTries times. After a wrong one, it names the fault. Stop
// is called with the error of each failed request, and with nil for a wrong answer.
func attempts(
	ctx context.Context, m llm.Model, c claim, first llm.Request, stop func(error) bool, check func(reply string) (wrong string),
) (reply string, err error) {
	req := first
	for try := 1; ; try++ {
		reply, failed := send(ctx, m, req, c)
		if err = failed; failed == nil {
			wrong := check(reply)
			if wrong == "" {
				return reply, nil
			}
			err, req = errors.New(wrong), corrected(first, reply, wrong)
		}
		if stop(failed) || try == mostTries {
			return "", err
		}
		next, none := c.purse.claim(c.info, req)
		if none != nil {
			return "", err
		}
		next.bill, c = c.bill, next
	}
}

// send sends a request, and returns the text of the answer.
func send(ctx context.Context, m llm.Model, req llm.Request, c claim) (answer string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pieceTime, errors.New("the model took too long"))
	defer cancel()
	got, info := 0, m.Info()
	used := llm.Usage{} // unknown usage
	defer func() { c.settle(info, used) }()
	for chunk, err := range m.Stream(ctx, req) {
		got += len(chunk.Text) + len(chunk.Reasoning)
		switch {
		case chunk.Routed != nil:
			info = chunk.Routed.Info
		case err == nil && chunk.Reply != nil:
			used = chunk.Reply.Used(req)
			return finished(chunk.Reply)
		case err == nil && got > mostReply:
			err = errors.New("its answer is far too long")
		}
		if err != nil {
			if e := llm.AsError(err); e.Spent != nil {
				info, used = e.Spent.Info, e.Spent.Usage
			} else if got > 0 {
				used = llm.Usage{Input: req.Tokens(), Output: got / 4, Estimated: true}
			}
			return "", err
		}
	}
	return "", errors.New("the model gave no answer")
}

// finished returns the text of a complete reply.
func finished(r *llm.Reply) (string, error) {
	switch r.Stop {
	case llm.StopEnd, llm.StopOther:
		return r.Parts.Text(), nil
	case llm.StopRefusal:
		return "", errors.New("the model refused to answer")
	}
	return "", fmt.Errorf("the answer did not come to an end (%s)", r.Stop)
}

// hopeless reports whether an error would also hit the other pieces.
func hopeless(err error) bool {
	var e *llm.Error
	if !errors.As(err, &e) {
		return false
	}
	switch reaction.To(e.Kind) {
	case reaction.Await, reaction.Renew, reaction.Elsewhere:
		return true
	}
	return e.Kind == llm.KindBudget || e.Kind == llm.KindPanic
}

// read checks an answer about a piece: it must match the schema, and rest on quotes that the piece has, or it
// has failed.
func (q question) read(reply, text string, p piece) said {
	bad := func(format string, args ...any) said { return said{state: failed, why: fmt.Sprintf(format, args...)} }
	fields, err := object(reply)
	if err != nil {
		return bad("the answer is not one JSON object with answer and quotes: %v", err)
	}
	value, ok := fields["answer"]
	var quotes []string
	if raw, given := fields["quotes"]; given {
		if err := json.Unmarshal(raw, &quotes); err != nil {
			return bad("quotes is not a list of texts")
		}
		delete(fields, "quotes")
	}
	switch {
	case !ok || len(fields) != 1:
		return bad("the answer has other fields than answer and quotes")
	case string(value) == "null" && q.expect != nil && q.expect.MatchString(text):
		return bad("there is no answer, although the piece has %.80q", q.expect.FindString(text))
	case string(value) == "null":
		return said{state: answered}
	case len(value) > mostValue || len(quotes) > mostQuotes:
		return bad("the answer is too long")
	case len(quotes) == 0:
		return bad("the answer has no quote of the piece")
	}
	if value, err = q.checked(value); err != nil {
		return bad("%v", err)
	}
	out := said{state: answered, value: value}
	for _, text2 := range quotes {
		at := strings.Index(text, text2)
		if strings.TrimSpace(text2) == "" || len(text2) > mostQuote || at < 0 {
			return bad("it quotes what the piece does not have: %.80q", text2)
		}
		if short(text2, text[:at], text[at+len(text2):]) {
			return bad("the quote %q is too short to show anything; quote at least %d bytes, or all of the line", text2, leastQuote)
		}
		out.quotes = append(out.quotes, quote{p.From + int64(at), p.From + int64(at+len(text2)), text2})
	}
	if missing := q.unquoted(value, quotes); len(missing) > 0 {
		return bad("no quote has %.80q of the answer; answer in words and figures of the quotes", missing[0])
	}
	return out
}

// checked returns an answer in the form of the schema.
func (q question) checked(value json.RawMessage) (json.RawMessage, error) {
	checked, err := q.form.Check([]byte(`{"answer":` + string(value) + `}`))
	if err != nil {
		return nil, fmt.Errorf("the answer is not of the schema: %w", err)
	}
	var form struct {
		Answer json.RawMessage `json:"answer"`
	}
	err = json.Unmarshal(checked, &form)
	return form.Answer, err
}

// object decodes the one JSON object of an answer. It may be in a fence, with no other text.
func object(reply string) (map[string]json.RawMessage, error) {
	reply = strings.TrimSpace(reply)
	if inner, ok := strings.CutPrefix(reply, "```"); ok {
		inner, fenced := strings.CutSuffix(strings.TrimPrefix(inner, "json"), "```")
		if !fenced {
			return nil, errors.New("its fence does not end")
		}
		reply = inner
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(reply)))
	var out map[string]json.RawMessage
	if err := dec.Decode(&out); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more behind it")
	}
	if out == nil {
		return nil, errors.New("it is null")
	}
	return out, nil
}

// cleaned returns a text without secrets.
func cleaned(clean func(io.Reader) io.Reader, text string) string {
	if clean == nil {
		return text
	}
	out, err := io.ReadAll(clean(strings.NewReader(text)))
	if err != nil {
		return "" // nothing is better than a secret
	}
	return string(out)
}
