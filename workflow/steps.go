package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/tool"
)

func isOpen(err error) bool { return errors.Is(err, inspan.ErrOpenStep) }

// question is one as front ends know it, with what it is about.
func question(asks string, choices []string, about string) event.Raised {
	shown := strings.TrimSpace(strings.TrimSpace(about) + "\n\n" + asks)
	args, err := json.Marshal(map[string]any{"question": shown, "options": choices})
	if err != nil {
		args = nil
	}
	for i, c := range choices {
		shown += fmt.Sprintf("\n%d. %s", i+1, c)
	}
	return event.Raised{
		Agent: event.Workflow, Tool: "ask_user", Args: args, Preview: shown,
		Effects: []tool.Effect{{Kind: tool.Question, Text: asks}},
	}
}

// chosen is the choice that an answer makes; empty: it makes none.
func chosen(d event.Decided, choices []string) string {
	answer := strings.TrimSpace(d.Answer)
	if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(choices) {
		return choices[n-1]
	}
	for _, c := range choices {
		if strings.EqualFold(c, answer) {
			return c
		}
	}
	return ""
}

// approval is a step of kind approval. What is no choice counts as the second one, with the answer.
func (p piecework) approval(ctx context.Context) (any, end) {
	choices := p.Choices
	if len(choices) == 0 {
		choices = []string{"approve", "reject"}
	}
	about := p.frame.text(p.Show)
	if shown := p.evidence(); shown != "" {
		about = strings.TrimSpace(about + "\n\n" + shown)
	}
	q := question(p.frame.text(p.Prompt), choices, about)
	return p.record(ctx, map[string]any{"question": q.Preview}, true, func(ctx context.Context) (event.StepEnded, error) {
		d, err := p.steps.Ask(ctx, p.id, q)
		if err != nil {
			return event.StepEnded{}, err
		}
		choice := cmp.Or(chosen(d, choices), choices[1])
		approved := choice == choices[0]
		why := ""
		if !approved {
			why = "answered " + choice
		}
		return ended(map[string]any{"approved": approved, "choice": choice, "answer": d.Answer}, why), nil
	})
}

// evidence is what checks brought that the step names, for whoever decides.
func (p piecework) evidence() string {
	var out []string
	for _, id := range p.Evidence {
		v, _ := p.frame.value(id).(map[string]any)
		how := "passed"
		if v["passed"] != true {
			how = "did not pass, exit code " + asText(v["exit"])
		}
		if out = append(out, fmt.Sprintf("Check %s %s. The end of its output:\n%s", id, how, asText(v["output"]))); v == nil {
			out[len(out)-1] = "Check " + id + " was not made."
		}
	}
	return strings.Join(out, "\n\n")
}

// proven reports whether all checks have passed that the step names.
func (p piecework) proven() bool {
	return !slices.ContainsFunc(p.Evidence, func(id string) bool { return p.frame.value(id+".passed") != true })
}

// mostShown is how much of a prompt the log of the run shows, in bytes. The agent's own has all of it.
const mostShown = 16 << 10

// agent is a step of kind agent.
func (p piecework) agent(ctx context.Context) (any, end) {
	job := p.job()
	input := map[string]any{"prompt": text.Cut(job.Prompt, mostShown), "digest": tool.Digest([]byte(job.Prompt))}
	return p.work(ctx, input, true, func(ctx context.Context) (event.StepEnded, error) {
		if p.o.Agents == nil {
			return event.StepEnded{}, errors.New("no agents can work here")
		}
		n := 0
		return p.tries(ctx, func(ctx context.Context) (event.StepEnded, error) {
			if n++; n > 1 {
				job.Step = fmt.Sprintf("%s#%d", p.id, n)
			}
			return p.asked(ctx, job)
		})
	})
}

// job is what the step has an agent do.
func (p piecework) job() Job {
	prompt := p.frame.text(p.Prompt)
	if shown := p.evidence(); shown != "" {
		prompt += "\n\n" + shown
	}
	job := Job{
		Step: p.id, Prompt: prompt, Agent: p.Agent, Model: p.Model, Mode: p.Mode, Tools: p.Tools, Budget: p.Budget,
		Untrusted: p.steps.Untrusted(), Progress: p.steps.Progress,
	}
	job.Budget.Turns = cmp.Or(job.Budget.Turns, p.at.w.Limits.Turns)
	if of, forks := strings.CutPrefix(p.Context, "fork("); forks {
		job.Fork = p.at.path + strings.TrimSuffix(of, ")")
	}
	if len(p.SafeOutputs) > 0 {
		job.Mode = tool.ModePlan
	}
	if p.Output != nil {
		job.Output, _ = json.Marshal(p.Output)
	}
	return job
}

// asked has an agent work, and returns what it brings.
func (p piecework) asked(ctx context.Context, job Job) (event.StepEnded, error) {
	r, err := p.o.Agents.Work(ctx, job)
	if err != nil {
		return event.StepEnded{}, err
	}
	value, why := map[string]any{"text": r.Text}, r.Failed
	switch {
	case why != "":
	case p.Output == nil:
	case r.Result == nil:
		why = "the agent brought no result"
	default:
		value = map[string]any{}
		if err := json.Unmarshal(r.Result, &value); err != nil {
			return event.StepEnded{}, err
		}
		if err := valid(p.Output, r.Result); err != nil {
			why = "its result does not fit: " + err.Error()
		}
		if value["passed"] == true && !p.proven() {
			value["passed"] = false // a claim without evidence
		}
	}
	return p.kept(ctx, ran{}, value, why)
}

// call is a step of kind tool.
func (p piecework) call(ctx context.Context) (any, end) {
	filled, _ := p.frame.filled(p.With).(map[string]any)
	args, err := json.Marshal(filled)
	if err != nil || filled == nil {
		args = json.RawMessage("{}")
	}
	input := map[string]any{"tool": p.Tool, "with": json.RawMessage(args)}
	return p.work(ctx, input, true, func(ctx context.Context) (event.StepEnded, error) {
		if p.o.Agents == nil {
			return event.StepEnded{}, errors.New("no tools can be called here")
		}
		n := 0
		return p.tries(ctx, func(ctx context.Context) (event.StepEnded, error) {
			job := Job{Step: p.id, Call: p.Tool, Args: args, Progress: p.steps.Progress}
			if n++; n > 1 {
				job.Step = fmt.Sprintf("%s#%d", p.id, n)
			}
			r, err := p.o.Agents.Work(ctx, job)
			if err != nil {
				return event.StepEnded{}, err
			}
			return p.typed(r.Text, r.Failed), nil
		})
	})
}

// typed is the end of a step that brings text, which is JSON if the step says what that is.
func (p piecework) typed(said, failed string) event.StepEnded {
	if p.Output == nil || failed != "" {
		return ended(map[string]any{"text": said}, failed)
	}
	var v any
	err := json.Unmarshal([]byte(said), &v)
	if err == nil {
		err = valid(p.Output, []byte(said))
	}
	if err != nil {
		return ended(map[string]any{"text": said}, "what it brings is not what output says: "+err.Error())
	}
	return ended(v, "")
}

// use is a step of kind workflow.
func (p piecework) use(ctx context.Context) (any, end) {
	w := p.at.w.Included[p.Use]
	with, _ := p.frame.filled(p.With).(map[string]any)
	return p.record(ctx, map[string]any{"use": p.Use, "with": with}, true, func(ctx context.Context) (event.StepEnded, error) {
		for name, v := range with {
			if v == nil {
				delete(with, name) // what is not there has its default
			}
		}
		inputs, err := w.given(with)
		if err != nil {
			return event.StepEnded{}, err
		}
		out, failed, err := p.whole(ctx, w, inputs, scopeOf{path: p.id + "/", base: p.id + "/", parent: p.id})
		return ended(out, failed), err
	})
}

// wait is a step of kind wait.
func (p piecework) wait(ctx context.Context) (any, end) {
	if p.Webhook != "" {
		return p.hook(ctx)
	}
	until := ""
	if p.For > 0 {
		v, e := p.due(ctx)
		if e.bad() {
			return nil, e
		}
		until = asText(v)
	}
	return p.record(ctx, map[string]any{"until": until, "file": p.File}, true, func(ctx context.Context) (event.StepEnded, error) {
		if until == "" {
			return p.file(ctx)
		}
		at, err := time.Parse(time.RFC3339Nano, until)
		if err == nil {
			err = keep.Sleep(ctx, time.Until(at))
		}
		return ended(map[string]any{"text": until}, ""), err
	})
}

// due is when a wait is over, which is known once it begins, in whatever process.
func (p piecework) due(ctx context.Context) (any, end) {
	p.id += "@due"
	return p.record(ctx, nil, true, func(context.Context) (event.StepEnded, error) {
		return ended(time.Now().Add(time.Duration(p.For)).UTC().Format(time.RFC3339Nano), ""), nil
	})
}

// look is how often a wait looks for its file.
const look = 500 * time.Millisecond

func (p piecework) file(ctx context.Context) (event.StepEnded, error) {
	path := filepath.Join(p.o.Env.Root, p.File)
	if p.o.Env.Files == nil {
		return event.StepEnded{}, errors.New("no files can be read here")
	}
	for {
		f, err := p.o.Env.Files.Open(ctx, path)
		if err == nil {
			return ended(map[string]any{"text": p.File}, ""), f.Close()
		}
		if err := keep.Sleep(ctx, look); err != nil {
			return event.StepEnded{}, err
		}
	}
}

// hook waits for a webhook, which answers a question.
func (p piecework) hook(ctx context.Context) (any, end) {
	q := question("waits for the webhook "+p.Webhook, nil, "")
	q.Agent = "webhook " + p.Webhook
	return p.record(ctx, map[string]any{"webhook": p.Webhook}, true, func(ctx context.Context) (event.StepEnded, error) {
		d, err := p.steps.Ask(ctx, p.id, q)
		if err != nil {
			return event.StepEnded{}, err
		}
		e := p.typed(d.Answer, "")
		e.Untrusted = true
		return e, nil
	})
}

// release releases what agents have brought that waits for this step, and what this one has brought
// that waits for none. A release that fails is a failure of the step.
func (p piecework) release(ctx context.Context, value any, e end) end {
	for _, s := range p.at.steps {
		for _, name := range sortedKeys(s.SafeOutputs) {
			o, brought := s.SafeOutputs[name], p.frame.value(s.ID)
			if s.ID == p.ID && o.After == "" {
				brought = value
			} else if o.After != p.ID {
				continue
			}
			if within(brought, o.From) == nil {
				continue // it was skipped, or has nothing to say
			}
			_, out := p.let(ctx, s.ID+"!"+name, o, within(brought, o.From))
			if out.outcome == "" || out.bad() {
				out.why = name + ": " + out.why
				return out
			}
		}
	}
	return e
}

// let releases one safe output.
func (p piecework) let(ctx context.Context, id string, o SafeOutput, value any) (any, end) {
	to := p.frame.text(o.To)
	p.id, p.Title, p.Kind = p.at.path+id, "", "release"
	return p.record(ctx, map[string]any{"kind": o.Kind, "to": to, "value": value}, true, func(ctx context.Context) (event.StepEnded, error) {
		release := p.o.Outlets[o.Kind]
		if o.Kind == "file" && release == nil {
			release = p.written
		}
		if release == nil {
			return event.StepEnded{}, fmt.Errorf("nothing here releases a %s", o.Kind)
		}
		done, err := release(ctx, Release{Step: p.id, To: to, Value: value})
		return ended(map[string]any{"text": done}, ""), err
	})
}

// written is the outlet for files.
func (p piecework) written(ctx context.Context, r Release) (string, error) {
	if p.o.Env.Files == nil {
		return "", errors.New("no files can be written here")
	}
	if !filepath.IsLocal(r.To) {
		return "", fmt.Errorf("%q is no path below the workspace", r.To)
	}
	body := asText(r.Value)
	if !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	return r.To, p.o.Env.Files.Change(ctx, tool.Change{Path: filepath.Join(p.o.Env.Root, r.To), Data: []byte(body), Exact: true})
}
