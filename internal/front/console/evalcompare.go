package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/lab/stats"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// Comparisons is what a person asks about runs of evaluations.
type Comparisons struct {
	State    string // folder
	Sessions store.Store
	Out      io.Writer
	Now      time.Time
	By       string // who asks

	How    eval.Comparing
	Design stats.Design // for Power, with the power that How has
	Effect float64      // the same; 0: none is asked about
	Format string       // of a report; empty: text
	File   string       // that a report goes to; empty: Out
	Pages  string       // address of the web page that it links events to; empty: none
	JSON   bool

	Unchecked bool // runs need not show that they differ in a proposal's change
}

// run finds a run by its id or by its folder.
func (c *Comparisons) run(name string) (eval.Run, error) {
	dir := name
	if _, err := os.Stat(filepath.Join(name, "run.json")); err != nil {
		if !filepath.IsLocal(name) {
			return eval.Run{}, words.Misuse{Err: fmt.Errorf("there is no run in %s", name)}
		}
		f := eval.FolderIn(c.State)
		run, err := f.Open(name)
		if err != nil {
			return eval.Run{}, err
		}
		dir = filepath.Join(f.Dir, run.ID)
	}
	run, tasks, err := eval.ReadRun(dir)
	c.How.Planned = max(c.How.Planned, tasks)
	return run, err
}

func (c *Comparisons) ledger() eval.Ledger {
	return eval.LedgerIn(c.State)
}

// compared compares runs. Of held-out tasks it gives only the verdict, and the look counts.
func (c *Comparisons) compared(ctx context.Context, names []string) ([]eval.Comparison, error) {
	runs := make([]eval.Run, len(names))
	for i, name := range names {
		var err error
		if runs[i], err = c.run(name); err != nil {
			return nil, err
		}
	}
	for _, candidate := range runs[1:] {
		if err := c.count(ctx, runs[0], candidate); err != nil {
			return nil, err
		}
	}
	cs, err := eval.Compare(runs[0], runs[1:], c.How)
	for i := range cs {
		if cs[i] = cs[i].Blind(); err == nil {
			err = cs[i].Part(ctx, c.Sessions)
		}
	}
	return cs, err
}

// count puts a look at held-out tasks into the ledger.
func (c *Comparisons) count(ctx context.Context, base, candidate eval.Run) error {
	if base.Split != eval.HeldOut && candidate.Split != eval.HeldOut {
		return nil
	}
	_, _, err := c.ledger().Add(ctx, c.Now, c.By, c.look("", base, candidate))
	return err
}

// look makes the entry of a look at held-out tasks.
func (c *Comparisons) look(id string, base, candidate eval.Run) func(*eval.Book) (eval.Entry, error) {
	return func(b *eval.Book) (eval.Entry, error) {
		tried, err := eval.FolderIn(c.State).Tried(base.Suite)
		if err != nil {
			return eval.Entry{}, err
		}
		return b.Look(id, base, candidate, tried)
	}
}

// Compare prints how candidates compare with a base.
func (c *Comparisons) Compare(ctx context.Context, names []string) error {
	cs, err := c.compared(ctx, names)
	if err != nil {
		return err
	}
	if c.JSON {
		return eval.Report(c.Out, "json", cs, "")
	}
	for i := range cs {
		if i > 0 {
			fmt.Fprintln(c.Out)
		}
		c.print(&cs[i])
	}
	return nil
}

// mostFlips are shown on a terminal.
const mostFlips = 20

func (c *Comparisons) print(one *eval.Comparison) {
	fmt.Fprintf(c.Out, "%s against %s: %s\n", text.Line(one.Candidate.Config), text.Line(one.Base.Config), one.Verdict)
	list := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(c.Out, "\n%s\n", title)
		}
		for _, line := range lines {
			fmt.Fprintf(c.Out, "  - %s\n", text.Line(line))
		}
	}
	list("Known:", one.Says.Known)
	list("Not known:", one.Says.Unknown)
	if len(one.Flips) == 0 {
		return
	}
	fmt.Fprintf(c.Out, "\nTasks that differ:\n")
	w := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  TASK\tBASE\tCANDIDATE\tSESSIONS PART AT")
	for i, f := range one.Flips {
		if i == mostFlips {
			fmt.Fprintf(w, "  and %d more; 'inspan eval report' lists all\n", len(one.Flips)-i)
			break
		}
		at := text.Line(f.Why)
		if f.Parting != nil {
			at = fmt.Sprintf("%s:%d %s:%d", f.Base.Session, f.Parting.Base.Seq, f.Candidate.Session, f.Parting.Candidate.Seq)
		}
		fmt.Fprintf(w, "  %s\t%d of %d\t%d of %d\t%s\n", text.Line(f.Task), f.Base.Passed, f.Base.Tries,
			f.Candidate.Passed, f.Candidate.Tries, at)
	}
	_ = w.Flush() // to where the lines above went
}

// Report writes a report to a file, or prints it.
func (c *Comparisons) Report(ctx context.Context, names []string) (err error) {
	if err := oneOf("--format", c.Format, eval.Formats()); err != nil {
		return err
	}
	if u, err := url.Parse(c.Pages); err != nil || c.Pages != "" && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return words.Misuse{Err: fmt.Errorf("--web: %q is not the address of a web page", c.Pages)}
	}
	cs, err := c.compared(ctx, names)
	if err != nil {
		return err
	}
	if c.File == "" {
		return eval.Report(c.Out, c.Format, cs, c.Pages)
	}
	f, err := os.Create(c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return eval.Report(f, c.Format, cs, c.Pages)
}

// Gate prints whether a candidate may pass, and why. Its code is that of the command: [ExitDone] if it
// passes, [ExitError] if it is stopped, and [ExitUsage] if its runs can't decide that.
func (c *Comparisons) Gate(ctx context.Context, base, candidate string) (code int, err error) {
	from, err := c.run(base)
	if err != nil {
		return 0, err
	}
	to, err := c.run(candidate)
	if err != nil {
		return 0, err
	}
	if err := c.count(ctx, from, to); err != nil {
		return 0, err
	}
	g, err := eval.Gate(from, to, c.How)
	if err != nil {
		return 0, err
	}
	code = map[eval.GateResult]int{eval.GateStopped: ExitError, eval.GateUndecided: ExitUsage}[g.Result]
	if c.JSON {
		return code, Indented(c.Out, g)
	}
	for _, line := range g.Says {
		fmt.Fprintln(c.Out, text.Line(line))
	}
	return code, nil
}

// Diff prints the first event where two sessions part.
func (c *Comparisons) Diff(ctx context.Context, base, candidate string) error {
	var ids [2]string
	for i, name := range []string{base, candidate} {
		id, err := store.Resolve(ctx, c.Sessions, name)
		if err != nil {
			return err
		}
		ids[i] = id
	}
	d, err := eval.Diff(ctx, c.Sessions, ids[0], ids[1])
	switch {
	case err != nil:
		return err
	case c.JSON:
		return Indented(c.Out, d)
	case d.Parting == nil:
		fmt.Fprintf(c.Out, "Both do the same: %s, in the same words.\n", text.Count(d.Same, "deed"))
		return nil
	}
	fmt.Fprintf(c.Out, "The first %s the same. Then they part:\n", text.Counted(d.Same, "deed is", "deeds are"))
	for i, deed := range []eval.Deed{d.Parting.Base, d.Parting.Candidate} {
		fmt.Fprintf(c.Out, "  %s:%d  %s\n", ids[i], deed.Seq, strings.TrimSpace(deed.Kind+"  "+deed.Text))
	}
	return nil
}

// Power prints what a comparison would find before it is paid for. Of a pilot run it takes how often
// trials of one task end differently.
func (c *Comparisons) Power(pilot string) error {
	d, power, effect := c.Design, c.How.Power, c.Effect
	if pilot != "" {
		run, err := c.run(pilot)
		if err != nil {
			return err
		}
		if d.Disagree, err = eval.Disagreement(run); err != nil {
			return err
		}
	}
	smallest := d.Detectable(power)
	if c.JSON {
		return Indented(c.Out, struct {
			stats.Design
			Power      float64 `json:"power"`
			Detectable float64 `json:"detectable,omitempty"`
			Effect     float64 `json:"effect,omitempty"`
			Found      float64 `json:"found,omitempty"`
			Needed     int     `json:"tasks_needed,omitempty"`
		}{d, power, smallest, effect, d.Power(effect), d.TasksFor(effect, power)})
	}
	finds := fmt.Sprintf("a difference of %.1f points", 100*smallest)
	if smallest == 0 {
		finds = "no difference, however large,"
	}
	fmt.Fprintf(c.Out, "%s with %s each, %.0f trials: finds %s in %.0f %% of comparisons.\n",
		text.Count(d.Tasks, "task"), text.Counted(d.Tries, "try", "tries"), float64(2*d.Tasks*d.Tries), finds, 100*power)
	if n := d.Fewest(); d.Tasks < n {
		fmt.Fprintf(c.Out, "It takes at least %s to find any.\n", text.Count(n, "task"))
	}
	if effect != 0 {
		fmt.Fprintf(c.Out, "A difference of %.1f points is found in %.0f %%.\n", 100*effect, 100*d.Power(effect))
		if n := d.TasksFor(effect, power); n > 0 {
			fmt.Fprintf(c.Out, "To find it in %.0f %% takes %s.\n", 100*power, text.Count(n, "task"))
		}
	}
	fmt.Fprintf(c.Out, "Equal configurations are called different in at most %g %%. "+
		"One trial of each ends differently on %.0f %% of the tasks.\n", 100*d.Alpha, 100*d.Disagree)
	if d.Tasks < stats.FewTasks && d.Tries > 1 {
		fmt.Fprintf(c.Out, "With fewer than %d tasks this promises too much.\n", stats.FewTasks)
	}
	return nil
}
