// Package processes follows and ends processes, for both inspan and its keepers: the family of a keeper
// (family_linux.go), marks to find descendants (marks_linux.go), unique identities of processes
// (identity_linux.go), and copies of their output (copier.go).
package processes
