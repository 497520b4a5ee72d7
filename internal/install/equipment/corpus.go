package equipment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/delegate/corpus"
	"github.com/inspan/inspan/internal/delegate/script"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
	"github.com/inspan/inspan/workflow"

	_ "embed"
)

//go:embed ask_corpus.md
var askCorpusDoc string

// AskCorpus is a question to a corpus.
type AskCorpus struct {
	Question string   `json:"question" jsonschema:"the question; it stands alone"`
	Sources  []string `json:"sources" jsonschema:"files, folders, blob:NAME, https://..., session (this one), session:ID or sessions (past)"`
	Budget   float64  `json:"budget,omitempty" jsonschema:"most US dollars; what the session has left if not given"`
}

// Task returns the question as the answering agent gets it.
func (a AskCorpus) Task() string {
	sources, _ := json.Marshal(a.Sources) // strings always marshal
	return strings.TrimSpace(a.Question) + "\n\nSources: " + string(sources)
}

// Asking returns the tool that lets a model ask questions of a corpus, if the settings enable it. Subagents of the
// corpus role answer; sessions is the store of their logs.
func (s *Set) Asking(agents workflow.Agents, sessions store.Store) []tool.Tool {
	if !s.Config.Agents.Corpus {
		return nil
	}
	t := tool.New("ask_corpus", askCorpusDoc, func(ctx context.Context, c *tool.Call, in AskCorpus) (tool.Result, error) {
		if strings.TrimSpace(in.Question) == "" || len(in.Sources) == 0 || in.Budget < 0 {
			return tool.Result{}, errors.New("it needs a question and sources, and a budget that is not negative")
		}
		r, err := agents.Work(ctx, workflow.Job{
			Step: "corpus-" + c.Key, Prompt: in.Task(), Agent: corpus.Kind, Budget: workflow.Budget{Cost: in.Budget},
			Untrusted: c.Untrusted, Progress: c.Progress,
		})
		if err != nil {
			return tool.Result{}, err
		}
		answer, err := corpus.Answered(ctx, nil, store.Events(ctx, sessions, r.Session))
		if err != nil || answer == nil {
			why := cmp.Or(r.Failed, "it ended without an answer whose quotes were verified")
			return tool.Result{}, errors.Join(fmt.Errorf("no answer: %s", why), err)
		}
		raw, err := json.Marshal(answer)
		return tool.Result{Parts: llm.Say(string(raw)), Untrusted: true}, err
	})
	t.Delegates = true
	t.Effects = tool.NoEffects
	return []tool.Tool{t}
}

// Corpus is the shared state of a session's corpus tools; nil means it has none.
type Corpus = *corpus.Set

// Sources resolves the sources of a new session that answers questions from a corpus, as [corpus.Fixed] does.
func Sources(ctx context.Context, env tool.Env, names []string, input io.Reader, may func([]tool.Effect) error) ([]event.Source, error) {
	return corpus.Fixed(ctx, env, names, input, may)
}

// CorpusRole returns the role of agents that answer questions from a corpus. A file of the person or the
// workspace with that name takes precedence, as for any role.
func CorpusRole() skill.Role {
	return RoleFor(event.Corpus{})
}

// RoleFor returns the role of the agent that answers questions from a corpus: by programs, or else by searching.
func RoleFor(of event.Corpus) skill.Role {
	name, text := corpus.Kind, corpus.Agent
	if of.Programs != nil {
		name, text = corpus.ProgramTool, corpus.ProgramAgent
	}
	r, err := skill.ParseRole(name+".md", "built in", text)
	if err != nil {
		panic(err) // it is part of the program
	}
	return r
}

// Corpus gives an agent the corpus tools that its role names; other agents don't get them. Model answers
// questions about pieces. Call it last on an agent, since the model must know these tools from the start. Only
// is as for [corpus.Set].
func (s *Set) Corpus(
	agent *inspan.Agent, role skill.Role, only []event.Source, sessions store.Store, model func(context.Context) (llm.Model, error),
	wrap func([]tool.Tool) []tool.Tool,
) Corpus {
	if !slices.ContainsFunc(corpus.Names(), func(name string) bool { return slices.Contains(role.Tools, name) }) {
		return nil
	}
	set := &corpus.Set{
		Sessions: sessions, Only: only, Alone: s.Config.Memory.Off, Model: model, Key: agent.Secrets.Key,
		Cache: filepath.Join(s.StateDir, "corpus-answers"), Left: leftOf(agent),
	}
	own := wrap(set.Tools())
	if !slices.ContainsFunc(agent.Tools, func(t tool.Tool) bool { return t.Name == "script" }) { // the lever decides for other agents
		own = append(own, script.Tool(s.Self))
	}
	agent.Tools = slices.Concat(agent.Tools, Pick(role)(own))
	if slices.Contains(role.Tools, corpus.AnswerTool) {
		agent.Hooks = append(agent.Hooks[:len(agent.Hooks):len(agent.Hooks)], &insisting{})
	}
	return set
}

// leftOf returns a function that says how many US dollars the session of an agent may still spend.
func leftOf(agent *inspan.Agent) func() (dollars float64, limited bool) {
	var session atomic.Pointer[inspan.Session]
	joined := agent.Lifecycle.Started
	agent.Lifecycle.Started = func(s *inspan.Session) {
		session.Store(s)
		if joined != nil {
			joined(s)
		}
	}
	return func() (float64, bool) {
		at := session.Load()
		if at == nil {
			return 0, false
		}
		st := at.Status()
		return st.Limits.Cost - st.Cost, st.Limits.Cost > 0
	}
}

// ProgramsOver gives an agent the tool to answer questions from a corpus by programs. Small and main return the
// models that programs can ask. Call it last on an agent.
func (s *Set) ProgramsOver(
	agent *inspan.Agent, of event.Corpus, sessions store.Store, small, main func(context.Context) (llm.Model, error),
	wrap func([]tool.Tool) []tool.Tool,
) Corpus {
	set := &corpus.Set{
		Sessions: sessions, Only: of.Sources, Alone: s.Config.Memory.Off, Model: small, Main: main, Key: agent.Secrets.Key,
		Cache: filepath.Join(s.StateDir, "corpus-answers"), Left: leftOf(agent), Self: s.Self, Limits: *of.Programs,
	}
	shown, called := set.Programs()
	agent.Tools, called = slices.Concat(agent.Tools, wrap(shown)), wrap(called)
	dynamic := agent.Dynamic.Tools
	agent.Dynamic.Tools = func(ctx context.Context) (shown, hidden []tool.Tool) {
		if dynamic != nil {
			shown, hidden = dynamic(ctx)
		}
		return shown, slices.Concat(hidden, called)
	}
	hook := &insisting{programs: true}
	agent.Hooks = append(agent.Hooks[:len(agent.Hooks):len(agent.Hooks)], hook)
	agent.Model = corpus.LooksFirst(agent.Model, *of.Programs, hook.state)
	return set
}

// insisting keeps an agent running that would end without a verified answer, or with an answer that its quotes
// don't support.
type insisting struct {
	programs bool // a program sets the answer

	mu    sync.Mutex
	ran   bool
	given bool
	lacks []string // parts of the answer that no quote contains
}

// state reports whether a program has run, and whether there is an answer to the last question.
func (i *insisting) state() (ran, given bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.ran, i.given
}

// At implements [tool.Hook].
func (i *insisting) At(_ context.Context, p tool.Point) (tool.Outcome, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case p.Moment == tool.PromptSaid:
		i.given, i.lacks = false, nil
	case p.Moment == tool.AfterCall && p.Call.Name == corpus.AnswerTool && p.Failed == "":
		a, err := corpus.Given(p.Result.Parts.Text())
		if err != nil {
			return tool.Outcome{}, err
		}
		i.given, i.lacks = true, a.Unsupported
	case p.Moment == tool.AfterCall && p.Call.Name == corpus.ProgramTool && p.Failed == "":
		i.ran, i.given = true, i.given || corpus.Sets(*p.Result)
	case p.Moment == tool.RunStop && i.programs && !i.given && p.Rounds <= 1:
		return tool.Outcome{By: "the asker", Text: "Only a value that a program sets with answer(value) is an answer. Set it now; " +
			"if the text does not answer the question, answer(null)."}, nil
	case p.Moment == tool.RunStop && !i.given && p.Rounds <= 1:
		return tool.Outcome{By: "the asker", Text: "Only a call of " + corpus.AnswerTool + " that succeeds is an answer. Make it now; " +
			"if the corpus does not answer the question, set nothing."}, nil
	case p.Moment == tool.RunStop && len(i.lacks) > 0 && p.Rounds == 0:
		return tool.Outcome{By: "the asker", Text: fmt.Sprintf("Your answer is not verified: no quote has %q. Call %s again with the passages "+
			"that have it, or say only what they show.", i.lacks, corpus.AnswerTool)}, nil
	}
	return tool.Outcome{}, nil
}
