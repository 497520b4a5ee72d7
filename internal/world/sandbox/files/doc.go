// Package files implements [tool.Files] over the real file system.
//
// files.go opens and changes files, guarded.go judges each by where it lies once it is held open, secrets.go looks
// whether what is named like a secret is one, and temp_linux.go has the folders for temporary files that a session has
// to itself.
package files
