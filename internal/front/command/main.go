// Package command is the command inspan: its subcommands and their flags. Each has a file of its own;
// none holds logic. It is a package so that a program of another module, which links more than this
// one, can be the same command ([Program]).
package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/setup"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/view/words"
)

// Program is what a binary links beyond this module. The zero value is inspan as it is installed.
type Program struct {
	// Shared reaches what several machines share, for flags such as --store.
	Shared app.Shared
}

// Run is the whole of a main function. It does not return.
func (p Program) Run() {
	if ran, code := app.Helper(); ran {
		os.Exit(code)
	}
	if ran, code := app.First(); ran {
		os.Exit(code)
	}
	netguard.HeedAllProxy()
	usual := debug.SetGCPercent(startGarbage)
	ballast := make([]byte, ballastSize)
	time.AfterFunc(startTime, func() { debug.SetGCPercent(usual) })
	code := p.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	runtime.KeepAlive(ballast)
	os.Exit(code)
}

// When garbage is collected. Most of what a start allocates stays in use, so for its first startTime the
// heap may grow by startGarbage percent. Later the heap of a session is so small that it would be
// collected every few calls. So the ballast raises the threshold. Its pages are never touched. Measured on
// a busy machine, it saves 10 % of the processor time of a turn with read_file and 5 % of one with bash, for 5 MB.
const (
	startGarbage = 400 // percent of what stays
	startTime    = 250 * time.Millisecond
	ballastSize  = 6 << 20 // bytes
)

// Main runs the command and returns its exit code. A panic is reported like
// any other error, so that programs that read our output see a result.
func (p Program) Main(args []string, in io.Reader, out, errs io.Writer) (code int) {
	cmd := &command{in: in, self: app.Self(), shared: p.Shared, console: &console.Console{
		Out: out,
		Err: errs, Form: formOf(args), Color: colored(errs), Live: drawable(errs), Width: width,
	}}
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(errs, "%s", debug.Stack())
			code = cmd.console.Fail(console.ExitError, fmt.Errorf("inspan crashed: %v; the session can be resumed", p))
		}
	}()
	root := cmd.root()
	root.SetArgs(numbered(root, args))
	if err := root.Execute(); err != nil {
		return cmd.console.Fail(exitCode(err), mended(err))
	}
	return cmd.code
}

// command is what all subcommands share.
type command struct {
	in      io.Reader
	console *console.Console
	shared  app.Shared
	self    string // what keeps processes; see app.App
	code    int    // exit code of a subcommand that ended without an error
}

// usageError is an error of whoever typed the command.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var usage usageError
	if errors.As(err, &usage) {
		return console.ExitUsage
	}
	return console.ExitCode("error", "", err)
}

// numbered has a negative number among the arguments stand behind all flags, since no flag is
// called like one: in 'config set max_turns -1' it is a value.
func numbered(root *cobra.Command, args []string) []string {
	cmd, rest, err := root.Find(args)
	end := slices.Index(rest, "--")
	if end < 0 {
		end = len(rest)
	}
	number := func(arg string) bool {
		return len(arg) > 1 && arg[0] == '-' && (arg[1] == '.' || arg[1] >= '0' && arg[1] <= '9')
	}
	if err != nil || !slices.ContainsFunc(rest[:end], number) {
		return args
	}
	var flags, values []string
	for i := 0; i < end; i++ {
		arg := rest[i]
		if number(arg) || !strings.HasPrefix(arg, "-") {
			values = append(values, arg)
			continue
		}
		flags = append(flags, arg)
		if name := strings.TrimLeft(arg, "-"); i+1 < end && takesNext(cmd, name) {
			i++
			flags = append(flags, rest[i])
		}
	}
	return slices.Concat(strings.Fields(cmd.CommandPath())[1:], flags, []string{"--"}, values, rest[min(end+1, len(rest)):])
}

// takesNext reports whether the argument behind a flag is its value.
func takesNext(cmd *cobra.Command, name string) bool {
	flag := cmd.Flags().Lookup(name)
	if flag == nil {
		flag = cmd.InheritedFlags().Lookup(name)
	}
	if flag == nil && len(name) == 1 {
		flag = cmd.Flags().ShorthandLookup(name)
	}
	return flag != nil && flag.NoOptDefVal == ""
}

// mended adds to an error about a settings file how to correct the file.
func mended(err error) error {
	fault, ok := errors.AsType[config.Fault](err)
	switch {
	case !ok || fault.Path == config.OrganisationFile:
		return err
	case strings.HasSuffix(fault.Path, config.ProjectFile):
		return fmt.Errorf("%w\nCorrect it with: inspan config edit --project", err)
	}
	return fmt.Errorf("%w\nCorrect it with: inspan config edit", err)
}

func (c *command) root() *cobra.Command {
	var f screenFlags
	root := &cobra.Command{
		Use:   "inspan",
		Short: "inspan is an agent: a language model works in your files and asks before it changes them",
		Example: "  inspan                                      # work in this folder\n" +
			"  inspan --continue                           # continue the last session here\n" +
			"  inspan \"make the failing test pass\"         # begin with a task\n" +
			"  inspan -p \"explain this project\"            # print the answer and exit\n" +
			"  inspan run \"make the failing test pass\"     # one task, also for scripts and pipes\n" +
			"  inspan models                               # which models are ready\n" +
			"  inspan doctor                               # check settings, keys and sandbox",
		Long: "The model reads, edits, runs commands and checks its work. Every event goes to a log that survives\n" +
			"a crash, so 'inspan resume' continues any session.\n\n" +
			"Words that are not a command are a task. inspan takes a word that is nearly a command for a mistake.",
		Version:       setup.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.take(cmd, args); err != nil {
				return err
			}
			return c.front(cmd, &f)
		},
	}
	root.SetOut(c.console.Out) // before the commands that cobra makes, which keep it
	root.SetErr(c.console.Err)
	f.add(root)
	oneOf(root, "continue", "resume")
	oneOf(root, "print", "fullscreen")
	everywhere(root)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(c.run(), c.askCorpus(), c.resume(), c.detached(), c.board(), c.ps(), c.logs(), c.attach(), c.stop(),
		c.send(), c.sessions(), c.context(),
		c.compact(), c.rewind(), c.effects(), c.models(), c.cost(), c.spend(), c.stats(), c.trace(), c.policy(), c.trust(),
		c.config(), c.tools(), c.skills(), c.memory(), c.agents(), c.copies(), c.workflow(), c.goal(), c.schedule(), newEvalCommand(c),
		c.bench(), c.plugin(), c.mcp(), c.acp(), c.a2a(), c.server(), c.web(), c.worker(),
		c.demo(), c.setup(), c.imports(), c.doctor(), c.version(), exitCodes())
	describe(root)
	return root
}

// everywhere declares the flags of all commands. They say what variables of the
// environment say too, which processes that we start inherit.
func everywhere(root *cobra.Command) {
	var preset, state string
	root.PersistentFlags().StringVar(&preset, "preset", "",
		"`name` of a group of settings; container is for throwaway machines (also INSPAN_PRESET)")
	root.PersistentFlags().StringVar(&state, "state", "", "`folder` for sessions and other state (also INSPAN_STATE_DIR)")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		var names []string
		for _, p := range config.Presets() {
			names = append(names, p[0])
		}
		if preset != "" && !slices.Contains(names, preset) {
			return misused("--preset: unknown preset %q; use %s%s",
				preset, strings.Join(names, " or "), words.DidYouMean(preset, names))
		}
		if state != "" {
			var err error
			if state, err = filepath.Abs(state); err != nil {
				return err
			}
		}
		for name, value := range map[string]string{config.PresetVariable: preset, "INSPAN_STATE_DIR": state} {
			if value == "" {
				continue
			}
			if err := os.Setenv(name, value); err != nil {
				return err
			}
		}
		return nil
	}
}

func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, row := range console.Codes() {
		fmt.Fprintf(&b, "  %-4s %s\n", row[0], row[1])
	}
	return strings.TrimRight(b.String(), "\n")
}

// unknown is the error for a subcommand that does not exist.
func unknown(cmd *cobra.Command, name string) error {
	return misused("unknown command %q for %q%s; see '%s --help'",
		name, cmd.CommandPath(), words.DidYouMean(name, commands(cmd)), cmd.CommandPath())
}

// commands are the names of the commands below one.
func commands(cmd *cobra.Command) (names []string) {
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return names
}

// group makes a command that only holds others.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: grouped}
	cmd.AddCommand(subs...)
	return cmd
}

func grouped(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknown(cmd, args[0])
}

// flagError words an error in the flags, and names the flag nearest to one that does not exist.
func flagError(cmd *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if want := needs(wrong.GetFlag()); want != "" {
			return misused("--%s needs %s, not %q", wrong.GetFlag().Name, want, wrong.GetValue())
		}
	}
	if empty, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return misused("--%s needs a value; see '%s --help'", empty.GetFlag().Name, cmd.CommandPath())
	}
	missing, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usageError{err}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	near := words.DidYouMean("--"+missing.GetSpecifiedName(), names)
	if ours := elsewhere(missing.GetSpecifiedName()); ours != "" {
		name, _, _ := strings.Cut(ours, " ")
		near = "; use " + ours
		if !slices.Contains(names, name) {
			near = "; 'inspan run' has " + ours
		}
	}
	if missing.GetSpecifiedName() == "p" && cmd.HasParent() { // inspan -p WORD, and a command is called so
		near = fmt.Sprintf("; for a task of this one word use: inspan run %q", cmd.Name())
	}
	return misused("%w%s; see '%s --help'", err, near, cmd.CommandPath())
}

// elsewhere is what we have for a flag that other agents have; empty: none of them does.
func elsewhere(flag string) string {
	return map[string]string{
		"permission-mode": "--mode", "approval-mode": "--mode", "ask-for-approval": "--mode", "sandbox": "--mode",
		"full-auto": "--mode auto", "yolo": "--mode yolo", "y": "--mode yolo", "dangerously-skip-permissions": "--mode yolo",
		"allow-dangerously-skip-permissions":       "--mode yolo",
		"dangerously-bypass-approvals-and-sandbox": "--mode yolo", "allow-all-tools": "--mode yolo", "trust-all-tools": "--mode yolo",
		"output-format": "--output", "json": "--output json", "format": "--output", "f": "--output",
		"allowedTools": "--allow", "allowed-tools": "--allow", "allow-tool": "--allow",
		"disallowedTools": "--deny", "disallowed-tools": "--deny", "deny-tool": "--deny",
		"system-prompt": "--system", "append-system-prompt": "--append-system",
		"max-budget-usd": "--max-cost", "cd": "--cwd", "C": "--cwd", "m": "--model", "prompt": "--print", "session": "--resume",
	}[flag]
}

// needs says which values a flag takes; empty: the error of its value says it.
func needs(f *pflag.Flag) string {
	if b, ok := f.Value.(interface{ needs() string }); ok {
		return b.needs()
	}
	switch f.Value.Type() {
	case "int", "int64", "uint64":
		return "a whole number"
	case "duration":
		return "a time such as 90s or 2h"
	case "bool":
		return "true or false"
	case dollarsType:
		return "an amount in US dollars, such as 2.50"
	}
	return ""
}

// exactly is cobra.RangeArgs with errors in our words. The last argument names the arguments, as in "an ID".
func exactly(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		path := cmd.CommandPath()
		switch {
		case len(args) < least:
			return misused("%s needs %s; see '%s --help'", path, what, path)
		case len(args) > most:
			return misused("%s takes %s, got %d; see '%s --help'", path, what, len(args), path)
		}
		return nil
	}
}

// oneOf has a command refuse more than one of some flags.
func oneOf(cmd *cobra.Command, flags ...string) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if n := len(slices.DeleteFunc(slices.Clone(flags), func(name string) bool { return !cmd.Flags().Changed(name) })); n > 1 {
			return misused("use only one of --%s", strings.Join(flags, ", --"))
		}
		return run(cmd, args)
	}
}

// formOf finds the output form before the flags are parsed, since even an
// error in the flags must be reported in it.
func formOf(args []string) string {
	for i, arg := range args {
		value, ok := strings.CutPrefix(arg, "--output=")
		if arg == "--output" && i+1 < len(args) {
			value, ok = args[i+1], true
		}
		if ok && slices.Contains(console.Forms(), value) {
			return value
		}
	}
	return console.Text
}

// colored reports whether w is a terminal that wants colours.
func colored(w io.Writer) bool {
	return drawable(w) && os.Getenv("NO_COLOR") == ""
}

// drawable reports whether w is a terminal that knows more than lines.
func drawable(w any) bool { return isTerminal(w) && os.Getenv("TERM") != "dumb" }

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is how many cells a line of a terminal has, 0 if w is not one.
func width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	cells, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return cells
}
