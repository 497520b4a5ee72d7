package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/compact"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/request"
	"github.com/inspan/inspan/internal/models/reaction"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// keepTokens is how many tokens at the end of a conversation a compaction leaves unchanged, but at most a third of
// the room.
const keepTokens = 20_000

// compact replaces the old part of the conversation with the model's summary, checked against the log. If the model is
// unavailable, the conversation stays as it is. If the conversation is too long for the model, an extract from the
// log replaces the summary.
func (d *Driver) compact(ctx context.Context, c loop.Compact) error {
	state := d.journal.state
	focus, kept, err := d.hooks.beforeCompact(ctx, c)
	if err != nil {
		return err
	}
	if kept.Reason != "" {
		return d.journal.record(ctx, kept)
	}
	times, from := state.Compaction.Times, source(state, c.Why)
	keep := keepTokens
	if from.Room > 0 {
		keep = min(keep, from.Room/3)
	}
	plan, ok := compact.Split(from, keep)
	if !ok {
		return d.journal.record(ctx, event.Kept{Why: c.Why, Reason: "there is too little to summarise"})
	}
	if err := d.journal.show(event.Progress{Text: loop.Compacting}); err != nil {
		return err
	}
	s := summary{requests: d.requests, plan: plan, focus: focus}
	record, err := s.write(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && (c.Why != loop.CompactOverflow || errors.Is(err, fault.ErrInterrupted)) {
		return d.journal.record(ctx, event.Kept{Why: c.Why, Reason: err.Error(), Usage: s.usage, Cost: s.cost, Consulted: s.consulted})
	}
	if err != nil {
		record, s.how, s.problems = plan.Extract(), "extract", append(s.problems, "no summary: "+err.Error())
	}
	body := event.Compacted{Why: c.Why, How: s.how, Lacks: s.problems, Route: s.route, Usage: s.usage, Cost: s.cost, Consulted: s.consulted}
	to := loop.Shortened{Events: plan.Events(), Unshown: plan.Unshown}
	to.Messages, to.Person = plan.Build(record)
	if err := d.replace(ctx, body, to, len(from.Messages)); err != nil {
		return err
	}
	if state.Compaction.Times == times {
		return nil
	}
	if state.Retold != "" { // the message that described the tools is gone
		if err := d.journal.record(ctx, event.Switched{Tools: d.tools.specs}); err != nil {
			return err
		}
	}
	more, err := d.hooks.outcomes(ctx, tool.Point{Moment: tool.AfterCompact, Why: string(c.Why)})
	if err != nil || len(more) == 0 {
		return err
	}
	return d.journal.record(ctx, more...)
}

// replace appends the compaction. Messages that arrived since the conversation was read come after it.
func (d *Driver) replace(ctx context.Context, body event.Compacted, to loop.Shortened, read int) error {
	return d.journal.persist(ctx, func() ([]event.Body, error) {
		state, whole := d.journal.state, to
		whole.Messages = slices.Concat(to.Messages, state.Messages[read:])
		for n, i := range state.Person {
			if i >= read {
				whole.Person = append(slices.Clone(whole.Person), i-read+len(to.Messages))
				whole.Events = append(slices.Clone(whole.Events), state.Events[n])
			}
		}
		done, err := state.Compacted(body, whole)
		if err == nil && done.After >= done.Before {
			return []event.Body{event.Kept{
				Why: body.Why, Reason: "the summary would not be shorter", Usage: body.Usage, Cost: body.Cost, Consulted: body.Consulted,
			}}, nil
		}
		return []event.Body{done}, err
	})
}

// allowedTokens returns how many tokens of messages a compaction may leave, so that a quarter of the room is free; 0 if
// the room is unknown. A conversation that the provider refused was too long, even if we counted less.
func allowedTokens(st *loop.State, why event.Compaction) int {
	room := st.Room()
	if refused := st.Tokens() * 3 / 4; why == loop.CompactOverflow && (room == 0 || refused < room) {
		room = refused
	}
	if room == 0 {
		return 0
	}
	fixed := st.Fixed()
	return max(room*3/4-fixed, (room-fixed)/2, 1)
}

// source returns the conversation and its context for a compaction.
func source(st *loop.State, why event.Compaction) compact.Source {
	return compact.Source{
		Messages: st.Messages, Person: st.Person, Events: st.Events, Unshown: st.Compaction.Unshown,
		Count: st.Count, Room: allowedTokens(st, why),
		Facts:   facts(st),
		Carry:   compact.Carry{Goal: st.Asked(), Todo: st.Todo, Mode: st.Mode, Granted: st.Granted, Answers: st.Answers, Lasting: st.Lasting},
		History: st.HasTool("history"),
	}
}

// testRun matches commands that begin like a run of tests.
const testRun = `(?:^|; )(?:\w+=\S+ )*(?:(?:uv run|poetry run|pipenv run|npx|bunx|bundle exec|python3? -m|xvfb-run|time) )*(?:go ` +
	`test|pytest|unittest|tox|nox|(?:npm|pnpm|yarn|bun|deno)(?: run)? test|jest|vitest|mocha|cargo (?:test|nextest)|make (?:\S+ ` +
	`)*(?:test|check)|ctest|mvn (?:\S+ )*(?:test|verify)|gradlew? (?:\S+ )*(?:test|check)|dotnet test|swift test|mix ` +
	`test|rspec|phpunit|bats|zig build test|bazel test|sbt test|flutter test)\b`

// facts returns the facts that the log proves about the work.
func facts(st *loop.State) compact.Facts {
	var f compact.Facts
	tests := regexp.MustCompile(testRun)
	for _, path := range st.Work.Changed {
		f.Changed = append(f.Changed, text.Below(st.Root, path))
	}
	for _, ran := range st.Work.Ran {
		run := compact.Run{Command: ran.Command, Detail: ran.Shown}
		switch {
		case tests.MatchString(ran.Command):
			if f.Test != nil && !f.Test.Passed {
				f.Failed = append(f.Failed, f.Test.Run)
			}
			run.Detail = cmp.Or(run.Detail, ran.Line)
			f.Test = &compact.Test{Run: run, Passed: !ran.Failed}
		case ran.Failed:
			f.Failed = append(f.Failed, run)
		}
	}
	return f
}

// summary is a summary being written.
type summary struct {
	*requests
	plan  compact.Plan
	focus string

	how       string
	problems  []string // facts missing in the first attempt, and failures
	route     string
	usage     llm.Usage
	cost      float64
	consulted []llm.Consulted

	waited float64 // seconds waited for an unavailable model
}

// maxModelWait is how many seconds a summary waits for an unavailable model. The work can continue without a summary.
const maxModelWait = 30

// write asks the model for a summary and checks it. If facts are missing, it asks once more. If they are still missing,
// it returns an extract from the log. The error is the model's.
func (s *summary) write(ctx context.Context) (compact.Summary, error) {
	if s.plan.From == 0 { // there is nothing to summarise but one message
		s.how = "extract"
		return s.plan.Extract(), nil
	}
	st := s.journal.state
	req := s.plan.Request(st.System, st.Tools, s.focus)
	req.Effort, req.Session = st.Effort, st.Session
	answer, err := s.ask(ctx, req)
	if e := (*llm.Error)(nil); errors.As(err, &e) && reaction.To(e.Kind) == reaction.Compact {
		return s.pieces(ctx, e)
	}
	if err != nil {
		return compact.Summary{}, err
	}
	record, missing := s.plan.Read(answer)
	s.how = "model"
	if len(missing) == 0 {
		return record, nil
	}
	s.note(missing)
	if answer, err = s.ask(ctx, s.plan.Repair(req, answer, missing)); err == nil {
		if record, missing = s.plan.Read(answer); len(missing) == 0 {
			s.how = "repaired"
			return record, nil
		}
	}
	if errors.Is(err, fault.ErrInterrupted) {
		return compact.Summary{}, err
	}
	s.how = "extract"
	return s.plan.Extract(), nil
}

// pieces summarises a conversation in parts, because the whole no longer fits in the window.
func (s *summary) pieces(ctx context.Context, e *llm.Error) (compact.Summary, error) {
	limit := s.journal.state.Room()
	switch {
	case limit == 0:
		limit = max(e.Limit, s.journal.state.Tokens()) / 2
	case e.Limit > 0:
		limit = min(limit, e.Limit*3/4)
	}
	answer := ""
	for _, chunk := range s.plan.Chunks(limit) {
		req := chunk.Request(answer, s.focus)
		req.Private = e.Private // even for a part that doesn't show it
		said, err := s.ask(ctx, req)
		if err != nil {
			return compact.Summary{}, err
		}
		answer = said
	}
	record, missing := s.plan.Read(answer)
	s.how = "model"
	if len(missing) > 0 {
		s.note(missing)
		record, s.how = s.plan.Extract(), "extract"
	}
	return record, nil
}

func (s *summary) note(missing []compact.Missing) {
	for _, m := range missing[:min(len(missing), 20)] {
		s.problems = append(s.problems, fmt.Sprintf("%s: %.200s", m.Kind, m.What))
	}
}

// ask returns the model's answer, with secrets removed.
func (s *summary) ask(ctx context.Context, req llm.Request) (string, error) {
	req, err := s.load(ctx, req)
	if err != nil {
		return "", err
	}
	watched, done := s.journal.interruptible(ctx)
	defer done()
	by, began := s.model.Info(), time.Now()
	req.Private = cmp.Or(req.Private, s.journal.state.PrivateText)
	for chunk, err := range s.model.Stream(watched, req) {
		switch {
		case err != nil && errors.Is(context.Cause(watched), fault.ErrInterrupted):
			return "", fault.ErrInterrupted
		case err != nil:
			s.recordFailure(req, by, began, err)
			return "", err
		case chunk.Routed != nil:
			by = chunk.Routed.Info
			if judge := chunk.Routed.Judge; judge != nil { // choosing a model has cost something
				c := llm.Consulted{Purpose: "route", Route: judge.Info.Route(), Usage: judge.Usage, Cost: request.Dollars(judge), Millis: judge.Millis}
				s.usage, s.cost, s.consulted = s.usage.Add(c.Usage), s.cost+c.Cost, append(s.consulted, c)
			}
		case chunk.Retry != nil:
			if s.waited += chunk.Retry.Wait; s.waited > maxModelWait {
				s.recordFailure(req, by, began, chunk.Retry.Cause)
				return "", chunk.Retry.Cause
			}
			if err := s.journal.show(event.Progress{Text: "compacting: " + chunk.Retry.Cause.Error(), Wait: chunk.Retry.Wait}); err != nil {
				return "", err
			}
		case chunk.Reply != nil:
			r := request.Replied(s.journal.state, req, chunk.Reply, by)
			s.route, s.usage, s.cost = r.Route, s.usage.Add(r.Usage), s.cost+r.Cost
			s.consulted = append(s.consulted, llm.Consulted{
				Purpose: req.Purpose, Route: r.Route, Usage: r.Usage, Cost: r.Cost, Unpriced: r.Unpriced, Millis: time.Since(began).Milliseconds(),
			})
			return s.cfg.Secrets.Vault.Redact(r.Parts.Text()), nil
		}
	}
	return "", &llm.Error{Kind: llm.KindStreamCut, Message: "the stream ended without a reply"}
}

// recordFailure records a request without an answer, with its cost.
func (s *summary) recordFailure(req llm.Request, by llm.Info, began time.Time, err error) {
	e := llm.AsError(err)
	c := llm.Consulted{Purpose: req.Purpose, Route: by.Route(), Millis: time.Since(began).Milliseconds(), Cause: e.Kind}
	if e.Spent != nil {
		c.Usage, c.Cost = e.Spent.Usage, request.Dollars(e.Spent)
		s.usage, s.cost = s.usage.Add(c.Usage), s.cost+c.Cost
	}
	s.consulted = append(s.consulted, c)
}
