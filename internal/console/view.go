package console

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/figure"
	"github.com/inspan/inspan/internal/markdown"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// view folds the events of one command into what a person sees.
type view struct {
	*Console
	*account
	last    string          // the model's last words
	seen    map[string]bool // calls whose change a person was shown before
	warned  bool            // what will be denied was said
	written bool            // the model's line on standard output is open
	shown   bool            // text of the current reply has been shown as it came
	route   string          // and rule of the model that answered last, if it was chosen
	wait    *countdown      // runs until the next event; nil if none does
	tables  *markdown.Tables
}

func newView(c *Console) *view {
	v := &view{Console: c, account: newAccount(), seen: map[string]bool{}}
	v.tables = &markdown.Tables{Style: v.style()}
	return v
}

// style is how markdown is shown. Pictures are named, as their drawings say little.
func (v *view) style() markdown.Style {
	return markdown.Style{NoColor: !v.Color, Named: true, Figure: figure.Drawn}
}

// width is that of the terminal that a stream goes to, 0 if that is not one.
func (c *Console) width(w io.Writer) int {
	if c.Width == nil {
		return 0
	}
	return c.Width(w)
}

// write shows a piece of what the model says.
func (v *view) write(s string) error {
	v.written = true
	v.tables.Width = v.width(v.Out)
	_, err := io.WriteString(v.Out, v.tables.Write(text.Clean(s)))
	return err
}

// event prints one event in the form that was asked for. The error is that of
// standard output: nobody listens any more.
func (v *view) event(e event.Event) error {
	v.endWait()
	v.note(e)
	switch v.Form {
	case JSON:
		v.missing(e.Body)
		return nil
	case ClaudeStreamJSON:
		v.missing(e.Body)
		return v.claude.event(e)
	case StreamJSON:
		v.missing(e.Body)
		line, err := event.Encode(e)
		if err == nil {
			_, err = fmt.Fprintf(v.Out, "%s\n", line)
		}
		return err
	}
	return v.print(e.Body)
}

// missing tells a person of servers that are not there, whatever the form.
func (v *view) missing(body event.Body) {
	if b, ok := body.(event.Served); ok {
		text, _ := words.Told(b)
		for line := range strings.Lines(text) {
			v.tell(line, true)
		}
	}
}

// note remembers what later lines and the result need.
func (v *view) note(e event.Event) {
	v.account.event(e)
	switch b := e.Body.(type) {
	case event.Replied:
		if text := strings.TrimSpace(b.Parts.Text()); text != "" {
			v.last = text
		}
	case event.Waiting:
		v.seen[b.Call] = b.Preview != "" && v.Person != nil
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
		name := words.OneLine(c.Name, 64)
		room := cmp.Or(v.width(v.Err), 203+len(name)) - ansi.StringWidth(name) - 3
		v.line("%s", strings.TrimSpace(v.paint(bold, "▸ "+name)+" "+words.OneLine(words.Subject(c), min(room, 200))))
	case event.Ended:
		v.ended(b)
	case event.Failed:
		v.shown = false
		v.endLine()
	case event.Served:
		v.missing(b)
		return nil
	case event.Steered:
		v.tell(words.ToldModel(b.Parts.Text()), false)
	case event.Routed:
		again := b.From == "" && b.Route+b.Rule == v.route
		if b.From == "" {
			v.route = b.Route + b.Rule
		}
		if again {
			return nil
		}
	}
	if why, what, seconds := words.Wait(body); seconds > 0 {
		v.waits(why, what, time.Duration(seconds*float64(time.Second)))
	}
	if text, notice := words.Told(body); text != "" {
		v.tell(text, notice)
	}
	return nil
}

// tell prints what happened, in a sentence.
func (v *view) tell(text string, notice bool) {
	text = words.OneLine(text, 400)
	if notice {
		v.say("%s", v.paint(yellow, "! "+text))
		return
	}
	v.say("%s", v.paint(dim, "· "+text))
}

func (v *view) delta(b event.Delta) error {
	if b.Void {
		v.endLine()
		v.shown = false
	}
	if b.Reasoning != "" && v.Color {
		fmt.Fprint(v.Err, v.paint(dim, text.Clean(b.Reasoning)))
		v.written = true
	}
	if b.Text == "" {
		return nil
	}
	v.shown = true
	return v.write(b.Text)
}

func (v *view) replied(b event.Replied) error {
	text := b.Parts.Text()
	if !v.shown && strings.TrimSpace(text) != "" {
		if err := v.write(text); err != nil {
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
	took := words.Took(b.Millis)
	if took != "" {
		took = " " + took
	}
	switch b.Outcome {
	case event.OutcomeOK:
		v.say("  %s%s %s", v.paint(green, "✓"), took, v.paint(dim, summaryLine(text)))
	default:
		v.say("  %s%s %s %s", v.paint(red, "✗ "+words.OneLine(string(b.Outcome), 64)), took, words.OneLine(c.Name, 64), words.OneLine(text, 300))
	}
	v.show(b)
	for _, f := range b.Files {
		if !v.seen[b.Call] {
			v.diff(f)
		}
	}
}

// show shows what a call has for the person: its images by name, then its figures.
func (v *view) show(b event.Ended) {
	for _, p := range b.Parts {
		if image, ok := p.(llm.Image); ok {
			v.say("    %s", v.paint(dim, words.Image(image)))
		}
	}
	const margin = "    "
	width := cmp.Or(v.width(v.Err), 80)
	if strings.TrimSpace(b.Show) == "" {
		return
	}
	for line := range strings.SplitSeq(markdown.Render(text.Clean(b.Show), max(width-len(margin), 1), v.style()), "\n") {
		v.line("%s", strings.TrimRight(margin+line, " "))
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
		v.line("    %s", v.paintDiff(text.Visible(l)))
	}
}

// line prints a line to standard error, below whatever the model has written.
func (v *view) line(format string, args ...any) {
	v.endLine()
	fmt.Fprintf(v.Err, format+"\n", args...)
}

// say is line for words: they wrap where the terminal ends.
func (v *view) say(format string, args ...any) {
	v.endLine()
	v.Say(fmt.Sprintf(format, args...))
}

func (v *view) endLine() {
	if v.written {
		fmt.Fprintln(v.Out, v.tables.Close())
		v.written = false
	}
}

// summary is the last line of a text run.
func (c *Console) summary(r Result) {
	if r.Session == "" {
		c.Say(c.paint(red, "inspan: ") + text.VisibleLines(r.Detail))
		return
	}
	line := fmt.Sprintf("%s · %s · %s · %s in, %s out · %s · session %s", r.Reason, text.Count(r.Turns, "turn"), text.Count(r.Calls, "call"),
		text.Thousands(r.Usage.Prompt()), text.Thousands(r.Usage.Output), words.Cost(r.Cost, r.Unpriced), r.Session)
	c.whatWasDone(r)
	c.Say(c.paint(dim, line))
	if r.Detail != "" {
		c.Say(c.paint(red, text.VisibleLines(r.Detail)))
	}
	for _, text := range words.Leftovers(r.Session, r.Kept, r.Ended) {
		c.Say(text)
	}
	if r.ExitCode != ExitDone {
		c.Say("go on with: inspan resume " + r.Session)
	}
}

// summaryLine is the first line of a result that says something.
func summaryLine(s string) string {
	lines := strings.Split(words.Result(s), "\n")
	first := words.OneLine(lines[0], 100)
	if len(lines) > 1 {
		first += fmt.Sprintf(" (+%s)", text.Count(len(lines)-1, "line"))
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
			v.line("%s", v.paint(bold, "> "+text.VisibleLines(said.Parts.Text())))
		}
		if err := v.event(e); err != nil {
			return err
		}
		if stopped, ok := e.Body.(event.Stopped); ok && !asEvents {
			v.line("%s", v.paint(dim, text.VisibleLines(strings.TrimSpace("— "+string(stopped.Reason)+" "+stopped.Detail))))
		}
	}
	return nil
}
