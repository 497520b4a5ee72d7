package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/custom"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// ownTools handles the tools that models have written in the sessions of a workspace.
type ownTools struct {
	App  *app.App
	Root string
	Out  io.Writer
	// Ask asks a person a question and returns the answer. The error says that there is no person to ask.
	Ask func(question string) (bool, error)
}

// waiting lists proposals that wait for a person's decision.
func (o ownTools) waiting(ctx context.Context) error {
	list, err := o.App.Extensions.Proposed(ctx, o.App.Store(), o.Root)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		fmt.Fprintln(o.Out, "No tool waits for a decision.")
		return nil
	}
	w := text.NewTable(o.Out, "TOOL", "SESSION", "WRITTEN", "MODEL", "DOES")
	for _, p := range list {
		does := p.Draft.Description
		if p.Err != nil {
			does = "can't be read: " + p.Err.Error()
		}
		w.Row(text.Line(p.Name), p.Session, p.Written.Local().Format(time.DateTime), text.Line(p.Model), words.OneLine(does, 60))
	}
	return w.Flush()
}

// proposed finds a proposal by its name, the newest if several sessions have one, and of the session if that is
// not empty.
func (o ownTools) proposed(ctx context.Context, name, session string) (equipment.Proposed, error) {
	list, err := o.App.Extensions.Proposed(ctx, o.App.Store(), o.Root)
	if err != nil {
		return equipment.Proposed{}, err
	}
	var names []string
	for _, p := range list {
		if p.Name == name && (session == "" || strings.Contains(p.Session, session)) {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return equipment.Proposed{}, misused("no tool %s is proposed%s; see 'inspan tools proposed': %w",
		words.OneLine(name, 80), words.DidYouMean(name, names), fs.ErrNotExist)
}

// promoted finds a promoted tool by its name.
func (o ownTools) promoted(name string, user bool) (equipment.Promoted, bool) {
	shelf := o.App.Extensions.Shelf(o.Root, user)
	list := o.App.Extensions.Promoted(o.Root)
	i := slices.IndexFunc(list, func(p equipment.Promoted) bool { return p.Name == name && p.Source == shelf.Source })
	if i < 0 {
		return equipment.Promoted{}, false
	}
	return list[i], true
}

// show prints a proposal in the form of its folder.
func (o ownTools) show(ctx context.Context, name, session string) error {
	p, err := o.proposed(ctx, name, session)
	if err != nil {
		return err
	}
	if p.Err != nil {
		return p.Err
	}
	in, err := p.Draft.Install(nil)
	if err != nil {
		return err
	}
	o.from(p.Origin)
	o.files(in)
	return nil
}

func (o ownTools) from(at equipment.Origin) {
	fmt.Fprintf(o.Out, "written by %s in session %s, event %d, on %s\n",
		cmp.Or(text.Line(at.Model), "a model"), text.Line(at.Session), at.Event, at.Written.Local().Format(time.DateTime))
	if at.Untrusted {
		fmt.Fprintln(o.Out, "The session had seen outside text before, so others may have caused this.")
	}
}

// files prints all files of an entry.
func (o ownTools) files(in custom.Installed) {
	for name, content := range in.Files {
		fmt.Fprintf(o.Out, "\n%s/%s, %s:\n", in.Name, name, text.Count(len(content), "byte"))
		for line := range strings.Lines(string(content)) {
			fmt.Fprintln(o.Out, "    "+text.VisibleLines(strings.TrimSuffix(line, "\n")))
		}
	}
	fmt.Fprintln(o.Out)
}

// promote keeps a tool beyond its session, or approves a changed one again. Its tests must pass in a fresh
// sandbox, the reviewer model must not object, and a person must approve exactly these bytes.
func (o ownTools) promote(ctx context.Context, name, session string, user bool) error {
	p, err := o.promotion(ctx, name, session, user)
	if err != nil {
		return err
	}
	o.from(p.Origin)
	o.files(p.Installed)
	fmt.Fprint(o.Out, text.VisibleLines(custom.DescribeTrials(p.Trials)))
	if !custom.Passed(p.Trials) {
		return fmt.Errorf("%s is not kept: its tests do not pass in a fresh box", name)
	}
	if err := o.review(ctx, p); err != nil {
		return err
	}
	question := fmt.Sprintf("Keep exactly this content as a tool of the %s, in %s?", p.Source, p.Dir())
	if yes, err := o.agreed(question); err != nil || !yes {
		return err
	}
	if err := o.App.Extensions.Promote(ctx, p); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Kept %s for new runs. If its files change, it stays off until you approve it again.\n", p.Name)
	return nil
}

func (o ownTools) promotion(ctx context.Context, name, session string, user bool) (equipment.Promotion, error) {
	if was, is := o.promoted(name, user); is && session == "" {
		if !was.Changed {
			return equipment.Promotion{}, misused("%s is already kept, as you approved it", name)
		}
		fmt.Fprintf(o.Out, "%s has changed since you approved it. This is its current content:\n", name)
		return o.App.Extensions.Again(ctx, was)
	}
	p, err := o.proposed(ctx, name, session)
	if err != nil {
		return equipment.Promotion{}, err
	}
	return o.App.Extensions.Promotion(ctx, p, o.App.Extensions.Shelf(o.Root, user), time.Now())
}

// agreed asks whether to continue, and prints if not.
func (o ownTools) agreed(question string) (bool, error) {
	yes, err := o.Ask(question)
	if err == nil && !yes {
		fmt.Fprintln(o.Out, "Not kept.")
	}
	return yes, err
}

// review makes the reviewer model read it. If the model rejects it, that is an error.
func (o ownTools) review(ctx context.Context, p equipment.Promotion) error {
	r, err := o.App.Permission.Reviewer(ctx)
	if err != nil {
		return err
	}
	if r == nil {
		fmt.Fprintln(o.Out, "No reviewer model is set, so only you read it.")
		return nil
	}
	args, err := json.Marshal(p.Draft)
	if err != nil {
		return err
	}
	v, err := r.Judge(ctx, &tool.Call{
		Name: "keep_tool", Args: args, Mode: tool.ModeAuto, Env: tool.Env{Root: o.Root}, Cwd: o.Root,
		Task: "Keep this tool, which an agent wrote, so that agents can call it in later sessions. " +
			"It must do only what its description says.",
	}, []tool.Effect{{Kind: tool.External, Text: "let agents run this code in later sessions, in a sandbox, with its declared effects"}})
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s: %s: %s\n", text.Line(v.By), v.Action, text.Line(v.Reason))
	if v.Action == tool.Deny {
		return fmt.Errorf("%s is not kept: the reviewer refuses it", p.Name)
	}
	return nil
}

// drop withdraws a proposal, or removes a promoted tool, if a person agrees.
func (o ownTools) drop(ctx context.Context, name, session string, user bool) error {
	was, kept := o.promoted(name, user)
	if kept && session == "" {
		yes, err := o.Ask(fmt.Sprintf("Remove %s from %s?", name, was.Dir()))
		if err != nil || !yes {
			return err
		}
		if err := o.App.Extensions.Remove(ctx, was); err != nil {
			return err
		}
		fmt.Fprintf(o.Out, "Removed %s from %s.\n", name, was.Dir())
		return nil
	}
	p, err := o.proposed(ctx, name, session)
	if err != nil {
		return err
	}
	if err := p.Drop(ctx, o.App.Store()); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Took back the proposal %s of session %s.\n", name, text.Line(p.Session))
	return nil
}

// Limits for proposed removals in a report.
const (
	fewCalls = 5 // with fewer calls, failures mean little
	idleDays = 30
)

// ownUse is the use of a tool within the last days.
type ownUse struct{ calls, failed int }

// report prints how the tools that models have written were used, and which to remove. All of it is counted
// from the logs.
func (o ownTools) report(ctx context.Context, now time.Time, warn func(string)) error {
	kept := o.App.Extensions.Promoted(o.Root)
	if len(kept) == 0 {
		fmt.Fprintln(o.Out, "No tool that a model wrote is kept here.")
		return nil
	}
	since := now.AddDate(0, 0, -idleDays)
	used := map[string]ownUse{} // by digest of the approved tool: another of the same name is another tool
	err := eachSpan(ctx, o.App.Store(), "", since, warn, func(s transcript.Span) {
		if s.Kind == transcript.SpanCall && s.Sum != "" {
			u := used[s.Sum]
			if u.calls++; s.Failed() {
				u.failed++
			}
			used[s.Sum] = u
		}
	})
	if err != nil {
		return err
	}
	w := text.NewTable(o.Out, "TOOL", "OF", "APPROVED", "CALLS", "FAILED", "SAVED", "STATE")
	var remove []string
	for _, p := range kept {
		u := used[p.Digest()]
		why := idleTool(p, u, now)
		if why != "" {
			remove = append(remove, fmt.Sprintf("%s: %s; remove it with 'inspan tools drop %s%s'", p.Name, why, p.Name, flagOf(p)))
		}
		w.Row(p.Name, p.Source, p.Origin.Approved.Local().Format(time.DateOnly), u.calls, u.failed,
			text.Count(saved(p, u), "token"), stateOf(p))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, line := range remove {
		fmt.Fprintln(o.Out, line)
	}
	return nil
}

// saved estimates how many tokens a model would have written if it had written the code for each successful
// call.
func saved(p equipment.Promoted, u ownUse) int {
	const perToken = 4 // bytes
	size := 0
	for name, content := range p.Files {
		if name == custom.CodeFile || name == custom.ScriptFile {
			size = len(content)
		}
	}
	return (u.calls - u.failed) * size / perToken
}

// idleTool returns the reason why a tool might be removed; empty means it might stay.
func idleTool(p equipment.Promoted, u ownUse, now time.Time) string {
	switch {
	case u.calls >= fewCalls && 2*u.failed >= u.calls:
		return fmt.Sprintf("%d of %d calls failed in %d days", u.failed, u.calls, idleDays)
	case u.calls == 0 && now.Sub(p.Origin.Approved) >= idleDays*24*time.Hour:
		return fmt.Sprintf("no calls in %d days", idleDays)
	}
	return ""
}

func stateOf(p equipment.Promoted) string {
	if p.Changed {
		return "changed, so it is off: inspan tools promote " + p.Name + flagOf(p)
	}
	return "ready"
}

func flagOf(p equipment.Promoted) string {
	if p.Source == "user" {
		return " --user"
	}
	return ""
}

// errNobody says that a person at a terminal is needed.
var errNobody = errors.New("this needs a person: standard input and output must be a terminal")

// ownTools returns the commands about tools that models have written.
func (c *command) ownTools() []*cobra.Command {
	var session string
	var user bool
	named := func(use, short, long string, do ownDoing) *cobra.Command {
		cmd := c.ownTool(use+" NAME", short, exactly(1, 1, "a NAME"), do)
		cmd.Long = long
		cmd.Flags().StringVar(&session, "session", "", "that of the `session` with this id (default: the newest)")
		return cmd
	}
	show := named("show", "Show the content of a tool that a model proposed", "",
		func(ctx context.Context, o ownTools, name string) error { return o.show(ctx, name, session) })
	promote := named("promote", "Keep a tool that a model proposed, after showing its exact content",
		"inspan runs the tests of the tool in a fresh sandbox and has the reviewer model read it, if one is set. Then it shows you all\n"+
			"files and asks. It writes exactly these into .inspan/tools, or with --user into your own folder of tools.\n"+
			"After any change of the files, the tool is inert until you approve it again with the same command. Input and output must be a terminal.",
		func(ctx context.Context, o ownTools, name string) error {
			return o.promote(ctx, name, session, user)
		})
	drop := named("drop", "Take a proposed tool back, or remove one that you kept", "",
		func(ctx context.Context, o ownTools, name string) error {
			return o.drop(ctx, name, session, user)
		})
	for _, cmd := range []*cobra.Command{promote, drop} {
		cmd.Flags().BoolVar(&user, "user", false, "in your own folder of tools, for all projects")
	}
	proposed := c.ownTool("proposed", "List the tools that models wrote in sessions of this folder", exactly(0, 0, "no arguments"),
		func(ctx context.Context, o ownTools, _ string) error { return o.waiting(ctx) })
	report := c.ownTool("report", "Show how kept tools were used, and which to remove", exactly(0, 0, "no arguments"),
		func(ctx context.Context, o ownTools, _ string) error {
			return o.report(ctx, time.Now(), c.warn)
		})
	return []*cobra.Command{proposed, show, promote, drop, report}
}

// ownDoing does something with things that models have written, by name if it has one.
type ownDoing func(ctx context.Context, o ownTools, name string) error

// ownTool returns a command that does it in a folder, and asks only at a terminal.
func (c *command) ownTool(use, short string, args cobra.PositionalArgs, do ownDoing) *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			out := cmd.OutOrStdout()
			ask := func(question string) (bool, error) {
				if !isTerminal(c.in) || !isTerminal(out) { // a person who can't read it can't approve it
					return false, errNobody
				}
				return c.confirms(out, question), nil
			}
			return do(cmd.Context(), ownTools{App: a, Root: root, Out: out, Ask: ask}, strings.Join(args, ""))
		}),
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` to work in")
	return cmd
}
