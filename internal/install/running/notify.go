package running

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/view/words"
)

// Notifier calls a person who is away when a question waits, and when a run has ended. The process that drives
// a session calls, whatever its front end. Nothing waits for a call but the end of the session, for a few
// seconds at most. Failed deliveries are lost. It is safe for concurrent use.
type Notifier struct {
	*config.Installation

	front atomic.Pointer[Front]
}

// Front is the person's front end.
type Front struct {
	// Terminal is where the bell rings and notifications are shown, by escape sequences. A front end that calls
	// by itself discards them. If nil, there is no terminal.
	Terminal io.Writer
	// Here reports whether the person is looking at this front end: then no one is called. Any goroutine may call
	// it. If nil, it is unknown.
	Here func() bool
	// Clock returns the time for quiet hours. If nil, it is the machine's.
	Clock func() time.Time
}

// At sets the person's front end. Front ends call it when they start.
func (n *Notifier) At(f Front) { n.front.Store(&f) }

// at returns the person's front end; the zero value if none was set.
func (n *Notifier) at() Front {
	if f := n.front.Load(); f != nil {
		return *f
	}
	return Front{}
}

// mostLine is how many cells of a notification are kept.
const mostLine = 160

// now returns the time at the person's place.
func (n *Notifier) now() time.Time {
	if clock := n.at().Clock; clock != nil {
		return clock()
	}
	return time.Now()
}

// Calls reports whether the person's terminal should call at all.
func (n *Notifier) Calls() bool { return len(n.Config.Notify.AtTerminal().To) > 0 }

// wants reports whether the person should be called for something now.
func (n *Notifier) wants(what string) bool { return n.Config.Notify.Wants(what, n.now()) }

// Asks returns the notification for a question of a tool; empty if there should be none.
func (n *Notifier) Asks(tool string) string {
	if !n.wants(config.NotifyWaiting) {
		return ""
	}
	if tool == "" {
		tool = "a call"
	}
	return words.OneLine(tool, 80) + " asks"
}

// Ended returns the notification for the end of a run; empty if there should be none.
func (n *Notifier) Ended(s event.Stopped) string {
	if what := kindOf(s.Reason); what == "" || !n.wants(what) {
		return ""
	}
	text := strings.ReplaceAll(string(s.Reason), "_", " ")
	if what := kindOf(s.Reason); s.Detail != "" && what != config.NotifyDone && s.Reason != event.ReasonStuck { // a call, with its arguments
		text += ": " + s.Detail
	}
	return words.OneLine(words.Hidden(text), mostLine)
}

// kindOf returns the settings' word for the end of a run; empty if the person ended it.
func kindOf(r event.Reason) string {
	switch r {
	case event.ReasonCancelled:
		return ""
	case event.ReasonDone:
		return config.NotifyDone
	case event.ReasonBudget, event.ReasonMaxTokens, event.ReasonMaxTurns, event.ReasonMaxTime:
		return config.NotifyBudget
	}
	return config.NotifyFailed
}

// Follow calls the person about events in the session of an agent. Call end when the session is closed; it
// delivers the rest.
func (n *Notifier) Follow(agent *inspan.Agent) (end func() error) {
	f := &follower{notifier: n, told: map[uint64]bool{}}
	before := agent.Lifecycle.Stored
	agent.Lifecycle.Stored = func(s *inspan.Session, e event.Event) {
		if before != nil {
			before(s, e)
		}
		f.saw(s, e)
	}
	return f.end
}

// follower calls for one session.
type follower struct {
	notifier *Notifier

	mu      sync.Mutex
	session *inspan.Session // nil before the first event
	told    map[uint64]bool // questions that the person was called for
	timer   *time.Timer     // until the person is called for the open ones; nil if none
	ended   bool
	calls   sync.WaitGroup
}

// saw records an event.
func (f *follower) saw(s *inspan.Session, e event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.session = s
	switch b := e.Body.(type) {
	case event.Waiting, event.Raised:
		if f.timer == nil && !f.ended {
			f.timer = time.AfterFunc(f.notifier.Config.Notify.Patience(), f.overdue)
		}
	case event.Stopped:
		st := s.Status()
		if kindOf(b.Reason) == config.NotifyDone && st.Seconds < f.notifier.Config.Notify.Patience().Seconds() {
			return
		}
		f.call(st, kindOf(b.Reason), f.notifier.Ended(b))
	}
}

// overdue calls for the unanswered questions.
func (f *follower) overdue() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.overdueLocked()
}

func (f *follower) overdueLocked() {
	if f.timer == nil {
		return
	}
	f.timer.Stop()
	f.timer = nil
	st := f.session.Status()
	open := slices.DeleteFunc(inspan.Sets(st.Questions()), func(p inspan.Pending) bool { return f.told[p.Question] })
	if len(open) == 0 {
		return
	}
	for _, p := range open {
		f.told[p.Question] = true
	}
	text := f.notifier.Asks(open[0].Name())
	if more := len(open) - 1; more > 0 && text != "" {
		text += fmt.Sprintf(", and %d more", more)
	}
	f.call(st, config.NotifyWaiting, text)
}

// call delivers a text, if there is one and the person is away. The caller holds the lock.
func (f *follower) call(st inspan.Status, what, text string) {
	if here := f.notifier.at().Here; text == "" || here != nil && here() {
		return
	}
	m := f.notifier.message(st, what, text)
	for _, p := range f.notifier.places() {
		f.calls.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), mostCall)
			defer cancel()
			_ = p.send(ctx, m) // 'inspan doctor notify' tells why
		})
	}
}

// end calls for questions that are still open, since no one will later, and waits for deliveries.
func (f *follower) end() error {
	f.mu.Lock()
	f.overdueLocked()
	f.ended = true
	f.mu.Unlock()
	f.calls.Wait()
	return nil
}

// message returns a notification about a session.
func (n *Notifier) message(st inspan.Status, what, text string) Message {
	m := Message{
		Event: what, Session: st.Session, Root: st.Root, Title: words.OneLine(words.Hidden(st.Title), 60), Time: n.now(),
		Text: words.OneLine(text, mostLine),
	}
	if m.Title == "" {
		m.Title = words.OneLine(filepath.Base(st.Root), 60)
	}
	if link := n.Config.Notify.Link; link != "" && st.Session != "" {
		m.Link = strings.TrimSuffix(link, "/") + "/s/" + st.Session
	}
	return m
}
