package command

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/install/schedule"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

func (c *command) learnNight() *cobra.Command {
	var n nightly
	var cwd, cron, occasion string
	cmd := &cobra.Command{
		Use:   "night SUITE",
		Short: "Learn without a person: propose, try, promote and watch, within a budget",
		Long: "inspan collects what went wrong lately in this workspace and in the last run of SUITE, and asks a model for one small change\n" +
			"of --file. It tries the change on dev tasks. If it is better there, inspan looks at held-out tasks once, and promotes it if\n" +
			"it is better there too. It also watches canaries, and rolls back those that do harm. The page at the end says what was tried,\n" +
			"kept and thrown away; 'inspan eval learn report' prints it again.\n\n" +
			"No session gets the change unless you say so: for this change with 'inspan eval learn canary', or for all of them with --keep.\n" +
			"A night that was killed continues when you give the command again. With --every it becomes a schedule.",
		Example: "  inspan eval learn night suites/mine --budget 5\n" +
			"  inspan eval learn night suites/mine --budget 5 --keep --every \"0 2 * * *\"",
		Args: exactly(1, 1, "a SUITE"),
	}
	cmd.RunE = c.evaluated(&n.evaluation, func(cmd *cobra.Command, args []string) error {
		if n.Budget <= 0 {
			return misused("night needs a --budget, in US dollars")
		}
		if err := n.check(); err != nil {
			return err
		}
		a, root, err := c.at(cwd)
		if err != nil {
			return err
		}
		suite, err := filepath.Abs(args[0])
		if err != nil {
			return err
		}
		if cron != "" {
			one := schedule.Schedule{
				ID: "learn", Root: root, Cron: cron, Overlap: schedule.Skip, CatchUp: schedule.Once,
				Learn: append([]string{suite}, flagsFor(cmd, cmd, "cwd", "every", "occasion")...),
			}
			if one, err = c.schedules(a).Add(cmd.Context(), one); err != nil {
				return err
			}
			return one.Added(cmd.OutOrStdout(), time.Now())
		}
		if b, err := a.Running.Ordered(); err == nil { // a schedule started it, which needs no report
			b.Close()
		}
		ctx, stop := c.signals(cmd.Context())
		defer stop()
		n.ask = comparisons{State: a.Running.StateDir, Sessions: a.Store(), Out: n.Err, Now: time.Now(), By: "inspan eval learn night"}
		n.begun = eval.Night{
			Occasion: occasion, Root: root, File: filepath.ToSlash(filepath.Clean(n.file)), Suite: suite, Repos: n.Repos,
			Budget: n.Budget, Keep: n.keepGood,
		}
		return n.perform(ctx, a)
	})
	fl := cmd.Flags()
	fl.StringVar(&cwd, "cwd", ".", "`folder` of the workspace")
	fl.StringVar(&n.file, "file", "AGENTS.md", "`file` of this workspace that proposals change")
	fl.BoolVar(&n.keepGood, "keep", false, "give promoted changes to a share of the sessions, and keep those that do no harm there")
	fl.StringVar(&cron, "every", "", "add a schedule with these `times`, such as \"0 2 * * *\", instead of learning now")
	fl.Var((*dollars)(&n.Budget), "budget", "maximum cost of the night in US `dollars`")
	fl.StringVar(&n.Config, "config", "", "settings `file` of the trials, or a folder with it, AGENTS.md, skills and more (default: your own settings file)")
	fl.StringVar(&n.Model, "model", "", "model of the trials and of the proposal as `provider/model` (default: as the settings have it)")
	fl.StringVar((*string)(&n.Mode), "mode", "auto", "permission `mode` of the trials")
	fl.IntVar(&n.Tries, "tries", 3, "`number` of trials of each task")
	fl.IntVar(&n.Jobs, "jobs", 1, "`number` of trials at the same time")
	fl.StringVar(&n.Repos, "repos", "", "`folder` with clones of the repositories that rows of SWE-bench name")
	fl.StringVar(&occasion, "occasion", "", "`key` of a schedule, which has one night")
	_ = fl.MarkHidden("occasion")
	return cmd
}

func (c *command) learnReport() *cobra.Command {
	var n nightly
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Print the page of the last night: the changes that were tried, kept and thrown away",
		Args:  exactly(0, 0, "no arguments"),
	}
	cmd.RunE = c.evaluated(&n.evaluation, func(cmd *cobra.Command, _ []string) error {
		list, err := n.folder().Nights()
		if err != nil {
			return err
		}
		if len(list) == 0 {
			fmt.Fprintln(n.Out, "No night of learning has begun here. See 'inspan eval learn night --help'.")
			return nil
		}
		n.ask.State = n.Table.StateDir
		return n.page(cmd.Context(), n.Out, list[len(list)-1])
	})
	return cmd
}

// nightly performs a night of learning.
type nightly struct {
	evaluation
	ask      comparisons
	file     string
	keepGood bool
	begun    eval.Night // as the command was given
}

// givenAhead is the part of the sessions that gets a promoted change if the person has allowed that in advance.
const givenAhead = 0.2

// leastWatched is how many sessions of each kind must have ended before a change is kept without a person.
const leastWatched = 10

func (n *nightly) folder() eval.Folder { return eval.FolderIn(n.Table.StateDir) }

// perform continues the last night if it was cut off, and otherwise begins one. It prints the page of the night.
func (n *nightly) perform(ctx context.Context, a *app.App) error {
	lock, err := n.folder().LockNights(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	night, err := n.open(ctx)
	if night == nil || err != nil {
		return err
	}
	why, err := n.stages(ctx, night)
	if ctx.Err() != nil {
		return fmt.Errorf("%w; continue with the same command", context.Cause(ctx))
	}
	if err != nil {
		why = err.Error()
	}
	night.Why, night.Ended = why, time.Now().UTC().Round(0)
	if saved := n.folder().SaveNight(night); saved != nil {
		return errors.Join(err, saved)
	}
	var page bytes.Buffer
	if bad := n.page(ctx, &page, night); bad != nil {
		return errors.Join(err, bad)
	}
	_ = a.Notify.Tell(ctx, inspan.Status{Title: "learning", Root: night.Root}, page.String()) // 'learn report' has it too
	_, printed := page.WriteTo(n.Out)
	return errors.Join(err, printed)
}

// open returns the night to work on. Nil means that of the occasion has ended. A new one continues with the
// proposal of the one before if that is undecided.
func (n *nightly) open(ctx context.Context) (*eval.Night, error) {
	list, err := n.folder().Nights()
	if err != nil {
		return nil, err
	}
	for _, one := range list {
		if one.Occasion != "" && one.Occasion == n.begun.Occasion && !one.Ended.IsZero() {
			return nil, nil
		}
	}
	night := n.begun
	for _, one := range slices.Backward(list) {
		if one.Root != night.Root || one.Suite != night.Suite {
			continue
		}
		if one.Ended.IsZero() {
			one.Budget, one.Keep = night.Budget, night.Keep
			return one, nil
		}
		if p, err := n.current(one); err == nil && (p.Step == eval.Proposed || p.Step == eval.Looked) {
			night.Proposal, night.Dev, night.HeldOut = one.Proposal, one.Dev, one.HeldOut
			if night.Carried, err = n.spent(ctx, &night); err != nil {
				return nil, err
			}
		}
		break
	}
	night.Began = time.Now().UTC().Round(0)
	if night.ID, err = store.NewID(night.Began, rand.Reader); err != nil {
		return nil, err
	}
	return &night, n.folder().SaveNight(&night)
}

// stages performs the stages of a night that are left, and returns the reason why it ends.
func (n *nightly) stages(ctx context.Context, night *eval.Night) (why string, err error) {
	if err := n.watchCanaries(ctx, night); err != nil {
		return "", err
	}
	if why, err := n.proposed(ctx, night); why != "" || err != nil {
		return why, err
	}
	p, err := n.current(night)
	if err != nil {
		return "", err
	}
	if p.Step == eval.Proposed && p.P > eval.Screen {
		complete, err := n.performed(ctx, night, &night.Dev, eval.Dev)
		if err != nil || !complete {
			return "the budget was used up before all dev tasks were tried", err
		}
		if err := n.ask.try(ctx, night.Proposal, night.Dev.Base, night.Dev.Candidate); err != nil {
			return "", err
		}
		if p, err = n.current(night); err != nil {
			return "", err
		}
		if p.P > eval.Screen {
			return "the change is not better on dev tasks", n.ask.withdraw(ctx, night.Proposal, "it is not better on dev tasks")
		}
	}
	if p.Step == eval.Proposed || p.Step == eval.Looked {
		complete, err := n.performed(ctx, night, &night.HeldOut, eval.HeldOut)
		if err != nil || !complete {
			return "the budget was used up before all held-out tasks were tried", err
		}
		if err := n.judged(ctx, night, p); err != nil {
			return "", err
		}
		if p, err = n.current(night); err != nil {
			return "", err
		}
	}
	switch {
	case p.Step == eval.Promoted && night.Keep:
		return "the change is promoted", n.ask.canary(ctx, night.Proposal, givenAhead)
	case p.Step == eval.Promoted || p.Step == eval.Canaried:
		return "the change is promoted", nil
	}
	return "held-out tasks did not show the change to be better", nil
}

// current returns the proposal of a night in its present state.
func (n *nightly) current(night *eval.Night) (*eval.Proposal, error) {
	book, err := n.ask.ledger().Book()
	if err != nil {
		return nil, err
	}
	return book.Proposal(night.Proposal)
}

// judged looks at the held-out runs once. A night that was killed after the look continues with its verdict.
func (n *nightly) judged(ctx context.Context, night *eval.Night, p *eval.Proposal) error {
	if p.Step != eval.Looked {
		return n.ask.promote(ctx, night.Proposal, night.HeldOut.Base, night.HeldOut.Candidate)
	}
	base, candidate, err := n.ask.two(night.HeldOut.Base, night.HeldOut.Candidate)
	if err != nil {
		return err
	}
	_, _, err = n.ask.step(ctx, night.Proposal, func(b *eval.Book) (eval.Entry, error) { return b.Judge(night.Proposal, base, candidate) })
	return err
}

// watchCanaries rolls back canaries of the workspace that do harm. With the person's word it keeps those that have
// done none for long enough.
func (n *nightly) watchCanaries(ctx context.Context, night *eval.Night) error {
	book, err := n.ask.ledger().Book()
	if err != nil {
		return err
	}
	for _, p := range book.Proposals() {
		if p.Step != eval.Canaried || p.Change.Root != night.Root {
			continue
		}
		e, err := n.ask.fares(ctx, book, p)
		if err != nil {
			return err
		}
		good := e.Step == eval.Watched && min(e.Arms.With, e.Arms.Without) >= leastWatched
		if good && night.Keep {
			if err := n.ask.keep(ctx, p.ID); err != nil {
				return err
			}
		}
		if e.Step == eval.RolledBack || good && night.Keep {
			night.Changed = append(night.Changed, p.ID)
			if err := n.folder().SaveNight(night); err != nil {
				return err
			}
		}
	}
	return nil
}

// proposed gives the night its proposal: one that an earlier night found better on dev tasks, or a new one of a
// model. Why is set if there is none.
func (n *nightly) proposed(ctx context.Context, night *eval.Night) (why string, err error) {
	book, err := n.ask.ledger().Book()
	if err != nil {
		return "", err
	}
	if _, err := book.Proposal(night.Proposal); err == nil {
		return "", nil
	}
	if best := book.Best(); best != nil && best.Change.Root == night.Root {
		night.Proposal = best.ID
		return "", n.folder().SaveNight(night)
	}
	suite, err := eval.OpenSuite(night.Suite, night.Repos)
	if err != nil {
		return "", err
	}
	var feedback bytes.Buffer
	if err := n.folder().Feedback(ctx, &feedback, n.ask.Sessions, night.Root, suite.Name, time.Now()); err != nil {
		return "", err
	}
	if feedback.Len() == 0 {
		return "nothing went wrong lately, in sessions of this workspace or in the last run of the suite", nil
	}
	before, err := night.Reads()
	if err != nil {
		return "", err
	}
	change, why, err := n.suggested(ctx, night, before, feedback.String())
	if why != "" || err != nil {
		return why, err
	}
	night.Proposal = change.ID()
	if err := n.folder().SaveNight(night); err != nil {
		return "", err
	}
	_, _, err = n.ask.ledger().Add(ctx, time.Now(), n.ask.By, func(b *eval.Book) (eval.Entry, error) { return b.Propose(change), nil })
	return "", err
}

// suggested asks a model for a change, and once more if its answer can't be used.
func (n *nightly) suggested(ctx context.Context, night *eval.Night, before, feedback string) (change eval.Change, why string, err error) {
	order := running.Order{Text: night.Request(before, feedback), Unattended: true, Foreign: []string{night.Suite}, Unapproved: true}
	for range 2 {
		answer, err := n.answered(ctx, night, &order)
		if err != nil {
			return change, "", err
		}
		s, bad := eval.ReadSuggestion(answer)
		if bad == nil && s.Content == "" {
			return change, "the model proposed nothing: " + words.OneLine(cmp.Or(s.Why, "it gave no reason"), 300), nil
		}
		var from []eval.Drawn
		if bad == nil {
			from, bad = n.ask.drawn(ctx, s.From)
		}
		if bad == nil {
			change, bad = eval.NewChange(night.Root, night.File, before, s.Content)
		}
		if bad == nil {
			change.Why, change.By, change.From = words.OneLine(s.Why, 500), "a model, session "+order.ID, from
			return change, "", nil
		}
		order.Text, why = bad.Error()+". Answer with the JSON object again.", "the model's proposal could not be used: "+bad.Error()
	}
	return change, why, nil
}

// answered gives an order to a session in mode plan, a new one if the order names none, and returns the last message
// of its model.
func (n *nightly) answered(ctx context.Context, night *eval.Night, order *running.Order) (string, error) {
	left, err := n.left(ctx, night)
	if err != nil {
		return "", err
	}
	args := []string{"detached", "--cwd=" + night.Root, "--mode=plan", "--max-turns=20", fmt.Sprintf("--max-cost=%g", left)}
	if order.ID == "" {
		args = append(args, "--label="+eval.NightLabel+"="+night.ID)
	}
	if n.Model != "" {
		args = append(args, "--model="+n.Model)
	}
	start, err := n.Table.Detach(ctx, n.Program, args, *order)
	if err := cmp.Or(err, start.Err()); err != nil {
		return "", err
	}
	if order.ID == "" {
		order.ID, night.Asked = start.Session, append(night.Asked, start.Session)
		if err := n.folder().SaveNight(night); err != nil {
			return "", err
		}
	}
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		_, _ = n.Table.Stop(context.WithoutCancel(ctx), start.Session, false, time.Minute)
	})
	_, err = start.Ended()
	if !stop() {
		<-over
	}
	if st, bad := n.Table.Status(ctx, start.Session); bad == nil && st.Stopped != nil && st.Stopped.Reason != event.ReasonDone {
		return "", fmt.Errorf("session %s ended before it proposed a change: %s", start.Session, st.Stopped.Reason)
	}
	answer := ""
	for e, bad := range n.Table.Past(ctx, start.Session) {
		if bad != nil {
			return "", bad
		}
		if b, is := e.Body.(event.Replied); is {
			answer = b.Parts.Text()
		}
	}
	return answer, errors.Join(err, ctx.Err())
}

// left returns the remaining budget of a night. The error says that nothing is left.
func (n *nightly) left(ctx context.Context, night *eval.Night) (float64, error) {
	spent, err := n.spent(ctx, night)
	if err == nil && spent >= night.Budget {
		err = errors.New("the budget is used up")
	}
	return night.Budget - spent, err
}

func (n *nightly) spent(ctx context.Context, night *eval.Night) (float64, error) {
	return night.Spent(ctx, n.folder(), func(ctx context.Context, id string) (float64, error) {
		st, err := n.Table.Status(ctx, id)
		return st.Cost, err
	})
}

// performed performs the two runs of a pair, or the rest of them. Complete says that all of their trials have ended.
func (n *nightly) performed(ctx context.Context, night *eval.Night, pair *eval.Pair, split eval.Split) (complete bool, err error) {
	for _, one := range []struct {
		id      *string
		without bool
	}{{&pair.Base, true}, {&pair.Candidate, false}} {
		if *one.id == "" {
			n.Split, n.With, n.Without = string(split), night.Proposal, ""
			if one.without {
				n.With, n.Without = "", night.Proposal
			}
			plan, err := n.plan(night.Suite)
			if err != nil {
				return false, err
			}
			if len(plan.Suite.Of(split)) == 0 {
				return false, fmt.Errorf("the suite has no %s tasks; see 'inspan eval validate %s'", split, night.Suite)
			}
			run, err := n.runner().Begin(plan)
			if err != nil {
				return false, err
			}
			*one.id = run.ID
			if err := n.folder().SaveNight(night); err != nil {
				return false, err
			}
		}
		left, err := n.left(ctx, night)
		if err != nil {
			return false, err
		}
		standing, err := n.folder().Standing(ctx, *one.id)
		if err != nil {
			return false, err
		}
		r := n.runner()
		r.Budget = left + standing.Cost // that of the run counts all of its trials
		if _, err := r.Go(ctx, *one.id); errors.Is(err, eval.ErrBudget) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}

// page writes the page of a night.
func (n *nightly) page(ctx context.Context, out io.Writer, night *eval.Night) error {
	book, err := n.ask.ledger().Book()
	if err != nil {
		return err
	}
	spent, err := n.spent(ctx, night)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return night.Page(out, book, spent)
}
