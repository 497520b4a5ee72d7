// Package files implements [tool.Files] over the real file system.
//
// files.go opens and changes files, guarded.go judges each by its location once it is open, secrets.go checks
// whether a file with the name of a secret contains one, and temp_linux.go has a session's own folders for
// temporary files.
package files
