// Package walls builds what a box is made of, around the process or thread that calls it.
//
// Read plan_linux.go first: a [Plan] is a box on paper. Its parts are rules_linux.go (Landlock), mounts_linux.go and
// overlay_linux.go (a file system of its own), seccomp_linux.go (system calls), privileges_linux.go and
// limits_linux.go; expected_linux.go checks what a container engine has built. macOS has seatbelt.go.
package walls
