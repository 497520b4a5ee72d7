package console

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// Person asks somebody at a terminal. Use NewPerson.
type Person struct {
	out         io.Writer
	console     *Console
	lines       chan string // what the person types; closed at the end of input
	interrupted chan struct{}
}

// NewPerson reads answers from in and prints questions to out. The goroutine
// that reads lives as long as the process, because a read from a terminal
// can't be called off.
func NewPerson(c *Console, in io.Reader, out io.Writer) *Person {
	p := &Person{out: out, console: c, lines: make(chan string), interrupted: make(chan struct{}, 1)}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	return p
}

// decide shows what a call would do and waits for an answer: an event.Decided,
// or event.Cancelled if the person interrupts or goes away.
func (p *Person) decide(ctx context.Context, w inspan.Pending) (event.Body, error) {
	if w.Asks {
		fmt.Fprintln(p.out, p.console.paint(yellow, "? "+strings.ReplaceAll(visibleLines(w.Preview), "\n", "\n    ")))
	} else {
		fmt.Fprintf(p.out, "%s %s\n", p.console.paint(yellow, "? "+visible(w.Call.Name)+" asks"), p.console.paint(dim, "("+visible(w.Reason)+")"))
		p.show(w)
		p.showEffects(w)
	}
	late, stop := until(w.Until)
	defer stop()
	for {
		fmt.Fprint(p.out, question(w))
		select {
		case <-late:
			fmt.Fprintln(p.out, "\n  (nobody answered in time)")
			return event.Decided{Call: w.Call.ID, By: "the time-out", Reason: "nobody answered in time"}, nil
		case line, ok := <-p.lines:
			if !ok {
				fmt.Fprintln(p.out)
				return event.Cancelled{By: "the end of input"}, nil
			}
			d, problem := answer(w, strings.TrimSpace(line))
			if problem == "" {
				return d, nil
			}
			fmt.Fprintln(p.out, "  "+problem)
		case <-p.interrupted:
			return event.Cancelled{By: "the user"}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// raise asks whether a run that has reached a limit may use as much again. Nil
// means no, or that it was no limit.
func (p *Person) raise(ctx context.Context, st inspan.Status) (*event.Limits, error) {
	more := st.Limits
	switch {
	case st.Stopped == nil:
		return nil, nil
	case st.Stopped.Reason == event.ReasonMaxTurns:
		more.Turns *= 2
	case st.Stopped.Reason == event.ReasonBudget && st.Stopped.Cause == "":
		more.Cost += st.Limits.Cost
	case st.Stopped.Reason == event.ReasonMaxTokens:
		more.Tokens *= 2
	case st.Stopped.Reason == event.ReasonMaxTime:
		more.Seconds *= 2
	default:
		return nil, nil
	}
	yes, err := p.Agrees(ctx, p.console.paint(yellow, "? "+visible(st.Stopped.Detail)+":")+" go on with twice the limit?")
	if !yes {
		return nil, err
	}
	return &more, nil
}

// Agrees asks a question that is answered by yes or no; whatever is not yes is
// no.
func (p *Person) Agrees(ctx context.Context, question string) (bool, error) {
	fmt.Fprint(p.out, question+" [y]es [n]o ")
	select {
	case line, ok := <-p.lines:
		if !ok {
			fmt.Fprintln(p.out)
		}
		return ok && strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y"), nil
	case <-p.interrupted:
		fmt.Fprintln(p.out)
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// interrupt calls off the question that is being asked, if one is.
func (p *Person) interrupt() {
	select {
	case p.interrupted <- struct{}{}:
	default:
	}
}

// show prints all that would happen; nothing is left out, because a person can
// not decide on what is not shown.
func (p *Person) show(w inspan.Pending) {
	if w.Preview != "" {
		for line := range strings.Lines(w.Preview) {
			fmt.Fprintln(p.out, "    "+p.console.paintDiff(visible(strings.TrimRight(line, "\n"))))
		}
		return
	}
	var args struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(w.Call.Args, &args) == nil && args.Command != "" {
		fmt.Fprintln(p.out, "    $ "+strings.ReplaceAll(visibleLines(args.Command), "\n", "\n      "))
		return
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, w.Call.Args, "    ", "  ") != nil {
		pretty.Write(w.Call.Args)
	}
	fmt.Fprintln(p.out, "    "+visibleLines(pretty.String()))
}

// showEffects prints what the call would touch beyond what its text shows:
// where it would write outside of the workspace, and whom it would talk to.
func (p *Person) showEffects(w inspan.Pending) {
	for _, e := range w.Effects {
		switch {
		case e.Kind == tool.Network:
			fmt.Fprintln(p.out, "    talks to "+visible(cmp.Or(e.Text, "any host")))
		case e.Kind == tool.Write && w.Preview == "":
			fmt.Fprintln(p.out, "    changes "+visible(e.Path))
		case e.Kind == tool.External && e.Text != "":
			fmt.Fprintln(p.out, "    would "+visible(e.Text))
		}
	}
}

// question offers what the call can be allowed for. What holds longer is said
// in full: the rules are all it would cover.
func question(w inspan.Pending) string {
	if w.Asks {
		return "  Your answer, a number or your own words: "
	}
	if len(w.Rules) == 0 {
		return "  Allow it? [y]es, [n]o, or say what to do instead: "
	}
	return "  Allow it? [y]es once; for [s]ession, [p]roject or [a]lways: " + visible(strings.Join(w.Rules, ", ")) + "; [n]o, or say what to do instead: "
}

// chosen is the option that a number stands for, or the answer as it was given.
func chosen(w inspan.Pending, line string) string {
	var args struct {
		Options []string `json:"options"`
	}
	n, err := strconv.Atoi(line)
	if err != nil || json.Unmarshal(w.Call.Args, &args) != nil || n < 1 || n > len(args.Options) {
		return line
	}
	return args.Options[n-1]
}

// until returns a channel that speaks when the time has come, never for zero.
func until(t time.Time) (late <-chan time.Time, stop func()) {
	if t.IsZero() {
		return nil, func() {}
	}
	timer := time.NewTimer(time.Until(t))
	return timer.C, func() { timer.Stop() }
}

// answer reads what the person typed, or says what is wrong with it.
func answer(w inspan.Pending, line string) (d event.Decided, problem string) {
	d = event.Decided{Call: w.Call.ID, By: "the user"}
	if w.Asks {
		d.Allow, d.Answer = true, chosen(w, line)
		if line == "" {
			return d, "Please answer; the work waits for it."
		}
		return d, ""
	}
	scopes := map[string]event.Scope{
		"y": event.ScopeOnce, "yes": event.ScopeOnce, "s": event.ScopeSession, "session": event.ScopeSession,
		"p": event.ScopeProject, "project": event.ScopeProject, "a": event.ScopeAlways, "always": event.ScopeAlways,
	}
	word := strings.ToLower(line)
	scope, yes := scopes[word]
	switch {
	case line == "":
		return d, "Please answer; nothing is run before you do."
	case yes && scope != event.ScopeOnce && len(w.Rules) == 0:
		return d, "No rule could safely stand for this call, so it can only be allowed once: y or n."
	case yes:
		d.Allow, d.Scope = true, scope
	case word == "n" || word == "no":
	default:
		d.Reason = line
	}
	return d, ""
}
