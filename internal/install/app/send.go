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

// Message is input that a person sends to a session from elsewhere. It is a new task unless one of the fields
// gives the text another meaning.
type Message struct {
	By     string // the name of the sender
	Text   string
	Steer  bool   // the model sees the text during the run
	Cancel bool   // interrupts the run; the text is the reason
	Allow  string // id of a waiting call; the text is the answer, if the call asks for one
	For    string // scope of Allow: once, session, edits, host, project or always
	Deny   string // id of a waiting call; the text is the reason
	// Question is the number of the question that Allow or Deny refers to, as in [inspan.Pending]. The decision
	// doesn't apply to a later question. 0 means the open one.
	Question uint64
	// Also are the numbers of further questions that were asked together with it, as in event.Decided.
	Also []uint64
	Key  string // identifies the message to its sender, see [loop.Key]
}

// Send appends a message to the log of the named session. A process that drives the session reads it at once;
// otherwise it waits. Invalid messages are a [words.Misuse].
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
	w, err := (&inspan.Host{Store: a.Running.Sessions}).Watch(ctx, id) // fails if this installation can't continue the session
	if err != nil {
		return event.Event{}, err
	}
	switch b := input.(type) {
	case event.Decided:
		input, err = a.decision(ctx, w.Status(), b, m.For)
	case event.Said, event.Steered:
		if w.Status().Workflow != "" {
			err = misused("session %s is a workflow and accepts no messages; answer one of its questions with --allow, or stop it with --cancel", id)
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

// Undecided returns the ids of questions that wait for a person in a session. A message that is not an answer
// waits until they are decided.
func (a *App) Undecided(ctx context.Context, session string) ([]string, error) {
	w, err := (&inspan.Host{Store: a.Running.Sessions}).Watch(ctx, session)
	if err != nil {
		return nil, err
	}
	return questions(w.Status()), w.Close()
}

// answered turns a message into the answer to the only question that waits for one. As a message it would wait
// until the question is answered.
func answered(st inspan.Status, said event.Said) (event.Body, error) {
	var asks []string
	var one inspan.Pending
	for _, p := range st.Questions() {
		if p.IsQuestion {
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

// input returns the event for the message.
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

// questions returns the ids of the open questions of a session.
func questions(st inspan.Status) (ids []string) {
	for _, p := range inspan.Sets(st.Questions()) {
		ids = append(ids, p.ID())
	}
	return ids
}

// alone returns the ids of the calls of a set, in order.
func alone(p inspan.Pending) (ids []string) {
	set := slices.Clone(p.Set)
	slices.SortFunc(set, func(a, b inspan.Pending) int { return cmp.Compare(a.Question, b.Question) })
	for _, one := range set {
		ids = append(ids, one.ID())
	}
	return ids
}

// decision checks a decision against the open questions. One with a scope beyond once applies to the rules that
// the question names. Those for a project or always are saved in the settings.
func (a *App) decision(ctx context.Context, st inspan.Status, d event.Decided, holds string) (event.Body, error) {
	known := slices.Contains([]string{"once", "session", "edits", "host", "project", "always"}, holds)
	open := questions(st)
	asked, waits := st.Question(d.Call)
	if d.Question > 0 && d.Question != asked.Question {
		return nil, misused("the question is no longer open: another person answered it, or the run continued without it")
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
		return nil, misused("calls of one question can only be allowed once or denied together; for --for %s, name one of them: %s",
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
