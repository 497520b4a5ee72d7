// Package tui is the terminal front end: it shows a session while it runs, and sends it the person's words,
// decisions and interrupts.
//
// Its rules:
//
//  1. It only reads events and sends inputs. Everything it shows of a session is a fold over the session's
//     events (transcript.Fold). No state of the agent is kept elsewhere, so a crash of the front end loses nothing.
//  2. Finished output is printed once, into the terminal's own scrollback. Only the part at the bottom is
//     redrawn: streaming text, running calls, questions, the prompt, the status line. Fullscreen uses the
//     alternate screen and scrolls by itself. The mouse stays with the terminal.
//  3. Streams faster than 60 frames a second are merged before they are drawn (pump). The session never waits
//     for the screen, and keys never wait behind output. Outside fullscreen, a line that has settled is
//     never rendered again.
//  4. No text of a model, a tool or a file controls the terminal: everything passes clean (text.go) or
//     text.VisibleLines on its way to a line.
//
// The parts of the terminal:
//
//   - talk is the conversation with the open session. Its runner drives the session, its view shows it, and its
//     outbox holds what the session does not have yet.
//   - backend has the sessions, and session is the open one. A few parts ask TUI.here or TUI.at where they run, to hide
//     features that only sessions here or there have.
//   - composer is the prompt, with completion, history and pasted text.
//   - questions shows the session's questions, and takes the answers.
//   - commander runs slash commands. sessions opens other sessions, and rewinder goes back in this one.
//   - overlay is a list, a text to read or a yes-no question of the front end itself.
//   - hints and status are the two lines at the bottom. activity is the work in progress above the prompt.
//   - screen knows the size of the terminal and prints to its scrollback.
//
// model passes keys and messages to the parts, and draws them.
//
// # Where the session runs
//
// internal/front/tui knows two small interfaces (backend.go): a backend has the sessions, and a session is the open
// one. On this machine they are localBackend and localSession: an inspan.Session that a Conductor drives. On a server
// they are remoteBackend and remoteSession: an inspan.Watch over server.Remote, which is a store.Store. The other
// parts of the front end read events.
//
//   - One stream follows a remote session while it is open (Watch.Live, over event.Follower). A run that anyone
//     begins there counts as a run here, so steering, queueing and interrupts work the same way.
//   - Each input has a key. remoteLog sends it until the server has accepted or refused it, and the server
//     stores it once.
//   - The server sends a follower the text of a reply only from its first piece on (feeds in stream.go), so
//     what the screen has printed is always the beginning of the stored reply.
//   - A slash command for sessions of this machine gives the reason why it does not work (Command.here).
//
// tui.Board is the board of all sessions. running.Board folds what it shows: the list of the store, and the
// logs of sessions that have not ended a run or are on the screen. It only reads the new part of a log. A
// question is the same box (ask) as in a session, and App.Send sends the answer.
package tui

import (
	"cmp"
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
	Session string // id of the session to continue; empty means a new one, and "?" lets the person choose
	Say     string // the first message; may be empty
	// Pictures come with the first message; without one they wait in the prompt.
	Pictures []Picture
	Version  string

	// Server is the server that has the sessions, or nil if this machine has them. With a Server, App.Running
	// belongs to it, and the rest of App is not used for sessions.
	Server Server

	// Host makes the host for sessions that are opened from now on; warn receives warnings for the person. If
	// nil, App.Host is used.
	Host func(o app.Options, warn func(string)) *inspan.Host

	In         io.Reader // nil means standard input
	Out        io.Writer // nil means standard output
	Fullscreen bool      // use the alternate screen
	NoColor    bool
	Width      int // of an Out that is not a terminal, in cells; 0 means 80
	Height     int // the same; 0 means 24
	// Keys replaces the keys of actions, see Bindings.
	Keys map[string][]string
	// Commands are additional slash commands. A built-in command of the same name wins.
	Commands []Command
	// More returns slash commands that come and go; ours and those in Commands override them. It must return at
	// once. If nil, there are none.
	More func() []Command
	// Begun is called once, in a goroutine, when the front end is on the screen. It may be nil.
	Begun func()
	// Ended is called once, after the session is closed and before the last lines are printed. It may be nil.
	Ended func()
	// Edit opens a file in the person's editor. If nil, there is none.
	Edit func(path string) tea.ExecCommand
	// Clipboard returns the image in the person's clipboard as a PNG, or nothing and no error if there is none.
	// It is called from its own goroutine, with a few seconds of time. If nil, the desktop's clipboard is used.
	Clipboard func(ctx context.Context) (png []byte, err error)
	// Jobs returns the background jobs of a session that is open here, by the session's id; nil if nothing is
	// known. If Jobs is nil, /jobs only lists what was started.
	Jobs func(session string) Jobs

	now      func() time.Time // nil means time.Now
	mu       sync.Mutex
	panicked error
}

// Run shows the front end until the person leaves or ctx ends, restores the terminal in any case, and returns
// the exit code. A new session is only created when something is said. When the person leaves, a working run on
// this machine is interrupted, and the model's partial reply is kept; a run on a server continues.
func (t *TUI) Run(ctx context.Context) (code int, err error) {
	keys, err := keysOf(t.Keys)
	if err != nil {
		return 2, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(ctx, t, keys)
	var p *tea.Program
	drawn := tea.WithOutput(t.output(func(m markWritten) { p.Send(m) }))
	p = tea.NewProgram(m, append(t.options(ctx), drawn)...)
	pump := newPump(func(msg any) { p.Send(msg) })
	m.talk.backend = t.backend(pump)
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

// signals makes signals end the program cleanly.
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

// options returns the options of the program. It checks for changes twice as often as it draws, so that a key
// is handled within 9 ms.
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

// guard makes a goroutine restore the terminal before a panic ends the program.
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

// tellAfter is how long closing may take, or a text stay unsent, before the person sees a note about it.
const tellAfter = time.Second

// close closes the session and everything else. The terminal is restored first, so what the person types
// meanwhile goes to the shell.
func (t *TUI) close(r *runner) error {
	closed := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		select {
		case <-closed:
		case <-time.After(tellAfter):
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
	return cmp.Or[io.Writer](t.Out, os.Stdout)
}

// report prints where to find the session, how its processes ended, and the messages that did not reach it.
func (t *TUI) report(talk *talk, id, driver string, busy bool) {
	lines := talk.runner.leftovers()
	if id != "" {
		lines = slices.Concat([]string{"session " + id}, talk.backend.goodbye(id, driver, busy), lines)
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

// backend returns the backend that has the sessions.
func (t *TUI) backend(p *pump) backend {
	if t.Server != nil {
		return remoteBackend{t, p}
	}
	return localBackend{t, p}
}

// here returns the installation that runs the sessions; nil if it is not on this machine.
func (t *TUI) here() *app.App {
	if t.Server != nil {
		return nil
	}
	return t.App
}

// at returns the address of the server that has the sessions; empty means this machine.
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
