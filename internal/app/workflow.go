package app

import "github.com/inspan/inspan/internal/equipment"

// Program is a workflow that a new session performs in the place of a model.
type Program = equipment.Program

// Workflows are those that can be run in a folder.
func Workflows(a *App, root, trust string) equipment.Workflows {
	return equipment.Workflows{Set: a.Extensions, Root: root, Sum: trust}
}
