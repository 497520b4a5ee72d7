package corpus

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// askTool is the tool that makes the requests of programs. Only [Set.programTool] calls it.
const askTool = "ask"

//go:embed program_ask.md
var askPrompt string

const (
	// AskPurpose is the [llm.Request.Purpose] of requests of programs.
	AskPurpose = "ask"

	mostAskText = 4 << 20 // bytes of a request
	mainModel   = "main"
	mainOutput  = 8_000 // tokens of an answer of the main model, reasoning included
)

// ask is a request of a program. It stands alone, because it may run again after a crash before its program does.
type ask struct {
	Variable string          `json:"variable,omitempty"`
	Question []part          `json:"question"`
	Text     []part          `json:"text,omitempty"`
	Schema   json.RawMessage `json:"schema,omitempty"`
	Quotes   bool            `json:"quotes,omitempty"`
	Model    string          `json:"model,omitempty"`  // "main": that of the agent; empty: the small one
	Sample   json.RawMessage `json:"sample,omitempty"` // distinguishes requests that are otherwise the same

	reply askReply // for the program that has made it
}

// askReply is the answer to a request.
type askReply struct {
	Text   *string         `json:"text,omitempty"` // without a schema
	Value  json.RawMessage `json:"value,omitempty"`
	Quotes [][2]int        `json:"quotes,omitempty"` // ranges of the characters of the text, in UTF-16
	Tokens int             `json:"tokens,omitempty"` // that it took
}

func (a ask) parts() []part { return slices.Concat(a.Question, a.Text) }

// askSchema is the schema of arguments of the tool. Programs write them, and check checks them.
const askSchema = `{"type":"object","required":["question"],"properties":{"variable":{"type":"string"},"question":{"type":"array"},"text":{"type":"array"},` +
	`"schema":{"type":"object"},"quotes":{"type":"boolean"},"model":{"type":"string"},"sample":{}}}`

func (s *Set) askingTool() tool.Tool {
	return tool.Tool{
		Name: askTool, Doc: "Asks a model for a program.", Schema: json.RawMessage(askSchema), Effects: tool.NoEffects,
		Run: func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			a, err := tool.Args[ask](c)
			if err != nil {
				return tool.Result{}, err
			}
			return s.asking(ctx, c, a)
		},
	}
}

// check returns an error if a request claims what is not so. It is called in the order of the program.
func (p *program) check(a *ask) error {
	size := 0
	for _, one := range a.parts() {
		text, err := p.text(one)
		if err != nil {
			return err
		}
		size += len(text)
	}
	switch {
	case p.set.Limits.Depth == 0:
		return errors.New("ask: requests are off, as the depth is 0")
	case size > mostAskText:
		return fmt.Errorf("ask: the question and the text have %d bytes; at most %d. Cut the text with chunks", size, mostAskText)
	case a.Model != "" && a.Model != mainModel:
		return fmt.Errorf("ask: there is no model %q; leave model out for the small one, or write %q for yours", a.Model, mainModel)
	}
	_, err := a.form("-")
	return err
}

// text returns the text of a part, if it is true.
func (p *program) text(one part) (string, error) {
	if one.Ask != nil {
		if n := *one.Ask; n < 0 || n >= len(p.asks) || !strings.Contains(p.asks[n].reply.said(), one.Text) {
			return "", fmt.Errorf("request %d did not bring %.80q", n, one.Text)
		}
	}
	return p.variable.part(one)
}

// said returns the words of a reply.
func (r askReply) said() string {
	if r.Text == nil {
		return ""
	}
	return *r.Text
}

// form returns the question that a request asks.
func (a ask) form(words string) (q question, err error) {
	var schema map[string]any
	if len(a.Schema) > 0 {
		if err := json.Unmarshal(a.Schema, &schema); err != nil {
			return q, fmt.Errorf("ask: schema: %w", err)
		}
	}
	if q, err = newQuestion(words, schema, ""); err != nil {
		return q, fmt.Errorf("ask: %w", err)
	}
	return q, nil
}

// asking makes a request. A reply that can't be used is an error.
func (s *Set) asking(ctx context.Context, c *tool.Call, a ask) (tool.Result, error) {
	if c.Parent == "" || s.Limits.Depth == 0 {
		return tool.Result{}, errors.New("only programs can ask, and only if the depth is at least 1")
	}
	v, err := s.variableOf(ctx, c, a.Variable)
	if err != nil {
		return tool.Result{}, err
	}
	words, err := v.joined(a.Question)
	if err != nil {
		return tool.Result{}, err
	}
	text, err := v.joined(a.Text)
	if err != nil {
		return tool.Result{}, err
	}
	q, err := a.form(words)
	if err != nil {
		return tool.Result{}, err
	}
	model, err := s.modelOf(ctx, a.Model)
	if err != nil {
		return tool.Result{}, err
	}
	text = string([]rune(text)) // each byte that is no UTF-8 becomes one character, as in programs
	clean := func(text string) string { return cleaned(c.Env.Clean, valid(text)) }
	req := a.request(q, clean(words), clean(text))
	info := model.Info()
	if need := req.Tokens() + req.MaxOutput; info.Window > 0 && need > info.Window {
		return tool.Result{}, fmt.Errorf("the request has about %d tokens, and the window of %s is %d: cut the text with chunks", need, info.Route(), info.Window)
	}
	var reply askReply
	read := func(said string) (wrong string) {
		reply, wrong = a.read(q, said, text)
		return clean(wrong)
	}
	known, key := cache{dir: s.Cache}, a.key(info.Route(), req)
	if said, ok := known.get(key); ok && read(said) == "" {
		return replied(reply, 0)
	}
	purse, err := s.purseOf(c, info)
	if err != nil {
		return tool.Result{}, err
	}
	first, err := purse.claim(info, req)
	if err != nil {
		return tool.Result{}, err
	}
	said, err := attempts(ctx, model, first, req, func(err error) bool { return ctx.Err() != nil || err != nil && hopeless(err) }, read)
	if err != nil {
		return tool.Result{Cost: first.bill.dollars}, err
	}
	known.put(key, said)
	reply.Tokens = first.bill.tokens
	return replied(reply, first.bill.dollars)
}

func replied(r askReply, cost float64) (tool.Result, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return tool.Result{Cost: cost}, err
	}
	if len(raw) > mostReply {
		return tool.Result{Cost: cost}, errors.New("the answer is far too long; ask for a shorter one, or about less text")
	}
	return tool.Result{Parts: llm.Say(string(raw)), Untrusted: true, Cost: cost}, nil
}

// request returns the request. With quotes it is the question about a piece.
func (a ask) request(q question, words, text string) llm.Request {
	if a.Quotes {
		q.text = words
		return q.request(text)
	}
	system := []string{askPrompt}
	if len(a.Schema) > 0 {
		system = append(system, "Answer with one JSON object and nothing else: {\"answer\": ...}. JSON Schema of answer:\n"+string(q.schema))
	}
	if len(a.Text) > 0 {
		words = framed("text", words, text) + "\n\n" + words
	}
	most := mostOutput
	if a.Model == mainModel {
		most = mainOutput
	}
	return llm.Request{System: system, Messages: []llm.Message{{Role: llm.User, Parts: llm.Say(words)}}, MaxOutput: most, Purpose: AskPurpose}
}

// read returns the reply to a program, or how the model's answer is wrong.
func (a ask) read(q question, said, text string) (r askReply, wrong string) {
	switch {
	case a.Quotes:
		out := q.read(said, text, piece{})
		if out.state != answered {
			return r, out.why
		}
		for _, one := range out.quotes {
			from := units(text[:one.From])
			r.Quotes = append(r.Quotes, [2]int{from, from + units(one.Text)})
		}
		r.Value = out.value
		if r.Value == nil {
			r.Value = json.RawMessage("null")
		}
	case len(a.Schema) > 0:
		fields, err := object(said)
		if err != nil || len(fields) != 1 || fields["answer"] == nil {
			return r, "the answer is not one JSON object with the field answer"
		}
		if r.Value, err = q.checked(fields["answer"]); err != nil {
			return r, err.Error()
		}
	default:
		if said = strings.TrimSpace(said); said == "" {
			return r, "the answer is empty"
		}
		r.Text = &said
	}
	return r, ""
}

// key identifies a request and everything on which its answer depends.
func (a ask) key(route string, req llm.Request) string {
	sum := sha256.New()
	for _, part := range []string{"ask 1", route, strings.Join(req.System, "\n"), req.Messages[0].Parts.Text(), string(a.Sample)} {
		fmt.Fprintf(sum, "%d\n%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
