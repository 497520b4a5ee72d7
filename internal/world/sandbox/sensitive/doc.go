// Package sensitive knows the sensitive places in a workspace, and removes forbidden new ones.
//
// workspace_linux.go has the [Workspace], scan_linux.go finds sensitive places by their names, gitdirs_linux.go
// and repository_linux.go know git, closed_linux.go lists the places that a command can't change, and
// appeared_linux.go compares with the state before the command.
package sensitive
