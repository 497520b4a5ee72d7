package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/console"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/internal/session"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

func (c *command) logs() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Show what has happened in a session so far, and with -f what happens",
		Long:  "Show what has happened in a session, as 'inspan sessions show' does. With -f what happens is shown until the run stops; the exit code is the run's.",
		Args:  exactly(1, 1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, id, err := c.found(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !follow {
				return c.console.Show(store.Events(cmd.Context(), id), false)
			}
			w := &watch{command: c, store: store, id: id, whole: true}
			return w.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run stops")
	return cmd
}

func (c *command) attach() *cobra.Command {
	return &cobra.Command{
		Use:   "attach ID",
		Short: "Watch a session that runs elsewhere, steer it, and answer what it asks",
		Long: "Show the current run of a session that another process drives, as it goes on. What you type is told to the model, or answers the question that waits.\n" +
			"Ctrl-C leaves the session to itself; the run goes on. When the run stops, so does this, with its exit code. Several can be attached at once: the first answer counts.",
		Args: exactly(1, 1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, id, err := c.found(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			h, err := driver(cmd.Context(), store, id)
			if err != nil {
				return err
			}
			if h == nil {
				return fmt.Errorf("nobody drives session %s; go on with it: inspan resume %s", id, id)
			}
			fmt.Fprintf(c.console.Err, "session %s, which process %d drives; type to steer it, Ctrl-C leaves it to itself\n", id, h.PID)
			w := &watch{command: c, store: store, id: id, lines: typed(c.in)}
			return w.run(cmd.Context())
		},
	}
}

// typed are the lines that somebody types. The goroutine that reads lives as long as
// the process, because a read from a terminal can't be called off.
func typed(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines
}

// watch shows a session that another process drives.
type watch struct {
	*command
	store *session.Store
	id    string
	whole bool          // from the first event; else the current run
	lines <-chan string // what the person types; nil: nobody does

	log      *session.Log
	state    loop.State
	caughtUp bool            // all that was there at the beginning has been shown
	shown    []event.Event   // of the current run, while it has not
	asked    string          // the call that the person is asked about; empty: none
	broken   bool            // something was shown below the question
	told     map[string]bool // calls that the person has answered and that still wait
	left     bool            // the person has left
	gone     bool            // nobody drives it any more
}

// news are events that came.
type news struct {
	events []event.Event
	all    bool // there are no more for now
	err    error
}

// mostNews is how many events are taken at once.
const mostNews = 256

// run shows the session until its run stops, nobody drives it, or the person leaves.
func (w *watch) run(ctx context.Context) error {
	var err error
	if w.log, err = w.store.Open(ctx, w.id); err != nil {
		return err
	}
	defer w.log.Close()
	w.told = map[string]bool{}
	if err := w.console.Show(w.events(ctx), false); err != nil {
		return err
	}
	return w.end()
}

// end says why there is no more to see.
func (w *watch) end() error {
	stop := w.state.Run.Stopped
	switch {
	case w.left:
		fmt.Fprintf(w.console.Err, "\nyou left; session %s goes on, come back with: inspan attach %s\n", w.id, w.id)
	case w.over() && stop != nil:
		w.code = console.ExitCode(string(stop.Reason), stop.Cause, nil)
	case len(w.pending()) > 0:
		w.code = console.ExitWaiting
		fmt.Fprintf(w.console.Err, "it asks, and nobody here drives it; answer where it runs, or go on with: inspan resume %s\n", w.id)
	default:
		return fmt.Errorf("nobody drives session %s any more; go on with it: inspan resume %s", w.id, w.id)
	}
	return nil
}

// over reports whether no run goes on.
func (w *watch) over() bool { return !w.state.Run.Active }

// events yields what is to be shown, and does what is to be done meanwhile.
func (w *watch) events(ctx context.Context) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer signal.Stop(signals)
		ctx, stop := context.WithCancel(ctx)
		coming, done := make(chan news), make(chan struct{})
		go func() {
			defer close(done)
			w.follow(ctx, coming)
		}()
		defer func() { stop(); <-done }()
		look := time.NewTicker(5 * gap)
		defer look.Stop()
		for on := true; on; {
			var err error
			select {
			case n := <-coming:
				on, err = w.take(n, yield)
			case line, ok := <-w.lines:
				on, err = w.typed(ctx, line, ok)
			case <-look.C:
				on, err = w.driven(ctx)
			case <-signals:
				w.left, on = true, false
			}
			if err != nil {
				yield(event.Event{}, err)
				return
			}
		}
	}
}

// follow hands on the events of the log, and those that come.
func (w *watch) follow(ctx context.Context, out chan<- news) {
	give := func(n news) {
		select {
		case out <- n:
		case <-ctx.Done():
		}
	}
	after, err := uint64(0), error(nil)
	if !w.whole {
		after, err = w.log.Start(ctx)
	}
	for err == nil {
		var events []event.Event
		for e, failed := range w.log.Read(ctx, after) {
			if err = failed; err != nil {
				break
			}
			after = e.Seq
			if events = append(events, e); len(events) == mostNews {
				give(news{events: events})
				events = nil
			}
		}
		give(news{events: events, all: err == nil, err: err})
		if err == nil {
			err = w.log.Wait(ctx, after)
		}
	}
	give(news{err: err})
}

// take shows events and asks what they ask. It reports whether there will be more.
func (w *watch) take(n news, yield func(event.Event, error) bool) (bool, error) {
	if n.err != nil {
		return false, n.err
	}
	for _, e := range n.events {
		active := w.state.Run.Active
		if err := w.state.Apply(e); err != nil {
			return false, err
		}
		if !w.whole && !w.caughtUp {
			if !active && w.state.Run.Active {
				w.shown = nil
			}
			w.shown = append(w.shown, e)
			continue
		}
		if !w.show(e, yield) {
			return false, nil
		}
	}
	if !n.all {
		return true, nil
	}
	for _, e := range w.shown {
		if !w.show(e, yield) {
			return false, nil
		}
	}
	w.shown, w.caughtUp = nil, true
	if w.over() {
		return false, nil
	}
	w.settle()
	return true, nil
}

// show shows an event, below the question if one stands there. Somebody else may
// have answered it.
func (w *watch) show(e event.Event, yield func(event.Event, error) bool) bool {
	if w.asked != "" && !w.broken {
		fmt.Fprintln(w.console.Err)
		w.broken = true
	}
	if w.asked != "" && !slices.ContainsFunc(w.pending(), func(p inspan.Pending) bool { return p.Call.ID == w.asked }) {
		fmt.Fprintln(w.console.Err, "  (it was answered elsewhere)")
		w.asked = ""
	}
	return yield(e, nil)
}

// driven notices when nobody drives the session any more.
func (w *watch) driven(ctx context.Context) (bool, error) {
	if !w.caughtUp {
		return true, nil
	}
	h, err := driver(ctx, w.store, w.id)
	before := w.gone
	w.gone = h == nil
	return !w.gone || !before, err // what it wrote last may not have been read yet
}

// pending are the questions that wait, those of children first.
func (w *watch) pending() []inspan.Pending {
	var out []inspan.Pending
	for _, r := range w.state.Raised {
		out = append(out, inspan.Asked(r))
	}
	wait, _ := w.state.Next().(loop.Wait)
	for _, c := range wait.Calls {
		call := c.Call
		call.Name = cmp.Or(c.Tool, c.Name)
		out = append(out, inspan.Pending{
			Call: call, Effects: c.Effects, Reason: c.Reason, Preview: c.Preview, Rules: c.Rules, Until: c.Until,
			Asks: slices.ContainsFunc(c.Effects, func(e tool.Effect) bool { return e.Kind == tool.Question }),
		})
	}
	return out
}

// current is the question that the person is to answer next.
func (w *watch) current() (inspan.Pending, bool) {
	for _, p := range w.pending() {
		if !w.told[p.Call.ID] {
			return p, true
		}
	}
	return inspan.Pending{}, false
}

// settle asks what waits, if there is somebody to ask.
func (w *watch) settle() {
	waits := map[string]bool{}
	for _, p := range w.pending() {
		waits[p.Call.ID] = true
	}
	for id := range w.told {
		if !waits[id] {
			delete(w.told, id)
		}
	}
	p, some := w.current()
	if w.lines == nil || !some || p.Call.ID == w.asked && !w.broken {
		return
	}
	w.asked, w.broken = p.Call.ID, false
	w.ask(p)
}

// ask shows all that would happen, and the question.
func (w *watch) ask(p inspan.Pending) {
	out := w.console.Err
	if p.Asks {
		fmt.Fprintln(out, "? "+strings.ReplaceAll(words.VisibleLines(p.Preview), "\n", "\n    "))
		fmt.Fprint(out, "  Your answer, a number or your own words: ")
		return
	}
	fmt.Fprintf(out, "? %s asks (%s)\n", words.Visible(strings.TrimPrefix(p.Agent+" › ", " › ")+p.Call.Name), words.Line(p.Reason))
	command, others := words.Asked(p.Call)
	lines := []string{words.VisibleLines(strings.TrimRight(p.Preview, "\n"))}
	if p.Preview == "" {
		lines = []string{strings.TrimPrefix("$ "+command, "$ \n"), others}
		if command == "" {
			lines = lines[1:]
		}
	}
	for _, text := range append(lines, words.Effects(p.Effects, p.Preview != "")...) {
		if text != "" {
			fmt.Fprintln(out, "    "+strings.ReplaceAll(text, "\n", "\n    "))
		}
	}
	longer := ""
	if len(p.Rules) > 0 {
		longer = " once; for [s]ession, [p]roject or [a]lways: " + words.Visible(strings.Join(p.Rules, ", "))
	}
	fmt.Fprintf(out, "  Allow it? [y]es%s; [n]o, or say what to do instead: ", longer)
}

// typed takes a line that the person has typed: an answer, or words for the model.
func (w *watch) typed(ctx context.Context, line string, ok bool) (bool, error) {
	switch {
	case !ok:
		w.lines = nil
		w.left = isTerminal(w.in)
		return !w.left, nil
	case w.asked != "":
		return true, w.answer(ctx, line)
	case strings.TrimSpace(line) == "":
		return true, nil
	}
	_, err := w.log.Append(ctx, event.Steered{Parts: llm.Say(line), By: "inspan attach"})
	return true, err
}

// answer sends what the person says to the question that waits.
func (w *watch) answer(ctx context.Context, line string) error {
	p, _ := w.current()
	read := func(line string) (event.Decided, string) { return words.Decision(p.Call.ID, p.Rules, line) }
	if p.Asks {
		read = func(line string) (event.Decided, string) { return words.Answer(p.Call, line) }
	}
	d, problem := read(line)
	if problem != "" {
		fmt.Fprintln(w.console.Err, "  "+problem)
		w.ask(p)
		return nil
	}
	var input event.Body = d
	if d.Allow {
		var err error
		if input, err = w.scoped(ctx, w.log, d, cmp.Or(string(d.Scope), "once")); err != nil {
			return err
		}
	}
	if _, err := w.log.Append(ctx, input); err != nil {
		return err
	}
	w.told[p.Call.ID], w.asked = true, ""
	w.settle()
	return nil
}
