package setup

import (
	"context"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/world/sandbox"
)

// Sandbox tries to escape the sandbox in several ways, and checks that the same actions work outside of it.
// Self is as in [app.App].
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
	return append(out, findings(a.Permission.TrySandbox(ctx),
		"until this is fixed, more commands will ask; commands run without this barrier only after you approve them")...)
}

// Children starts processes in each way that sessions do, and checks that none of their output is lost. Self is
// as in [app.App].
func Children(ctx context.Context, self string) []Finding {
	a, err := app.Load(self)
	if err != nil {
		return unloaded(err)
	}
	return findings(a.Permission.TryChildren(ctx), "commands of sessions would lose output here; read 'inspan doctor sandbox'")
}

// findings converts checks of the system to findings.
func findings(checks []sandbox.Check, remedy string) (out []Finding) {
	for _, c := range checks {
		f := Finding{Check: c.Name, State: Good, Found: c.Text}
		if !c.OK {
			f.State, f.Remedy = Bad, remedy
		}
		out = append(out, f)
	}
	return out
}
