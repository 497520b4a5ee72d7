// Package gitcopies takes over what a command has left in its copy of a git directory.
//
// A box that may write a git directory writes a copy of it: an overlay stands in its place, and what differs lies in a
// folder that no box sees. When the command has ended, what is on the list of package gitfiles is taken over, as data,
// and nothing else. So no git directory that anything outside of the box reads is ever one that a box can write. See
// docs/decisions/060. copy_linux.go has the [Copy], transfer_linux.go one taking over.
package gitcopies
