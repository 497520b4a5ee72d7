package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

func (c *command) evalLearn() *cobra.Command {
	return group("learn", "Improve by small changes that earn their place on held-out tasks",
		c.learnFailures(), c.learnPropose(), c.learnList(), c.learnShow(), c.learnTry(), c.learnPromote(), c.learnCanary(),
		c.learnArm(), c.learnWatch(), c.learnKeep(), c.learnWithdraw(), c.learnNight(), c.learnReport())
}

// learned is the function of a learn command.
type learned = func(ctx context.Context, ask *comparisons, args []string) error

// learning returns a command about one proposal, which may be shortened, or "last".
func (c *command) learning(use, short, long string, args int, do learned) *cobra.Command {
	var ask comparisons
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: exactly(args, args, "a PROPOSAL, as '"+use+"' shows")}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, args []string) (err error) {
		if args[0], err = ask.named(args[0]); err != nil {
			return err
		}
		return do(cmd.Context(), &ask, args)
	})
	return cmd
}

func (c *command) learnFailures() *cobra.Command {
	var ask comparisons
	cmd := &cobra.Command{
		Use:     "failures RUN",
		Short:   "Print the work of failed trials, as a basis for proposals",
		Long:    "Each line has the session and the number of the event, which a proposal names with --from. inspan refuses held-out runs.",
		Example: "  inspan eval learn failures baseline | inspan -p \"Propose one small change of AGENTS.md against these\"",
		Args:    exactly(1, 1, "a RUN"),
	}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, args []string) error {
		run, err := ask.run(args[0])
		if err != nil {
			return err
		}
		return eval.Failures(cmd.Context(), ask.Out, ask.Sessions, run)
	})
	return cmd
}

func (c *command) learnPropose() *cobra.Command {
	var ask comparisons
	var p proposing
	cmd := &cobra.Command{
		Use:   "propose FILE",
		Short: "Propose a small change of a file, with the sessions it was drawn from",
		Long: "FILE is an instruction, a skill, a memory or a setting of this workspace; --to has its new content. Nothing changes yet:\n" +
			"try the proposal on dev tasks, promote it on held-out ones, give it to a share of the sessions, then keep it.",
		Example: "  inspan eval learn propose AGENTS.md --to new.md --from 20261127-abc:14,20 \\\n" +
			"    --why \"says it is done without testing\"",
		Args: exactly(1, 1, "a FILE"),
	}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, args []string) (err error) {
		if p.To == "" || p.Why == "" {
			return misused("propose needs --to and --why")
		}
		if p.Root, err = workspace("."); err != nil {
			return err
		}
		p.File = args[0]
		return ask.propose(cmd.Context(), p)
	})
	fl := cmd.Flags()
	fl.StringVar(&p.To, "to", "", "`file` with the new content")
	fl.StringVar(&p.Why, "why", "", "`reason`: the failure that it is to prevent")
	fl.StringVar(&p.By, "by", "", "`name` of the person or the model that wrote it (default: you); hand: your own idea, drawn from no session")
	fl.StringArrayVar(&p.From, "from", nil, "`SESSION:EVENT,...` that it was drawn from; repeatable")
	return cmd
}

func (c *command) learnList() *cobra.Command {
	var ask comparisons
	cmd := &cobra.Command{Use: "list", Short: "List proposals and how far each has come", Args: exactly(0, 0, "no arguments")}
	cmd.RunE = c.comparing(&ask, func(*cobra.Command, []string) error {
		book, err := ask.ledger().Book()
		if err != nil {
			return err
		}
		if ask.JSON {
			return printJSON(ask.Out, book.Entries)
		}
		if len(book.Proposals()) == 0 {
			fmt.Fprintln(ask.Out, "Nothing has been proposed.")
			return nil
		}
		w := text.NewTable(ask.Out, "PROPOSAL", "STEP", "FILE", "BY", "WHY")
		for _, p := range book.Proposals() {
			w.Row(p.ID, p.Step, text.Line(p.Change.File), text.Line(p.Change.By), text.Short(p.Change.Why, 80))
		}
		return w.Flush()
	})
	cmd.Flags().BoolVar(&ask.JSON, "json", false, "print the ledger as JSON")
	return cmd
}

func (c *command) learnShow() *cobra.Command {
	return c.learning("show PROPOSAL", "Show a proposal, its source and its state", "", 1,
		func(_ context.Context, ask *comparisons, args []string) error { return ask.told(args[0]) })
}

// untied returns a command about two runs, with the option not to check that they differ only in the proposal.
func (c *command) untied(use, short, long string, do learned) *cobra.Command {
	unchecked := false
	cmd := c.learning(use, short, long, 3, func(ctx context.Context, ask *comparisons, args []string) error {
		ask.Unchecked = unchecked
		return do(ctx, ask, args)
	})
	cmd.Flags().BoolVar(&unchecked, "unchecked", false, "accept runs that may differ in more than this change; the ledger records that")
	return cmd
}

func (c *command) learnTry() *cobra.Command {
	return c.untied("try PROPOSAL BASE CANDIDATE", "Compare a proposal on dev tasks",
		"BASE and CANDIDATE are runs of dev tasks: 'inspan eval run SUITE --without PROPOSAL' and '--proposal PROPOSAL'.",
		func(ctx context.Context, ask *comparisons, args []string) error {
			return ask.try(ctx, args[0], args[1], args[2])
		})
}

func (c *command) learnPromote() *cobra.Command {
	return c.untied("promote PROPOSAL BASE CANDIDATE", "Look at held-out tasks once, and promote the proposal if it is better",
		"BASE and CANDIDATE are runs of held-out tasks, as for 'try'. The look counts, whatever comes of it: all looks at a suite share an error\n"+
			"rate of 5 %, and each gets less than the one before. inspan shows only the verdict.",
		func(ctx context.Context, ask *comparisons, args []string) error {
			return ask.promote(ctx, args[0], args[1], args[2])
		})
}

func (c *command) learnCanary() *cobra.Command {
	var share float64
	cmd := c.learning("canary PROPOSAL", "Give a promoted change to a share of new sessions", "", 1,
		func(ctx context.Context, ask *comparisons, args []string) error {
			return ask.canary(ctx, args[0], share)
		})
	rateFlag(cmd.Flags(), &share, "share", 0.2, "`share` of the sessions that get it")
	return cmd
}

func (c *command) learnArm() *cobra.Command {
	var into string
	cmd := c.learning("arm PROPOSAL KEY", "Say whether a new session gets a change",
		"KEY names the session or its task. The same key has the same answer: with, or without. Label the session with it, so that\n"+
			"'inspan eval learn watch' can compare the two.", 2,
		func(_ context.Context, ask *comparisons, args []string) error {
			return ask.arm(args[0], args[1], into)
		})
	cmd.Flags().StringVar(&into, "into", "", "make the change in this `folder`, the session's own copy of the workspace, if it gets it")
	return cmd
}

func (c *command) learnWatch() *cobra.Command {
	var ask comparisons
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Compare sessions with and without each change, and roll back the changes that do harm",
		Long: "A session counts against a change if its work was undone or its commit reverted, a call was denied, a person\n" +
			"interrupted it, it or its last check failed, the same task was run again, or it cost more than twice what is usual.\n" +
			"You may watch as often as you like. Each session that draws for a change watches too, when it has ended.",
		Args: exactly(0, 0, "no arguments"),
	}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, _ []string) error { return ask.watch(cmd.Context()) })
	return cmd
}

func (c *command) learnKeep() *cobra.Command {
	return c.learning("keep PROPOSAL", "Make a change in its workspace, for all sessions", "", 1,
		func(ctx context.Context, ask *comparisons, args []string) error {
			return ask.keep(ctx, args[0])
		})
}

func (c *command) learnWithdraw() *cobra.Command {
	var why string
	cmd := c.learning("withdraw PROPOSAL", "Take a proposal back, and its change out of the workspace", "", 1,
		func(ctx context.Context, ask *comparisons, args []string) error {
			return ask.withdraw(ctx, args[0], why)
		})
	cmd.Flags().StringVar(&why, "why", "", "`reason`")
	return cmd
}

// proposing is a proposed change of a person or a model.
type proposing struct {
	Root, File, To string // To has the new content of the file
	Why, By        string
	From           []string // SESSION or SESSION:EVENT,EVENT; if empty, By must be [byHand]
}

// byHand is the proposer of a change that is not drawn from a session.
const byHand = "hand"

// propose records a change in the ledger. Nothing else happens.
func (c *comparisons) propose(ctx context.Context, p proposing) error {
	if len(p.From) == 0 && p.By != byHand {
		return misused("propose needs --from SESSION:EVENT, or --by " + byHand + " for an idea that is drawn from no session")
	}
	if !utf8.ValidString(p.Why) || !utf8.ValidString(p.By) {
		return misused("--why and --by must be UTF-8")
	}
	if info, err := os.Lstat(filepath.Join(p.Root, p.File)); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return misused("propose %s: %w", p.File, eval.ErrLink)
	}
	before, err := keep.Read(filepath.Join(p.Root, p.File))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	after, err := os.ReadFile(p.To)
	if err != nil {
		return err
	}
	change, err := eval.NewChange(p.Root, p.File, string(before), string(after))
	if err != nil {
		return words.Misuse{Err: err}
	}
	if change.Why, change.By = p.Why, p.By; change.By == "" {
		change.By = c.By
	}
	if change.From, err = c.drawn(ctx, p.From); err != nil {
		return err
	}
	_, e, err := c.ledger().Add(ctx, c.Now, c.By, func(b *eval.Book) (eval.Entry, error) { return b.Propose(change), nil })
	if err == nil {
		fmt.Fprintf(c.Out, "%s is proposed. Nothing has changed yet.\n\n%s", e.Proposal, text.Clean(change.Diff()))
	}
	return err
}

func (c *comparisons) drawn(ctx context.Context, from []string) ([]eval.Drawn, error) {
	var out []eval.Drawn
	for _, one := range from {
		name, list, some := strings.Cut(one, ":")
		id, err := store.Resolve(ctx, c.Sessions, name)
		if err != nil {
			return nil, err
		}
		d := eval.Drawn{Session: id}
		for _, n := range strings.Split(list, ",") {
			if !some {
				break
			}
			seq, err := strconv.ParseUint(n, 10, 64)
			if err != nil {
				return nil, misused("--from %s: %q is not the number of an event", one, n)
			}
			d.Events = append(d.Events, seq)
		}
		if err := c.there(ctx, one, d); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// there checks that the events that a change names exist, and are not of a held-out trial.
func (c *comparisons) there(ctx context.Context, from string, d eval.Drawn) error {
	left := slices.Clone(d.Events)
	for e, err := range store.Events(ctx, c.Sessions, d.Session) {
		if err != nil {
			return err
		}
		left = slices.DeleteFunc(left, func(seq uint64) bool { return seq == e.Seq })
	}
	if len(left) > 0 {
		return misused("--from %s: session %s has no event %d", from, d.Session, left[0])
	}
	held, err := eval.FolderIn(c.State).HeldOut(d.Session)
	if held {
		err = misused("--from %s: it is a trial of a held-out task; name a trial of another task", from)
	}
	return err
}

// named returns the id of the proposal that a person means.
func (c *comparisons) named(name string) (string, error) {
	book, err := c.ledger().Book()
	if err != nil {
		return "", err
	}
	id, err := book.Resolve(name)
	if err != nil {
		return "", words.Misuse{Err: err}
	}
	return id, nil
}

// step records an entry in the ledger and prints the result.
func (c *comparisons) step(ctx context.Context, id string, entry func(*eval.Book) (eval.Entry, error)) (*eval.Proposal, eval.Entry, error) {
	book, e, err := c.ledger().Add(ctx, c.Now, c.By, entry)
	if err != nil {
		return nil, e, err
	}
	p, err := book.Proposal(id)
	return p, e, err
}

// try compares a proposal on dev tasks.
func (c *comparisons) try(ctx context.Context, id, base, candidate string) error {
	from, to, err := c.two(base, candidate)
	if err != nil {
		return err
	}
	_, e, err := c.step(ctx, id, c.tied(id, from, to, func(b *eval.Book) (eval.Entry, error) { return b.Try(id, from, to) }))
	if err != nil {
		return err
	}
	says := "may be looked at on held-out tasks"
	if e.P > eval.Screen {
		says = fmt.Sprintf("is not better on dev, as p would have to be at most %g", eval.Screen)
	}
	fmt.Fprintf(c.Out, "%s gains %+.1f points on dev tasks (p = %.2g, one-sided): it %s.\n", id, 100*e.Gain, e.P, says)
	return nil
}

func (c *comparisons) two(base, candidate string) (from, to eval.Run, err error) {
	if from, err = c.run(base); err == nil {
		to, err = c.run(candidate)
	}
	return from, to, err
}

// tied makes an entry about runs that differ in a proposal, or records in it that this was not checked.
func (c *comparisons) tied(id string, from, to eval.Run, make func(*eval.Book) (eval.Entry, error)) func(*eval.Book) (eval.Entry, error) {
	return func(b *eval.Book) (eval.Entry, error) {
		why := b.Tied(id, from, to)
		if errors.Is(why, eval.ErrUnchecked) && !c.Unchecked {
			return eval.Entry{}, misused("%w; if you know that they do, add --unchecked", why)
		}
		e, err := make(b)
		if why != nil {
			e.Unchecked = why.Error()
		}
		return e, err
	}
}

// promote looks at held-out tasks once. The look is in the ledger before anything is compared.
func (c *comparisons) promote(ctx context.Context, id, base, candidate string) error {
	from, to, err := c.two(base, candidate)
	if err != nil {
		return err
	}
	if _, _, err = c.step(ctx, id, c.tied(id, from, to, c.look(id, from, to))); err != nil {
		return err
	}
	_, e, err := c.step(ctx, id, func(b *eval.Book) (eval.Entry, error) { return b.Judge(id, from, to) })
	if err == nil {
		fmt.Fprintf(c.Out, "%s is %s. This look could have promoted a useless change in %.2g %% of cases.\n", id, e.Step, 100*e.Allowed)
	}
	return err
}

// canary gives a change to a share of new sessions.
func (c *comparisons) canary(ctx context.Context, id string, share float64) error {
	p, _, err := c.step(ctx, id, func(*eval.Book) (eval.Entry, error) {
		return eval.Entry{Step: eval.Canaried, Proposal: id, Share: share}, nil
	})
	if err != nil {
		return err
	}
	if p.Change.DrawnFor() {
		fmt.Fprintf(c.Out, "%g %% of new sessions in %s get %s, and each has the label %s. It is rolled back by itself if it does harm.\n",
			100*share, text.Line(p.Change.Root), id, p.Label())
		return nil
	}
	fmt.Fprintf(c.Out, "%g %% of new sessions get %s. Sessions can't draw for %s by themselves, as they share the file. "+
		"Label them: inspan run --label %s=$(inspan eval learn arm %s KEY)\n", 100*share, id, text.Line(p.Change.File), p.Label(), id)
	return nil
}

// arm prints whether a new session gets a change, and if so makes the change in the folder of that session.
func (c *comparisons) arm(id, key, into string) error {
	book, err := c.ledger().Book()
	if err != nil {
		return err
	}
	p, err := book.Proposal(id)
	if err != nil {
		return err
	}
	if into != "" {
		own, err := os.Stat(p.Change.Root)
		other, err2 := os.Stat(into)
		if err == nil && err2 == nil && os.SameFile(own, other) {
			return misused("%s is the workspace of %s itself, where 'learn keep' makes the change; give --into the session's own copy", into, id)
		}
	}
	arm := eval.WithoutChange
	if p.With(key) {
		if arm = eval.WithChange; into != "" {
			err = p.Change.Make(into)
		}
	}
	if err == nil { // a label records that the session has it
		fmt.Fprintln(c.Out, arm)
	}
	return err
}

// watch counts how the sessions of canaries do, and rolls back harmful changes. For changes that were kept it
// only reports how sessions do.
func (c *comparisons) watch(ctx context.Context) error {
	book, err := c.ledger().Book()
	if err != nil {
		return err
	}
	for _, p := range book.Proposals() {
		if p.Step != eval.Canaried && p.Step != eval.Kept {
			continue
		}
		if p.Step == eval.Kept {
			signals, err := eval.Signals(ctx, c.Sessions, book.Since(p.ID, eval.Canaried), "")
			if err != nil {
				return err
			}
			c.watchKept(p.ID, signals, book.Since(p.ID, eval.Kept))
			continue
		}
		e, err := c.fares(ctx, book, p)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "%s: %s. Evidence of harm %.2g; it is rolled back at %g.\n", p.ID, e.Why, e.Evidence, 1/eval.Roll)
	}
	return nil
}

// fares records in the ledger how the sessions of a canary do.
func (c *comparisons) fares(ctx context.Context, book *eval.Book, p *eval.Proposal) (eval.Entry, error) {
	signals, err := eval.Signals(ctx, c.Sessions, book.Since(p.ID, eval.Canaried), p.Label())
	if err != nil {
		return eval.Entry{}, err
	}
	_, e, err := c.step(ctx, p.ID, func(b *eval.Book) (eval.Entry, error) { return b.Watch(p.ID, signals) })
	return e, err
}

// watchKept reports how sessions with a kept change do. It concludes nothing: without other sessions at the
// same time, anything else that changed would look like the change's effect.
func (c *comparisons) watchKept(id string, signals []eval.Signal, kept time.Time) {
	var all, bad [2]int
	for i := range signals {
		if !signals[i].Ended {
			continue
		}
		since := 0
		if signals[i].Began.Before(kept) {
			since = 1
		}
		all[since]++
		if signals[i].Bad() {
			bad[since]++
		}
	}
	fmt.Fprintf(c.Out, "%s is kept: %d of %s since then failed, %d of %d in the time of its canary. All sessions have it, so there is "+
		"nothing to compare them with, and inspan does not roll it back. To roll it back: inspan eval learn withdraw %s\n",
		id, bad[0], text.Count(all[0], "session"), bad[1], all[1], id)
}

// keep makes a change in its workspace, for all sessions.
func (c *comparisons) keep(ctx context.Context, id string) error {
	book, err := c.ledger().Book()
	if err != nil {
		return err
	}
	if p, err := book.Proposal(id); err == nil && p.Step == eval.Canaried {
		if e, err := c.fares(ctx, book, p); err != nil {
			return err
		} else if e.Step == eval.RolledBack {
			return fmt.Errorf("%s was rolled back instead: %s", id, e.Why)
		}
	}
	p, _, err := c.step(ctx, id, func(b *eval.Book) (eval.Entry, error) { return b.Made(id, eval.Kept, "") })
	if err == nil {
		fmt.Fprintf(c.Out, "%s is made in %s.\n", id, p.Change.File)
	}
	return err
}

// withdraw withdraws a proposal, and removes its change from the workspace.
func (c *comparisons) withdraw(ctx context.Context, id, why string) error {
	_, _, err := c.step(ctx, id, func(b *eval.Book) (eval.Entry, error) { return b.Made(id, eval.Withdrawn, why) })
	if err == nil {
		fmt.Fprintf(c.Out, "%s is withdrawn.\n", id)
	}
	return err
}

// told prints a proposal and its entries in the ledger.
func (c *comparisons) told(id string) error {
	book, err := c.ledger().Book()
	if err != nil {
		return err
	}
	p, err := book.Proposal(id)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%s, %s\n%s\n", p.ID, p.Step, text.Line(p.Change.Why))
	for _, d := range p.Change.From {
		fmt.Fprintf(c.Out, "drawn from session %s, events %v\n", d.Session, d.Events)
	}
	fmt.Fprintf(c.Out, "\n%s\n", text.Clean(p.Change.Diff()))
	w := text.NewTable(c.Out)
	for _, e := range book.Entries {
		if e.Proposal == id {
			told := text.Line(strings.Join([]string{e.By, e.Base, e.Candidate, e.Why, e.Unchecked}, " "))
			w.Row(e.Time.Local().Format(time.DateTime), e.Step, told)
		}
	}
	return w.Flush()
}
