package transcript

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// Markdown writes the session for people: messages, calls and answers. It leaves out system prompts and reasoning,
// shortens long results, and marks rewound parts. It reads the events twice.
func Markdown(w io.Writer, events iter.Seq2[event.Event, error]) error {
	gone, err := Rewound(events)
	if err != nil {
		return err
	}
	m := markdown{Writer: bufio.NewWriter(w)}
	for e, err := range events {
		if err != nil {
			return err
		}
		m.mark(gone(e.Seq))
		for _, item := range m.fold.Apply(e) {
			m.add(e, item)
		}
	}
	m.mark(false)
	return m.Flush()
}

// mark writes the lines around a rewound part.
func (m *markdown) mark(gone bool) {
	switch {
	case gone && !m.gone:
		fmt.Fprintf(m, "\n---\n\n*What follows was rewound: it no longer counts.*\n")
	case !gone && m.gone:
		fmt.Fprintf(m, "\n*The rewound part ends here; the conversation continued from the point before it.*\n\n---\n")
	}
	m.gone = gone
}

// maxShown bounds a result in the document, in bytes.
const maxShown = 4000

type markdown struct {
	*bufio.Writer // keeps its first error, which Flush returns
	fold          Fold
	gone          bool // the current part was rewound
}

// add writes an event's item.
func (m *markdown) add(e event.Event, item Item) {
	switch i := item.(type) {
	case *Said:
		if i.Seq == e.Seq && len(i.Parts) > 0 { // otherwise it was written before
			fmt.Fprintf(m, "\n## %s\n\n%s\n", map[bool]string{false: "User", true: "Steered"}[i.Steered], strings.TrimSpace(shown(i.Parts)))
		}
	case *Reply:
		if said := strings.TrimSpace(i.Text); said != "" && i.State == Whole {
			fmt.Fprintf(m, "\n## Agent\n\n%s\n", said)
		}
	case *Question:
		if d := i.Answer; d != nil {
			fmt.Fprintf(m, "\n*%s: %s by %s*%s\n", asks(i), map[bool]string{true: "allowed", false: "denied"}[d.Allow], d.By, before(" ", d.Reason))
		}
	case *Call:
		if i.State == Over {
			m.ended(i)
		}
	case *Note:
		m.note(e, i)
	case *Stop:
		why, spent := before(" ", i.Stopped.Detail), m.fold.Spent
		fmt.Fprintf(m, "\n---\n\n**%s**%s · %d turns · $%.4f\n", i.Stopped.Reason, why, spent.Turns, spent.Cost)
	}
}

// asks names the subject of a question.
func asks(q *Question) string {
	if q.Raised != nil {
		return q.Raised.Tool
	}
	return q.Call.Call.Name
}

// note writes a note between messages.
func (m *markdown) note(e event.Event, n *Note) {
	switch b := n.Of.(type) {
	case event.Opened:
		fmt.Fprintf(m, "# Session %s\n\n%s · %s · %s\n", e.Session, e.Time.Format(time.DateTime), b.Root, b.App)
	case event.Forked:
		fmt.Fprintf(m, "\n---\n\n*Forked from %s after event %d as %s.*\n", b.From, b.Seq, e.Session)
	case event.Switched:
		if b.Route != "" || b.Mode != "" {
			fmt.Fprintf(m, "\n*Working with %s*\n", strings.Join(strings.Fields(b.Route+" "+string(b.Mode)), " in mode "))
		}
	case event.Cancelled:
		fmt.Fprintf(m, "\n*Interrupted.*\n")
	case event.StepEnded:
		fmt.Fprintf(m, "\n*%s*\n", n.Text)
	}
}

// shown returns the text of parts, with a line for each image.
func shown(parts llm.Parts) string {
	text := parts.Text()
	for _, part := range parts {
		if image, ok := part.(llm.Image); ok {
			text += fmt.Sprintf("\n[%s %s]", image.MediaType, image.Digest)
		}
	}
	return text
}

// before returns lead and text, or "" if text is empty.
func before(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + text
}

func (m *markdown) ended(c *Call) {
	b := c.Ended
	of := ""
	if c.Parent != nil {
		of = " for " + c.Parent.Call.Name
	}
	fmt.Fprintf(m, "\n### %s%s: %s\n\n", c.Call.Name, of, cmp.Or(words.Failed(b), string(b.Outcome)))
	fmt.Fprintln(m, text.Fenced("json", string(c.Call.Args)))
	said := shown(b.Parts)
	if len(said) > maxShown {
		said = strings.ToValidUTF8(said[:maxShown], "") + fmt.Sprintf("\n... %d bytes more", len(said)-maxShown)
	}
	fmt.Fprintln(m, text.Fenced("", said))
	for _, f := range b.Files {
		if f.Diff != "" {
			fmt.Fprintln(m, text.Fenced("diff", f.Diff))
		}
	}
}
