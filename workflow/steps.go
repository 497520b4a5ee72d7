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

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// longText is how many lines a text may have before its question is repeated above it.
const longText = 15

// question returns a question for front ends with its subject.
func question(asks string, choices []string, about string) event.Raised {
	shown := strings.TrimSpace(strings.TrimSpace(about) + "\n\n" + asks)
	if strings.Count(about, "\n") > longText {
		shown = asks + "\n\n" + shown // a window shows its beginning
	}
	args, err := json.Marshal(map[string]any{"question": shown, "options": choices, "closed": len(choices) > 0})
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

// questionID names the step's question; it needs no escaping in an address.
func (p piecework) questionID() string { return strings.ReplaceAll(p.id, "/", ".") }

// insist asks a question, and again with a reason if the answer does not fit. A denial always fits.
func (p piecework) insist(ctx context.Context, q event.Raised, fits func(answer string) (why string)) (d event.Decided, err error) {
	q.ID = cmp.Or(q.ID, p.questionID())
	id, preview := q.ID, q.Preview
	for n := 2; ; n++ {
		if d, err = p.steps.Ask(ctx, p.id, q); err != nil || !d.Allow {
			return d, err
		}
		why := fits(d.Answer)
		if why == "" {
			return d, nil
		}
		q.ID, q.Preview = fmt.Sprintf("%s~%d", id, n), preview+"\n\n"+why
	}
}

// choose asks a person to choose. A denial chooses nothing.
func (p piecework) choose(ctx context.Context, q event.Raised, choices []string) (choice string, d event.Decided, err error) {
	d, err = p.insist(ctx, q, func(answer string) string {
		choice = words.Chosen(answer, choices)
		return words.Misfit(llm.Call{Args: q.Args}, answer)
	})
	return choice, d, err
}

// denied gives the reason why a step fails after its question was denied.
func denied(d event.Decided) string { return strings.TrimSuffix("denied: "+d.Reason, ": ") }

// approval performs a step of kind approval.
func (p piecework) approval(ctx context.Context) (any, end) {
	choices := p.Choices
	if len(choices) == 0 {
		choices = []string{"approve", "reject"}
	}
	about := []string{p.frame.text(p.Show), p.evidence()}
	for _, o := range p.outputs() {
		about = append(about, o.shown(about[0]))
		if err := o.possible(); err != nil {
			return p.record(ctx, nil, true, func(context.Context) (event.StepEnded, error) { return event.StepEnded{}, err })
		}
	}
	about = slices.DeleteFunc(about, func(s string) bool { return strings.TrimSpace(s) == "" })
	q := question(p.frame.text(p.Prompt), choices, strings.Join(about, "\n\n"))
	return p.record(ctx, map[string]any{"question": q.Preview}, true, func(ctx context.Context) (event.StepEnded, error) {
		choice, d, err := p.choose(ctx, q, choices)
		if err != nil {
			return event.StepEnded{}, err
		}
		approved, why := choice == choices[0], ""
		switch {
		case choice == "":
			why = denied(d)
		case !approved:
			why = "answered " + choice
		}
		return ended(map[string]any{"approved": approved, "choice": choice, "answer": cmp.Or(d.Answer, d.Reason)}, why), nil
	})
}

// evidence describes the findings of the checks that the step names, for the person who decides.
func (p piecework) evidence() string {
	var out []string
	for _, id := range p.Evidence {
		v, _ := p.frame.value(id).(map[string]any)
		how := "passed"
		if v["passed"] != true {
			how = "did not pass, exit code " + asText(v["exit"])
		}
		if out = append(out, fmt.Sprintf("Check %s %s. The end of its output:\n%s", id, how, quoted(asText(v["output"])))); v == nil {
			out[len(out)-1] = "Check " + id + " was not made."
		}
	}
	return strings.Join(out, "\n\n")
}

// proven reports whether all checks that the step names have passed.
func (p piecework) proven() bool {
	return !slices.ContainsFunc(p.Evidence, func(id string) bool { return p.frame.value(id+".passed") != true })
}

// mostShown is how much of a prompt the run's log shows, in bytes. The agent's own log has all of it.
const mostShown = 16 << 10

// agent performs a step of kind agent.
func (p piecework) agent(ctx context.Context) (any, end) {
	job := p.job()
	input := map[string]any{"prompt": text.Cut(job.Prompt, mostShown), "digest": tool.Digest([]byte(job.Prompt))}
	return p.work(ctx, input, true, func(ctx context.Context) (event.StepEnded, error) {
		if p.o.Agents == nil {
			return event.StepEnded{}, errors.New("no agents can work here")
		}
		return p.tries(ctx, func(ctx context.Context, try int) (event.StepEnded, error) {
			job.Step = p.numbered(try)
			return p.asked(ctx, job)
		})
	})
}

// job returns the step's job for an agent.
func (p piecework) job() Job {
	prompt := p.frame.put(p.Prompt, func(ref string) bool {
		return ref == "history" || strings.HasPrefix(ref, "inputs.") && !p.steps.Untrusted()
	})
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

// asked gives an agent the job, and returns its result.
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

// call performs a step of kind tool.
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
		return p.tries(ctx, func(ctx context.Context, try int) (event.StepEnded, error) {
			job := Job{Step: p.numbered(try), Call: p.Tool, Args: args, Progress: p.steps.Progress}
			r, err := p.o.Agents.Work(ctx, job)
			for start, again := 1, true; err == nil && r.Lost && again; start++ {
				again, err = p.onceMore(ctx, "call", job.Call+" "+string(job.Args), fmt.Sprintf("%d.%d", try, start))
				if again {
					job.Step += "+"
					r, err = p.o.Agents.Work(ctx, job)
				}
			}
			if err != nil {
				return event.StepEnded{}, err
			}
			return p.typed(r.Text, r.Failed), nil
		})
	})
}

// numbered returns the id of the agent of a try.
func (p piecework) numbered(try int) string {
	if try == 1 {
		return p.id
	}
	return fmt.Sprintf("%s#%d", p.id, try)
}

// typed ends a step with a text, which is JSON if the step has an output schema.
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

// use performs a step of kind workflow.
func (p piecework) use(ctx context.Context) (any, end) {
	w := p.at.w.Included[p.Use]
	with, _ := p.frame.filled(p.With).(map[string]any)
	return p.record(ctx, map[string]any{"use": p.Use, "with": with}, true, func(ctx context.Context) (event.StepEnded, error) {
		inputs, err := w.given(filledIn(with))
		if err != nil {
			return event.StepEnded{}, err
		}
		out, failed, err := p.whole(ctx, w, inputs, scopeOf{path: p.id + "/", base: p.at.base + p.ID + "/", parent: p.id, last: p.at.last})
		return ended(out, failed), err
	})
}

// wait performs a step of kind wait.
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

// due returns when a wait is over. The log keeps it from the wait's beginning.
func (p piecework) due(ctx context.Context) (any, end) {
	p.id += "@due"
	return p.record(ctx, nil, true, func(context.Context) (event.StepEnded, error) {
		return ended(time.Now().Add(time.Duration(p.For)).UTC().Format(time.RFC3339Nano), ""), nil
	})
}

// look is the interval of a wait between two looks for its file.
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
		var e event.StepEnded
		d, err := p.insist(ctx, q, func(answer string) string {
			if e = p.typed(answer, ""); e.Error != "" {
				return "The last call did not fit: " + e.Error
			}
			return ""
		})
		if err != nil || !d.Allow {
			return ended(nil, denied(d)), err
		}
		e.Untrusted = true
		return e, nil
	})
}

// output is a safe output of an agent.
type output struct {
	SafeOutput
	step, name, to string
	value          any
}

// outputs returns the outputs that wait for this step, and its own that wait for none. Skipped and empty ones
// are left out.
func (p piecework) outputs() (out []output) {
	for _, s := range p.at.steps {
		for _, name := range sortedKeys(s.SafeOutputs) {
			o := s.SafeOutputs[name]
			if o.After == p.ID {
				if v := within(p.frame.value(s.ID), o.From); v != nil {
					out = append(out, output{o, s.ID, name, p.frame.text(o.To), v})
				}
			}
		}
	}
	return out
}

// shown describes an output for a person before its release, below a text.
func (o output) shown(above string) string {
	to := ""
	if o.to != "" {
		to = " to " + strconv.Quote(o.to)
	}
	if value := asText(o.value); !strings.Contains(above, value) {
		return fmt.Sprintf("This releases the %s %s%s:\n%s", o.Kind, o.name, to, quoted(value))
	}
	return fmt.Sprintf("This releases what stands above, as the %s %s%s.", o.Kind, o.name, to)
}

// quoted sets text from others apart from ours.
func quoted(s string) string {
	return "  | " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  | ")
}

// possible returns the reason why an output can't be released, whatever the person decides.
func (o output) possible() error {
	switch {
	case text.Holds(o.to, text.Hidden):
		return fmt.Errorf("%s: %q has characters that nobody sees", o.name, o.to)
	case o.Kind == "file" && !filepath.IsLocal(o.to):
		return fmt.Errorf("%s: %q is no path below the workspace", o.name, o.to)
	}
	return nil
}

// release releases the outputs that wait for this step, and this step's own that wait for none. If a release
// fails, the step fails.
func (p piecework) release(ctx context.Context, value any, e end) end {
	all := p.outputs()
	for _, name := range sortedKeys(p.SafeOutputs) {
		if o := p.SafeOutputs[name]; o.After == "" && within(value, o.From) != nil {
			all = append(all, output{o, p.ID, name, p.frame.text(o.To), within(value, o.From)})
		}
	}
	for _, o := range all {
		if _, out := p.let(ctx, o); out.outcome == "" || out.bad() {
			out.why = o.name + ": " + out.why
			return out
		}
	}
	return e
}

// let releases one safe output.
func (p piecework) let(ctx context.Context, o output) (any, end) {
	p.id, p.Title, p.Kind = p.at.path+o.step+"!"+o.name, "", "release"
	input := map[string]any{"kind": o.Kind, "to": o.to, "value": o.value}
	return p.record(ctx, input, true, func(ctx context.Context) (event.StepEnded, error) {
		release := p.o.Outlets[o.Kind]
		if o.Kind == "file" && release == nil {
			release = p.written
		}
		if release == nil {
			return event.StepEnded{}, fmt.Errorf("nothing here releases a %s", o.Kind)
		}
		if err := o.possible(); err != nil {
			return event.StepEnded{}, err
		}
		done, err := release(ctx, Release{Step: p.id, To: o.to, Value: o.value})
		return ended(map[string]any{"text": done}, ""), err
	})
}

// written is the outlet for files.
func (p piecework) written(ctx context.Context, r Release) (string, error) {
	if p.o.Env.Files == nil {
		return "", errors.New("no files can be written here")
	}
	body := asText(r.Value)
	if !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	return r.To, p.o.Env.Files.Change(ctx, tool.Change{Path: filepath.Join(p.o.Env.Root, r.To), Data: []byte(body), Exact: true})
}
