package setup

import (
	"context"
	"io"

	"github.com/inspan/inspan/internal/install/app"
)

// Notify sends a test notification to each configured place. Terminal shows those for a terminal; nil means none.
// Self is as in [app.App].
func Notify(ctx context.Context, self string, terminal io.Writer) []Finding {
	a, err := app.Load(self)
	if err != nil {
		return unloaded(err)
	}
	a.Notify.At(app.Front{Terminal: terminal})
	if terminal != nil {
		a.Config.Notify = a.Config.Notify.AtTerminal()
	}
	var out []Finding
	for _, tried := range a.Notify.Try(ctx) {
		f := Finding{Check: tried.Place, State: Good, Found: "accepted a test notification"}
		if tried.Err != nil {
			f.State, f.Found, f.Remedy = Bad, tried.Err.Error(), "correct the table notify with 'inspan config edit'"
		}
		out = append(out, f)
	}
	if len(out) == 0 {
		out = append(out, Finding{
			Check: "notify", State: Warn, Found: "notifications go nowhere",
			Remedy: "set to, url or ntfy in the table notify; docs/TERMINAL.md says how",
		})
	}
	return out
}
