package app

import (
	"github.com/inspan/inspan/internal/delegate/subagent"
	"github.com/inspan/inspan/internal/install/equipment"
)

// Program is a workflow that a new session runs instead of a model.
type Program = equipment.Program

// Workflows returns the workflows that can be run in a folder.
func Workflows(a *App, root, trust string) equipment.Workflows {
	return equipment.Workflows{Set: a.Extensions, Root: root, Sum: trust, Model: func(name string) error {
		if name = a.childModel(subagent.Order{Model: name}); name == "" {
			return nil // the run has its own
		}
		return a.Providers.Resolves(name)
	}}
}
