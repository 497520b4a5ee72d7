// Package transcript folds the events of a session into items that a person sees. Every front end and the Markdown
// export render these items, and fold nothing themselves. [Spans] folds events into a trace, and [Changes] into
// changes of files.
//
// Transient events only add detail to work in progress; without them, the transcript is still correct. The folds know
// nothing about widths, colours and protocols.
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

// Fold is the state of a transcript. The zero value is an empty transcript. It keeps items in progress and forgets
// finished ones, so a front end can drop an item after rendering it.
type Fold struct {
	Session Session
	Run     Run
	Spent   Spent
	Now     Now
	Seq     uint64      // of the last event
	Last    string      // the model's last text
	Todo    []tool.Todo // as last set by the model
	Files   []string    // files that calls have written, each once

	calls     map[string]*Call // unfinished calls, by id
	inputKeys map[string]bool  // keys of inputs
	queued    []*Said          // messages for the next runs
	chosen    string           // route and rule of the last choice of a model
	rewinds   rewinds
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

	costBefore float64 // cost of the session before the run
}

// Spent is the usage and cost of the session.
type Spent struct {
	Turns, Calls int
	Cost         float64 // US dollars
	Unpriced     bool    // Cost lacks replies of unknown price
	Usage        llm.Usage
	Prompt       llm.Usage // of the last reply
}

// Now holds the items in progress.
type Now struct {
	Reply     *Reply // the reply being written; nil if none
	Thinking  string // the end of the model's reasoning, until its text begins
	Draft     Draft
	Wait      *Wait
	Steered   []*Said     // messages that the model has not seen yet
	Running   []*Call     // in the order of their starts
	Questions []*Question // open questions, in the order in which they were asked
	Children  []*Child    // children that are working
}

// Rest clears running calls and waits, if it is unknown whether they still are in progress.
func (n *Now) Rest() { n.Running, n.Wait = nil, nil }

// Draft is a call that the model is writing.
type Draft struct {
	Name  string
	Bytes int
}

// Queued returns the messages that begin the next runs.
func (f *Fold) Queued() []*Said { return f.queued }

// Took reports whether an input with this key was folded. A repeated input counts once, see [loop.Key].
func (f *Fold) Took(key string) bool { return f.inputKeys[key] }

// Idle reports whether no run is in progress and no call of the session waits for an answer.
func (f *Fold) Idle() bool { return !f.Run.Busy && len(f.Waiting()) == 0 }

// CutOff reports whether a run is in progress that does not wait for a person. If this process does not drive it, it
// was cut off or another process drives it.
func (f *Fold) CutOff() bool { return f.Run.Busy && len(f.Waiting()) == 0 }

// Gone reports whether a rewind has undone the event with this number, as of the events folded so far.
func (f *Fold) Gone(seq uint64) bool { return f.rewinds.gone(seq) }

// Apply folds one event. It returns the items that are new or have changed, in the order in which a person should see
// them. An event that was already folded changes nothing.
func (f *Fold) Apply(e event.Event) []Item {
	if !e.Transient() && e.Seq <= f.Seq {
		return nil
	}
	f.Seq = max(f.Seq, e.Seq)
	f.Now.Wait = nil
	if key := loop.Key(e.Body); key != "" && !f.isNewInput(key) {
		return nil
	}
	items, _ := f.apply(e)
	return items
}

// isNewInput reports whether an input's key is new.
func (f *Fold) isNewInput(key string) bool {
	if f.inputKeys == nil {
		f.inputKeys = map[string]bool{}
	}
	known := f.inputKeys[key]
	f.inputKeys[key] = true
	return !known
}

// apply folds an event, and reports whether its kind is known. Kinds without items are listed too, so that a new kind
// can't be forgotten.
func (f *Fold) apply(e event.Event) (items []Item, known bool) {
	switch b := e.Body.(type) {
	case event.Said, event.Steered:
		return f.message(e), true
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

// message folds a message: it begins a run, or waits during the run in progress.
func (f *Fold) message(e event.Event) []Item {
	s := &Said{Seq: e.Seq, Time: e.Time}
	switch b := e.Body.(type) {
	case event.Said:
		s.Parts, s.By, s.Origin = b.Parts, b.By, cmp.Or(b.Origin, event.OriginPerson)
	case event.Steered:
		s.Parts, s.By, s.Origin, s.Why, s.Steered = b.Parts, b.By, b.Origin, b.Why, true
	}
	s.Text = Spoken(s.Parts)
	begins := s.Origin.Leads() && (!s.Steered || s.By != loop.By) // other messages only inform the model
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

// withdrawn removes a message from the queue. If the message is no longer queued, it returns no items.
func (f *Fold) withdrawn(e event.Event, b event.Withdrawn) []Item {
	n := len(f.queued)
	f.queued = slices.DeleteFunc(f.queued, func(s *Said) bool { return s.Seq == b.Of })
	if len(f.queued) == n {
		return nil
	}
	return f.note(e)
}

// Spoken returns the text of a message, with [image] for images whose name the text lacks.
func Spoken(parts llm.Parts) string {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case llm.Text:
			b.WriteString(p.Text)
		case llm.Image:
			if !strings.HasSuffix(b.String(), "]") { // otherwise the text before it is its name
				b.WriteString("[image]")
			}
		}
	}
	return b.String()
}

func (f *Fold) begin(at time.Time) {
	if !f.Run.Busy {
		f.Run = Run{Busy: true, Began: at, costBefore: f.Spent.Cost}
	}
}

// markHeard marks the steered messages as seen by the model.
func (f *Fold) markHeard() (items []Item) {
	for _, s := range f.Now.Steered {
		s.Heard = true
		items = append(items, s)
	}
	f.Now.Steered = nil
	return items
}

// stop ends a run. The first queued message begins the next.
func (f *Fold) stop(e event.Event, b event.Stopped) []Item {
	items := append(f.voidReply(), f.markHeard()...)
	stop := &Stop{Seq: e.Seq, Time: e.Time, Stopped: b, Turns: f.Run.Turns, Cost: f.Spent.Cost - f.Run.costBefore}
	if !f.Run.Began.IsZero() {
		stop.Took = max(0, e.Time.Sub(f.Run.Began))
	}
	f.Run.Busy, f.Run.Stopped = false, &b
	f.stopRunning()
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
	case event.Forked: // work in progress belongs to the original session
		f.Session.ID = e.Session
		items = append(f.interrupted(), f.closeQuestions(func(*Question) bool { return true })...)
		f.Now.Children = nil
	case event.Titled:
		f.Session.Title = b.Title
	case event.Rewound:
		f.rewinds.add(e.Seq, b.To)
		items = append(f.voidReply(), f.interrupted()...)
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

// interrupted ends a run without a Stopped event.
func (f *Fold) interrupted() []Item {
	f.Run.Busy = false
	f.stopRunning()
	return f.closeQuestions(func(q *Question) bool { return q.Call != nil })
}

func (f *Fold) spend(used llm.Usage, cost float64) {
	f.Spent.Usage = f.Spent.Usage.Add(used)
	f.Spent.Cost += cost
}

// closeQuestions closes the matching open questions and returns them.
func (f *Fold) closeQuestions(match func(*Question) bool) (items []Item) {
	f.Now.Questions = slices.DeleteFunc(f.Now.Questions, func(q *Question) bool {
		if match(q) {
			q.Closed = true
			items = append(items, q)
		}
		return q.Closed
	})
	return items
}
