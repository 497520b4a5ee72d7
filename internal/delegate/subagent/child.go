package subagent

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// child is a session that works for another.
type child struct {
	id       string
	call     string // that made it
	spawned  event.Spawned
	order    Order
	session  *inspan.Session
	progress func(text string) // for watchers; never nil
	ctx      context.Context   // ends with the child; its end stops the child at once
	cancel   context.CancelCauseFunc
	conduct  inspan.Conductor
	gone     chan struct{} // closed when it has returned

	// The usage of the session that it copies, and its own usage since, as far as the parent's log has it.
	counted float64
	used    llm.Usage
	copied  bool // it is a copy that has had no message yet
	// Its task may have text from an untrusted source.
	untrusted bool

	files    tool.Files         // of its workspace
	commands map[string]command // running and possible ones, by call; for the goroutine that drives it

	mu     sync.Mutex
	fold   transcript.Fold      // its visible work
	wrote  map[string]writeMark // files, by resolved path, since it was opened
	shared []sharedFile         // reported to it or to others
	left   bool                 // it has left the team, see the tool team
	open   []string             // tasks that it had when it returned, not marked done
}

// newChild makes a child from the content of its log.
func newChild(s *inspan.Session, o Order, call string) *child {
	k := &child{id: s.ID(), call: call, order: o, session: s, wrote: map[string]writeMark{}, commands: map[string]command{}, gone: make(chan struct{}), progress: func(string) {}}
	k.ctx, k.cancel = context.WithCancelCause(context.Background())
	upto := s.Status().Seq
	for e, err := range s.Events(k.ctx, 0) {
		if err != nil {
			break
		}
		k.apply(e)
		switch e.Body.(type) {
		case event.Forked:
			k.copied, k.counted, k.used = true, k.fold.Spent.Cost, k.fold.Spent.Usage
		case event.Said:
			k.copied = false
		}
		if e.Seq >= upto {
			break
		}
	}
	return k
}

// apply folds an event, and returns a line for people.
func (k *child) apply(e event.Event) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	items := k.fold.Apply(e)
	if b, ok := e.Body.(event.Ended); ok && b.Store[storedLeave] != nil {
		k.left = true
	}
	if k.order.result != nil {
		k.order.result.observe(items)
	}
	if k.order.check != nil {
		k.order.check.observe(items)
	}
	if k.order.call != nil {
		k.order.call.observe(items)
	}
	return line(items)
}

func (k *child) hasLeft() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.left
}

func (k *child) lastWords() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fold.Last
}

// line returns a line for people about new items; empty if there is nothing to show.
func line(items []transcript.Item) string {
	for _, item := range items {
		if c, ok := item.(*transcript.Call); ok && c.State == transcript.Made {
			return c.Call.Name + " " + text.Short(string(c.Call.Args), 100)
		}
	}
	return ""
}

// label returns a child's name for people.
func (k *child) label() string { return cmp.Or(k.order.Name, label(k.order.Role.Name, k.id)) }

func label(agent, id string) string { return agent + " " + short(id) }

// short returns the part of an id that distinguishes children of one parent.
func short(id string) string { return id[strings.LastIndexByte(id, '.')+1:] }

func (k *child) spent() childUsage {
	if t := k.order.Team; t != nil {
		if cost, tokens := t.spent(); cost > 0 || tokens > 0 {
			return childUsage{cost, tokens}
		}
	}
	st := k.session.Status()
	return childUsage{st.Cost, totalUsage(st.Usage)}
}

func totalUsage(u llm.Usage) int64 { return int64(u.Prompt()) + int64(u.Output) }

// stop asks the child to stop, and forces it if it does not.
func (k *child) stop(why string) {
	k.conduct.Interrupt(event.Cancelled{By: "the session it works for", Reason: why, All: true})
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-k.gone:
	case <-timer.C:
		k.cancel(fmt.Errorf("%w: %s", errStopped, why))
	}
}

// drive runs the child until its run has stopped, and passes its questions to its parent. The error says that
// it could not continue; its state then is as it was.
func (t *Team) drive(k *child, inputs []event.Body) error {
	c := &k.conduct
	c.Session, c.AnswerWait = k.session, -1
	c.OnEvent = func(e event.Event) error {
		if line := k.apply(e); line != "" {
			k.progress(k.label() + ": " + line + "\n")
		}
		t.watchWrites(k, e)
		return nil
	}
	c.Ask = func(ctx context.Context, p inspan.Pending) (event.Body, error) {
		t.recordQuestion(ctx, k, p)
		return nil, nil
	}
	err := c.Run(k.ctx, inputs...)
	return cmp.Or(context.Cause(k.ctx), err)
}

// returned returns how the child ended, for the parent's log.
func (k *child) returned(err error) event.Returned {
	st := k.session.Status()
	r := event.Returned{
		Child: k.id, Turns: st.Turns, Usage: usageSince(st.Usage, k.used), Cost: max(0, st.Cost-k.counted), Unpriced: st.Unpriced,
		Taint: event.Taint{Untrusted: st.Untrusted, Private: st.Private},
	}
	if s := st.Stopped; s != nil {
		r.Reason, r.Detail = s.Reason, s.Detail
	}
	if err != nil {
		r.Detail = err.Error()
	}
	r.Idle = k.order.Name != "" && r.Reason == event.ReasonDone && !k.hasLeft()
	return r
}

// usageSince returns the usage after before.
func usageSince(now, before llm.Usage) llm.Usage {
	return llm.Usage{
		Input: now.Input - before.Input, CacheRead: now.CacheRead - before.CacheRead, CacheWrite: now.CacheWrite - before.CacheWrite,
		Output: now.Output - before.Output, Reasoning: now.Reasoning - before.Reasoning, Estimated: now.Estimated,
	}
}

// outcomeText returns the parent model's text for how the child ended.
func (k *child) outcomeText(r event.Returned) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	how := string(r.Reason)
	if how == "" {
		how = "broken off"
	}
	if r.Detail != "" {
		how += " (" + text.Short(r.Detail, 300) + ")"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[agent %s: %s · %d turns · %d calls · $%.4f]\n", k.label(), how, r.Turns, k.fold.Spent.Calls, r.Cost)
	last := k.fold.Last
	if k.order.result != nil {
		last = cmp.Or(string(k.order.result.returned()), last)
	}
	switch {
	case r.Reason == event.ReasonDone && last != "":
		b.WriteString(last)
	case r.Reason == event.ReasonDone:
		b.WriteString("It said nothing.")
	default:
		if last != "" {
			fmt.Fprintf(&b, "What it said last, before its work was done:\n%s\n", last)
		}
		fmt.Fprintf(&b, "What it did stands. Let it go on with manage_agents, action message, agent %q.", cmp.Or(k.order.Name, short(k.id)))
	}
	if k.order.planner != "" {
		b.WriteString("\n[that is its plan: manage_agents, action approve, lets it carry it out, action message has it changed]")
	}
	if r.Idle {
		b.WriteString("\n[it is idle, until a message or a task for it comes]")
	}
	root := k.session.Status().Root
	if len(k.fold.Files) > 0 {
		b.WriteString("\n[files it changed: " + files(root, k.fold.Files) + "]")
	}
	b.WriteString(k.describeShared(root))
	if len(k.open) > 0 {
		fmt.Fprintf(&b, "\n[it has not marked done what it claimed, so it is open again: task %s]", strings.Join(k.open, ", "))
	}
	if k.order.Copy != nil {
		fmt.Fprintf(&b, "\n[it worked apart, in %s; manage_agents, action merge, brings its changes here]", k.order.Copy.Root)
		for _, line := range k.order.Copy.lacks() {
			b.WriteString("\n[" + line + "]")
		}
	}
	return b.String()
}

const mostNamed = 30

func files(root string, paths []string) string {
	var names []string
	for _, p := range paths[:min(len(paths), mostNamed)] {
		names = append(names, text.Below(root, p))
	}
	if more := len(paths) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

func said(text string, taint event.Taint) event.Said {
	return event.Said{Parts: llm.Say(text), By: "the agent it works for", Origin: event.OriginLead, Taint: taint}
}
