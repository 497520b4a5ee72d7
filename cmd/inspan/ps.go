package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/internal/sandbox"
	"github.com/inspan/inspan/internal/session"
	"github.com/inspan/inspan/internal/words"
)

// States of a session that somebody drives.
const (
	stateWorking = "working"
	stateAsks    = "asks"
	stateModel   = "waits for its model"
)

// driven is a session that somebody drives.
type driven struct {
	ID       string    `json:"id"`
	Parent   string    `json:"parent,omitempty"` // the session that it works for
	PID      int       `json:"pid"`
	Host     string    `json:"host"`
	Since    time.Time `json:"since"` // when that process took it up, or was asked last
	State    string    `json:"state"`
	What     string    `json:"what"`
	Root     string    `json:"root"`
	Cost     float64   `json:"cost"` // US dollars so far
	Unpriced bool      `json:"unpriced,omitempty"`
}

func (c *command) ps() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the sessions that run now, in whatever terminal or in none",
		Long: "List the sessions that a process drives now, and below each those that work for it. A session works, asks, or waits for its model.\n" +
			"One that stopped or whose process died is not there; 'inspan sessions list' has all. A run in another terminal is not there while it asks: it is answered there.",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			list, err := running(cmd.Context(), a.Store())
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(cmd.OutOrStdout(), list)
			case len(list) == 0:
				fmt.Fprintln(cmd.ErrOrStderr(), "nothing runs; start something with: inspan run --detach \"...\"")
				return nil
			}
			return printRunning(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printRunning(out io.Writer, list []driven) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tPID\tSINCE\tSTATE\tCOST\tWHAT")
	for _, d := range list {
		depth := strings.Count(d.ID, ".")
		fmt.Fprintf(w, "%s%s\t%d\t%s\t%s\t%s\t%s\n", strings.Repeat("  ", depth), d.ID, d.PID, d.Since.Local().Format("2006-01-02 15:04:05"),
			d.State, words.Cost(d.Cost, d.Unpriced), words.OneLine(d.What, 60))
	}
	return w.Flush()
}

// running are the sessions that somebody drives, each before those that work for
// it, the oldest first. A child that asks is driven by nobody and counts, as what it
// works for is driven.
func running(ctx context.Context, store *session.Store) ([]driven, error) {
	held, err := store.Held(ctx)
	if err != nil {
		return nil, err
	}
	list := []driven{}
	seen := map[string]bool{}
	for _, h := range held {
		seen[h.Session] = true
	}
	for i := 0; i < len(held); i++ { // grows
		h := held[i]
		state, what, err := folded(ctx, store, h.Session)
		if err != nil {
			continue // it went meanwhile, or is damaged, which 'sessions list' tells
		}
		list = append(list, driven{
			ID: h.Session, Parent: parentOf(h.Session), PID: h.PID, Host: h.Host, Since: h.Since, State: stateOf(state), What: what,
			Root: state.Root, Cost: state.Total.Cost, Unpriced: state.Total.Unpriced,
		})
		for _, child := range state.Children {
			if child.Open && !seen[child.Child] {
				seen[child.Child] = true
				held = append(held, session.Holder{Session: child.Child, PID: h.PID, Host: h.Host, Since: h.Since})
			}
		}
	}
	slices.SortFunc(list, func(a, b driven) int { return strings.Compare(a.ID, b.ID) }) // which puts children behind their parents
	return list, nil
}

// parentOf is the session that one of this id works for.
func parentOf(id string) string {
	if i := strings.LastIndexByte(id, '.'); i > 0 {
		return id[:i]
	}
	return ""
}

// folded is the state of a session that others drive, and what it is about.
func folded(ctx context.Context, store *session.Store, id string) (*loop.State, string, error) {
	log, err := store.Open(ctx, id)
	if err != nil {
		return nil, "", err
	}
	defer log.Close()
	start, err := log.Start(ctx)
	if err != nil {
		return nil, "", err
	}
	state := &loop.State{}
	for e, err := range log.Read(ctx, start) {
		if err == nil {
			err = state.Apply(e)
		}
		if err != nil {
			return nil, "", err
		}
	}
	if state.Title != "" {
		return state, state.Title, nil
	}
	return state, state.Task, nil
}

// stateOf says what a session does that somebody drives.
func stateOf(s *loop.State) string {
	wait, waits := s.Next().(loop.Wait)
	switch {
	case waits && len(wait.Calls) > 0 || len(s.Raised) > 0:
		return stateAsks
	case s.Run.Asking || s.Run.NotBefore.After(time.Now()):
		return stateModel
	}
	return stateWorking
}

// driver is who drives a session; where it works for another, else who drives that.
// Nil means nobody. A process that has just got an answer lets go for a moment, so
// that nobody is only believed when it is seen again.
func driver(ctx context.Context, store *session.Store, id string) (*session.Holder, error) {
	tick := time.NewTicker(gap)
	defer tick.Stop()
	for n := 0; ; n++ {
		for at := id; at != ""; at = parentOf(at) {
			if h, err := store.Holder(at); h != nil || err != nil {
				return h, err
			}
		}
		if n == 2 {
			return nil, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// gap is longer than a process lets go of a session that it goes on with.
const gap = 50 * time.Millisecond

// stopGrace is how long a process may take to end after it was told to.
const stopGrace = 2 * time.Second

func (c *command) stop() *cobra.Command {
	var now bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "stop ID",
		Short: "Stop the run of a session, wherever it goes on",
		Long: "Interrupt the run of a session, as Ctrl-C would, and wait until it has stopped. If it does not in time, or with --now, the process that drives it is told to end,\n" +
			"and killed 2 seconds later. No call that finished is lost: 'inspan resume' goes on. Of a session that works for another only the run is interrupted.",
		Args: exactly(1, 1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, id, err := c.found(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			what, err := stopped(cmd.Context(), store, id, now, wait)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", id, what)
			return nil
		},
	}
	cmd.Flags().BoolVar(&now, "now", false, "end the process at once")
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Second, "how long the run may take to stop, as `10s`")
	return cmd
}

// stopped stops the run of a session, and says what happened.
func stopped(ctx context.Context, store *session.Store, id string, now bool, wait time.Duration) (string, error) {
	h, err := driver(ctx, store, id)
	if h == nil {
		return "nobody drives it", err
	}
	child := parentOf(id) != ""
	if !now || child {
		if err := interrupt(ctx, store, id); err != nil {
			return "", err
		}
		if rests(ctx, store, id, wait) {
			return ending(ctx, store, id), nil
		}
	}
	switch {
	case child:
		return "", fmt.Errorf("session %s has not stopped within %s; it runs in process %d, which has others: inspan stop %s", id, wait, h.PID, h.Session)
	case !h.Here():
		return "", fmt.Errorf("session %s is driven by process %d on %s; end that there", id, h.PID, h.Host)
	}
	killed, err := sandbox.End(ctx, h.PID, stopGrace, func() bool { return holds(store, *h) })
	if err != nil {
		return "", err
	}
	how := "ended when it was told to"
	if killed {
		how = "was killed"
	}
	return fmt.Sprintf("process %d %s; the run is %s", h.PID, how, ending(ctx, store, id)), nil
}

func interrupt(ctx context.Context, store *session.Store, id string) error {
	log, err := store.Open(ctx, id)
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = log.Append(ctx, event.Cancelled{By: "inspan stop"})
	return err
}

// holds reports whether a process still drives a session. What can't be read is not
// taken for a yes.
func holds(store *session.Store, h session.Holder) bool {
	now, err := store.Holder(h.Session)
	return err == nil && now != nil && now.PID == h.PID && now.Host == h.Host
}

// rests waits until the run of a session has stopped, for so long at most.
func rests(ctx context.Context, store *session.Store, id string, wait time.Duration) bool {
	log, err := store.Open(ctx, id)
	if err != nil {
		return false
	}
	defer log.Close()
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	state := &loop.State{}
	for {
		for e, err := range log.Read(ctx, state.Seq) {
			if err != nil || state.Apply(e) != nil {
				return false
			}
		}
		if !state.Run.Active {
			return true
		}
		if log.Wait(ctx, state.Seq) != nil {
			return false
		}
	}
}

// ending says how the run of a session has stopped.
func ending(ctx context.Context, store *session.Store, id string) string {
	state, _, err := folded(ctx, store, id)
	if err != nil || state.Run.Active || state.Run.Stopped == nil {
		return "broken off, go on with: inspan resume " + id
	}
	return strings.ReplaceAll(string(state.Run.Stopped.Reason), "_", " ")
}
