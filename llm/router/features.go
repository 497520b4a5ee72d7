package router

import (
	"cmp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
)

// Features are the facts about a request on which a decision is based.
type Features struct {
	Tokens    int      // of the prompt, about; see [llm.Request.Tokens]
	MaxOutput int      // most tokens of the reply; 0 means the model's own bound
	Hard      bool     // the task is, by what its run has come to, else by the judge, else by how it looks
	Why       string   // what says so, or that it is not
	Stuck     bool     // it is what the run has come to
	Said      []string // of the rules' expressions, those that match what is asked for
	Private   string   // what secret the text holds, such as "a private key"; empty means none
	Step      string   // "prompt", "results", or the purpose of the request
	Pin       string   // route that answered last in this run
	Cut       bool     // the conversation was cut to fit a window in this run
	Images    bool     // holds images
	Tools     bool     // offers tools
}

// Features extracts the features of a request, and depends on nothing else. At the first request of a session
// it searches the whole conversation for secrets, later only the new part.
func (m *Model) Features(req llm.Request) Features {
	m.prepare()
	f := Features{
		Tokens:    req.Tokens(),
		MaxOutput: req.MaxOutput,
		Step:      step(req),
		Pin:       req.Pin,
		Cut:       req.Work.Cut,
		Images:    slices.ContainsFunc(req.Messages, func(m llm.Message) bool { return m.Parts.Images() > 0 }),
		Tools:     len(req.Tools) > 0,
	}
	if req.Purpose == "" {
		said := task(req)
		f.Hard, f.Why, f.Stuck = m.hard(req.Work, said)
		for expr, re := range m.said {
			if re.MatchString(strings.Join(said, "\n")) {
				f.Said = append(f.Said, expr)
			}
		}
		slices.Sort(f.Said)
	}
	if m.broken != nil {
		f.Private = "what can't be told, as the router's settings are wrong"
	} else {
		f.Private = cmp.Or(m.secrets.find(req), req.Private)
	}
	return f
}

// hard says whether a task is hard, and why.
func (m *Model) hard(w llm.Work, said []string) (hard bool, why string, isStuck bool) {
	if why := stuck(w); why != "" {
		return true, why, true
	}
	switch {
	case m.Begin == beginCloud:
		return true, "every task begins in the cloud", false
	case m.Begin == beginLocal:
		return false, "every task begins local", false
	case w.Judged != "":
		return w.Judged == judgedHard, "the judge calls the task " + w.Judged, false
	case len(said) == 0:
		return false, "nothing is asked for", false
	}
	hard, why = begins(said[0])
	return hard, why, false
}

func (f Features) size() string { return text.Thousands(f.Tokens) + " tokens" }

func step(req llm.Request) string {
	if req.Purpose != "" {
		return req.Purpose
	}
	if n := len(req.Messages); n > 0 && hasResults(req.Messages[n-1]) {
		return stepResults
	}
	return stepPrompt
}

func hasResults(m llm.Message) bool {
	for _, part := range m.Parts {
		if _, ok := part.(llm.Result); ok {
			return true
		}
	}
	return false
}
