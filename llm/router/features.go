package router

import (
	"cmp"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/llm"
)

// Features are all that a decision knows of a request.
type Features struct {
	Tokens     int       // of the prompt, about; see [llm.Request.Tokens]
	MaxOutput  int       // most tokens of the reply; 0: the model's own bound
	Complexity float64   // 0 to 1; see [Complexity]
	Signs      string    // what the complexity was seen by, such as "12 words, 0 files"
	Private    string    // what secret the text holds, such as "a private key"; empty: none
	Step       string    // [StepPrompt], [StepResults], or the purpose of the request
	Pin        string    // route that made the calls of this run
	Images     bool      // holds images
	Tools      bool      // offers tools
	GoesOn     bool      // what was said last goes on with what was said before
	Failing    int       // calls of the run that have failed since a check succeeded
	Last       string    // route that answered last
	At         time.Time // when that was
	Cached     int       // tokens at the start of the prompt that it has seen
}

// Features looks at a request. The first time it reads the whole conversation
// of a session for secrets, later only what was added.
func (m *Model) Features(req llm.Request) Features {
	m.prepare()
	f := Features{
		Tokens:    req.Tokens(),
		MaxOutput: req.MaxOutput,
		Step:      step(req),
		Pin:       req.Pin,
		Images:    slices.ContainsFunc(req.Messages, func(m llm.Message) bool { return m.Parts.Images() > 0 }),
		Tools:     len(req.Tools) > 0,
		Last:      req.Work.Last,
		At:        req.Work.At,
		Cached:    req.Work.Cached,
	}
	t := m.words.task(req)
	f.Complexity, f.Signs, f.GoesOn, f.Failing = t.score, t.signs, t.goesOn, t.failing
	if m.broken != nil {
		f.Private = "what can't be told, as the router's settings are wrong"
	} else {
		f.Private = cmp.Or(m.secrets.find(req), req.Private)
	}
	return f
}

func (f Features) size() string { return text.Thousands(f.Tokens) + " tokens" }

func step(req llm.Request) string {
	if req.Purpose != "" {
		return req.Purpose
	}
	if n := len(req.Messages); n > 0 && hasResults(req.Messages[n-1]) {
		return StepResults
	}
	return StepPrompt
}

func hasResults(m llm.Message) bool {
	for _, part := range m.Parts {
		if _, ok := part.(llm.Result); ok {
			return true
		}
	}
	return false
}
