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

// The files of a draft in a folder of programs.
const (
	runFile    = "run"       // what is started; it describes the program by a file, so that no code of the model does
	CodeFile   = "program"   // what the model wrote
	ScriptFile = "script.js" // the same of a script, which is no program
	saysFile   = "declaration.json"
	testsFile  = "tests.json"
	OriginFile = "origin.json" // where it is from; only of one that a person has approved
)

const runText = `#!/bin/sh
if [ "${1-}" = --describe ]; then exec cat "${0%/*}/` + saysFile + `"; fi
exec "${0%/*}/` + CodeFile + `" "$@"
`

func entryFiles() []string {
	return []string{runFile, CodeFile, ScriptFile, saysFile, testsFile, OriginFile}
}

// Installed is a draft as it lies in a folder of programs: the files of an entry, by name.
type Installed struct {
	Name  string
	files map[string][]byte
}

// Install is the draft as it will lie in a folder of programs, with a file that says where it is from if
// there is one. Nothing is written.
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

// Entry is a folder of files with a name.
func Entry(name string, files map[string][]byte) Installed {
	return Installed{Name: name, files: files}
}

// Digest is the one that internal/safety/consent has of the entry once it is written.
func (in Installed) Digest() string {
	sum := keep.Digest{Top: in.Name}
	for _, name := range slices.Sorted(maps.Keys(in.files)) {
		leaf := sum.File(path.Join(in.Name, name))
		_, _ = leaf.Write(in.files[name])
		_ = leaf.Close()
	}
	return sum.Folder()
}

// Files yields the files in the order of their names.
func (in Installed) Files(yield func(name string, content []byte) bool) {
	for _, name := range slices.Sorted(maps.Keys(in.files)) {
		if !yield(name, in.files[name]) {
			return
		}
	}
}

// Write writes the entry into a folder below root, as a whole or not at all, and nowhere else: no link
// leads out. It is an error that wraps [fs.ErrExist] if something else has the name.
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
		return fmt.Errorf("%s is there already: %w", filepath.Join(root, filepath.FromSlash(at)), fs.ErrExist)
	}
	made := path.Join(below, "."+in.Name+"."+rand.Text()) // no tool, as of its name
	if err = dir.Mkdir(made, 0o700); err != nil {
		return err
	}
	for name, content := range in.Files {
		mode := fs.FileMode(0o644)
		if name == runFile || name == CodeFile {
			mode = 0o755
		}
		syscall.ForkLock.RLock() // a process that starts meanwhile would hold it open, and so nobody could run it
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

// Tool is the tool of a draft that lies in a folder that holds nothing else, as Write has left it there.
// Each call runs in the box that the declaration asks for, and only if no byte has changed.
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

// Lying reads an entry that a draft was written to, as it is now. It is an error if anything else lies
// there.
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
			return Installed{}, fmt.Errorf("%s holds %s, which inspan has not put there", filepath.Join(dir, name), file)
		}
		if in.files[file], err = keep.ReadFile(root, file, MaxDraft); err != nil {
			return Installed{}, err
		}
	}
	return in, nil
}

// Origin is what its file says of where it is from; nil: there is none.
func (in Installed) Origin() []byte { return in.files[OriginFile] }

// Draft is the draft that was written, as far as its files tell. It is checked.
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
