package command

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/tool"
)

// TestHelpFitsAScreen checks that the first help leaves a line for the prompt on the smallest usual terminal.
func TestHelpFitsAScreen(t *testing.T) {
	help := strings.TrimRight(onTerminal(t, 80, "--help"), "\n")
	lines := strings.Split(help, "\n")
	if len(lines) > 23 {
		t.Errorf("it has %d lines:\n%s", len(lines), help)
	}
	for _, line := range lines {
		if ansi.StringWidth(line) > 80 {
			t.Errorf("it is too wide: %s", line)
		}
	}
	if n := strings.Count(help, "\n  "); n != 2+4+7 {
		t.Errorf("it has %d rows, wanted 2 of usage, 4 examples and 7 commands:\n%s", n, help)
	}
}

// typedRight reports the parts of one of our command lines that do not exist.
func typedRight(line string) (wrong string) {
	root := (&command{console: &console.Console{}}).root()
	line, _, _ = strings.Cut(line, " #")
	if at := strings.IndexAny(line, `'"`); at >= 0 {
		line = line[:at]
	}
	args := strings.Fields(strings.TrimPrefix(line, "inspan"))
	cmd, bare := root, regexp.MustCompile(`^[a-z][a-z-]*$`)
	for i, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		flag := strings.TrimLeft(name, "-")
		switch {
		case strings.HasPrefix(arg, "--") && cmd.Flags().Lookup(flag) == nil && cmd.InheritedFlags().Lookup(flag) == nil,
			strings.HasPrefix(arg, "-") && len(name) == 2 && cmd.Flags().ShorthandLookup(flag) == nil:
			return arg
		case strings.HasPrefix(arg, "-"):
		case bare.MatchString(arg) && cmd.HasSubCommands() && !strings.Contains(strings.Join(args[:i], " "), "-"):
			at := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == arg })
			if at < 0 && !cmd.HasParent() || at < 0 && cmd.Name() != "models" {
				return arg
			}
			if at >= 0 {
				cmd = cmd.Commands()[at]
			}
		}
	}
	return ""
}

// TestHelpTopics checks the statements of the topics: their commands, flags, rules and settings exist, and all modes
// are named.
func TestHelpTopics(t *testing.T) {
	commands, rules := 0, 0
	for _, topic := range helpTopics() {
		code, out, errs := prints(t, "help", topic.name)
		if code != 0 || !strings.HasPrefix(out, topic.text) {
			t.Errorf("%s: exit %d: %s%s", topic.name, code, out, errs)
		}
		if n := strings.Count(out, "\n"); n > 23 && topic.name != "exit-codes" {
			t.Errorf("%s has %d lines", topic.name, n)
		}
		for line := range strings.Lines(topic.text) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "inspan ") {
				commands++
				if wrong := typedRight(line); wrong != "" {
					t.Errorf("%s: there is no %s in: %s", topic.name, wrong, line)
				}
			}
			if m := regexp.MustCompile(`inspan config set (?:--add )?(\S+) (.*)`).FindStringSubmatch(line); m != nil {
				if code, _, errs := prints(t, "config", "set", m[1], strings.Trim(m[2], "'")); code != 0 {
					t.Errorf("%s: %s: %s", topic.name, line, errs)
				}
			}
			if m := regexp.MustCompile(`inspan config get (\S+)`).FindStringSubmatch(line); m != nil {
				if code, _, errs := prints(t, "config", "get", m[1]); code != 0 {
					t.Errorf("%s: %s: %s", topic.name, line, errs)
				}
			}
			if m := regexp.MustCompile(`^(\w+(?:\([^)]+\))?) {2,}`).FindStringSubmatch(line); m != nil && topic.name == "permissions" {
				rules++
				if _, err := policy.ParseRule(tool.Allow, m[1], "user"); err != nil {
					t.Errorf("%s: %v", m[1], err)
				}
			}
		}
	}
	if commands < 20 || rules < 4 {
		t.Errorf("only %d commands and %d rules were found", commands, rules)
	}
	for typed, want := range map[string]string{"mode": "modes", "Modes": "modes", "permision": "permissions", "rnu": "run"} {
		if _, _, errs := prints(t, "help", typed); !strings.Contains(errs, `did you mean "`+want+`"?`) {
			t.Errorf("help %s: %s", typed, errs)
		}
	}
	_, modes, _ := prints(t, "help", "modes")
	for _, m := range tool.Modes() {
		if !strings.Contains(modes, string(m)) || !strings.Contains(modes, m.Doc()) {
			t.Errorf("mode %s is not told", m)
		}
	}
}

// TestCommandsOfOthers checks that a command of another agent is answered with ours, and that a task is not taken for
// one.
func TestCommandsOfOthers(t *testing.T) {
	ours := commands((&command{console: &console.Console{}}).root())
	for verb, is := range peerVerbs() {
		if slices.Contains(ours, verb) {
			t.Errorf("%s is a command of ours", verb)
		}
		code, out, errs := prints(t, verb)
		if code != console.ExitUsage || out != "" || !strings.Contains(errs, is.use) {
			t.Errorf("%s: exit %d: %s%s", verb, code, out, errs)
		}
		for _, m := range regexp.MustCompile(`inspan( [a-z-]+){0,2}`).FindAllString(is.use, -1) {
			m = strings.TrimSuffix(strings.TrimSuffix(m, " for"), " or") // the sentence goes on
			if wrong := typedRight(strings.TrimSuffix(m, " for what")); wrong != "" && !strings.HasPrefix(wrong, "the") {
				t.Errorf("%s: there is no %s in: %s", verb, wrong, m)
			}
		}
	}
	if code, _, errs := prints(t, "login", "--device-auth"); code != console.ExitUsage || !strings.Contains(errs, "inspan setup") {
		t.Errorf("with a flag of theirs: exit %d: %s", code, errs)
	}
	if code, _, errs := prints(t, "help", "login"); code != console.ExitUsage || !strings.Contains(errs, "inspan setup") {
		t.Errorf("help: exit %d: %s", code, errs)
	}
	for line, want := range map[string]string{
		"login": `For a task of your own: inspan run "login"`, "login|--device-auth": "PROVIDER$", "exec|fix the test": `inspan run "fix the test"$`,
		"exec": `inspan -p "task"$`,
	} {
		_, _, errs := prints(t, strings.Split(line, "|")...)
		if !regexp.MustCompile(want).MatchString(strings.TrimSpace(errs)) || strings.Contains(errs, "inspan: inspan") {
			t.Errorf("%s: wanted %s in %s", line, want, errs)
		}
	}
	for line, want := range map[string]bool{
		"exec|fix the test": true, "exec|--|fix": true, "login|status": true, "hooks": true, "hooks|list": true, "hooks|are|broken": false, "auth|login": true, "login|--device-auth": true, "chat|hello there": true, "modes": true,
		"review this diff": false, "update|the|changelog": false, "review|this|diff": false, "init|everything": false, "hello": false,
		"login|page|is|broken": false,
	} {
		if got := meansPeer(strings.Split(line, "|")) != nil; got != want {
			t.Errorf("%s is a command of others: %v", line, got)
		}
	}
}
