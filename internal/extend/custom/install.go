package custom

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/tool"
)

// Files of a draft in a folder of programs.
const (
	runFile    = "run"       // the started file; it describes the program from a file, so that no code by the model does
	CodeFile   = "program"   // the model's code
	ScriptFile = "script.js" // the model's code if it is a script, which is not a program
	saysFile   = "declaration.json"
	testsFile  = "tests.json"
	OriginFile = "origin.json" // where the draft is from; only for an approved draft
)

const runText = `#!/bin/sh
if [ "${1-}" = --describe ]; then exec cat "${0%/*}/` + saysFile + `"; fi
exec "${0%/*}/` + CodeFile + `" "$@"
`

func entryFiles() []string {
	return []string{runFile, CodeFile, ScriptFile, saysFile, testsFile, OriginFile}
}

// Installed is a draft in the form of an entry in a folder of programs: files by name.
type Installed struct {
	Name  string
	files map[string][]byte
}

// Install returns the draft as it will be in a folder of programs, with a file about its origin if that is
// given. It writes nothing.
func (d Draft) Install(origin []byte) (Installed, error) {
	says, err := d.declaration()
	if err != nil {
		return Installed{}, err
	}
	tests, err := json.MarshalIndent(d.Tests, "", "  ")
	if err != nil {
		return Installed{}, err
	}
	in := Installed{Name: d.Name, files: map[string][]byte{saysFile: append(says, '\n'), testsFile: append(tests, '\n')}}
	if d.Kind == KindScript {
		in.files[ScriptFile] = []byte(d.Code)
	} else {
		in.files[runFile], in.files[CodeFile] = []byte(runText), []byte(d.Code)
	}
	if origin != nil {
		in.files[OriginFile] = origin
	}
	return in, nil
}

// Entry returns a folder of files with a name.
func Entry(name string, files map[string][]byte) Installed {
	return Installed{Name: name, files: files}
}

// Digest returns the digest that internal/safety/consent will have for the written entry.
func (in Installed) Digest() string {
	sum := keep.Digest{Top: in.Name}
	for _, name := range slices.Sorted(maps.Keys(in.files)) {
		leaf := sum.File(path.Join(in.Name, name))
		_, _ = leaf.Write(in.files[name])
		_ = leaf.Close()
	}
	return sum.Folder()
}

// Files yields the files, sorted by name.
func (in Installed) Files(yield func(name string, content []byte) bool) {
	for _, name := range slices.Sorted(maps.Keys(in.files)) {
		if !yield(name, in.files[name]) {
			return
		}
	}
}

// Write writes the entry into a folder below root, as a whole or not at all, and nowhere else: no link leads
// out. The error wraps [fs.ErrExist] if the name is taken.
func (in Installed) Write(root, below string) error {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if below != "." {
		if err := dir.MkdirAll(below, 0o755); err != nil {
			return err
		}
	}
	at := path.Join(below, in.Name)
	if _, err := dir.Lstat(at); err == nil {
		if now, err := digest(dir, at); err == nil && now == in.Digest() {
			return nil
		}
		return fmt.Errorf("%s: %w", filepath.Join(root, filepath.FromSlash(at)), fs.ErrExist)
	}
	made := path.Join(below, "."+in.Name+"."+rand.Text()) // its name makes it no tool
	if err = dir.Mkdir(made, 0o700); err != nil {
		return err
	}
	for name, content := range in.Files {
		mode := fs.FileMode(0o644)
		if name == runFile || name == CodeFile {
			mode = 0o755
		}
		syscall.ForkLock.RLock() // a process that starts meanwhile would hold the file open, and no one could run it
		err = errors.Join(err, dir.WriteFile(path.Join(made, name), content, mode))
		syscall.ForkLock.RUnlock()
	}
	if err = errors.Join(err, dir.Chmod(made, 0o755)); err == nil {
		err = dir.Rename(made, at)
	}
	if err != nil {
		return errors.Join(err, dir.RemoveAll(made))
	}
	return nil
}

// Tool returns the tool of a draft in a folder without other content, as written by Write. Each call runs in
// the box that the declaration asks for, and only if no byte has changed.
func (in Installed) Tool(dir string) (tool.Tool, error) {
	says, err := decode(in.files[saysFile])
	if err != nil {
		return tool.Tool{}, err
	}
	return in.caller(dir, says).tool(), nil
}

func (in Installed) caller(dir string, says declaration) caller {
	at := filepath.Join(dir, in.Name)
	return caller{set: &Set{}, declaration: says, program: program{
		folder: Folder{Dir: dir, Source: "session"}, entry: in.Name, path: at, file: filepath.Join(at, runFile), digest: in.Digest(),
	}}
}

// Lying reads an entry that a draft was written to, in its present state. It fails if there is anything else.
func Lying(dir, name string) (Installed, error) {
	if err := checkName(name); err != nil {
		return Installed{}, err
	}
	root, err := os.OpenRoot(filepath.Join(dir, name))
	if err != nil {
		return Installed{}, err
	}
	defer func() { _ = root.Close() }()
	names, err := list(root, ".", maxFiles)
	if err != nil {
		return Installed{}, err
	}
	in := Installed{Name: name, files: map[string][]byte{}}
	for _, file := range names {
		if !slices.Contains(entryFiles(), file) {
			return Installed{}, fmt.Errorf("%s contains %s, which inspan did not write", filepath.Join(dir, name), file)
		}
		if in.files[file], err = keep.ReadFile(root, file, MaxDraft); err != nil {
			return Installed{}, err
		}
	}
	return in, nil
}

// Origin returns the content of the file about its origin; nil if there is none.
func (in Installed) Origin() []byte { return in.files[OriginFile] }

// Draft returns the draft that was written, as far as its files tell. It is checked.
func (in Installed) Draft() (Draft, error) {
	d := Draft{Kind: KindProgram, Name: in.Name, Code: string(in.files[CodeFile])}
	code, isScript := in.files[ScriptFile]
	switch program := in.files[runFile] != nil || in.files[CodeFile] != nil; {
	case isScript && program:
		return d, errors.New("it is both a program and a script")
	case isScript:
		d.Kind, d.Code = KindScript, string(code)
	case string(in.files[runFile]) != runText:
		return d, fmt.Errorf("its %s is not the one that inspan wrote", runFile)
	}
	err := json.Unmarshal(in.files[saysFile], &struct {
		Description *string          `json:"description"`
		Schema      *json.RawMessage `json:"schema"`
		Effects     *json.RawMessage `json:"effects"`
		Seconds     *int             `json:"timeout_seconds"`
	}{&d.Description, &d.Schema, &d.Effects, &d.Seconds})
	if err = errors.Join(err, json.Unmarshal(in.files[testsFile], &d.Tests)); err != nil {
		return d, err
	}
	if d.Kind == KindScript {
		d.Effects = nil
	}
	return d, d.Check()
}
