package app

import (
	"github.com/inspan/inspan/internal/delegate/subagent"
	"github.com/inspan/inspan/internal/install/equipment"
)

// Program is a workflow that a new session performs in the place of a model.
type Program = equipment.Program

// Workflows are those that can be run in a folder.
func Workflows(a *App, root, trust string) equipment.Workflows {
	return equipment.Workflows{Set: a.Extensions, Root: root, Sum: trust, Model: func(name string) error {
		if name = a.childModel(subagent.Order{Model: name}); name == "" {
			return nil // that of the run
		}
		return a.Providers.Resolves(name)
	}}
}
