package tui

import (
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// view folds the events of a session into what a person sees. It is all that
// the front end knows of the session, and it asks nobody: the same events always
// show the same.
type view struct {
	session, root string
	route, mode   string
	limits        event.Limits
	window        int // tokens; 0: not known

	blocks []*block // what has happened, oldest first; whoever prints them may take them away

	// What goes on.
	busy    bool // a run does
	began   time.Time
	calls   map[string]llm.Call // of the replies, by id
	judged  map[string]event.Judged
	running []*running
	waiting []event.Waiting
	raised  []inspan.Question // by children, who wait for an answer
	crew    []*child          // that work
	reply   *block            // is being written; nil: nothing is
	thought string            // the end of what the model thinks, while it does
	draft   draft             // call that is being written
	pause   pause
	steered []utterance // said into the run and not seen by the model yet
	queued  []utterance // said for after the run
	todo    []tool.Todo
	stopped *event.Stopped // how the last run ended; nil while one goes on

	// What it has come to.
	turns, done int
	cost        float64
	unpriced    bool
	used        llm.Usage
	prompt      llm.Usage // of the last reply
	said        []string  // by the person, oldest first
	last        string    // the model's last words
	ended       *block    // the last call that ended
	changes     []change  // files the session changed, in order
	jobs        []string  // commands that were started in the background
	seq         uint64    // of the last event
	answeredBy  string    // route and rule of the model that answered last, if it was chosen
	runCost     float64   // of this run
	runTurns    int
}

// running is a call that has started and not ended.
type running struct {
	call  llm.Call
	since time.Time
	line  string // the last it showed
}

// child is a session that works for this one.
type child struct {
	event.Spawned
	since time.Time
}

// draft is a call as the model writes it.
type draft struct {
	name  string
	bytes int
}

// pause is a wait that ends by itself.
type pause struct {
	what  string    // comes then
	until time.Time // zero: there is none
}

// utterance is something that was said, by whom if it was not the person here.
type utterance struct{ text, by string }

// change is what a call did to a file.
type change struct {
	path, diff string
}

func newView() *view {
	return &view{calls: map[string]llm.Call{}, judged: map[string]event.Judged{}}
}

// Apply folds one event.
func (v *view) Apply(e event.Event) {
	if !e.Transient() && e.Seq <= v.seq {
		return // it is known
	}
	v.seq = max(v.seq, e.Seq)
	if !e.Transient() || !v.pause.until.IsZero() {
		v.pause = pause{}
	}
	switch b := e.Body.(type) {
	case event.Opened:
		v.session, v.root = e.Session, b.Root
	case event.Forked:
		v.session = e.Session
		v.busy, v.running, v.waiting, v.raised, v.crew = false, nil, nil, nil, nil
		v.note("forked from " + b.From)
	case event.Said:
		v.hear(e, b)
	case event.Steered:
		if v.busy {
			v.steered = append(v.steered, utterance{spoken(b.Parts), b.By})
		} else {
			v.hear(e, event.Said{Parts: b.Parts, By: b.By, Origin: b.Origin, Taint: b.Taint})
		}
	case event.Switched:
		v.switched(b)
	case event.Asked, event.Replied, event.Failed, event.Routed, event.Healed, event.Delta:
		v.model(e)
	case event.Judged, event.Waiting, event.Decided, event.Started, event.Ended:
		v.call(e)
	case event.Spawned, event.Raised, event.Returned:
		v.children(e)
	case event.Progress:
		v.progress(e, b)
	case event.Stopped:
		v.stop(e, b)
	default:
		v.rest(e)
	}
}

// rest folds what is only told.
func (v *view) rest(e event.Event) {
	switch b := e.Body.(type) {
	case event.Compacted:
		v.cost += b.Cost
		v.prompt = llm.Usage{Input: b.After}
	case event.Kept:
		v.cost += b.Cost
	case event.Rewound:
		v.endReply(nil, true)
		v.busy, v.running, v.waiting, v.steered, v.queued, v.todo, v.stopped = false, nil, nil, nil, nil, nil, nil
	}
	v.told(e.Body)
}

// hear takes in what a person said: it starts a run, or waits for the end of
// this one.
func (v *view) hear(e event.Event, b event.Said) {
	text := spoken(b.Parts)
	if v.busy && len(b.Parts) > 0 {
		v.queued = append(v.queued, utterance{text, b.By})
		return
	}
	v.start(e.Time)
	if len(b.Parts) > 0 {
		v.tell(text, b.By)
	}
}

func (v *view) tell(text, by string) {
	if by == "" {
		v.said = append(v.said, text)
	}
	v.add(&block{kind: saidBlock, text: text, by: by})
}

func (v *view) start(at time.Time) {
	if !v.busy {
		v.busy, v.began, v.stopped, v.runCost, v.runTurns = true, at, nil, 0, 0
	}
}

// spoken is what a person said, in words.
func spoken(parts llm.Parts) string {
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

func (v *view) switched(b event.Switched) {
	first := v.route == ""
	if b.Route != "" {
		v.route = b.Route
	}
	if b.Mode != "" {
		v.mode = b.Mode
	}
	if b.Limits != nil {
		v.limits = *b.Limits
	}
	if b.Window != nil {
		v.window = b.Window.Tokens
	}
	if (b.Route != "" || b.Mode != "") && !first {
		v.told(b)
	}
}

// stop ends a run.
func (v *view) stop(e event.Event, b event.Stopped) {
	v.endReply(nil, false)
	v.thought, v.draft, v.running = "", draft{}, nil
	v.flushSteered()
	v.add(&block{kind: stopBlock, text: v.summary(e.Time, b), bad: b.Reason != event.ReasonDone, detail: b.Detail})
	v.busy, v.stopped = false, &b
	queued := v.queued
	v.queued = nil
	for _, u := range queued { // the next run begins with them
		v.start(e.Time)
		v.tell(u.text, u.by)
	}
}

// flushSteered shows what the model sees from here on.
func (v *view) flushSteered() {
	for _, u := range v.steered {
		v.tell(u.text, u.by)
	}
	v.steered = nil
}

func (v *view) progress(e event.Event, b event.Progress) {
	v.wait(e)
	for _, r := range v.running {
		if r.call.ID == b.Call {
			r.line = lastLine(b.Text)
		}
	}
}

// lastLine is the last line of text that says something.
func lastLine(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	return text[strings.LastIndexAny(text, "\r\n")+1:]
}

// wait notes that the session waits a while, if the event says so.
func (v *view) wait(e event.Event) (why string, waits bool) {
	why, what, seconds := words.Wait(e.Body)
	if seconds > 0 {
		v.pause = pause{what, e.Time.Add(time.Duration(seconds * float64(time.Second)))}
	}
	return why, seconds > 0
}

func (v *view) add(b *block)      { v.blocks = append(v.blocks, b) }
func (v *view) note(text string)  { v.add(&block{kind: noteBlock, text: text}) }
func (v *view) warn(text string)  { v.add(&block{kind: noteBlock, text: text, bad: true}) }
func (v *view) idle() bool        { return !v.busy && len(v.waiting) == 0 }
func (v *view) share() (pct int)  { return percent(v.prompt.Prompt()+v.prompt.Output, v.window) }
func (v *view) cached() (pct int) { return percent(v.prompt.CacheRead, v.prompt.Prompt()) }

// cutOff reports whether there is a run that waits for nobody: where none goes on
// here, it was cut off, or somebody else goes on with it.
func (v *view) cutOff() bool { return v.busy && len(v.waiting) == 0 }

func percent(a, b int) int {
	if b == 0 {
		return -1
	}
	return (100*a + b/2) / b
}

// told notes what is told of an event in a sentence.
func (v *view) told(b event.Body) {
	if text, notice := words.Told(b); text != "" {
		v.add(&block{kind: noteBlock, text: text, bad: notice})
	}
}
