// Package gitcopies takes over the changes that a command left in its copy of a git directory.
//
// A box that may write a git directory writes a copy of it: an overlay is mounted in its place, whose changes
// go to a folder that no box sees. When the command has ended, files on the list of package gitfiles are taken
// over, as data, and nothing else. So no box ever writes a git directory that a process outside of it reads.
// See docs/decisions/060. copy_linux.go has the [Copy], transfer_linux.go one transfer of changes.
package gitcopies
