// Package transcript folds the events of a session into what a person sees of it. Every front end and the
// Markdown export render its items, and fold nothing themselves. [Spans] folds events into what a session did when, and
// [Changes] into its changes to files.
//
// Dropping every transient event only changes what is seen of work in progress. The folds know nothing about
// widths, colours and protocols.
package transcript

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Fold is the state of a transcript. The zero value is an empty transcript. It keeps what is in progress and
// forgets what is over, so a front end can drop an item after rendering it.
type Fold struct {
	Session Session
	Run     Run
	Spent   Spent
	Now     Now
	Seq     uint64      // of the last event
	Last    string      // the model's last words
	Todo    []tool.Todo // as last set by the model
	Files   []string    // files that calls have written, each once

	calls   map[string]*Call // unfinished calls, by id
	taken   map[string]bool  // keys of inputs
	queued  []*Said          // messages for after the run
	chosen  string           // route and rule of the last reply's model, if it was chosen
	rewinds rewinds
}

// Session describes the session and its settings.
type Session struct {
	ID, Root, Title string
	Route, Effort   string
	Mode            tool.Mode
	Limits          event.Limits
	Window          int // tokens; 0 if unknown
}

// Run is the run in progress, or the last one.
type Run struct {
	Busy    bool // it has not stopped; it may wait for an answer
	Began   time.Time
	Turns   int
	Stopped *event.Stopped // how it ended; nil during a run, or if there was none

	before float64 // cost of the session before the run
}

// Spent is the consumption of the session.
type Spent struct {
	Turns, Calls int
	Cost         float64 // US dollars
	Unpriced     bool    // Cost lacks replies of unknown price
	Usage        llm.Usage
	Prompt       llm.Usage // of the last reply
}

// Now is what is in progress.
type Now struct {
	Reply     *Reply // the reply being written; nil if none
	Thinking  string // the end of the model's thoughts, while it says nothing yet
	Draft     Draft
	Wait      *Wait
	Steered   []*Said     // messages that the model has not seen yet
	Running   []*Call     // in the order of their starts
	Questions []*Question // open questions, in the order in which they were asked
	Children  []*Child    // children that are working
}

// Rest clears what was running at the last event, since it is unknown whether it still is.
func (n *Now) Rest() { n.Running, n.Wait = nil, nil }

// Draft is a call as the model writes it.
type Draft struct {
	Name  string
	Bytes int
}

// Queued returns the messages for after the run.
func (f *Fold) Queued() []*Said { return f.queued }

// Took reports whether an input with this key was folded. A repeated input counts once, see [event.Key].
func (f *Fold) Took(key string) bool { return f.taken[key] }

// Idle reports whether nothing is in progress and no call of the session waits for an answer.
func (f *Fold) Idle() bool { return !f.Run.Busy && len(f.Waiting()) == 0 }

// CutOff reports whether there is a run that does not wait for a person. If nobody here drives it, it was cut
// off, or another process continues it.
func (f *Fold) CutOff() bool { return f.Run.Busy && len(f.Waiting()) == 0 }

// Gone reports whether a rewind has taken back the event with this number, as of the events folded so far.
func (f *Fold) Gone(seq uint64) bool { return f.rewinds.gone(seq) }

// Apply folds one event. It returns the items that are new or have changed, in the order in which a person
// should see them. An event that was folded before changes nothing.
func (f *Fold) Apply(e event.Event) []Item {
	if !e.Transient() && e.Seq <= f.Seq {
		return nil
	}
	f.Seq = max(f.Seq, e.Seq)
	f.Now.Wait = nil
	if key := event.Key(e.Body); key != "" && !f.first(key) {
		return nil
	}
	items, _ := f.apply(e)
	return items
}

// first reports whether an input's key is new.
func (f *Fold) first(key string) bool {
	if f.taken == nil {
		f.taken = map[string]bool{}
	}
	again := f.taken[key]
	f.taken[key] = true
	return !again
}

// apply folds an event, and reports whether its kind is known. Kinds without items are listed too, so that
// someone has to decide about each new kind.
func (f *Fold) apply(e event.Event) (items []Item, known bool) {
	switch b := e.Body.(type) {
	case event.Said, event.Steered:
		return f.hear(e), true
	case event.Asked, event.Delta, event.Replied, event.Failed, event.Routed:
		return f.model(e), true
	case event.Judged, event.Waiting, event.Decided, event.Wanted, event.Started, event.Progress, event.Ended:
		return f.call(e), true
	case event.Spawned, event.Raised, event.Returned:
		return f.children(e), true
	case event.Opened, event.Forked, event.Titled, event.Pinned, event.Moved, event.Rewound, event.Compacted, event.Kept:
		return f.session(e), true
	case event.Withdrawn:
		return f.withdrawn(e, b), true
	case event.Switched:
		return f.switched(e, b), true
	case event.Stopped:
		return f.stop(e, b), true
	case event.Note, event.Served, event.Healed, event.Hooked, event.Pruned, event.Restored, event.Finished, event.Cancelled,
		event.Paused, event.StepStarted, event.StepEnded:
		return f.note(e), true
	case event.Added, event.Claimed, event.Checkpoint, event.Workspace, event.Compact, event.Tasked, event.Recorded, event.Staged,
		event.Unknown:
		return nil, true
	}
	return nil, false
}

// note returns a note about an event.
func (f *Fold) note(e event.Event) []Item {
	if b, ok := e.Body.(event.StepEnded); ok {
		f.spend(llm.Usage{}, b.Cost)
		if b.Step == event.Workflow {
			f.Last = words.Returned(b.Result)
		}
	}
	text, notice := words.Told(e.Body)
	return []Item{&Note{Seq: e.Seq, Time: e.Time, Of: e.Body, Text: text, Notice: notice}}
}

// hear folds a message: it starts a run, or waits for its turn in the present one.
func (f *Fold) hear(e event.Event) []Item {
	s := &Said{Seq: e.Seq, Time: e.Time}
	switch b := e.Body.(type) {
	case event.Said:
		s.Parts, s.By, s.Origin = b.Parts, b.By, cmp.Or(b.Origin, event.OriginPerson)
	case event.Steered:
		s.Parts, s.By, s.Origin, s.Steered = b.Parts, b.By, b.Origin, true
	}
	s.Text = Spoken(s.Parts)
	begins := s.Origin.Leads() && (!s.Steered || s.By != loop.By) // otherwise it is news
	if !f.Run.Busy && begins {
		f.begin(e.Time)
		s.Heard = true
	}
	switch {
	case len(s.Parts) == 0:
		return nil
	case !f.Run.Busy:
		s.Heard = true
	case s.Heard:
	case s.Steered || !begins:
		f.Now.Steered = append(f.Now.Steered, s)
	default:
		f.queued = append(f.queued, s)
	}
	return []Item{s}
}

// withdrawn removes a message from the queue. If the message has left the queue already, it returns no items.
func (f *Fold) withdrawn(e event.Event, b event.Withdrawn) []Item {
	n := len(f.queued)
	f.queued = slices.DeleteFunc(f.queued, func(s *Said) bool { return s.Seq == b.Of })
	if len(f.queued) == n {
		return nil
	}
	return f.note(e)
}

// Spoken returns a message as words, with images by name.
func Spoken(parts llm.Parts) string {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case llm.Text:
			b.WriteString(p.Text)
		case llm.Image:
			if !strings.HasSuffix(b.String(), "]") { // its name
				b.WriteString("[image]")
			}
		}
	}
	return b.String()
}

func (f *Fold) begin(at time.Time) {
	if !f.Run.Busy {
		f.Run = Run{Busy: true, Began: at, before: f.Spent.Cost}
	}
}

// heard marks what the model sees from here on.
func (f *Fold) heard() (items []Item) {
	for _, s := range f.Now.Steered {
		s.Heard = true
		items = append(items, s)
	}
	f.Now.Steered = nil
	return items
}

// stop ends a run. The first queued message begins the next.
func (f *Fold) stop(e event.Event, b event.Stopped) []Item {
	items := append(f.void(), f.heard()...)
	stop := &Stop{Seq: e.Seq, Time: e.Time, Stopped: b, Turns: f.Run.Turns, Cost: f.Spent.Cost - f.Run.before}
	if !f.Run.Began.IsZero() {
		stop.Took = max(0, e.Time.Sub(f.Run.Began))
	}
	f.Run.Busy, f.Run.Stopped = false, &b
	f.halt()
	items = append(items, stop)
	if len(f.queued) > 0 {
		next := f.queued[0]
		f.queued = f.queued[1:]
		f.begin(e.Time)
		next.Heard = true
		items = append(items, next)
	}
	return items
}

// session folds events about the session itself.
func (f *Fold) session(e event.Event) (items []Item) {
	switch b := e.Body.(type) {
	case event.Opened:
		f.Session.ID, f.Session.Root = e.Session, b.Root
	case event.Moved:
		f.Session.Root = b.Root
	case event.Forked: // what was in progress belongs to the original session
		f.Session.ID = e.Session
		items = append(f.interrupted(), f.close(func(*Question) bool { return true })...)
		f.Now.Children = nil
	case event.Titled:
		f.Session.Title = b.Title
	case event.Rewound:
		f.rewinds.add(e.Seq, b.To)
		items = append(f.void(), f.interrupted()...)
		f.Now.Steered, f.queued, f.Todo, f.Run.Stopped = nil, nil, nil, nil
	case event.Compacted:
		f.spend(b.Usage, b.Cost)
		f.Spent.Prompt = llm.Usage{Input: b.After}
	case event.Kept:
		f.spend(b.Usage, b.Cost)
	}
	return append(items, f.note(e)...)
}

func (f *Fold) switched(e event.Event, b event.Switched) []Item {
	s := &f.Session
	text, notice := words.Told(b)
	note := &Note{Seq: e.Seq, Time: e.Time, Of: b, Text: text, Notice: notice, First: s.Route == ""}
	s.Route, s.Mode, s.Effort = cmp.Or(b.Route, s.Route), cmp.Or(b.Mode, s.Mode), cmp.Or(b.Effort, s.Effort)
	if b.Limits != nil {
		s.Limits = *b.Limits
	}
	if b.Window != nil {
		s.Window = b.Window.Tokens
	}
	return []Item{note}
}

// interrupted ends a run that nobody has stopped.
func (f *Fold) interrupted() []Item {
	f.Run.Busy = false
	f.halt()
	return f.close(func(q *Question) bool { return q.Call != nil })
}

func (f *Fold) spend(used llm.Usage, cost float64) {
	f.Spent.Usage = f.Spent.Usage.Add(used)
	f.Spent.Cost += cost
}

// close removes questions from the open ones.
func (f *Fold) close(which func(*Question) bool) (items []Item) {
	f.Now.Questions = slices.DeleteFunc(f.Now.Questions, func(q *Question) bool {
		if which(q) {
			q.Closed = true
			items = append(items, q)
		}
		return q.Closed
	})
	return items
}
