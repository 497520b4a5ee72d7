package tui

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/view/words"
)

// Server is a server that has the sessions. [running.Table] of the App reads them there.
type Server interface {
	// Begin creates a session on the server, and returns its id.
	Begin(ctx context.Context) (string, error)
	// Copy creates a session with a copy of another, and returns its id.
	Copy(ctx context.Context, session string) (string, error)
	// Finish ends the open task of a session when its run has stopped.
	Finish(ctx context.Context, session string) error
	// Link reports whether the server will not continue a followed session, and why the server can't be reached
	// now; nil if it can.
	Link(session string) (over bool, lost error)
	// Points returns the messages that a session can be rewound to, the oldest first.
	Points(ctx context.Context, session string) ([]app.Point, error)
	// Rewind takes a session back to before a message. It returns lines about the changes; with only set, it
	// changes nothing.
	Rewind(ctx context.Context, session string, to uint64, files, conversation, only bool) ([]string, error)
}

// remoteBackend is a server.
type remoteBackend struct {
	*TUI
	pump *pump
}

func (a remoteBackend) create(ctx context.Context, o app.Options, warn func(string)) (session, error) {
	id, err := a.Server.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return a.open(ctx, o, id, warn)
}

func (a remoteBackend) open(ctx context.Context, _ app.Options, id string, _ func(string)) (session, error) {
	w, err := a.App.Running.Watch(ctx, id)
	if err != nil {
		return nil, err
	}
	link := func() (bool, error) { return a.Server.Link(w.ID()) }
	j := &remoteSession{Watch: w, pump: a.pump, link: link, key: rand.Text(), news: make(chan struct{})}
	j.ctx, j.hang = context.WithCancel(ctx)
	return j, nil
}

func (a remoteBackend) fork(ctx context.Context, o app.Options, id string, warn func(string)) (session, error) {
	id, err := a.Server.Copy(ctx, id)
	if err != nil {
		return nil, err
	}
	return a.open(ctx, o, id, warn)
}

// driver implements backend. The session belongs to the server and is open here as much as anywhere, so it names
// no driver.
func (remoteBackend) driver(context.Context, string) (string, error) { return "", nil }

func (remoteBackend) has(string) bool { return true }

// personMessages implements backend. The person behind messages in the server's logs is unknown here.
func (remoteBackend) personMessages(context.Context, string) ([]string, error) { return nil, nil }

func (a remoteBackend) rewindPoints(ctx context.Context, id string) ([]app.Point, error) {
	return a.Server.Points(ctx, id)
}

func (a remoteBackend) planRewind(ctx context.Context, s session, _ string, seq uint64, files, conversation bool) (rewindPlan, error) {
	lines, err := a.Server.Rewind(ctx, s.ID(), seq, files, conversation, true)
	return rewindPlan{"rewind?", lines, func(ctx context.Context) error {
		_, err := a.Server.Rewind(ctx, s.ID(), seq, files, conversation, false)
		return err
	}}, err
}

func (remoteBackend) closed(id string) string {
	return "session " + id + " stays open on the server; /resume " + id + " returns to it"
}

func (a remoteBackend) commands() []Command {
	finish := func(c *commander, _ string) tea.Cmd {
		id := c.talk.runner.id()
		if id == "" {
			c.hints.say("there is no task yet")
			return nil
		}
		return c.talk.work(func(ctx context.Context) (string, error) {
			return "the task ends when its run has stopped", a.Server.Finish(ctx, id)
		}, c.talk.noteResult)
	}
	return []Command{{Name: "close", Doc: "end the task on the server; without this it stays open when you leave", run: finish}}
}

func (remoteBackend) fixed() string {
	return "the mode and the limits of a session on a server are chosen when it starts"
}

func (a remoteBackend) goodbye(id, _ string, busy bool) []string {
	stays := map[bool]string{true: "continues", false: "stays open"}[busy]
	return []string{
		"it " + stays + " on the server; come back with: " + words.Command(a.at(), "attach", id),
		"end it with: " + words.Command(a.at(), "stop", id),
	}
}

// remoteSession is a session that runs on a server. It is followed while it is open. Every input that is sent has a
// key, so that it counts once however often sending is retried.
type remoteSession struct {
	*inspan.Watch
	pump *pump
	link func() (over bool, lost error)
	key  string // prefix of this process's keys

	ctx    context.Context //nolint:containedctx // context for sending and following
	hang   context.CancelFunc
	once   sync.Once
	follow sync.WaitGroup

	mu     sync.Mutex
	sent   int            // number of inputs sent
	seen   int            // number of the last input that came back
	seqs   map[int]uint64 // event numbers of messages, by input
	runs   bool           // someone here waits for the end of the run
	told   bool           // a run was announced that no one here waits for
	began  chan struct{}  // closed when the inputs of the last run from here are sent; nil before the first
	failed error          // why it can't be followed any more
	news   chan struct{}  // closed and replaced when one of these fields changes
}

// runBegan says that a run is in progress that was begun elsewhere.
type runBegan struct{}

// linkState says how well the server can be reached now, in a word or two, and in a sentence. Empty means well.
type linkState struct{ trouble, text string }

// lookEvery is how often the connection to the server is checked.
const lookEvery = 250 * time.Millisecond

// start follows the session.
func (j *remoteSession) start(after uint64) {
	j.once.Do(func() {
		j.follow.Go(func() {
			for e, err := range j.Live(j.ctx, after) {
				j.receive(e, err)
			}
		})
		j.follow.Go(j.watchLink)
	})
}

// receive takes an event, or the reason why no more will come.
func (j *remoteSession) receive(e event.Event, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.failed = err
		j.pump.put(linkState{"not followed", err.Error()})
	} else {
		j.pump.put(j.withoutSender(e))
	}
	if e.Transient() && err == nil {
		return
	}
	close(j.news)
	j.news = make(chan struct{})
	j.announce()
}

// announce says that a run is in progress that no one here waits for. The caller holds the lock.
func (j *remoteSession) announce() {
	if j.Status().Active && !j.runs && !j.told && j.failed == nil {
		j.told = true
		j.pump.put(runBegan{})
	}
}

// withoutSender removes the sender's name from an event that was sent from here. The caller holds the lock.
func (j *remoteSession) withoutSender(e event.Event) event.Event {
	_, at, mine := strings.Cut(loop.Key(e.Body), j.key+"-")
	n, err := strconv.Atoi(at)
	if !mine || err != nil {
		return e
	}
	j.seen = max(j.seen, n)
	switch b := e.Body.(type) {
	case event.Said:
		if j.seqs == nil {
			j.seqs = map[int]uint64{}
		}
		j.seqs[n] = e.Seq
		b.By = ""
		e.Body = b
	case event.Steered:
		b.By = ""
		e.Body = b
	}
	return e
}

// watchLink reports when the server can't be reached, and when it can again.
func (j *remoteSession) watchLink() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	before := linkState{}
	for {
		now := linkState{}
		switch over, lost := j.link(); {
		case over:
			now = linkState{"task over", "the task is over; /new starts another one"}
		case lost != nil:
			now = linkState{"server away", "the connection is lost: " + lost.Error() + "; inspan tries again"}
		}
		if now.trouble != before.trouble {
			before = now
			j.pump.put(now)
		}
		select {
		case <-tick.C:
		case <-j.ctx.Done():
			return
		}
	}
}

// sendKeyed sends an input under a key, and returns its number among the inputs from here; 0 if it has none.
func (j *remoteSession) sendKeyed(input event.Body) (n int, err error) {
	j.mu.Lock()
	j.sent++
	n = j.sent
	j.mu.Unlock()
	key := fmt.Sprintf("%s-%d", j.key, n)
	switch b := input.(type) {
	case event.Said:
		b.Message = key
		input = b
	case event.Steered:
		b.Message = key
		input = b
	case event.Decided:
		b.Message = key
		input = b
	case event.Cancelled:
		b.Message = key
		input = b
	default:
		n = 0
	}
	return n, j.Watch.Send(j.ctx, input)
}

// Send implements session.
func (j *remoteSession) Send(_ context.Context, input event.Body) error {
	_, err := j.sendKeyed(input)
	return err
}

// sendToRun implements session. The number of a message is known when it comes back.
func (j *remoteSession) sendToRun(ctx context.Context, input event.Body) (seq uint64, err error) {
	j.mu.Lock()
	began := j.began
	j.mu.Unlock()
	if began != nil {
		select {
		case <-began: // the inputs that begin a run come first
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	n, err := j.sendKeyed(input)
	if _, said := input.(event.Said); !said || err != nil {
		return 0, err
	}
	_ = j.waitUntil(func() bool { seq = j.seqs[n]; return seq > 0 }) // errors go to the caller that waits for the end of the run
	return seq, nil
}

// prepareRun implements session: it sends the inputs and waits for the end of the run.
func (j *remoteSession) prepareRun(func() []event.Body) func(context.Context, []event.Body) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	began := make(chan struct{})
	j.runs, j.told, j.began = true, false, began
	return func(_ context.Context, inputs []event.Body) error {
		j.start(j.Status().Seq)
		last, err := j.sendAll(inputs)
		close(began)
		if err != nil {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.runs = false
			return err
		}
		return j.waitEnd(last)
	}
}

// sendAll sends inputs, and returns the number of the last one.
func (j *remoteSession) sendAll(inputs []event.Body) (last int, err error) {
	for _, input := range inputs {
		n, err := j.sendKeyed(input)
		if err != nil {
			return 0, err
		}
		last = max(last, n)
	}
	return last, nil
}

// waitEnd waits until an input has come back and no run is in progress.
func (j *remoteSession) waitEnd(last int) error {
	err := j.waitUntil(func() bool {
		over := j.seen >= last && !j.Status().Active
		j.runs = j.runs && !over
		return over
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs = j.runs && j.failed == nil
	return err
}

// waitUntil waits until a condition on the received events is true. It returns an error if no more will come. It
// holds the lock while it checks.
func (j *remoteSession) waitUntil(holds func() bool) error {
	for {
		j.mu.Lock()
		over, err, news := holds(), j.failed, j.news
		j.mu.Unlock()
		if over || err != nil {
			return err
		}
		select {
		case <-news:
		case <-j.ctx.Done():
			return j.ctx.Err()
		}
	}
}

func (j *remoteSession) again() {}

func (j *remoteSession) watch(ctx context.Context, after uint64) {
	j.start(after)
	j.mu.Lock()
	j.told = false
	j.announce()
	j.mu.Unlock()
	<-ctx.Done()
}

func (j *remoteSession) disconnect() { j.hang() }

// detach implements session: the run continues.
func (j *remoteSession) detach() { j.hang() }

func (j *remoteSession) close() ([]string, error) {
	j.hang()
	j.follow.Wait()
	return nil, j.Close()
}
