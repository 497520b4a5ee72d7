package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/console"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// runFlags are the flags that run and resume share.
type runFlags struct {
	app.Options
	output   string
	input    string
	cwd      string
	maxTurns int
	detach   bool // let it run in a process of its own,
	denies   bool // which denies what would ask
}

func (c *command) run() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   `run "what to do"`,
		Short: "Run the agent on a task, from the arguments or from standard input",
		Long: "Run the agent on a task in the current folder. Without arguments, or with -, the task is read from standard input.\n" +
			"A task in the arguments that begins with a slash is a command: a skill, a command file or one of inspan's own; /help lists them.\n\n" +
			modesHelp() + "\n\n" + exitHelp(),
		Example: "  inspan run \"make the failing test pass\"\n  inspan run --model ollama/qwen3-coder --mode edit \"add a --verbose flag\"\n" +
			"  inspan run --output json --mode auto \"update the changelog\" | jq .text\n  inspan run --model script \"bash: ls\"       # offline",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			switch {
			case f.detach:
				return c.detach(cmd, &f, args)
			case f.input == console.StreamJSON:
				return c.chat(cmd, &f, args)
			}
			text, err := c.task(args)
			if err != nil {
				return err
			}
			text, done, err := c.typed(cmd, &f, args, text)
			if err != nil || done {
				return err
			}
			host, err := c.host(&f)
			if err != nil {
				return err
			}
			s, err := host.New(cmd.Context(), f.cwd)
			if err != nil {
				return err
			}
			defer s.Close()
			c.code = c.console.Run(cmd.Context(), s, event.Said{Parts: llm.Say(text)})
			return nil
		},
	}
	f.add(cmd)
	f.addNew(cmd)
	f.addDetach(cmd)
	cmd.Flags().StringVar(&f.input, "input-format", console.Text, "`form` of standard input: text, or stream-json for messages as wrappers of Claude Code write them, one a line")
	return cmd
}

// chat runs a session on messages from standard input.
func (c *command) chat(cmd *cobra.Command, f *runFlags, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("--input-format stream-json takes what to do from standard input")}
	}
	host, err := c.host(f)
	if err != nil {
		return err
	}
	s, err := host.New(cmd.Context(), f.cwd)
	if err != nil {
		return err
	}
	defer s.Close()
	c.code = c.console.Chat(cmd.Context(), s, c.in)
	return nil
}

func modesHelp() string {
	var b strings.Builder
	b.WriteString("Modes:\n")
	for _, m := range policy.Modes() {
		fmt.Fprintf(&b, "  %-5s %s\n", m[0], m[1])
	}
	b.WriteString("Without a terminal, what would ask is denied.")
	return b.String()
}

// add declares the flags.
func (f *runFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.Model, "model", "", "model as `provider/model`; see 'inspan models'")
	fl.StringVar(&f.Mode, "mode", "", "permission `mode`: plan, ask, edit, auto or yolo (default ask)")
	fl.IntVar(&f.maxTurns, "max-turns", 200, "most `turns` of one run; 0 means no limit")
	fl.Var((*dollars)(&f.MaxCost), "max-cost", "most US `dollars` of the session; 0 means no limit")
	fl.Int64Var(&f.MaxTokens, "max-tokens", 0, "most `tokens` of the session, prompts and replies; 0 means no limit")
	fl.DurationVar(&f.MaxTime, "max-time", 0, "longest `time` of one run, as 90s or 2h, waits for you aside; 0 means no limit")
	fl.DurationVar(&f.RetryFor, "retry-for", 0, "how long to wait, as `90s` or 2h, for a model that can't be had (default 1m, or 15m without a terminal)")
	fl.StringVar(&f.Record, "record", "", "new `file` to record the model's answers to")
	fl.StringVar(&f.Replay, "replay", "", "recorded `file` to play instead of asking a model")
	fl.StringVar(&f.output, "output", console.Text, "output `form`: text, json, stream-json, or claude-stream-json for wrappers of Claude Code")
	fl.StringArrayVar(&f.Allow, "allow", nil, "`rule` for calls that need not ask, such as \"bash(go test *)\"; may be repeated")
	fl.StringArrayVar(&f.Ask, "ask", nil, "`rule` for calls that ask in every mode; may be repeated")
	fl.StringVar(&f.Container, "container", "", "`image` that commands run in, by podman or docker, in the place of the walls of the kernel")
	fl.StringVar(&f.Trust, "trust", "", "`sum` of the content of the folder that may run; 'inspan trust' prints it")
	fl.BoolVar(&f.KeepJobs, "keep-jobs", false, "let what bash is told to keep go on after the session, unasked: the rule keep(*)")
	fl.StringArrayVar(&f.Deny, "deny", nil, "`rule` for calls that are denied; may be repeated")
}

// addNew declares the flags of what begins a new session.
func (f *runFlags) addNew(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.System, "system", "", "`text` that replaces inspan's own system prompt")
	cmd.Flags().StringVar(&f.AppendSystem, "append-system", "", "`text` to add to the system prompt")
	cmd.Flags().StringVar(&f.cwd, "cwd", ".", "`folder` to work in, the workspace")
}

// check looks at what was typed before anything is written.
func (f *runFlags) check(cmd *cobra.Command) error {
	if err := policy.CheckMode(f.Mode); err != nil {
		return usageError{fmt.Errorf("--mode: %w", err)}
	}
	if !slices.Contains(console.Forms(), f.output) {
		return usageError{fmt.Errorf("--output: %q is none of %s%s", f.output, strings.Join(console.Forms(), ", "), didYouMean("", tool.Nearest(f.output, console.Forms())))}
	}
	if f.input != "" && f.input != console.Text && f.input != console.StreamJSON {
		return usageError{fmt.Errorf("--input-format: %q is neither text nor stream-json", f.input)}
	}
	if f.denies && !f.detach {
		return usageError{errors.New("--unattended goes with --detach; without a terminal, what would ask is denied anyway")}
	}
	if f.Replay != "" && (f.Model != "" || f.Record != "") {
		return usageError{fmt.Errorf("--replay takes the place of --model and --record")}
	}
	if f.maxTurns < 0 || f.MaxTokens < 0 || f.MaxTime < 0 {
		return usageError{fmt.Errorf("--max-turns, --max-tokens and --max-time can't be negative")}
	}
	if cmd.Flags().Changed("max-turns") {
		f.MaxTurns = f.maxTurns
		if f.MaxTurns == 0 {
			f.MaxTurns = -1
		}
	}
	for _, rules := range []struct {
		flag  string
		texts []string
	}{{"--allow", f.Allow}, {"--ask", f.Ask}, {"--deny", f.Deny}} {
		for _, text := range rules.texts {
			if _, err := policy.ParseRule("", text, ""); err != nil {
				return usageError{fmt.Errorf("%s: %w", rules.flag, err)}
			}
		}
	}
	if info, err := os.Stat(f.cwd); f.cwd != "" && (err != nil || !info.IsDir()) {
		return usageError{fmt.Errorf("--cwd: %q is not a folder", f.cwd)}
	}
	return nil
}

// task is what the person wants done.
func (c *command) task(args []string) (string, error) {
	text := strings.Join(args, " ")
	if len(args) == 0 || text == "-" {
		if isTerminal(c.in) {
			return "", usageError{fmt.Errorf("say what to do: inspan run \"...\", or pipe it to standard input")}
		}
		raw, err := io.ReadAll(c.in)
		if err != nil {
			return "", fmt.Errorf("read standard input: %w", err)
		}
		text = string(raw)
	}
	if strings.TrimSpace(text) == "" {
		return "", usageError{fmt.Errorf("the task is empty")}
	}
	return text, nil
}

// host builds the host for run and resume.
func (c *command) host(f *runFlags) (*inspan.Host, error) {
	a, err := app.Load(c.self)
	if err != nil {
		return nil, err
	}
	if f.output == console.Text && isTerminal(c.in) && isTerminal(c.console.Err) {
		c.console.Person = console.NewPerson(c.console, c.in, c.console.Err)
	}
	f.Unattended = c.console.Person == nil
	c.console.Unattended = f.Unattended
	return a.Host(f.Options, c.warn), nil
}
