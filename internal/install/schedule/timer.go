package schedule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/world/sandbox"
)

// Names of the systemd units.
const (
	unitName  = "inspan-schedule"
	timerUnit = unitName + ".timer"
)

// Timer is the system timer that runs a program every minute to check schedules.
type Timer struct {
	Command []string // the program's path, and arguments before the name of its command
	Folder  string   // of the user's units
}

// NewTimer returns the timer of this user for a program with flags.
func NewTimer(command ...string) Timer {
	folder := os.Getenv("XDG_CONFIG_HOME")
	if folder == "" {
		folder = filepath.Join(keep.Home(), ".config")
	}
	return Timer{command, filepath.Join(folder, "systemd", "user")}
}

// Units returns the unit files by name. Runs outlive the service that starts them. Variables in the file
// schedule.env in the settings folder, such as keys, are added to their environment.
func (t Timer) Units(settings string) map[string]string {
	var command string
	for _, word := range t.Command {
		command += `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`).Replace(word) + `" `
	}
	env := strings.NewReplacer(`%`, `%%`).Replace(filepath.Join(settings, "schedule.env"))
	return map[string]string{
		unitName + ".service": "[Unit]\nDescription=Begin the runs of inspan that are due\n\n[Service]\nType=oneshot\n" +
			"ExecStart=" + command + "schedule due\nKillMode=process\nEnvironmentFile=-" + env + "\n",
		timerUnit: "[Unit]\nDescription=Look for runs of inspan that are due\n\n[Timer]\nOnCalendar=*-*-* *:*:00\n" +
			"AccuracySec=1s\nPersistent=false\n\n[Install]\nWantedBy=timers.target\n",
	}
}

// Crontab returns an equivalent crontab line for machines without systemd.
func (t Timer) Crontab() string {
	line := "* * * * * "
	for _, word := range t.Command {
		line += "'" + strings.NewReplacer(`'`, `'\''`, `%`, `\%`).Replace(word) + "' "
	}
	return line + "schedule due"
}

// ErrNoSystemd says that the user's systemd does not respond.
var ErrNoSystemd = errors.New("systemd does not answer for this user")

// Install writes the units and starts the timer. If systemd does not respond, the error wraps ErrNoSystemd and
// nothing was changed.
func (t Timer) Install(ctx context.Context, settings string) error {
	if err := systemctl(ctx, "show-environment"); err != nil {
		return fmt.Errorf("%w: %w", ErrNoSystemd, err)
	}
	if err := os.MkdirAll(t.Folder, 0o755); err != nil {
		return err
	}
	for name, text := range t.Units(settings) {
		if err := keep.Write(filepath.Join(t.Folder, name), []byte(text)); err != nil {
			return err
		}
	}
	return errors.Join(systemctl(ctx, "daemon-reload"), systemctl(ctx, "enable", "--now", timerUnit))
}

// Uninstall stops the timer and removes the units. It reports whether any existed.
func (t Timer) Uninstall(ctx context.Context) (some bool, err error) {
	if _, err := os.Stat(filepath.Join(t.Folder, timerUnit)); err != nil {
		return false, nil //nolint:nilerr // not installed
	}
	err = systemctl(ctx, "disable", "--now", timerUnit)
	for name := range t.Units("") {
		err = errors.Join(err, keep.Remove(filepath.Join(t.Folder, name)))
	}
	return true, errors.Join(err, systemctl(ctx, "daemon-reload"))
}

func systemctl(ctx context.Context, args ...string) error {
	args = append([]string{"systemctl", "--user"}, args...)
	printed, complaints, code, err := sandbox.Capture(ctx, os.Environ(), args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("%s: %s", strings.Join(args, " "), strings.TrimSpace(complaints+string(printed)))
	}
	return err
}
