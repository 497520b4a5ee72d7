package console

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// view folds the events of one command into what a person sees.
type view struct {
	*Console
	calls   map[string]llm.Call // by id
	last    string              // the model's last words
	denied  int
	seen    map[string]bool // calls whose change a person was shown before
	written bool            // the model's line on standard output is open
	shown   bool            // text of the current reply has been shown as it came
	route   string          // and rule of the model that answered last, if it was chosen
	wait    *countdown      // runs until the next event; nil if none does
}

func newView(c *Console) *view {
	return &view{Console: c, calls: map[string]llm.Call{}, seen: map[string]bool{}}
}

// event prints one event in the form that was asked for. The error is that of
// standard output: nobody listens any more.
func (v *view) event(e event.Event) error {
	v.endWait()
	v.note(e)
	switch v.Form {
	case JSON:
		return nil
	case StreamJSON:
		line, err := event.Encode(e)
		if err == nil {
			_, err = fmt.Fprintf(v.Out, "%s\n", line)
		}
		return err
	}
	return v.print(e.Body)
}

// note remembers what later lines and the result need.
func (v *view) note(e event.Event) {
	switch b := e.Body.(type) {
	case event.Replied:
		if text := strings.TrimSpace(b.Parts.Text()); text != "" {
			v.last = text
		}
		for _, c := range b.Parts.Calls() {
			v.calls[c.ID] = c
		}
	case event.Waiting:
		v.seen[b.Call] = b.Preview != "" && v.Person != nil
	case event.Ended:
		if b.Outcome == event.OutcomeDenied {
			v.denied++
		}
	}
}

func (v *view) print(body event.Body) error {
	switch b := body.(type) {
	case event.Delta:
		return v.delta(b)
	case event.Replied:
		return v.replied(b)
	case event.Started:
		c := v.calls[b.Call]
		v.line("%s %s", v.paint(bold, "▸ "+OneLine(c.Name, 64)), brief(c))
	case event.Ended:
		v.ended(b)
	case event.Failed:
		v.shown = false
		v.endLine()
		if b.Retry > 0 {
			v.waits(OneLine(b.Message, 200), "trying again", b.Retry)
		}
	case event.Progress:
		if b.Wait > 0 {
			v.waits(OneLine(b.Text, 200), "going on", b.Wait)
		}
	case event.Routed:
		v.routed(b)
	case event.Healed:
		v.line("%s", v.paint(yellow, "! the model refused the conversation ("+words(b.Cause)+"); it goes on without "+without(b.Level)))
	case event.Hooked:
		if b.Action == tool.Deny {
			v.line("%s", v.paint(yellow, "! "+OneLine(b.By+" says no: "+b.Reason, 300)))
		} else if b.Text != "" {
			v.line("%s", v.paint(dim, "· told the model: "+OneLine(b.Text, 200)))
		}
	case event.Pruned:
		v.line("%s", v.paint(dim, fmt.Sprintf("· old results were cut short, from about %s to %s tokens; the log keeps all of them", Thousands(b.Before), Thousands(b.After))))
	case event.Compacted:
		v.line("%s", v.paint(dim, fmt.Sprintf("· the conversation was compacted from about %s to %s tokens; the log keeps all of it", Thousands(b.Before), Thousands(b.After))))
	case event.Rewound:
		v.line("%s", v.paint(dim, fmt.Sprintf("· the conversation was rewound to where it was after event %d", b.To)))
	case event.Restored:
		v.line("%s", v.paint(dim, fmt.Sprintf("· %d files were put back", len(b.Files))))
	case event.Kept:
		v.line("%s", v.paint(yellow, "! the conversation was not compacted: "+OneLine(b.Reason, 200)))
	case event.Steered:
		v.line("%s", v.paint(dim, "· told the model: "+OneLine(b.Parts.Text(), 200)))
	case event.Note:
		v.line("%s", v.paint(yellow, "! "+OneLine(b.Text, 400)))
	case event.Switched:
		if b.Mode != "" || b.Route != "" {
			v.line("%s", v.paint(dim, strings.TrimSpace("· now working with "+b.Route+" "+modeWord(b.Mode))))
		}
	}
	return nil
}

func (v *view) routed(b event.Routed) {
	if b.From != "" {
		v.line("%s", v.paint(yellow, fmt.Sprintf("! %s takes over from %s: %s", b.Route, b.From, OneLine(b.Error, 200))))
		return
	}
	if b.Route+b.Rule != v.route {
		v.route = b.Route + b.Rule
		v.line("%s", v.paint(dim, fmt.Sprintf("· %s answers, by the rule %s: %s", b.Route, b.Rule, OneLine(b.Reason, 200))))
	}
}

func words(cause llm.Kind) string { return strings.ReplaceAll(string(cause), "_", " ") }

// without says what a healed conversation lacks.
func without(level event.Healing) string {
	switch level {
	case event.HealReasoning:
		return "the reasoning so far"
	case event.HealImages:
		return "the images so far"
	}
	return "calls and results so far, which become text"
}

func modeWord(mode string) string {
	if mode == "" {
		return ""
	}
	return "in mode " + mode
}

func (v *view) delta(b event.Delta) error {
	if b.Void {
		v.endLine()
		v.shown = false
	}
	if b.Reasoning != "" && v.Color {
		fmt.Fprint(v.Err, v.paint(dim, clean(b.Reasoning)))
		v.written = true
	}
	if b.Text == "" {
		return nil
	}
	v.shown, v.written = true, true
	_, err := fmt.Fprint(v.Out, clean(b.Text))
	return err
}

func (v *view) replied(b event.Replied) error {
	text := b.Parts.Text()
	if !v.shown && strings.TrimSpace(text) != "" {
		v.written = true
		if _, err := fmt.Fprint(v.Out, clean(text)); err != nil {
			return err
		}
	}
	v.shown = false
	v.endLine()
	return nil
}

func (v *view) ended(b event.Ended) {
	c := v.calls[b.Call]
	text := b.Parts.Text()
	took := ""
	if b.Millis >= 1000 {
		took = " " + (time.Duration(b.Millis) * time.Millisecond).Round(100*time.Millisecond).String()
	}
	switch b.Outcome {
	case event.OutcomeOK:
		v.line("  %s%s %s", v.paint(green, "✓"), took, v.paint(dim, summaryLine(text)))
	default:
		v.line("  %s%s %s %s", v.paint(red, "✗ "+string(b.Outcome)), took, OneLine(c.Name, 64), OneLine(text, 300))
	}
	for _, f := range b.Files {
		if !v.seen[b.Call] {
			v.diff(f)
		}
	}
}

// maxDiffLines bounds the diff shown of one file.
const maxDiffLines = 40

func (v *view) diff(f tool.File) {
	lines := strings.Split(strings.TrimRight(f.Diff, "\n"), "\n")
	if f.Diff == "" {
		return
	}
	for i, l := range lines {
		if i == maxDiffLines {
			v.line("    %s", v.paint(dim, fmt.Sprintf("... %d more lines", len(lines)-i)))
			return
		}
		v.line("    %s", v.paintDiff(visible(l)))
	}
}

// line prints a line to standard error, below whatever the model has written.
func (v *view) line(format string, args ...any) {
	v.endLine()
	fmt.Fprintf(v.Err, format+"\n", args...)
}

func (v *view) endLine() {
	if v.written {
		fmt.Fprintln(v.Out)
		v.written = false
	}
}

// summary is the last line of a text run.
func (c *Console) summary(r Result) {
	if r.Session == "" {
		fmt.Fprintln(c.Err, c.paint(red, "inspan: ")+visibleLines(r.Detail))
		return
	}
	cost := fmt.Sprintf("$%.4f", r.Cost)
	if r.Unpriced {
		cost = "cost unknown"
	}
	line := fmt.Sprintf("%s · %s · %s · %s in, %s out · %s · session %s", r.Reason, count(r.Turns, "turn"), count(r.Calls, "call"),
		Thousands(r.Usage.Prompt()), Thousands(r.Usage.Output), cost, r.Session)
	fmt.Fprintln(c.Err, c.paint(dim, line))
	if r.Detail != "" {
		fmt.Fprintln(c.Err, c.paint(red, visibleLines(r.Detail)))
	}
	if r.ExitCode != ExitDone {
		fmt.Fprintf(c.Err, "go on with: inspan resume %s\n", r.Session)
	}
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// Thousands writes a number so that people can read it.
func Thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// brief shows what a call is about: its command, path or pattern, else its
// arguments.
func brief(c llm.Call) string {
	var args map[string]any
	if json.Unmarshal(c.Args, &args) == nil {
		for _, key := range []string{"command", "path", "pattern", "id"} {
			if s, ok := args[key].(string); ok && s != "" {
				return OneLine(s, 200)
			}
		}
	}
	return OneLine(string(c.Args), 200)
}

// summaryLine is the first line of a result that says something.
func summaryLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > 2 && strings.HasPrefix(lines[0], "<untrusted ") {
		lines = lines[1 : len(lines)-1] // the marks are for the model
	}
	first := OneLine(lines[0], 100)
	if len(lines) > 1 {
		first += fmt.Sprintf(" (+%d lines)", len(lines)-1)
	}
	return first
}

// Show prints a session that has happened: as text, or its events as lines.
func (c *Console) Show(events iter.Seq2[event.Event, error], asEvents bool) error {
	v := newView(c)
	if asEvents {
		v.Console = &Console{Form: StreamJSON, Out: c.Out, Err: c.Err}
	}
	for e, err := range events {
		if err != nil {
			return err
		}
		if said, ok := e.Body.(event.Said); ok && !asEvents {
			v.line("%s", v.paint(bold, "> "+visibleLines(said.Parts.Text())))
		}
		if err := v.event(e); err != nil {
			return err
		}
		if stopped, ok := e.Body.(event.Stopped); ok && !asEvents {
			v.line("%s", v.paint(dim, strings.TrimSpace("— "+string(stopped.Reason)+" "+stopped.Detail)))
		}
	}
	return nil
}
