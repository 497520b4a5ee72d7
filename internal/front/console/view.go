package console

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/markdown"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// view shows the transcript of one command to a person.
type view struct {
	*Console
	account
	out      io.Writer // for the model's words
	fold     transcript.Fold
	past     bool // show the person's messages too, since no one has typed them here
	warned   bool // the warning about denials was printed
	written  bool // the model's line on standard output is open
	reply    reply
	wait     *countdown // runs until the next event; nil if none does
	lastWait string     // why it waited last, until a reply comes
	tables   *markdown.Tables
}

// reply is how much of a reply was shown as it arrived.
type reply struct {
	of      *transcript.Reply
	text    string
	thought int // bytes
}

func newView(c *Console) *view {
	v := &view{Console: c, out: c.Out}
	if c.Answer != nil {
		v.out = c.Err
	}
	v.tables = &markdown.Tables{Style: v.style()}
	return v
}

// open adds a call that was judged before the first event.
func (v *view) open(p inspan.Pending) {
	j := event.Judged{Call: p.Call.ID, Action: tool.Ask, Reason: p.Reason, Effects: p.Effects}
	c := &transcript.Call{Call: p.Call, State: transcript.Judged, Judged: &j}
	if p.Waits {
		c.State, c.Question = transcript.Waiting, &transcript.Question{Seq: p.Question, ID: p.Call.ID, Preview: p.Preview}
	}
	v.fold.Open(c)
}

// style returns how markdown is shown. Pictures are named, since drawing them says little.
func (v *view) style() markdown.Style {
	return markdown.Style{NoColor: !v.Color, Named: true}
}

// width returns the width of a stream's terminal; 0 if it is not one.
func (c *Console) width(w io.Writer) int {
	if c.Width == nil {
		return 0
	}
	return c.Width(w)
}

// write shows a piece of the model's words.
func (v *view) write(s string) error {
	v.written = true
	v.tables.Width = v.width(v.out)
	_, err := io.WriteString(v.out, v.tables.Write(text.Clean(s)))
	return err
}

// event prints one event in the chosen form. An error means that standard output can't be written.
func (v *view) event(e event.Event) error {
	v.endWait()
	items := v.fold.Apply(e)
	for _, item := range items {
		if c, ok := item.(*transcript.Call); ok {
			v.onCall(c)
		}
	}
	if v.Form == "" || v.Form == Text {
		return v.printItems(e, items)
	}
	for _, item := range items {
		if n, ok := item.(*transcript.Note); ok {
			v.printMissingServers(n)
		}
	}
	switch v.Form {
	case JSON: // the result comes last, and until then this is all that a person sees
		for _, item := range items {
			if c, ok := item.(*transcript.Call); ok {
				v.printCall(c)
			}
		}
	case ClaudeStreamJSON:
		return v.claude.event(e, items)
	case StreamJSON:
		line, err := event.Encode(e)
		if err == nil {
			_, err = fmt.Fprintf(v.Out, "%s\n", line)
		}
		return err
	}
	return nil
}

// printMissingServers tells a person about missing servers, in every form.
func (v *view) printMissingServers(n *transcript.Note) (told bool) {
	if _, told = n.Of.(event.Served); told {
		for line := range strings.Lines(n.Text) {
			v.printNote(line, true)
		}
	}
	return told
}

// printItems shows the items of an event.
func (v *view) printItems(e event.Event, items []transcript.Item) error {
	for _, item := range items {
		switch i := item.(type) {
		case *transcript.Reply:
			if err := v.printReply(i); err != nil {
				return err
			}
		case *transcript.Said:
			switch {
			case i.Seq != e.Seq: // it was shown when it was said
			case i.Steered:
				v.printNote(words.ToldModel(i.Parts.Text()), false)
			case v.past:
				v.line("%s", v.paint(bold, quoted("> "+transcript.Spoken(i.Parts))))
			}
		case *transcript.Call:
			v.printCall(i)
		case *transcript.Question:
			if i.Answer == nil {
				continue
			}
			if granted := words.Granted(*i.Answer, i.Rules, i.Offers); granted != "" { // calls beyond its own
				v.say("%s", v.paint(dim, "· "+granted))
			}
		case *transcript.Note:
			if !v.printMissingServers(i) && i.Text != "" {
				v.printNote(i.Text, i.Notice)
			}
			if end, ok := i.Of.(event.StepEnded); ok && end.Step == event.Workflow && v.fold.Last != "" {
				fmt.Fprintln(v.out, text.VisibleLines(v.fold.Last))
			}
		case *transcript.Wait:
			v.printWait(i.Why, i.What, time.Duration(i.Seconds*float64(time.Second)))
		case *transcript.Child:
			v.printChild(i)
		case *transcript.Stop:
			if v.past {
				v.line("%s", v.paint(dim, quoted(strings.TrimSpace("— "+string(i.Stopped.Reason)+" "+i.Stopped.Detail))))
			}
		}
	}
	return nil
}

// quoted returns text by others with a mark on its first line. Further lines are behind a margin, so that none
// looks like a line of ours.
func quoted(s string) string { return strings.ReplaceAll(text.VisibleLines(s), "\n", "\n    ") }

func (v *view) printChild(c *transcript.Child) {
	if text, notice := words.Told(c.Last()); text != "" {
		v.printNote(text, notice)
	}
}

// printNote prints a sentence about an event.
func (v *view) printNote(text string, notice bool) {
	text = words.OneLine(text, 400)
	if notice {
		v.say("%s", v.paint(yellow, "! "+text))
		return
	}
	v.say("%s", v.paint(dim, "· "+text))
}

// printReply shows the new part of a reply.
func (v *view) printReply(r *transcript.Reply) error {
	v.lastWait = ""
	if v.reply.of != r {
		v.reply = reply{of: r}
	}
	if r.State == transcript.Void {
		v.endLine()
		return nil
	}
	if r.State == transcript.Written && v.Color && len(r.Thought) > v.reply.thought {
		fmt.Fprint(v.Err, v.paint(dim, text.Clean(r.Thought[v.reply.thought:])))
		v.written, v.reply.thought = true, len(r.Thought)
	}
	rest, more := strings.CutPrefix(r.Text, v.reply.text) // shown text can't be taken back
	if r.State == transcript.Written && v.width(v.out) == 0 {
		return nil // a file or a pipe can't take anything back, and text may turn out to be a thought at its end
	}
	if more && rest != "" && (v.reply.text != "" || r.State == transcript.Written || strings.TrimSpace(rest) != "") {
		v.reply.text = r.Text
		if err := v.write(rest); err != nil {
			return err
		}
	}
	if r.State == transcript.Whole {
		v.endLine()
	}
	return nil
}

// printCall shows the progress of a call.
func (v *view) printCall(c *transcript.Call) {
	switch {
	case c.State == transcript.Judged:
		if text, notice := words.Told(*c.Judged); text != "" {
			v.printNote(text, notice)
		}
	case c.State == transcript.Running && c.Latest == "":
		name, lead := words.OneLine(c.Call.Name, 64), indent(c)
		room := cmp.Or(v.width(v.Err), 203+len(name)) - ansi.StringWidth(name) - 3 - len(lead)
		v.line("%s", lead+strings.TrimSpace(v.paint(bold, "▸ "+name)+" "+words.OneLine(words.Subject(c.Call), min(room, 200))))
	case c.State == transcript.Over:
		v.printEnd(c)
	}
}

// indent indents nested calls.
func indent(c *transcript.Call) string { return strings.Repeat("  ", c.Depth()) }

func (v *view) printEnd(c *transcript.Call) {
	b := c.Ended
	text := b.Parts.Text()
	took := words.Took(b.Millis)
	if took != "" {
		took = " " + took
	}
	switch how := words.Failed(b); {
	case how == "":
		v.say("  %s%s%s %s", indent(c), v.paint(green, "✓"), took, v.paint(dim, words.Summary(text)))
	case b.Outcome == event.OutcomeOK: // the output of a failed command says why
		v.say("  %s%s%s %s", indent(c), v.paint(red, "✗ "+how), took, words.Summary(text))
	default:
		v.say("  %s%s%s %s %s", indent(c), v.paint(red, "✗ "+how),
			took, words.OneLine(c.Call.Name, 64), words.OneLine(text, 300))
	}
	v.show(b)
	if !v.past && v.width(v.Err) == 0 { // the log of a CI job has no diffs
		return
	}
	seen := c.Question != nil && c.Question.Preview != "" && v.Person != nil // before it was allowed
	for _, f := range b.Files {
		if !seen {
			v.diff(f)
		}
	}
}

// show shows a call's text for the person: its images by name, then its figures.
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

// line prints a line to standard error, below the model's text.
func (v *view) line(format string, args ...any) {
	v.endLine()
	fmt.Fprintf(v.Err, format+"\n", args...)
}

// say is like line, but wraps text at the width of the terminal.
func (v *view) say(format string, args ...any) {
	v.endLine()
	v.Say(fmt.Sprintf(format, args...))
}

func (v *view) endLine() {
	if v.written {
		fmt.Fprintln(v.out, v.tables.Close())
		v.written = false
	}
}

// summary prints the last line of a text run.
func (c *Console) summary(r Result) {
	if r.Session == "" {
		c.Say(c.paint(red, "inspan: ") + text.VisibleLines(r.Detail))
		return
	}
	line := fmt.Sprintf("%s · %s · %s · %s in, %s out · %s · session %s", r.Reason, text.Count(r.Turns, "turn"), text.Count(r.Calls, "call"),
		text.Thousands(r.Usage.Prompt()), text.Thousands(r.Usage.Output), words.Cost(r.Cost, r.Unpriced), r.Session)
	c.printEffects(r)
	c.Say(c.paint(dim, line))
	if r.Detail != "" {
		c.Say(c.paint(red, text.VisibleLines(r.Detail)))
	}
	for _, o := range r.Open {
		c.Say(quoted(text.Visible(o.ID) + " asks:\n" + text.VisibleLines(o.Asks)))
		if len(o.Options) > 0 {
			c.Say("    " + text.Visible(strings.Join(o.Options, " · ")))
		}
		c.Say("  answer with: " + words.Command("", "send", "--allow", o.ID, r.Session, "ANSWER"))
	}
	for _, text := range words.Leftovers(r.Session, r.Kept, r.Ended, r.Instructions, r.Unmerged) {
		c.Say(text)
	}
	switch {
	case r.over && r.ExitCode != ExitDone:
		c.Say("this run has failed; fix the cause and run the workflow again")
	case r.ExitCode != ExitDone && r.ExitCode != ExitBusy:
		c.Say("continue with: inspan resume " + r.Session)
	}
}

// Show prints a past session, as text or as lines of events. Since the transcript is the product, all of it
// goes to standard output.
func (c *Console) Show(events iter.Seq2[event.Event, error], asEvents bool) error {
	if asEvents {
		return newView(&Console{Form: StreamJSON, Out: c.Out, Err: c.Err}).printPast(events)
	}
	return newView(c.reading()).printPast(events)
}

// reading returns the console of a command whose product is the transcript.
func (c *Console) reading() *Console {
	return &Console{Out: c.Out, Err: c.Out, Color: c.Color && c.width(c.Out) > 0, Width: c.Width}
}

// printPast shows past events.
func (v *view) printPast(events iter.Seq2[event.Event, error]) error {
	v.past = true
	for e, err := range events {
		if err == nil {
			err = v.event(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
