package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/delegate/corpus"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

func (c *command) askCorpus() *cobra.Command {
	f, q, program, depth := runFlags{output: console.Text}, corpusQuestion{}, false, 0
	cmd := &cobra.Command{
		Use:   `ask-corpus DIR|URL|- "question"`,
		Short: "Answer a question from far more text than a model can read",
		Long: "The agent works in the folder DIR and only reads. It searches the text, and a small model reads the pieces that matter.\n" +
			"It opens only the sources that you name and the files below them.\n" +
			"inspan fetches the pages that you name once, before the agent begins. The agent itself has no network.\n" +
			"With -, the source is standard input, such as the output of another command.\n" +
			"inspan prints the answer with the passages that support it, and first compares each passage with its source.\n" +
			"With --program, the agent writes programs over the text, which ask models about parts of it.\n" +
			"Use it for answers that need all of the text, such as counts, or that are long.\n" +
			"If the agent gives no such answer, the command fails with exit code 14. docs/CORPUS.md describes it.",
		Example: "  inspan ask-corpus docs \"which limits apply to uploads, and where are they written?\"\n" +
			"  inspan ask-corpus . --source session:20261127-142532-j4f1 \"why was the cache deleted?\"\n" +
			"  inspan ask-corpus logs --budget 0.50 --json \"which requests failed on Friday?\" | jq .evidence\n" +
			"  inspan ask-corpus https://example.com/terms \"how long does a refund take?\"\n" +
			"  inspan ask-corpus tickets --program \"how many complain about prices? List them by month\"",
		Args: exactly(2, 2, "a DIR or URL or - and a question"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if q.Question = args[1]; strings.TrimSpace(q.Question) == "" {
				return misused("the question is empty")
			}
			f.cwd = q.of(args[0], cmd.Flags().Changed("source"))
			err := f.check(cmd)
			if err != nil {
				return err
			}
			f.Sources = q.Sources
			a, err := c.installation()
			if err != nil {
				return err
			}
			limits := a.Config.Programs.Limits()
			switch given := cmd.Flags().Changed("depth"); {
			case given && !program:
				return misused("--depth needs --program")
			case given:
				limits.Depth = depth
			}
			if slices.Contains(q.Sources, corpus.Input) {
				if isTerminal(c.in) {
					return misused("the source - needs text on standard input")
				}
				f.Input = c.in
			}
			input := event.Say(q.Task())
			if program {
				f.Programs, input = &limits, event.Say(q.Question)
			}
			host := c.hostOf(a, &f)
			q.store = host.Store
			root, err := workspace(f.cwd)
			if err != nil {
				return err
			}
			// A source may be missing, before a model costs anything.
			if err := corpus.Exist(cmd.Context(), host.Store, root, q.Sources); err != nil {
				return words.Misuse{Err: err}
			}
			s, err := host.New(cmd.Context(), f.cwd)
			if err != nil {
				return err
			}
			defer s.Close()
			c.code = q.run(cmd.Context(), c.console, s, input)
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&q.Sources, "source", []string{"."},
		"`source` to read: a file, a folder, a URL, session:ID or sessions (all past ones); repeatable")
	fl.StringVar(&f.Model, "model", "", "model as `provider/model`, or a known name such as sonnet; see 'inspan models'")
	fl.StringVar(&f.Small, "small", "", "`model` that reads the pieces (default: small of [agents] in the settings, or the same model)")
	fl.Var((*dollars)(&f.Limits.Cost), "budget", "maximum cost in US `dollars`; 0 means no limit (default: the limits of the settings)")
	fl.BoolVar(&program, "program", false, "answer by programs over the text instead of by searching it")
	fl.Var(&bounded[int]{&depth, 0, 1, strconv.Atoi}, "depth",
		"with --program: 1 if programs can ask models, 0 if not (default: depth of [programs] in the settings)")
	fl.BoolVar(&q.JSON, "json", false, "print one JSON object")
	return cmd
}

// corpusQuestion is a question to a corpus, and how to print its answer.
type corpusQuestion struct {
	equipment.AskCorpus
	JSON  bool
	store store.Store // of the session
}

// errUnverified says that a run has ended normally, but without an answer.
var errUnverified = errors.New("the agent gave no answer with verified evidence; see its log")

// answered is the object that [corpusQuestion.Run] prints.
type answered struct {
	Type    string `json:"type"`    // "answer"
	Version int    `json:"version"` // 1
	Session string `json:"session"`
	corpus.Answer
	Cost     float64 `json:"cost"` // US dollars
	ExitCode int     `json:"exit_code"`
}

// of reads the command's first argument, and returns the folder to work in. The folder is also the source if no
// other is named; a page and standard input always are sources.
func (q *corpusQuestion) of(first string, named bool) (folder string) {
	switch {
	case !corpus.IsPage(first) && first != corpus.Input:
		return first
	case !named:
		q.Sources = nil
	}
	q.Sources = append([]string{first}, q.Sources...)
	return "."
}

// resumeCorpus is run for an existing session, in the requested form.
func resumeCorpus(ctx context.Context, c *console.Console, sessions store.Store, s *inspan.Session, inputs ...event.Body) (int, error) {
	if c.Form != console.Text && c.Form != console.JSON && c.Form != "" {
		return 0, misused("--output: a session of ask-corpus answers as text or json")
	}
	q := corpusQuestion{JSON: c.Form == console.JSON, store: sessions}
	return q.run(ctx, c, s, inputs...), nil
}

// run drives a session that answers questions to a corpus, like [console.Console.Run]. Standard output gets
// only the answer to the last question; the agent's activity goes to standard error. It returns the exit code.
func (q *corpusQuestion) run(ctx context.Context, c *console.Console, s *inspan.Session, inputs ...event.Body) int {
	work := &console.Console{
		Out: c.Err, Err: c.Err, Color: c.Color, Live: c.Live, Width: c.Width, Person: c.Person, Unattended: c.Unattended,
	}
	if q.JSON {
		c.Form, work.Out, work.Err, work.Live = console.JSON, io.Discard, io.Discard, false
	}
	if code := work.Run(ctx, s, inputs...); code != console.ExitDone {
		return q.failed(c, s, code, nil)
	}
	found, err := q.answer(ctx, s)
	if err == nil && found == nil {
		err = errUnverified
	}
	if err != nil {
		return q.failed(c, s, console.ExitFailed, err)
	}
	code := console.ExitDone
	if !found.Verified && (!found.Program || found.Nothing) {
		code = console.ExitFailed
	}
	if q.JSON {
		err = c.PrintJSON(answered{"answer", 1, s.ID(), *found, s.Status().Cost, code})
	} else {
		err = printAnswer(c.Out, found)
	}
	if err != nil {
		return c.Fail(console.ExitError, err)
	}
	return code
}

// answer returns the answer to the last question; nil means there is none.
func (q *corpusQuestion) answer(ctx context.Context, s *inspan.Session) (*corpus.Answer, error) {
	log, err := q.store.Open(ctx, s.ID())
	if err != nil {
		return nil, err
	}
	found, err := corpus.Answered(ctx, log.Blobs(), pastOf(ctx, s))
	return found, errors.Join(err, log.Close())
}

// pastOf returns the current events of a session.
func pastOf(ctx context.Context, s *inspan.Session) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		upto := s.Status().Seq
		for e, err := range s.Events(ctx, 0) {
			if !yield(e, err) || err != nil || e.Seq >= upto {
				return
			}
		}
	}
}

// failed reports a run that did not finish, if nothing of it was shown, or that has no answer, as err says.
func (q *corpusQuestion) failed(c *console.Console, s *inspan.Session, code int, err error) int {
	switch {
	case !q.JSON && err != nil:
		return c.Fail(code, err)
	case !q.JSON:
		return code
	}
	st := s.Status()
	r := console.Result{
		Session: s.ID(), Reason: "error", Model: st.Route, Turns: st.Turns, Calls: st.Calls, Usage: st.Usage, Cost: st.Cost, ExitCode: code,
	}
	switch {
	case err != nil:
		r.Detail = words.Hidden(err.Error())
	case st.Stopped != nil:
		r.Reason, r.Cause, r.Detail = string(st.Stopped.Reason), st.Stopped.Cause, st.Stopped.Detail
	}
	return c.Finish(r)
}

// printAnswer prints an answer for people: its text, and each passage with its place. Files and models have
// written all of it, so each line has a mark of its kind, and can't be mistaken for another.
func printAnswer(out io.Writer, a *corpus.Answer) error {
	var b strings.Builder
	for line := range strings.SplitSeq(text.Clean(words.Hidden(a.Answer)), "\n") {
		b.WriteString("| " + line + "\n")
	}
	if len(a.Unsupported) > 0 {
		var list []string
		for _, one := range a.Unsupported {
			list = append(list, text.Visible(text.Short(words.Hidden(one), 80)))
		}
		fmt.Fprintf(&b, "\nNot verified: no passage below has %s.\n", strings.Join(list, ", "))
	}
	for n, e := range a.Evidence {
		at := fmt.Sprintf("line %d", e.Line)
		if e.Event > 0 {
			at = fmt.Sprintf("event %d", e.Event)
		}
		fmt.Fprintf(&b, "\n[%d] %s, %s (bytes %d-%d)\n  > %s\n", n+1, text.Visible(words.Hidden(e.Source)), at, e.From, e.To,
			text.Visible(text.Short(words.Hidden(e.Quote), 400)))
	}
	b.WriteString(tracedIn(a.Trace) + "\n" + readOf(a))
	_, err := io.WriteString(out, b.String())
	return err
}

// mostTraced is the number of passages that people see; JSON has all of them.
const mostTraced = 20

// tracedIn says from where the parts of an answer of a program are, without those that the program computed.
func tracedIn(trace []corpus.Passage) string {
	var b strings.Builder
	n := 0
	for _, p := range trace {
		if len(p.Of) == 0 {
			continue
		}
		if n++; n > mostTraced {
			continue
		}
		verb := "copied from"
		if p.By == "asked" {
			verb = "said by a model that had read"
		}
		var places []string
		for _, at := range p.Of[:min(len(p.Of), 3)] {
			places = append(places, fmt.Sprintf("%s, line %d (bytes %d-%d)", text.Visible(words.Hidden(at.Source)), at.Line, at.From, at.To))
		}
		if more := len(p.Of) - len(places) + p.More; more > 0 {
			places = append(places, text.Counted(more, "other place", "other places"))
		}
		fmt.Fprintf(&b, "\nBytes %d-%d of the answer: %s %s", p.From, p.To, verb, strings.Join(places, "; "))
	}
	if n > mostTraced {
		fmt.Fprintf(&b, "\nand %s", text.Counted(n-mostTraced, "other part", "other parts"))
	}
	if n > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// readOf says how much of the sources was read for the answer.
func readOf(a *corpus.Answer) string {
	c := a.Coverage
	said := fmt.Sprintf("Read: %s of %s in %s", percent(c.Read, c.Bytes), bytesOf(c.Bytes), text.Count(a.Sources, "source"))
	left := 0
	for _, files := range a.Skipped {
		left += files
	}
	if left > 0 {
		said += "; " + text.Count(left, "file") + " left out"
	}
	if c.Searches > 0 {
		said += "; searched for " + text.Count(c.Searches, "pattern")
	}
	if a.Requests != nil {
		said += "; " + text.Counted(a.Requests.Answered, "request", "requests")
		if a.Requests.Failed > 0 {
			said += fmt.Sprintf(", %d more failed", a.Requests.Failed)
		}
	}
	said += ".\n"
	for i, u := range c.Unread {
		if i == 0 {
			said += "Not read:"
		} else {
			said += ","
		}
		said += fmt.Sprintf(" %s of %s", bytesOf(u.Bytes), text.Visible(words.Hidden(u.Source)))
	}
	switch {
	case c.More > 0:
		said += fmt.Sprintf(", and parts of %s more.\n", text.Count(c.More, "source"))
	case len(c.Unread) > 0:
		said += ".\n"
	}
	return said
}

func bytesOf(n int64) string { return text.Thousands(int(n)) + " bytes" }

// percent returns a share that is 100 only if nothing is missing, and 0 only if there is nothing.
func percent(part, whole int64) string {
	switch p := float64(part) / float64(max(whole, 1)) * 100; {
	case part >= whole:
		return "100 %"
	case part > 0 && p < 1:
		return "less than 1 %"
	default:
		return fmt.Sprintf("%d %%", min(int(p), 99))
	}
}
