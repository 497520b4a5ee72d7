package command

import (
	"context"
	"os"
	"time"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/lab/eval"
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
