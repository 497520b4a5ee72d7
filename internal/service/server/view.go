package server

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// A view is a session as the web page shows it: the items of its transcript, each with its index (its place),
// and the current activity. It uses the fold of all front ends ([transcript.Fold]), so the page folds nothing.
//
// Text of a reply in progress is not in the log and has no place: it is sent to the page as it comes, and is
// dropped with the next event, so the places are the same at each view of a session. A page that reconnects, even
// to another server, says from which place on it has items and up to which event.
type view struct {
	*Visit
	shower
	task    Task
	session string
	fold    transcript.Fold
	items   []transcript.Item
	places  map[transcript.Item]int
	changed map[int]bool    // places that have changed since the last part
	last    sessionActivity // as it was sent
	written *transcript.Reply
	told    int // bytes of it that were sent
}

// sessionPart is a part of a session, and its current activity.
type sessionPart struct {
	Total int              `json:"total" jsonschema:"items of the transcript"`
	Items []transcriptItem `json:"items" jsonschema:"those that are new or have changed"`
	Now   sessionActivity  `json:"now"`
	Write *replyPiece      `json:"write,omitempty"`
}

// replyPiece is a piece of a reply in progress.
type replyPiece struct {
	Text  string `json:"text"`
	Fresh bool   `json:"fresh,omitempty" jsonschema:"what was written before counts for nothing"`
}

// sessionActivity is the state of a session and its current activity.
type sessionActivity struct {
	Session   string           `json:"session"`
	Task      string           `json:"task,omitempty" jsonschema:"task that the session belongs to"`
	Stage     event.Stage      `json:"stage,omitempty" jsonschema:"stage of the task"`
	State     running.Standing `json:"state" jsonschema:"as on the board: waiting, running, idle, failed or done"`
	Parent    string           `json:"parent,omitempty"`
	Title     string           `json:"title,omitempty"`
	Root      string           `json:"root,omitempty"`
	Model     string           `json:"model,omitempty"`
	Effort    string           `json:"effort,omitempty"`
	Mode      tool.Mode        `json:"mode,omitempty"`
	Seq       uint64           `json:"seq" jsonschema:"number of the last event"`
	Busy      bool             `json:"busy" jsonschema:"a run goes on, or was cut off"`
	Driven    bool             `json:"driven" jsonschema:"somebody runs the session, or will when it is told something"`
	Began     time.Time        `json:"began,omitzero" jsonschema:"when the run began"`
	Turns     int              `json:"turns"`
	Calls     int              `json:"calls"`
	Cost      float64          `json:"cost" jsonschema:"US dollars"`
	Unpriced  bool             `json:"unpriced,omitempty"`
	Prompt    int              `json:"prompt,omitempty" jsonschema:"tokens of the last prompt"`
	Window    int              `json:"window,omitempty" jsonschema:"tokens that the model takes; 0: not known"`
	Todo      []tool.Todo      `json:"todo,omitempty"`
	Files     []string         `json:"files,omitempty" jsonschema:"files that calls have written"`
	Thinking  string           `json:"thinking,omitempty"`
	Draft     string           `json:"draft,omitempty" jsonschema:"tool of a call that is being written"`
	Wait      string           `json:"wait,omitempty" jsonschema:"why nothing happens for a while"`
	Until     time.Time        `json:"until,omitzero" jsonschema:"how long"`
	Queued    []string         `json:"queued,omitempty" jsonschema:"messages for after the run"`
	Questions []openQuestion   `json:"questions,omitempty"`
}

// viewOf reads a session that the visitor sees, up to its end.
func (v *Visit) viewOf(id string, upTo uint64) (*view, error) {
	t, err := v.owner(id)
	if err != nil {
		return nil, err
	}
	out := &view{Visit: v, task: t, session: id, places: map[transcript.Item]int{}, changed: map[int]bool{}, shower: shower{painter: &v.painter}}
	for e, err := range store.Events(v, v.Sessions, id) {
		if err != nil {
			return nil, err
		}
		if out.apply(e); e.Seq <= upTo {
			clear(out.changed)
		}
	}
	return out, nil
}

// apply folds an event.
func (v *view) apply(e event.Event) {
	for _, item := range v.fold.Apply(e) {
		place, known := v.places[item]
		if !known {
			if !lasts(item) {
				continue
			}
			place = len(v.items)
			v.items, v.places[item] = append(v.items, item), place
		}
		v.changed[place] = true
	}
	if _, is := e.Body.(event.Rewound); is {
		for place := range v.items {
			v.changed[place] = true
		}
	}
}

// lasts reports whether an item stays in the transcript, and has content to show.
func lasts(item transcript.Item) bool {
	switch i := item.(type) {
	case *transcript.Said:
		return i.Seq > 0
	case *transcript.Reply:
		return i.Seq > 0
	case *transcript.Note:
		return i.Seq > 0 && i.Text != "" && !i.First
	case *transcript.Call, *transcript.Child, *transcript.Stop:
		return true
	}
	return false
}

// part returns the changes from a place on, and the current activity. It marks them as sent.
func (v *view) part(from int) (sessionPart, error) {
	out := sessionPart{Total: len(v.items), Items: []transcriptItem{}}
	for place := range v.changed {
		if place >= from {
			i := v.show(v.items[place])
			i.N, i.Gone = place, v.fold.Gone(i.Seq)
			out.Items = append(out.Items, i)
		}
	}
	clear(v.changed)
	slices.SortStableFunc(out.Items, func(a, b transcriptItem) int { return cmp.Compare(a.N, b.N) })
	var err error
	if out.Now, err = v.now(); err == nil {
		out.Write = v.writing()
	}
	return out, err
}

// now returns the current activity.
func (v *view) now() (sessionActivity, error) {
	f := &v.fold
	if t, known := v.book.task(v.task.ID); known {
		v.task = t
	}
	out := sessionActivity{
		Session: v.session, Task: v.task.ID, Stage: v.task.Stage, Parent: kin.Parent(v.session),
		Title: words.OneLine(cmp.Or(f.Session.Title, v.task.Spec.Title, v.first()), 200), Root: text.Visible(f.Session.Root), Model: text.Visible(f.Session.Route), Effort: f.Session.Effort, Mode: f.Session.Mode, Seq: f.Seq,
		Busy: f.Run.Busy, Began: f.Run.Began, Turns: f.Spent.Turns, Calls: f.Spent.Calls, Cost: f.Spent.Cost, Unpriced: f.Spent.Unpriced,
		Prompt: f.Spent.Prompt.Prompt(), Window: f.Session.Window, Todo: f.Todo, Files: f.Files, Thinking: text.VisibleLines(f.Now.Thinking),
		Draft: text.Visible(f.Now.Draft.Name),
	}
	if w := f.Now.Wait; w != nil {
		out.Wait, out.Until = text.VisibleLines(w.Why+": "+w.What), w.Until
	}
	for _, q := range f.Queued() {
		out.Queued = append(out.Queued, text.VisibleLines(q.Text))
	}
	var open []inspan.Pending
	for _, q := range append(f.Raised(), f.Waiting()...) {
		open = append(open, f.Pending(q))
	}
	for _, p := range inspan.Sets(open) {
		out.Questions = append(out.Questions, v.question(v.task, p))
	}
	stop, asks := event.Reason(""), len(out.Questions) > 0
	if f.Run.Stopped != nil {
		stop = f.Run.Stopped.Reason
	}
	var err error
	out.Driven, err = v.driven(v.task)
	out.State = v.task.standing(running.StandingOf(asks, stop, out.Driven && f.Run.Busy), asks)
	return out, err
}

// first returns the first message.
func (v *view) first() string {
	for _, item := range v.items {
		if s, is := item.(*transcript.Said); is {
			return s.Text
		}
	}
	return ""
}

// writing returns the new text of a reply in progress; nil means none.
func (v *view) writing() *replyPiece {
	r := v.fold.Now.Reply
	out := replyPiece{Fresh: r != v.written}
	if out.Fresh {
		v.written, v.told = r, 0
	}
	if r != nil {
		out.Text, v.told = r.Text[v.told:], len(r.Text)
	}
	if !out.Fresh && out.Text == "" {
		return nil
	}
	return &out
}

// viewed is a request for a view.
type viewed struct {
	ID    string `json:"-" path:"id"`
	After string `json:"-" query:"after"`
	From  *int   `json:"-" query:"from"`
}

const firstItems = 200 // most items that a page gets at once

// from returns the first place that a page wants: the one that it names, or the beginning of the last ones.
func (v *view) from(said *int, most int) (int, error) {
	switch {
	case said == nil:
		return max(0, len(v.items)-most), nil
	case *said < 0:
		return 0, Wrong("from", "it is below 0", "the place of an item")
	}
	return *said, nil
}

// followView sends a session and then its changes.
func (c *call) followView(in viewed) error {
	after, err := lastEventID(c.r)
	if err != nil {
		return err
	}
	v, err := c.viewOf(in.ID, after)
	if err != nil {
		return err
	}
	if after > v.fold.Seq {
		return Wrong("Last-Event-ID", "the session has no such event", "the id of the last event that you have")
	}
	from, err := v.from(in.From, firstItems)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(c.Context)
	defer end()
	c.Context = ctx
	events, err := c.followed(in.ID, v.task.ID, Feed{After: v.fold.Seq, Live: true})
	if err != nil {
		return err
	}
	v.send(NewSSE(c.w), from, events, end)
	return nil
}

// together is how long changes are gathered before they are sent to a page.
const together = 40 * time.Millisecond

// send sends the changes from a place on, and then new ones, until the page disconnects or no more can come.
// Then it sends an end. End stops the events.
func (v *view) send(out *SSE, from int, events iter.Seq[event.Event], end func()) {
	if out.write("retry: 1000\n\n") != nil || v.sendPart(out, from) != nil {
		return
	}
	next := make(chan event.Event)
	go func() {
		defer close(next)
		for e := range events {
			next <- e
		}
	}()
	defer func() {
		end()
		for range next { // until the sender has noticed
		}
	}()
	var soon <-chan time.Time
	for {
		news := v.News()
		select {
		case e, more := <-next:
			switch {
			case !more:
				if v.sendPart(out, from) == nil {
					_ = out.Send("", "end", []byte("{}")) // the client may have disconnected
				}
				return
			case e.Body == nil && out.Beat() != nil:
				return
			case e.Body == nil:
				continue
			}
			if v.apply(e); soon == nil {
				soon = time.After(together)
			}
		case <-news: // its task may have reached another stage
			if soon == nil {
				soon = time.After(together)
			}
		case <-soon:
			if soon = nil; v.sendPart(out, from) != nil {
				return
			}
		}
	}
}

func (v *view) sendPart(out *SSE, from int) error {
	p, err := v.part(from)
	if err != nil {
		return err
	}
	if len(p.Items) == 0 && p.Write == nil && reflect.DeepEqual(p.Now, v.last) {
		return nil
	}
	v.last = p.Now
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return out.Send(strconv.FormatUint(v.fold.Seq, 10), "view", raw)
}

// stretch is a request for the items of some places.
type stretch struct {
	ID    string `json:"-" path:"id"`
	From  *int   `json:"-" query:"from"`
	Until *int   `json:"-" query:"until"`
	Whole bool   `json:"-" query:"whole"`
}

// items returns the items of some places, or the last ones if none are named.
func (c *call) items(in stretch) (out sessionPart, err error) {
	v, err := c.viewOf(in.ID, 0)
	if err != nil {
		return out, err
	}
	from, err := v.from(in.From, mostListed)
	if err != nil {
		return out, err
	}
	until := min(len(v.items), from+mostListed)
	if in.Until != nil {
		if *in.Until < 0 {
			return out, Wrong("until", "it is below 0", "the position after the last item")
		}
		until = min(until, *in.Until)
	}
	if v.whole = in.Whole; in.Whole {
		until = min(until, from+1)
	}
	clear(v.changed)
	for place := from; place < until; place++ {
		v.changed[place] = true
	}
	return v.part(from)
}
