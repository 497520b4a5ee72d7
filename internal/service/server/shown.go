package server

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/markdown"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// transcriptItem is one item of a transcript as the web page shows it. Its kind determines which fields are set. In
// texts of others, hidden characters are spelled out.
type transcriptItem struct {
	N    int       `json:"n" jsonschema:"place in the transcript; the first is 0"`
	Kind string    `json:"kind" jsonschema:"said, reply, call, note, agent or stop"`
	Seq  uint64    `json:"seq" jsonschema:"number of the event that brought it"`
	Time time.Time `json:"time,omitzero"`
	Gone bool      `json:"gone,omitempty" jsonschema:"a rewind has taken it back"`
	Text string    `json:"text,omitempty" jsonschema:"what was said, told or brought"`
	HTML string    `json:"html,omitempty" jsonschema:"a reply, or what a call shows, as HTML that does nothing"`
	More int       `json:"more,omitempty" jsonschema:"bytes that are left out"`

	By      string `json:"by,omitempty"`
	Steered bool   `json:"steered,omitempty" jsonschema:"said to a run that went on"`
	Waits   bool   `json:"waits,omitempty" jsonschema:"the model has not seen it yet"`
	Notice  bool   `json:"notice,omitempty" jsonschema:"a person should notice it"`

	Thought string  `json:"thought,omitempty"`
	Model   string  `json:"model,omitempty"`
	Cost    float64 `json:"cost,omitempty" jsonschema:"US dollars"`
	Turns   int     `json:"turns,omitempty"`

	Tool    string            `json:"tool,omitempty"`
	Subject string            `json:"subject,omitempty" jsonschema:"what a call or an agent is about"`
	State   string            `json:"state,omitempty" jsonschema:"of a call or an agent: made, judged, waiting, running or over"`
	Failed  string            `json:"failed,omitempty" jsonschema:"how a call has failed"`
	Took    string            `json:"took,omitempty"`
	Call    string            `json:"call,omitempty" jsonschema:"a call as it will run: its command, and the other arguments as JSON"`
	Effects []string          `json:"effects,omitempty"`
	Answer  string            `json:"answer,omitempty" jsonschema:"who or what has denied a call, or answered its question"`
	Depth   int               `json:"depth,omitempty" jsonschema:"how many calls a call is within"`
	Files   []changedFile     `json:"files,omitempty" jsonschema:"files that a call has changed"`
	Images  []transcriptImage `json:"images,omitempty"`

	Session string `json:"session,omitempty" jsonschema:"session of an agent"`
}

// changedFile is a file that a call has changed.
type changedFile struct {
	Path string   `json:"path"`
	Diff []string `json:"diff,omitempty" jsonschema:"what changed: lines of HTML"`
	// Added and Removed count lines.
	Added   int `json:"added,omitempty"`
	Removed int `json:"removed,omitempty"`
}

// transcriptImage is an image, named by the blob with its bytes.
type transcriptImage struct {
	Digest string `json:"digest"`
	Type   string `json:"type" jsonschema:"media type"`
}

// openQuestion is an open question as the page shows it, with the call and its changes in readable form.
type openQuestion struct {
	Approval

	Title string   `json:"title,omitempty" jsonschema:"of the session"`
	Root  string   `json:"root,omitempty" jsonschema:"the workspace"`
	Wants string   `json:"wants,omitempty" jsonschema:"what it asks for, in words behind the name of the tool"`
	Call  string   `json:"call" jsonschema:"the call as it will run, decoded: its command, and the other arguments as JSON, with hidden characters spelled out"`
	Diff  []string `json:"diff,omitempty" jsonschema:"the preview as lines of HTML, with hidden characters spelled out"`

	Set []questionCall `json:"set,omitempty" jsonschema:"the calls that the question is about, the first one included, where several are asked about together; with names the others"`
}

// shownWish is one of several calls of a question.
type questionCall struct {
	Tool    string   `json:"tool"`
	Why     string   `json:"why,omitempty"`
	Effects []string `json:"effects"`
	Call    string   `json:"call" jsonschema:"as that of the question"`
	Diff    []string `json:"diff,omitempty" jsonschema:"as that of the question"`
}

func (s shower) question(t Task, p inspan.Pending) openQuestion {
	a := approval(t, p)
	a.Rules = slices.Clone(a.Rules)
	for i := range a.Rules {
		a.Rules[i] = text.Visible(a.Rules[i])
	}
	q := words.Consents(p.Root, "", p.Raised(), p.Calls())
	out := openQuestion{Approval: a, Wants: strings.TrimSpace(q.Title), Call: shownCall(p.Call)}
	out.Why, out.Diff = q.Why, s.painter.diff(text.VisibleLines(a.Preview))
	if len(p.Set) > 0 {
		out.Tool, out.With = p.Name(), p.Answer(event.Decided{}).Also
	}
	for _, one := range p.Set {
		q := s.question(t, one)
		out.Set = append(out.Set, questionCall{Tool: q.Tool, Why: q.Why, Effects: q.Effects, Call: q.Call, Diff: q.Diff})
	}
	return out
}

// shownCall returns a call as it will run: its command, if it has one, and the other arguments below.
func shownCall(c llm.Call) string {
	command, others := words.Asked(c)
	return strings.TrimSpace(command + "\n" + others)
}

// Limits for the texts of one item, in bytes. A request for a single item gets more.
const (
	mostOfItem  = 8_000
	mostOfReply = 200_000
	mostOfOne   = 8 << 20
)

// shower makes items for the page. With whole, texts have any length that a page can handle.
type shower struct {
	whole   bool
	painter *painter
}

// cut returns the beginning of a text, with its hidden characters spelled out.
func (s shower) cut(i *transcriptItem, of string, most int) string {
	if s.whole {
		most = mostOfOne
	}
	head := text.Head(of, most)
	i.More += len(of) - len(head)
	return text.VisibleLines(head)
}

// show returns the form for the page of an item of the transcript.
func (s shower) show(item transcript.Item) (out transcriptItem) {
	switch i := item.(type) {
	case *transcript.Said:
		out = transcriptItem{Kind: "said", Seq: i.Seq, Time: i.Time, By: text.Visible(i.By), Steered: i.Steered, Waits: !i.Heard}
		out.Text, out.Images = s.cut(&out, i.Text, mostOfReply), images(i.Parts)
	case *transcript.Reply:
		out = transcriptItem{Kind: "reply", Seq: i.Seq, Time: i.Time, Model: text.Visible(i.Route), Cost: i.Cost}
		out.HTML = markdown.HTML(text.Head(i.Text, mostOfReply), &s.painter.lexers)
		out.Thought = s.cut(&out, i.Thought, mostOfItem)
	case *transcript.Call:
		out = s.call(i)
	case *transcript.Note:
		out = transcriptItem{Kind: "note", Seq: i.Seq, Time: i.Time, Notice: i.Notice}
		out.Text = s.cut(&out, i.Text, mostOfItem)
	case *transcript.Child:
		out = transcriptItem{
			Kind: "agent", Seq: i.Seq, Time: i.Since, Session: i.Spawned.Child, State: "running",
			Tool: text.Visible(cmp.Or(i.Spawned.Agent, "agent")), Subject: words.OneLine(i.Spawned.Task, 300), Model: text.Visible(i.Spawned.Route),
		}
		if b := i.Returned; b != nil {
			out.State, out.Text, out.Cost, out.Turns = "over", stoppedBy(string(b.Reason), b.Detail), b.Cost, b.Turns
		}
	case *transcript.Stop:
		out = transcriptItem{Kind: "stop", Seq: i.Seq, Time: i.Time, Turns: i.Turns, Cost: i.Cost, Took: words.Took(i.Took.Milliseconds())}
		out.Text = stoppedBy(string(i.Stopped.Reason), i.Stopped.Detail)
	}
	return out
}

// stoppedBy describes the end of a run for people.
func stoppedBy(reason, detail string) string {
	reason = strings.ReplaceAll(reason, "_", " ")
	if detail != "" {
		reason += ": " + detail
	}
	return text.VisibleLines(reason)
}

func (s shower) call(c *transcript.Call) transcriptItem {
	out := transcriptItem{
		Kind: "call", Seq: c.Seq, Time: c.Started, Tool: text.Visible(c.Call.Name), Depth: c.Depth(),
		Subject: words.OneLine(words.Subject(c.Call), 300),
		State:   [...]string{"made", "judged", "waiting", "running", "over"}[c.State], Call: shownCall(c.Call), Effects: words.Effects(c.Effects(), false),
	}
	if !s.whole {
		out.Call = text.Head(out.Call, mostOfItem)
	}
	if d := c.Decided; d != nil {
		out.Answer = text.VisibleLines(words.AnsweredBy(*d))
	}
	if c.State == transcript.Running {
		out.Text = text.VisibleLines(words.Result(c.Printed()))
	}
	if c.State != transcript.Over {
		return out
	}
	b := c.Ended
	if out.Failed = words.Failed(b); b.Outcome == event.OutcomeDenied && out.Answer == "" {
		if by, why := c.DeniedBy(); by != "" {
			out.Answer = text.VisibleLines(strings.TrimSpace(by + ": " + why))
		}
	}
	out.Took, out.Cost = words.Took(b.Millis), b.Cost
	out.Text = s.cut(&out, words.Result(b.Parts.Text()), mostOfItem)
	if out.Images = images(b.Parts); strings.TrimSpace(b.Show) != "" {
		out.HTML = markdown.HTML(text.Head(b.Show, mostOfReply), &s.painter.lexers)
	}
	for _, f := range b.Files {
		if f.Written {
			out.Files = append(out.Files, s.file(f.Path, s.cut(&out, f.Diff, mostOfItem)))
		}
	}
	return out
}

func (s shower) file(path, diff string) changedFile {
	f := changedFile{Path: text.Visible(path), Diff: s.painter.diff(diff)}
	for _, line := range f.Diff {
		switch {
		case strings.HasPrefix(line, `<span class="row added"`):
			f.Added++
		case strings.HasPrefix(line, `<span class="row removed"`):
			f.Removed++
		}
	}
	return f
}

func images(parts llm.Parts) (out []transcriptImage) {
	for _, p := range parts {
		if i, is := p.(llm.Image); is && i.Digest != "" {
			out = append(out, transcriptImage{i.Digest, i.MediaType})
		}
	}
	return out
}

// painter makes HTML of code for the page. It keeps the diffs that it made last, because each open page asks for the
// same ones every two seconds, and a diff of 100 KB takes a quarter of a second. The zero value is ready. Safe for
// concurrent use.
type painter struct {
	lexers markdown.Lexers

	mu    sync.Mutex
	diffs map[string][]string // by their text
	size  int                 // of their texts, in bytes
}

// mostPainted is the size of the texts of all diffs that a painter keeps, in bytes. Their HTML has some ten times that.
const mostPainted = 1 << 20

// diff returns a unified diff as lines of HTML; nil if it is empty.
func (p *painter) diff(unified string) []string {
	if unified == "" {
		return nil
	}
	p.mu.Lock()
	lines, known := p.diffs[unified]
	p.mu.Unlock()
	if known {
		return lines
	}
	lines = markdown.DiffHTML(unified, &p.lexers)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size += len(unified); p.diffs == nil || p.size > mostPainted {
		p.diffs, p.size = map[string][]string{}, len(unified)
	}
	p.diffs[unified] = lines
	return lines
}
