package store

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
)

// Info is a session at a glance.
type Info struct {
	ID       string
	Title    string            // the last Titled; may be empty
	Root     string            // the workspace
	Parent   string            // the session that spawned it; empty: a person did
	Created  time.Time         // of the first event, or as the id says
	Modified time.Time         // of the last event
	Events   uint64            // that are good
	Size     int64             // of the log in bytes, about
	Preview  string            // beginning of what was said first, in one line
	Stop     event.Reason      // how the last run ended; empty while one goes on or none was
	Pinned   bool              // a person wants it kept, by the last Pinned
	Labels   map[string]string // that it was opened with
	Empty    bool              // nobody has said anything in it yet, so there is nothing to resume
	Damage   error             // why the log can't be read to its end; nil: it can
}

// NewInfo is what the id of a session tells of it before it has events.
func NewInfo(id string) Info {
	at := created(id)
	return Info{ID: id, Parent: Parent(id), Created: at, Modified: at, Empty: true}
}

// Add takes note of the next event. Where a store knows which they are it is enough to add, in
// their order, the first event, the first Said, the last Titled, the last Pinned, the last Moved, the last Stopped
// unless a run has gone on since, and the last event.
func (i *Info) Add(e event.Event) {
	i.Events, i.Modified = e.Seq, e.Time
	if e.Seq == 1 {
		i.Created = e.Time
	}
	switch b := e.Body.(type) {
	case event.Opened:
		i.Root, i.Labels = b.Root, b.Labels
		if b.Parent != "" && e.Session == i.ID { // a fork works for nobody
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

// Name is what to call the session: its title, or else the beginning of what was said first.
func (i *Info) Name() string { return cmp.Or(i.Title, i.Preview) }

// Sort brings sessions into the order of a list: the one that changed last first.
func Sort(infos []Info) {
	slices.SortFunc(infos, func(a, b Info) int {
		return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(b.ID, a.ID))
	})
}

// Hit is a place where a searched text was found.
type Hit struct {
	Session string
	Seq     uint64
	Time    time.Time
	Kind    string
	Text    string // the match with some text around it, in one line
}

// Find looks whether people, models or tools said something in an event that matches, and where.
func Find(session string, e event.Event, match *regexp.Regexp) (hit Hit, found bool) {
	said := spoken(e.Body)
	at := match.FindStringIndex(said)
	if at == nil {
		return Hit{}, false
	}
	return Hit{Session: session, Seq: e.Seq, Time: e.Time, Kind: e.Body.Kind(), Text: around(said, at[0])}, true
}

// spoken returns the text of a body that has text worth searching.
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

// previewLen is how many bytes of text a preview or the text of a hit has, about.
const previewLen = 200

// preview shortens text to its beginning, without line breaks.
func preview(s string) string {
	return text.Head(text.Flat(text.Head(s, 4*previewLen)), previewLen)
}

// around returns the text about the place at.
func around(s string, at int) string {
	return preview(s[len(text.Head(s, at-previewLen/4)):])
}
