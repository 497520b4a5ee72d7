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

	"github.com/inspan/inspan/internal/eval"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/store"
)

// Proposing is a change that a person or a model wants.
type Proposing struct {
	Root, File, To string // To holds the new content of the file
	Why, By        string
	From           []string // SESSION or SESSION:EVENT,EVENT
}

// Propose puts a change into the ledger. Nothing else happens.
func (c *Comparisons) Propose(ctx context.Context, p Proposing) error {
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
		out = append(out, d)
	}
	return out, nil
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
	_, e, err := c.step(ctx, id, func(b *eval.Book) (eval.Entry, error) { return b.Try(id, from, to) })
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

// Promote looks at held-out tasks once. The look is in the ledger before anything is compared.
func (c *Comparisons) Promote(ctx context.Context, id, base, candidate string) error {
	from, to, err := c.two(base, candidate)
	if err != nil {
		return err
	}
	if _, _, err = c.step(ctx, id, func(b *eval.Book) (eval.Entry, error) { return b.Look(id, from, to) }); err != nil {
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
	arm := eval.WithoutChange
	if p.With(key) {
		if arm = eval.WithChange; into != "" {
			err = p.Change.Make(into)
		}
	}
	fmt.Fprintln(c.Out, arm)
	return err
}

// Watch counts how the sessions of canaries fare, and rolls back the changes that do harm.
func (c *Comparisons) Watch(ctx context.Context) error {
	book, err := c.ledger().Book()
	if err != nil {
		return err
	}
	for _, p := range book.Proposals() {
		if p.Step != eval.Canaried {
			continue
		}
		began := book.Entries[slices.IndexFunc(book.Entries, func(e eval.Entry) bool {
			return e.Proposal == p.ID && e.Step == eval.Canaried
		})].Time
		signals, err := eval.Signals(ctx, c.Sessions, began)
		if err != nil {
			return err
		}
		_, e, err := c.step(ctx, p.ID, func(b *eval.Book) (eval.Entry, error) { return b.Watch(p.ID, signals) })
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "%s: %s. Evidence of harm %.2g; it is rolled back at %g.\n", p.ID, e.Why, e.Evidence, 1/eval.Roll)
	}
	return nil
}

// Keep makes a change in its workspace, for all sessions.
func (c *Comparisons) Keep(ctx context.Context, id string) error {
	p, _, err := c.step(ctx, id, func(*eval.Book) (eval.Entry, error) { return eval.Entry{Step: eval.Kept, Proposal: id}, nil })
	if err == nil {
		err = p.Change.Make(p.Change.Root)
	}
	if err == nil {
		fmt.Fprintf(c.Out, "%s is made in %s.\n", id, p.Change.File)
	}
	return err
}

// Withdraw takes a proposal back, and its change out of the workspace.
func (c *Comparisons) Withdraw(ctx context.Context, id, why string) error {
	kept := false
	p, _, err := c.step(ctx, id, func(b *eval.Book) (eval.Entry, error) {
		p, err := b.Proposal(id)
		kept = err == nil && p.Step == eval.Kept
		return eval.Entry{Step: eval.Withdrawn, Proposal: id, Why: why}, err
	})
	if err == nil && kept {
		err = p.Change.Back().Make(p.Change.Root)
	}
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
			told := text.Line(strings.Join([]string{e.By, e.Base, e.Candidate, e.Why}, " "))
			fmt.Fprintf(c.Out, "%s  %-11s  %s\n", e.Time.Local().Format(time.DateTime), e.Step, told)
		}
	}
	return nil
}
