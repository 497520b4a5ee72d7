package command

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/view/words"
)

// installation reads the settings. Sessions try the changes that the ledger of 'inspan eval learn' gives them.
func (c *command) installation() (*app.App, error) {
	a, err := app.Load(c.self)
	if err != nil {
		return nil, err
	}
	if given := os.Getenv(config.SettingsVariable); given != "" && !isJSON.MatchString(given) {
		if err := a.Permission.Freeze(given); err != nil { // a session must not give the next one more rights
			return nil, err
		}
	}
	ledger := eval.LedgerIn(a.StateDir)
	a.Canaries = &app.Canaries{Arm: ledger.Arm, Over: func(ctx context.Context, root string) ([]string, error) {
		return ledger.Over(ctx, a.Running.Sessions, root, time.Now())
	}}
	return a, nil
}

// withApp makes the function of a command, which first reads the settings.
func (c *command) withApp(do func(cmd *cobra.Command, a *app.App, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a, err := c.installation()
		if err != nil {
			return err
		}
		return do(cmd, a, args)
	}
}

// inFolder is withApp for a command about a folder, which it finds; nil means the current one.
func (c *command) inFolder(
	cwd *string, do func(cmd *cobra.Command, a *app.App, root string, args []string) error,
) func(*cobra.Command, []string) error {
	return c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
		folder := "."
		if cwd != nil {
			folder = *cwd
		}
		root, err := workspace(folder)
		if err != nil {
			return err
		}
		return do(cmd, a, root, args)
	})
}

// one loads the settings and finds the session that the text means, for a change.
func (c *command) one(ctx context.Context, text string) (*app.App, string, error) {
	a, err := c.installation()
	if err != nil {
		return nil, "", err
	}
	id, err := a.Running.Here(ctx, text)
	return a, id, err
}

// seen is one for reading only.
func (c *command) seen(ctx context.Context, text string) (*app.App, string, error) {
	a, err := c.installation()
	if err != nil {
		return nil, "", err
	}
	id, err := a.Running.Seen(ctx, text)
	return a, id, err
}

// at reads the settings and finds a workspace.
func (c *command) at(folder string) (*app.App, string, error) {
	a, err := c.installation()
	if err != nil {
		return nil, "", err
	}
	root, err := workspace(folder)
	return a, root, err
}

// workspace returns a folder as an absolute path without links.
func workspace(folder string) (string, error) {
	root, err := filepath.Abs(folder)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(root)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", misused("%s does not exist", folder)
	case err != nil:
		return "", words.Misuse{Err: err}
	case !info.IsDir():
		return "", misused("%s is not a folder", folder)
	}
	return root, nil
}

// named returns the session in the arguments; without any, the one used last.
func named(args []string) string {
	if len(args) == 0 {
		return "last"
	}
	return args[0]
}

// sessionOf returns the named session, or the one used last here.
func sessionOf(cmd *cobra.Command, a *app.App, args []string) (string, error) {
	if len(args) > 0 {
		return a.Running.Here(cmd.Context(), args[0])
	}
	return a.Running.LastHere(cmd.Context())
}
