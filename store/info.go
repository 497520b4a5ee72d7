package store

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/base/text"
)

// Info is a summary of a session.
type Info struct {
	ID       string
	Title    string            // the last Titled; may be empty
	Root     string            // the workspace
	Parent   string            // the session that spawned it; empty if a person started it
	Created  time.Time         // time of the first event, or as in the id
	Modified time.Time         // time of the last event
	Events   uint64            // number of readable events
	Size     int64             // approximate size of the log in bytes
	Preview  string            // beginning of the first message, in one line
	Stop     event.Reason      // how the last run ended; empty during a run or if there was none
	Pinned   bool              // a person wants to keep it, by the last Pinned
	Labels   map[string]string // labels that it was opened with
	Empty    bool              // it has no messages yet, so there is nothing to resume
	Damage   error             // why the log can't be read to its end; nil if it can
}

// NewInfo returns the facts about a session that its id reveals before it has events.
func NewInfo(id string) Info {
	at := created(id)
	return Info{ID: id, Parent: kin.Parent(id), Created: at, Modified: at, Empty: true}
}

// Add updates the summary with the next event. A store that knows the events need only add, in order: the first
// event, the first Said, the last Titled, Pinned and Moved, the last Stopped unless a run has continued since,
// and the last event.
func (i *Info) Add(e event.Event) {
	i.Events, i.Modified = e.Seq, e.Time
	if e.Seq == 1 {
		i.Created = e.Time
	}
	switch b := e.Body.(type) {
	case event.Opened:
		i.Root, i.Labels = b.Root, b.Labels
		if b.Parent != "" && e.Session == i.ID { // a fork works for no one
			i.Parent = b.Parent
		}
	case event.Said:
		if i.Empty {
			i.Preview, i.Empty = preview(b.Typed()), false
		}
	case event.Titled:
		i.Title = b.Title
	case event.Pinned:
		i.Pinned = b.On
	case event.Moved:
		i.Root = b.Root
	case event.Stopped:
		i.Stop = b.Reason
	case event.Asked:
		i.Stop = ""
	}
}

// Labelled reports whether the session has all of these labels.
func (i *Info) Labelled(labels map[string]string) bool {
	for name, value := range labels {
		if is, there := i.Labels[name]; !there || is != value {
			return false
		}
	}
	return true
}

// Name returns the title of the session or, without one, the beginning of the first message.
func (i *Info) Name() string { return cmp.Or(i.Title, i.Preview) }

// Sort sorts sessions for a list: the most recently changed first.
func Sort(infos []Info) {
	slices.SortFunc(infos, func(a, b Info) int {
		return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(b.ID, a.ID))
	})
}

// Hit is a match of a search.
type Hit struct {
	Session string
	Seq     uint64
	Time    time.Time
	Kind    string
	By      string // who said it, as in [event.Said]; empty for models and tools too
	Text    string // the match with some text around it, in one line
}

// Find returns the first match in the words of people, models or tools in an event, and whether there is one.
func Find(session string, e event.Event, match *regexp.Regexp) (hit Hit, found bool) {
	said := spoken(e.Body)
	at := match.FindStringIndex(said)
	if at == nil {
		return Hit{}, false
	}
	hit = Hit{Session: session, Seq: e.Seq, Time: e.Time, Kind: e.Body.Kind(), Text: around(said, at[0])}
	switch b := e.Body.(type) {
	case event.Said:
		hit.By = b.By
	case event.Steered:
		hit.By = b.By
	}
	return hit, true
}

// Searched returns the kinds of events in which [Find] finds text.
func Searched() []string {
	return []string{event.Said{}.Kind(), event.Steered{}.Kind(), event.Replied{}.Kind(), event.Ended{}.Kind()}
}

// spoken returns the text of a body that is worth searching, of one of the kinds of [Searched].
func spoken(b event.Body) string {
	switch b := b.(type) {
	case event.Said:
		return b.Parts.Text()
	case event.Steered:
		return b.Parts.Text()
	case event.Replied:
		return b.Parts.Text()
	case event.Ended:
		return b.Parts.Text()
	}
	return ""
}

// previewLen is the approximate size in bytes of a preview or of the text of a hit.
const previewLen = 200

// preview shortens text to its beginning, without line breaks.
func preview(s string) string {
	return text.Head(text.Flat(text.Head(s, 4*previewLen)), previewLen)
}

// around returns the text around the position at.
func around(s string, at int) string {
	return preview(s[len(text.Head(s, at-previewLen/4)):])
}
