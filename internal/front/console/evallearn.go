package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// Proposing is a change that a person or a model wants.
type Proposing struct {
	Root, File, To string // To holds the new content of the file
	Why, By        string
	From           []string // SESSION or SESSION:EVENT,EVENT; none: By is to be [ByHand]
}

// ByHand is who proposes a change that is drawn from no session.
const ByHand = "hand"

// Propose puts a change into the ledger. Nothing else happens.
func (c *Comparisons) Propose(ctx context.Context, p Proposing) error {
	if len(p.From) == 0 && p.By != ByHand {
		return words.Misuse{Err: errors.New("propose needs --from SESSION:EVENT, or --by " + ByHand + " for an idea that is drawn from no session")}
	}
	if !utf8.ValidString(p.Why) || !utf8.ValidString(p.By) {
		return words.Misuse{Err: errors.New("what --why and --by say must be UTF-8, so that the ledger can be read again")}
	}
	if info, err := os.Lstat(filepath.Join(p.Root, p.File)); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return words.Misuse{Err: fmt.Errorf("propose %s: %w", p.File, eval.ErrLink)}
	}
	before, err := os.ReadFile(filepath.Join(p.Root, p.File))
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

func (c *Comparisons) drawn(ctx context.Context, from []string) ([]eval.Drawn, error) {
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
				return nil, words.Misuse{Err: fmt.Errorf("--from %s: %q is not the number of an event", one, n)}
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

// there checks that the events that a change was drawn from are there, and are not of a held-out trial.
func (c *Comparisons) there(ctx context.Context, from string, d eval.Drawn) error {
	left := slices.Clone(d.Events)
	for e, err := range store.Events(ctx, c.Sessions, d.Session) {
		if err != nil {
			return err
		}
		left = slices.DeleteFunc(left, func(seq uint64) bool { return seq == e.Seq })
	}
	if len(left) > 0 {
		return words.Misuse{Err: fmt.Errorf("--from %s: session %s has no event %d", from, d.Session, left[0])}
	}
	held, err := eval.FolderIn(c.State).HeldOut(d.Session)
	if held {
		err = words.Misuse{Err: fmt.Errorf("--from %s: it is a trial of a held-out task, of which nothing is learned", from)}
	}
	return err
}

// Named finds the id of the proposal that a person means.
func (c *Comparisons) Named(name string) (string, error) {
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

// step puts an entry into the ledger and says what came of it.
func (c *Comparisons) step(ctx context.Context, id string, entry func(*eval.Book) (eval.Entry, error)) (*eval.Proposal, eval.Entry, error) {
	book, e, err := c.ledger().Add(ctx, c.Now, c.By, entry)
	if err != nil {
		return nil, e, err
	}
	p, err := book.Proposal(id)
	return p, e, err
}

// Failures prints what the failed trials of a run did.
func (c *Comparisons) Failures(ctx context.Context, name string) error {
	run, err := c.run(name)
	if err != nil {
		return err
	}
	return eval.Failures(ctx, c.Out, c.Sessions, run)
}

// Try compares a proposal on dev tasks.
func (c *Comparisons) Try(ctx context.Context, id, base, candidate string) error {
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

func (c *Comparisons) two(base, candidate string) (from, to eval.Run, err error) {
	if from, err = c.run(base); err == nil {
		to, err = c.run(candidate)
	}
	return from, to, err
}

// tied makes an entry about runs that differ in a proposal, or says in it that nobody checked that.
func (c *Comparisons) tied(id string, from, to eval.Run, make func(*eval.Book) (eval.Entry, error)) func(*eval.Book) (eval.Entry, error) {
	return func(b *eval.Book) (eval.Entry, error) {
		why := b.Tied(id, from, to)
		if errors.Is(why, eval.ErrUnchecked) && !c.Unchecked {
			return eval.Entry{}, words.Misuse{Err: fmt.Errorf("%w; if you know that they do, add --unchecked", why)}
		}
		e, err := make(b)
		if why != nil {
			e.Unchecked = why.Error()
		}
		return e, err
	}
}

// Promote looks at held-out tasks once. The look is in the ledger before anything is compared.
func (c *Comparisons) Promote(ctx context.Context, id, base, candidate string) error {
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

// Canary gives a change to a share of new sessions.
func (c *Comparisons) Canary(ctx context.Context, id string, share float64) error {
	p, _, err := c.step(ctx, id, func(*eval.Book) (eval.Entry, error) {
		return eval.Entry{Step: eval.Canaried, Proposal: id, Share: share}, nil
	})
	if err == nil {
		fmt.Fprintf(c.Out, "%g %% of new sessions get %s. Label them: inspan run --label %s=$(inspan eval learn arm %s KEY)\n",
			100*share, id, p.Label(), id)
	}
	return err
}

// Arm prints whether a new session gets a change, and makes it in the folder of that session if so.
func (c *Comparisons) Arm(id, key, into string) error {
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
			return words.Misuse{Err: fmt.Errorf("%s is the workspace of %s itself, where 'learn keep' makes the change; give --into the session's own copy", into, id)}
		}
	}
	arm := eval.WithoutChange
	if p.With(key) {
		if arm = eval.WithChange; into != "" {
			err = p.Change.Make(into)
		}
	}
	if err == nil { // a label says what the session has
		fmt.Fprintln(c.Out, arm)
	}
	return err
}

// Watch counts how the sessions of canaries fare, and rolls back the changes that do harm. Of changes that
// were kept it only says how sessions fare.
func (c *Comparisons) Watch(ctx context.Context) error {
	book, err := c.ledger().Book()
	if err != nil {
		return err
	}
	for _, p := range book.Proposals() {
		if p.Step != eval.Canaried && p.Step != eval.Kept {
			continue
		}
		signals, err := eval.Signals(ctx, c.Sessions, began(book, p.ID, eval.Canaried))
		if err != nil {
			return err
		}
		if p.Step == eval.Kept {
			c.watchKept(p.ID, signals, began(book, p.ID, eval.Kept))
			continue
		}
		_, e, err := c.step(ctx, p.ID, func(b *eval.Book) (eval.Entry, error) { return b.Watch(p.ID, signals) })
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "%s: %s. Evidence of harm %.2g; it is rolled back at %g.\n", p.ID, e.Why, e.Evidence, 1/eval.Roll)
	}
	return nil
}

// began is when a proposal took a step.
func began(book *eval.Book, id string, step eval.Step) time.Time {
	return book.Entries[slices.IndexFunc(book.Entries, func(e eval.Entry) bool { return e.Proposal == id && e.Step == step })].Time
}

// watchKept tells how sessions fare that all have a change. Nothing is concluded from it: without others at
// the same time, whatever else has changed looks like its effect.
func (c *Comparisons) watchKept(id string, signals []eval.Signal, kept time.Time) {
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
		"nothing to compare them with, and it is not rolled back by itself. To take it back: inspan eval learn withdraw %s\n",
		id, bad[0], text.Count(all[0], "session"), bad[1], all[1], id)
}

// Keep makes a change in its workspace, for all sessions.
func (c *Comparisons) Keep(ctx context.Context, id string) error {
	p, _, err := c.step(ctx, id, func(b *eval.Book) (eval.Entry, error) { return b.Made(id, eval.Kept, "") })
	if err == nil {
		fmt.Fprintf(c.Out, "%s is made in %s.\n", id, p.Change.File)
	}
	return err
}

// Withdraw takes a proposal back, and its change out of the workspace.
func (c *Comparisons) Withdraw(ctx context.Context, id, why string) error {
	_, _, err := c.step(ctx, id, func(b *eval.Book) (eval.Entry, error) { return b.Made(id, eval.Withdrawn, why) })
	if err == nil {
		fmt.Fprintf(c.Out, "%s is withdrawn.\n", id)
	}
	return err
}

// Learned lists proposals and how far each has come.
func (c *Comparisons) Learned() error {
	book, err := c.ledger().Book()
	if err != nil {
		return err
	}
	if c.JSON {
		return Indented(c.Out, book.Entries)
	}
	if len(book.Proposals()) == 0 {
		fmt.Fprintln(c.Out, "Nothing has been proposed.")
		return nil
	}
	w := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROPOSAL\tSTEP\tFILE\tBY\tWHY")
	for _, p := range book.Proposals() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", p.ID, p.Step, text.Line(p.Change.File), text.Line(p.Change.By), text.Short(p.Change.Why, 80))
	}
	return w.Flush()
}

// Told prints a proposal with all that the ledger says of it.
func (c *Comparisons) Told(id string) error {
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
	for _, e := range book.Entries {
		if e.Proposal == id {
			told := text.Line(strings.Join([]string{e.By, e.Base, e.Candidate, e.Why, e.Unchecked}, " "))
			fmt.Fprintf(c.Out, "%s  %-11s  %s\n", e.Time.Local().Format(time.DateTime), e.Step, told)
		}
	}
	return nil
}
