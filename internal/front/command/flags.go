package command

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/view/words"
)

const dollarsType = "dollars"

// dollars is a flag for a finite limit on costs. 0 means no limit, whatever is set elsewhere: for
// [inspan.Agent], that is a negative number.
type dollars float64

// String implements pflag.Value.
func (d *dollars) String() string { return strconv.FormatFloat(max(float64(*d), 0), 'g', -1, 64) }

// Type implements pflag.Value.
func (d *dollars) Type() string { return dollarsType }

// Set implements pflag.Value.
func (d *dollars) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return errors.New("not an amount of money")
	}
	*d = dollars(cmp.Or(v, -1))
	return nil
}

// bounded is a flag for a number between two limits. It rejects NaN and infinity, which pflag's own type
// accepts.
type bounded[N int | float64] struct {
	at          *N
	least, most N
	parse       func(string) (N, error)
}

// String implements pflag.Value.
func (b *bounded[N]) String() string {
	if b.at == nil { // pflag calls it on a zero value
		return ""
	}
	return fmt.Sprint(*b.at)
}

// Type implements pflag.Value.
func (b *bounded[N]) Type() string { return "number" }

// Set implements pflag.Value.
func (b *bounded[N]) Set(s string) error {
	n, err := b.parse(s)
	if err != nil || math.IsNaN(float64(n)) || n < b.least || n > b.most {
		return errors.New("it needs " + b.needs())
	}
	*b.at = n
	return nil
}

// needs describes the allowed values of the flag.
func (b *bounded[N]) needs() string {
	kind, plain := "a whole number", func(n N) string { return strconv.FormatFloat(float64(n), 'f', -1, 64) }
	if _, real := any(b.least).(float64); real {
		kind = "a number"
	}
	return fmt.Sprintf("%s from %s to %s", kind, plain(b.least), plain(b.most))
}

// numberFlag adds a flag for a number with its default and its limits.
func numberFlag(fl *pflag.FlagSet, at *float64, name string, usual, least, most float64, usage string) {
	*at = usual
	parse := func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
	fl.Var(&bounded[float64]{at, least, most, parse}, name, usage)
}

// countFlag adds a flag for a whole number of at least 1.
func countFlag(fl *pflag.FlagSet, at *int, name string, usual, most int, usage string) {
	*at = usual
	fl.Var(&bounded[int]{at, 1, most, strconv.Atoi}, name, usage)
}

// rateFlag adds a flag for a rate or a share strictly between none and all.
func rateFlag(fl *pflag.FlagSet, at *float64, name string, usual float64, usage string) {
	const leastRate = 1e-6
	numberFlag(fl, at, name, usual, leastRate, 1-leastRate, usage)
}

// dayOf returns the day of a flag; zero if it is empty.
func dayOf(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return at, misused("%s: %q is not a day such as 2026-11-21", flag, text)
	}
	return at, nil
}

// wordOf returns the error for a flag that takes one of some words.
func wordOf(flag, word string, list []string) error {
	if slices.Contains(list, word) {
		return nil
	}
	return misused("%s: unknown value %q; use one of %s%s", flag, word, strings.Join(list, ", "), words.DidYouMean(word, list))
}

// flagError rewords an error in the flags, and suggests the flag nearest to an unknown one.
func flagError(cmd *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if want := needs(wrong.GetFlag()); want != "" {
			return misused("--%s needs %s, not %q", wrong.GetFlag().Name, want, wrong.GetValue())
		}
	}
	if empty, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return misused("--%s needs a value; see '%s'", empty.GetFlag().Name, helpOf(cmd))
	}
	missing, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return words.Misuse{Err: err}
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
	if missing.GetSpecifiedName() == "p" && cmd.HasParent() { // inspan -p WORD, where a command has that name
		near = fmt.Sprintf("; for a task of this one word use: inspan run %q", cmd.Name())
	}
	return misused("%w%s; see '%s'", err, near, helpOf(cmd))
}

// elsewhere returns our equivalent of a flag of other agents; empty means none of them has it.
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
		"output-schema": "--json-schema", "w": "--worktree", "config": "--settings", "images": "--image",
	}[flag]
}

// needs describes the values that a flag takes; empty means the error of its value does.
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

// exactly is cobra.RangeArgs with errors in our words. The parameter what names the arguments, as in "an ID".
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

// oneOf makes a command refuse more than one of some flags.
func oneOf(cmd *cobra.Command, flags ...string) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if n := len(slices.DeleteFunc(slices.Clone(flags), func(name string) bool { return !cmd.Flags().Changed(name) })); n > 1 {
			return misused("use only one of --%s", strings.Join(flags, ", --"))
		}
		return run(cmd, args)
	}
}

// everywhere declares the flags of all commands. Environment variables have the same settings, which child
// processes inherit.
func everywhere(root *cobra.Command) {
	var preset, state, settings string
	root.PersistentFlags().StringVar(&preset, "preset", "",
		"`name` of a group of settings; container is for throwaway machines (also INSPAN_PRESET)")
	root.PersistentFlags().StringVar(&settings, "settings", "",
		"`file` (TOML or JSON), or JSON, with settings that come before those of the settings file (also INSPAN_SETTINGS)")
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
		if firstEmpty(root.PersistentFlags(), "settings") != "" {
			return misused("--settings is empty; give it a value, or remove it")
		}
		if _, err := config.ReadGiven("--settings", settings); err != nil {
			return misused("%s", err.Error())
		}
		if settings != "" && !isJSON.MatchString(settings) {
			var err error
			if settings, err = filepath.Abs(settings); err != nil {
				return err
			}
		}
		for name, value := range map[string]string{
			config.PresetVariable: preset, "INSPAN_STATE_DIR": state, config.SettingsVariable: settings,
		} {
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

// misused returns an error for a wrongly typed command.
func misused(format string, args ...any) error { return words.Misuse{Err: fmt.Errorf(format, args...)} }
