package setup

import (
	"context"

	"github.com/inspan/inspan/internal/app"
)

// Sandbox tries to get through each wall around commands, and holds that the
// same works where there is none. Self is as in [app.App].
func Sandbox(ctx context.Context, self string) []Finding {
	a, err := app.Load(self)
	if err != nil {
		return unloaded(err)
	}
	var out []Finding
	if a.Config.Sandbox.Off {
		out = append(out, Finding{
			Check: "settings", State: Warn, Found: "the sandbox is switched off in " + a.ConfigPath,
			Remedy: "remove off = true from the table sandbox; the checks below show what the sandbox would do",
		})
	}
	for _, c := range a.Permission.TrySandbox(ctx) {
		f := Finding{Check: c.Name, State: Good, Found: c.Text}
		if !c.OK {
			f.State = Bad
			f.Remedy = "until this is fixed, more commands will ask; commands run without this barrier only after you approve them"
		}
		out = append(out, f)
	}
	return out
}
