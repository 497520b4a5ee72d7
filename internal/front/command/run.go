package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// runFlags are the flags that run and resume share.
type runFlags struct {
	app.Options
	givenFlags
	output string
	input  string
	cwd    string
	labels []string
	// Limits as typed; 0 means none.
	maxTurns  int
	maxTokens int64
	maxTime   time.Duration
	flow      []string // workflow to run, and its inputs as typed
	detach    bool     // run in a background process,
	denies    bool     // which denies calls that would ask

	remote     remoteFlags // a server for the run,
	repository string      // in a clone of this,
	ref        string      // from this branch or tag
}

func (c *command) run() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   `run "what to do"`,
		Short: "Do one task and exit, also in scripts and pipes",
		Long: "The agent works in the current folder. Without arguments, or with -, the task comes from standard input.\n" +
			"inspan adds piped text to a task that you give as an argument, up to 1 MiB.\n" +
			"A task that begins with a slash runs a command: a skill, a command file or a built-in one.\n" +
			"'inspan run /help' lists them.\n\n" +
			console.ModesHelp() + "\nWithout a terminal, calls that would ask are denied.\n\n" + exitPointer,
		Example: "  inspan run \"make the failing test pass\"\n  inspan run --model ollama/qwen3-coder --mode edit \"add a --verbose flag\"\n" +
			"  inspan run --output json --mode auto \"update the changelog\" | jq .text\n  inspan run --model script \"bash: ls\"       # offline",
		RunE: c.perform(&f),
	}
	f.add(cmd)
	f.addNew(cmd)
	f.addOwn(cmd)
	f.addDetach(cmd)
	f.addRemote(cmd)
	cmd.Flags().StringVar(&f.input, "input-format", console.Text,
		"`format` of standard input: text, or stream-json (one message per line, as wrappers of Claude Code write them)")
	return cmd
}

// perform returns a command that runs one task in a new session.
func (c *command) perform(f *runFlags) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		if err := c.fresh(cmd.Context(), f); err != nil {
			return err
		}
		if f.remote.url != "" {
			text, err := c.task(args)
			if err == nil {
				text, err = c.piped(text, args)
			}
			if err != nil {
				return err
			}
			return c.away(cmd, f, text, false)
		}
		switch {
		case f.detach:
			return c.detach(cmd, f, args)
		case f.input == console.StreamJSON:
			return c.chat(cmd, f, args)
		}
		text, err := c.task(args)
		if err != nil {
			return err
		}
		typed, done, err := c.typed(cmd, f, args, text)
		if err != nil || done {
			return err
		}
		if text, err = c.piped(typed, args); err != nil {
			return err
		}
		if piped(args) {
			typed = ""
		}
		a, err := c.installation()
		if err != nil {
			return err
		}
		s, err := c.begin(cmd.Context(), a, f)
		if err != nil {
			return err
		}
		defer s.Close()
		inputs, err := f.with(cmd.Context(), a, s.Status().Root, typed, []event.Body{event.Say(text)})
		if err != nil {
			return err
		}
		c.code = c.console.Run(cmd.Context(), s, inputs...)
		return c.leave(cmd.Context(), a, f)
	}
}

// begin opens the new session of the flags.
func (c *command) begin(ctx context.Context, a *app.App, f *runFlags) (*inspan.Session, error) {
	claimed, err := f.claim(ctx, a)
	if err != nil {
		return nil, err
	}
	defer func() { _ = claimed.Close() }()
	if err := c.apart(ctx, a, f); err != nil {
		return nil, err
	}
	s, err := c.hostOf(a, f).New(ctx, f.cwd)
	if err != nil {
		err = errors.Join(err, c.leave(ctx, a, f))
	}
	return s, err
}

// chat runs a session on messages from standard input.
func (c *command) chat(cmd *cobra.Command, f *runFlags, args []string) error {
	if len(args) > 0 {
		return misused("--input-format stream-json reads the task from standard input; remove the task from the arguments")
	}
	if err := f.plain("can't be used with --input-format stream-json"); err != nil {
		return err
	}
	a, err := c.installation()
	if err != nil {
		return err
	}
	s, err := c.begin(cmd.Context(), a, f)
	if err != nil {
		return err
	}
	defer s.Close()
	c.code = c.console.Chat(cmd.Context(), s, c.in)
	return c.leave(cmd.Context(), a, f)
}

// add declares the flags.
func (f *runFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.Model, "model", "", "model as `provider/model`, or a known name such as sonnet; see 'inspan models'")
	fl.IntVar(&f.maxTurns, "max-turns", 200, "maximum `turns` of one run; 0 means no limit")
	fl.Var((*dollars)(&f.Limits.Cost), "max-cost", "maximum cost of the session in US `dollars`; 0 means no limit")
	fl.Int64Var(&f.maxTokens, "max-tokens", 0, "maximum `tokens` of the session, prompts and replies; 0 means no limit")
	fl.DurationVar(&f.maxTime, "max-time", 0, "maximum `time` of one run, such as 90s or 2h, not counting waits for you; 0 means no limit")
	fl.DurationVar(&f.Limits.Retry, "retry-for", 0,
		"how long to retry a model that is down, such as `90s` or 2h (default 1m; 15m without a terminal)")
	fl.StringVar(&f.Record, "record", "", "write the model's answers to a new `file`")
	fl.StringVar(&f.Replay, "replay", "", "replay a recorded `file` instead of calling a model")
	fl.StringVar(&f.output, "output", console.Text,
		"output `format`: text, json, stream-json, or claude-stream-json for wrappers of Claude Code")
	fl.StringArrayVar(&f.Folders, "add-dir", nil, "`folder` that the session uses like its workspace, without checkpoints; repeatable")
	addPermissions(fl, &f.Options)
	fl.StringVar(&f.Container, "container", "", "run commands in a container of this `image` (podman or docker) instead of the kernel sandbox")
	fl.StringVar(&f.Trust, "trust", "", "`checksum` of the folder content that you trust; 'inspan trust --sum' prints it")
	fl.BoolVar(&f.KeepJobs, "keep-jobs", false,
		"let commands that bash keeps continue after the session, without asking (rule keep(*))")
	f.addGiven(cmd)
}

// addPermissions declares the flags for what sessions may do.
func addPermissions(fl *pflag.FlagSet, o *app.Options) {
	fl.StringVar((*string)(&o.Mode), "mode", "", "permission `mode`: plan, ask, edit, auto or yolo (default ask)")
	addRules(fl, o)
}

// addRules declares the flags for permission rules.
func addRules(fl *pflag.FlagSet, o *app.Options) {
	fl.StringArrayVar(&o.Allow, "allow", nil, "`rule` for calls that run without asking, such as \"bash(go test *)\"; repeatable")
	fl.StringArrayVar(&o.Ask, "ask", nil, "`rule` for calls that ask in every mode; repeatable")
	fl.StringArrayVar(&o.Deny, "deny", nil, "`rule` for calls that are denied; repeatable")
}

// addNew declares the flags for new sessions.
func (f *runFlags) addNew(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.System, "system", "", "replace inspan's system prompt with this `text`")
	cmd.Flags().StringArrayVar(&f.labels, "label", nil, "`NAME=VALUE` to find the session by; repeatable")
	cmd.Flags().StringVar(&f.AppendSystem, "append-system", "", "append this `text` to the system prompt")
	cmd.Flags().StringVar(&f.cwd, "cwd", ".", "`folder` to work in (the workspace)")
}

// check checks the flags before anything is written.
func (f *runFlags) check(cmd *cobra.Command) error {
	if span := os.Getenv("TRACEPARENT"); text.IsTraceparent(span) { // others are ignored, as the standard says
		f.Traceparent = span
	}
	var err error
	if f.Labels, err = pairs("--label", f.labels); err != nil {
		return err
	}
	for name, flag := range map[string]string{store.UUIDLabel: "--session-id", running.CopyLabel: "--worktree"} {
		if _, set := f.Labels[name]; set {
			return misused("--label: inspan sets the label %s itself; use %s", name, flag)
		}
	}
	if err := f.Check(); err != nil {
		return err
	}
	if !slices.Contains(console.Forms(), f.output) {
		return misused("--output: unknown format %q; use %s%s", f.output, strings.Join(console.Forms(), ", "),
			words.DidYouMean(f.output, console.Forms()))
	}
	if f.input != "" && f.input != console.Text && f.input != console.StreamJSON {
		return misused("--input-format: unknown value %q; use text or stream-json", f.input)
	}
	if f.denies && !f.detach {
		return misused("--unattended needs --detach; without a terminal, calls that would ask are denied anyway")
	}
	switch away := f.remote.url != ""; {
	case !away && (f.repository != "" || f.ref != ""):
		return misused("--repository and --ref need --remote")
	case f.ref != "" && f.repository == "":
		return misused("--ref needs --repository")
	case !away:
		if _, err := f.remote.server(); err != nil {
			return err
		}
	}
	if f.Replay != "" && (f.Model != "" || f.Record != "") {
		return misused("--replay replaces the model; remove --model and --record")
	}
	if f.maxTurns < 0 || f.maxTokens < 0 || f.maxTime < 0 || f.Limits.Retry < 0 {
		return misused("--max-turns, --max-tokens, --max-time and --retry-for can't be negative")
	}
	if cmd.Flags().Changed("max-turns") {
		f.Limits.Turns = cmp.Or(f.maxTurns, -1)
	}
	if cmd.Flags().Changed("max-tokens") {
		f.Limits.Tokens = cmp.Or(f.maxTokens, -1)
	}
	if cmd.Flags().Changed("max-time") {
		f.Limits.Time = cmp.Or(f.maxTime, -1)
	}
	for i, dir := range f.Folders {
		if f.Folders[i], err = filepath.Abs(dir); err != nil {
			return misused("--add-dir: %w", err)
		}
	}
	root := ""
	if f.cwd != "" {
		if root, err = workspace(f.cwd); err != nil {
			return err
		}
	}
	return f.read(cmd.Flags(), &f.Options, root)
}

// piped reports whether the task comes from standard input.
func piped(args []string) bool { return len(args) == 0 || len(args) == 1 && args[0] == "-" }

// task returns the person's task.
func (c *command) task(args []string) (string, error) {
	text := strings.Join(args, " ")
	if piped(args) {
		if isTerminal(c.in) {
			return "", misused("no task given; write it as inspan run \"...\", or pipe it to standard input")
		}
		raw, err := io.ReadAll(c.in)
		if err != nil {
			return "", fmt.Errorf("read standard input: %w", err)
		}
		text = string(raw)
	}
	if strings.TrimSpace(text) == "" {
		return "", misused("the task is empty")
	}
	return text, nil
}

// host builds the host for run and resume.
func (c *command) host(f *runFlags) (*inspan.Host, error) {
	a, err := c.installation()
	if err != nil {
		return nil, err
	}
	return c.hostOf(a, f), nil
}

// hostOf is host for an installation.
func (c *command) hostOf(a *app.App, f *runFlags) *inspan.Host {
	if f.output == console.Text && isTerminal(c.in) && isTerminal(c.console.Err) {
		c.console.Person = console.NewPerson(c.console, c.in, c.console.Err)
		a.Notify.At(app.Front{Terminal: c.console.Err})
	}
	f.Unattended = c.console.Person == nil
	c.console.Unattended = f.Unattended
	for _, w := range f.warnings {
		c.warn(w)
	}
	if f.answer != nil {
		c.console.Answer = func(ctx context.Context, s *inspan.Session) (json.RawMessage, error) {
			return f.answer.Read(pastOf(ctx, s))
		}
	}
	return a.Host(f.Options, c.warn)
}
