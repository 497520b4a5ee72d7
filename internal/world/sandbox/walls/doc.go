// Package walls builds the parts of a box around the calling process or thread.
//
// Read plan_linux.go first: a [Plan] describes a box. Its parts are rules_linux.go (Landlock), mounts_linux.go
// and overlay_linux.go (its own file system), seccomp_linux.go (system calls), privileges_linux.go and
// limits_linux.go; expected_linux.go checks containers that an engine has built. macOS has seatbelt.go.
package walls
