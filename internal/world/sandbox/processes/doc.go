// Package processes has what both inspan and its keepers need to follow processes and to end them: the family of a
// keeper (family_linux.go), marks by which descendants are found (marks_linux.go), what tells a process from all others
// (identity_linux.go), and copies of what they print (copier.go).
package processes
