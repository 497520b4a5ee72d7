package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// Message is what a person sends to a session from elsewhere: a new task, or what one of the fields
// makes of the text.
type Message struct {
	By     string // what sends it
	Text   string
	Steer  bool   // the model sees the text during the run
	Cancel bool   // interrupts the run; the text is the reason
	Allow  string // id of a waiting call; the text answers it, if it asks for an answer
	For    string // what Allow holds for: once, session, edits, host, project or always
	Deny   string // id of a waiting call; the text is the reason
	// Question is the number of the question that Allow or Deny was decided on, as [inspan.Pending]
	// has it, so that it counts for no later one; 0: the one that is open.
	Question uint64
	// Also are the numbers of further questions that were put with it, as those of event.Decided.
	Also []uint64
	Key  string // by which the sender knows it again, see [event.Key]
}

// Send appends a message to the log of the session that the text means. Who drives it reads it at
// once, otherwise it waits. What can't be sent is a [words.Misuse].
func (a *App) Send(ctx context.Context, session string, m Message) (event.Event, error) {
	input, err := m.input()
	if err != nil {
		return event.Event{}, err
	}
	id, err := a.Running.Here(ctx, session)
	if err != nil {
		return event.Event{}, err
	}
	log, err := a.Running.Sessions.Open(ctx, id)
	if err != nil {
		return event.Event{}, err
	}
	defer log.Close()
	w, err := (&inspan.Host{Store: a.Running.Sessions}).Watch(ctx, id) // or nobody here could go on with it
	if err != nil {
		return event.Event{}, err
	}
	switch b := input.(type) {
	case event.Decided:
		input, err = a.decision(ctx, w.Status(), b, m.For)
	case event.Said, event.Steered:
		if w.Status().Workflow != "" {
			err = misused("session %s is a workflow, which takes no messages; answer a question of it with --allow, or stop it with --cancel", id)
		}
		if said, is := b.(event.Said); is && err == nil {
			input, err = answered(w.Status(), said)
		}
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return event.Event{}, err
	}
	events, err := log.Append(ctx, a.Permission.Redacted(input))
	if err != nil {
		return event.Event{}, err
	}
	return events[0], nil
}

// Undecided are the ids of what waits for a person in a session. A message that is no answer waits behind it.
func (a *App) Undecided(ctx context.Context, session string) ([]string, error) {
	w, err := (&inspan.Host{Store: a.Running.Sessions}).Watch(ctx, session)
	if err != nil {
		return nil, err
	}
	return questions(w.Status()), w.Close()
}

// answered makes a message the answer to the question that the session puts to the person, if it waits for
// one: a message would wait behind it.
func answered(st inspan.Status, said event.Said) (event.Body, error) {
	var asks []string
	var one inspan.Pending
	for _, p := range st.Questions() {
		if p.Asks {
			one, asks = p, append(asks, p.ID())
		}
	}
	switch len(asks) {
	case 0:
		return said, nil
	case 1:
		return one.Answer(event.Decided{Call: one.ID(), Allow: true, Answer: said.Parts.Text(), By: said.By, Message: said.Message}), nil
	}
	return nil, misused("%d questions wait for an answer; name one of them: inspan send --allow %s %s \"...\"",
		len(asks), strings.Join(asks, " | "), st.Session)
}

// input is the event that a message is.
func (m Message) input() (event.Body, error) {
	switch {
	case m.Cancel:
		return event.Cancelled{By: m.By, Reason: m.Text, Message: m.Key}, nil
	case m.Allow != "":
		return event.Decided{Call: m.Allow, Question: m.Question, Also: m.Also, Allow: true, Answer: m.Text, By: m.By, Message: m.Key}, nil
	case m.Deny != "":
		return event.Decided{Call: m.Deny, Question: m.Question, Also: m.Also, By: m.By, Reason: m.Text, Message: m.Key}, nil
	case strings.TrimSpace(m.Text) == "":
		return nil, misused("nothing to send; write it as: inspan send ID \"...\"")
	case m.Steer:
		return event.Steered{Origin: event.OriginPerson, Parts: llm.Say(m.Text), By: m.By, Message: m.Key}, nil
	}
	return event.Said{Parts: llm.Say(m.Text), By: m.By, Message: m.Key}, nil
}

// questions are the ids of those that wait in a session.
func questions(st inspan.Status) (ids []string) {
	for _, p := range inspan.Sets(st.Questions()) {
		ids = append(ids, p.ID())
	}
	return ids
}

// alone are the ids of the calls of a set, in order.
func alone(p inspan.Pending) (ids []string) {
	set := slices.Clone(p.Set)
	slices.SortFunc(set, func(a, b inspan.Pending) int { return cmp.Compare(a.Question, b.Question) })
	for _, one := range set {
		ids = append(ids, one.ID())
	}
	return ids
}

// decision is what was decided, if somebody waits for it. One that holds for longer
// holds for the rules that the question names; the settings keep them.
func (a *App) decision(ctx context.Context, st inspan.Status, d event.Decided, holds string) (event.Body, error) {
	known := slices.Contains([]string{"once", "session", "edits", "host", "project", "always"}, holds)
	open := questions(st)
	asked, waits := st.Question(d.Call)
	if d.Question > 0 && d.Question != asked.Question {
		return nil, misused("the question is no longer open; somebody else has answered it, or the run went on without it")
	}
	if waits {
		d = asked.Answer(d)
	}
	switch {
	case !known:
		return nil, misused("--for: unknown scope %q; use once, session, edits, host, project or always", holds)
	case !waits && len(open) == 0:
		return nil, misused("no question is open in this session")
	case !waits:
		return nil, misused("no open question %q; open: %s", d.Call, strings.Join(open, ", "))
	case d.Allow && words.Misfit(asked.Call, d.Answer) != "":
		return nil, misused("%s; the question stays open", words.Misfit(asked.Call, d.Answer))
	case !d.Allow, holds == "once":
		return d, nil
	case len(asked.Set) > 0:
		return nil, misused("calls that are asked about together can be allowed once or denied; --for %s can be said of one of them: %s",
			holds, strings.Join(alone(asked), ", "))
	case len(asked.Rules)+len(asked.Offers) == 0:
		return nil, misused("no rule is safe for this call, so it can only be approved once: use --for once")
	}
	chosen, problem := words.Decision(d.Call, words.Options(asked.Rules, asked.Offers), holds)
	if problem != "" {
		return nil, misused("--for: %s", problem)
	}
	if d.Scope, d.Reach = chosen.Scope, chosen.Reach; d.Scope == event.ScopeSession {
		return d, nil
	}
	return d, a.Permission.Remember(ctx, st.Root, d.Scope, d.Grants(asked.Rules, asked.Offers))
}

func misused(format string, args ...any) error { return words.Misuse{Err: fmt.Errorf(format, args...)} }
