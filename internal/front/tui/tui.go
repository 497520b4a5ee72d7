// Package tui is the terminal front end: it shows a session while it runs, and
// takes what a person says, decides and stops.
//
// Its rules:
//
//  1. It only reads events and sends inputs. All that is shown of a session is a
//     fold over its events (transcript.Fold); no state of the agent is kept anywhere
//     else. A crash of it loses nothing.
//  2. What is finished is printed once, into the terminal's own scrollback. Only
//     the part at the bottom is drawn again: what streams in, running calls,
//     questions, the prompt, the status line. Fullscreen uses the alternate screen
//     and scrolls by itself. The mouse stays with the terminal.
//  3. What streams in faster than 60 pictures a second is folded together before
//     it is drawn (pump). The session never waits for the screen, and keys never
//     wait behind output. A line that has settled is never rendered again.
//  4. Nothing that a model, a tool or a file says drives the terminal: everything
//     passes clean or visible (text.go) on its way to a line.
//
// The parts of the terminal:
//
//   - talk is the conversation with the open session. Its runner drives the session, its view
//     shows it, and its outbox keeps what the session does not know yet.
//   - house is where the sessions are, and session the one that is open: of this machine (home,
//     own) or of a server (away, joined). No other part knows which.
//   - composer is the prompt, with completion, history and pasted text.
//   - questions shows what the session asks, and takes the answer.
//   - commander does slash commands. sessions opens other sessions, and rewinder goes back in
//     this one.
//   - overlay is a list or a yes-no question of the front end itself.
//   - hints and status are the two lines at the bottom. activity is what goes on above the prompt.
//   - screen knows the size of the terminal and prints to its scrollback.
//
// model passes keys and messages on to the parts, and draws them.
//
// # Where the session runs
//
// internal/front/tui knows two small interfaces (house.go): a house has the sessions, and a session is the one that
// is open. On this machine they are home and own: a Session that a Conductor drives. On a server they are away and
// joined: a Watch over server.Remote, which is a store.Store. All other parts of the front end read events and don't
// know which it is.
//
//   - A joined session is followed by one stream as long as it is open (Watch.Live, over event.Follower). A run
//     that anybody begins there counts as one that goes on here, so steering, queueing and interrupts are the
//     same.
//   - Each input has a key. remoteLog sends it until the server has taken or refused it, and the server stores it
//     once.
//   - The server tells a follower the text of a reply only from its first piece on (feeds in stream.go). So what
//     the screen has printed is always the beginning of the stored reply.
//   - A slash command that is for sessions of this machine only says why (Command.here).
//
// tui.Board is the board of all sessions. running.Board folds what it shows: the list of the store, and the logs of
// sessions that no run has ended in, or that are on the screen. It reads of a log only what is new. A question is
// the same box (ask) as in a session, and App.Send takes the answer.
package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

// TUI is the terminal front end of one process.
type TUI struct {
	App     *app.App
	Options app.Options
	Root    string // the workspace of new sessions
	Session string // id of the session to go on with; empty: a new one; "?": the person chooses
	Say     string // what is said first; empty: nothing
	Version string

	// Server is the server that has the sessions, if it is not this machine. Then App.Running is of
	// that server, and the rest of App is not used for them.
	Server Server

	// Host makes the host for the sessions that are opened from here on; warn
	// takes what a person should know. Nil: App.Host.
	Host func(o app.Options, warn func(string)) *inspan.Host

	In         io.Reader // nil: standard input
	Out        io.Writer // nil: standard output
	Fullscreen bool      // the alternate screen
	NoColor    bool
	Width      int // of an Out that is no terminal, in cells; 0: 80
	Height     int // the same; 0: 24
	// Keys gives actions other keys, see Bindings. They take the place of all
	// keys the action has.
	Keys map[string][]string
	// Commands are more slash commands. They win over ours of the same name.
	Commands []Command
	// More returns slash commands that come and go; ours and those of Commands win. It
	// returns at once. Nil: there are none.
	More func() []Command
	// Begun is called once, beside everything else, when the front end is on the
	// screen. Nil: nothing waits for that.
	Begun func()
	// Ended is called once, after the session is closed and before the last lines are
	// printed. Nil: nothing else is to be closed.
	Ended func()
	// Edit opens a file in the person's editor. Nil: there is none.
	Edit func(path string) tea.ExecCommand
	// Clipboard returns the image in the clipboard of the person, as a PNG; nothing and no
	// error: there is none. It is called from a goroutine of its own, with some seconds of
	// time. Nil: that of the desktop.
	Clipboard func(ctx context.Context) (png []byte, err error)
	// Jobs returns what goes on in the background of a session that is open here, by
	// its id; nil: nothing is known of it. Nil: /jobs only tells what was started.
	Jobs func(session string) Jobs

	now      func() time.Time // nil: time.Now
	mu       sync.Mutex
	panicked error
}

// Run shows the front end until the person leaves or ctx ends, and returns the
// exit code. The terminal is as it was afterwards, whatever happens. A session
// that is new is on disk only once something was said. A run that goes on when
// the person leaves is interrupted, and what the model has said by then is kept.
func (t *TUI) Run(ctx context.Context) (code int, err error) {
	keys, err := keysOf(t.Keys)
	if err != nil {
		return 2, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(ctx, t, keys)
	p := tea.NewProgram(m, t.options(ctx)...)
	pump := newPump(func(msg any) { p.Send(msg) })
	m.talk.house = t.house(pump)
	m.talk.runner = &runner{ctx: ctx, pump: pump, send: func(msg any) { p.Send(msg) }, guard: t.guard(p)}
	stopped := t.signals(p)
	pumped := make(chan struct{})
	go m.talk.runner.guard(func() { defer close(pumped); pump.run(ctx) })()
	_, err = p.Run()
	stopped()
	id, driver, busy := m.talk.runner.id(), m.talk.driver, m.talk.view.Run.Busy
	ended := t.close(m.talk.runner)
	t.report(m.talk, id, driver, busy)
	cancel()
	<-pumped
	return t.result(m, errors.Join(err, ended, m.line.app.Close()))
}

// signals makes a signal end the program in order.
func (t *TUI) signals(p *tea.Program) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-signals:
			p.Send(leave{})
		case <-done:
		}
	})
	return func() { signal.Stop(signals); close(done); wg.Wait() }
}

// options are those of the program. It looks for changes twice as often as output
// brings some, so that a key is seen within 9 ms.
func (t *TUI) options(ctx context.Context) []tea.ProgramOption {
	opts := []tea.ProgramOption{tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithFPS(120)}
	if t.In != nil {
		opts = append(opts, tea.WithInput(t.In))
	}
	if t.Out != nil {
		opts = append(opts, tea.WithOutput(t.Out))
	}
	if t.Width > 0 && t.Height > 0 {
		opts = append(opts, tea.WithWindowSize(t.Width, t.Height))
	}
	return opts
}

// guard makes a goroutine of ours restore the terminal before a panic of it ends
// the program.
func (t *TUI) guard(p *tea.Program) func(func()) func() {
	return func(f func()) func() {
		return func() {
			defer func() {
				if r := recover(); r != nil {
					t.mu.Lock()
					t.panicked = errors.Join(t.panicked, fmt.Errorf("panic: %v\n%s", r, debug.Stack()))
					t.mu.Unlock()
					p.Kill()
				}
			}()
			f()
		}
	}
}

// untold is how long closing may take before the person is told of it.
const untold = time.Second

// close closes the session and all else. The terminal is as it was before, so that what the person
// types meanwhile is for the shell.
func (t *TUI) close(r *runner) error {
	closed := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		select {
		case <-closed:
		case <-time.After(untold):
			fmt.Fprintln(t.out(), "closing the session; Ctrl-C ends inspan at once")
		}
	})
	err := r.close()
	if t.Ended != nil {
		t.Ended()
	}
	close(closed)
	telling.Wait()
	return err
}

func (t *TUI) out() io.Writer {
	if t.Out != nil {
		return t.Out
	}
	return os.Stdout
}

// report says where the session is to be found, what became of what it had started, and what did not
// arrive there, below what was printed.
func (t *TUI) report(talk *talk, id, driver string, busy bool) {
	lines := talk.runner.leftovers()
	if id != "" {
		lines = slices.Concat([]string{"session " + id}, talk.house.goodbye(id, driver, busy), lines)
	}
	for _, p := range talk.mine {
		if p.back {
			continue
		}
		lines = append(lines, "not sent: "+words.OneLine(p.text, 200))
	}
	for _, line := range lines {
		fmt.Fprintln(t.out(), line)
	}
}

func (t *TUI) result(m *model, err error) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err = errors.Join(t.panicked, err, m.fatal)
	if errors.Is(err, context.Canceled) && t.panicked == nil {
		return 130, nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}

func (t *TUI) clock() time.Time {
	if t.now != nil {
		return t.now()
	}
	return time.Now()
}

// house is where the sessions are.
func (t *TUI) house(p *pump) house {
	if t.Server != nil {
		return away{t, p}
	}
	return home{t, p}
}

// here is the installation that runs the sessions; nil: it is not one of this machine.
func (t *TUI) here() *app.App {
	if t.Server != nil {
		return nil
	}
	return t.App
}

// at is the address of the server that has the sessions; empty: this machine has them.
func (t *TUI) at() string {
	if t.Server == nil {
		return ""
	}
	return t.App.Running.Server
}

func (t *TUI) host(o app.Options, warn func(string)) *inspan.Host {
	if t.Host != nil {
		return t.Host(o, warn)
	}
	return t.App.Host(o, warn)
}
