// Package sensitive knows what in a workspace is sensitive, and takes away what appears there and must not.
//
// workspace_linux.go has the [Workspace], scan_linux.go finds sensitive places by their names, gitdirs_linux.go and
// repository_linux.go know git, closed_linux.go says what a command can't change, and appeared_linux.go compares with
// what was there before the command.
package sensitive
