// Package command is the command inspan. Each subcommand is a file with its flags, its work and its output; a
// large one has several files, whose names begin with its name: eval.go, eval_compare.go. Begin with main.go,
// then run.go. It is a package so that a program of another module, which links more than this one, can be the
// same command ([Program]).
package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/setup"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/store"
)

// Program holds the parts that a binary links in addition to this module. The zero value is the standard inspan.
type Program struct {
	// Shared opens stores and engines that several machines share, for flags such as --store.
	Shared app.Shared
	// Examine looks at the database of a store for 'inspan doctor cluster'. Nil means no store has one.
	Examine func(ctx context.Context, s store.Store) []setup.Finding
}

// Run is a complete main function. It does not return.
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

// Settings of the garbage collector. Most allocations of a start stay in use, so for the first startTime the heap
// may grow by startGarbage percent. Later the heap of a session is so small that it would be collected every few
// calls, so the ballast raises the threshold. Its pages are never touched. Measured on a busy machine, it saves 10
// % of the processor time of a turn with read_file and 5 % of one with bash, for 5 MB.
const (
	startGarbage = 400 // percent of the live heap
	startTime    = 250 * time.Millisecond
	ballastSize  = 6 << 20 // bytes
)

// Main runs the command and returns its exit code. A panic is reported like any other error, so that programs
// that read our output see a result.
func (p Program) Main(args []string, in io.Reader, out, errs io.Writer) (code int) {
	cmd := &command{in: in, self: app.Self(), shared: p.Shared, examine: p.Examine, ended: make(chan struct{})}
	defer close(cmd.ended)
	cmd.console = &console.Console{
		Out: cmd.outletOf(out),
		Err: cmd.outletOf(errs), Form: formOf(args), Color: colored(errs), Live: drawable(errs), Width: width,
	}
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(errs, "%s", debug.Stack())
			code = cmd.console.Fail(console.ExitError, fmt.Errorf("inspan crashed: %v; the session can be resumed", p))
		}
	}()
	root := cmd.root()
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if peer := meansPeer(args); peer != nil && !cmd.HasParent() { // with flags of other agents
			return peer
		}
		return flagError(cmd, err)
	})
	root.SetArgs(numbered(root, args))
	if err := root.Execute(); err != nil {
		return cmd.console.Fail(console.ExitCode("error", "", err), mended(err))
	}
	return cmd.code
}

// command is the shared state of all subcommands.
type command struct {
	in      io.Reader
	console *console.Console
	shared  app.Shared
	examine func(ctx context.Context, s store.Store) []setup.Finding
	self    string // supervises processes; see app.App
	code    int    // exit code of a subcommand that ended without an error
	outlets []*outlet
	ended   chan struct{} // closed when the command has ended
}

// numbered moves a negative number among the arguments after all flags, since no flag has such a name: in 'config
// set max_turns -1' it is a value.
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

// takesNext reports whether the argument after a flag is its value.
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
	var setUp bool
	root := &cobra.Command{
		Use:   "inspan",
		Short: "inspan is an agent: a model works in your files and asks before it changes them",
		Example: "  inspan                                # work in this folder, in the terminal\n" +
			"  inspan --continue                     # continue the last session here\n" +
			"  inspan \"make the failing test pass\"   # begin with a task\n" +
			"  inspan -p \"explain this project\"      # print the answer and exit",
		Long: "The model reads, edits, runs commands and checks its work. Every event goes to a log that survives\n" +
			"a crash, so 'inspan resume' continues any session.\n\n" +
			"Any other words are a task. inspan rejects a word that looks like a mistyped command.",
		Version:       setup.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if setUp {
				return c.setUpForEditor(cmd)
			}
			if err := f.take(cmd, args); err != nil {
				return err
			}
			return c.front(cmd, &f)
		},
	}
	setUpFlag(root, &setUp)
	root.SetOut(c.console.Out) // before cobra makes its own commands, which store it
	root.SetErr(c.console.Err)
	f.add(root)
	oneOf(root, "continue", "resume")
	oneOf(root, "print", "fullscreen")
	everywhere(root)
	root.AddCommand(c.run(), c.askCorpus(), c.resume(), c.detached(), c.board(), c.ps(), c.logs(), c.attach(), c.stop(),
		c.send(), c.sessions(), c.context(),
		c.compact(), c.rewind(), c.show(), c.effects(), c.models(), c.cost(), c.spend(), c.stats(), c.trace(), c.policy(), c.trust(),
		c.config(), c.tools(), c.skills(), c.memory(), c.agents(), c.copies(), c.workflow(), c.goal(), c.schedule(), newEvalCommand(c),
		c.bench(), c.plugin(), c.mcp(), c.acp(), c.a2a(), c.server(), c.web(), c.worker(),
		c.demo(), c.setup(), c.imports(), c.doctor(), c.version(), exitCodes())
	describe(root)
	return root
}

// formOf finds the output form before the flags are parsed, since even an error in the flags must be reported
// in it.
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

// drawable reports whether w is a terminal that supports more than plain lines. On Windows terminals don't name
// themselves.
func drawable(w any) bool {
	if !isTerminal(w) {
		return false
	}
	switch os.Getenv("TERM") {
	case "dumb", "unknown":
		return false
	case "":
		return runtime.GOOS == "windows"
	}
	return true
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width returns the number of cells in a line of a terminal, 0 if w is not one.
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

// warn prints a warning for a person.
func (c *command) warn(text string) {
	c.console.Warn("inspan: " + text)
}

// confirms asks the person. Any answer other than yes is no.
func (c *command) confirms(out io.Writer, question string) bool {
	fmt.Fprint(out, question+" [y/N] ")
	line, err := bufio.NewReader(c.in).ReadString('\n')
	word := strings.ToLower(strings.TrimSpace(line))
	return err == nil && (word == "y" || word == "yes")
}
