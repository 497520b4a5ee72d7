package custom

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
)

const maxEntries = 200 // of a folder of programs

// program is an executable in a folder.
type program struct {
	folder Folder // Dir is resolved
	entry  string // name of its file or folder
	path   string // of the entry, absolute
	file   string // the started file: path, or a file in it
	digest string // of the whole entry
}

// key identifies the program and its content.
func (p program) key() string { return p.path + "\x00" + p.digest }

// look finds the programs of a folder: executable files, and folders with an executable of their own name or
// else one called run. Names that begin with _ or . are left out.
func (p *pass) look(f Folder) []program {
	abs, err := filepath.Abs(f.Dir)
	if err == nil && f.Dir != "" {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if f.Dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		p.warn(f.Dir, fmt.Sprintf("tools in %s can't be read: %v", f.Dir, err))
		return nil
	}
	if !hasPrograms() {
		p.warn(f.Dir, fmt.Sprintf("tools in %s are ignored: Windows has no executable bit; run inspan inside WSL",
			f.Dir))
		return nil
	}
	f.Dir = abs
	root, err := keep.OpenFolder(abs)
	if err != nil {
		p.warn(f.Dir, fmt.Sprintf("tools in %s can't be read: %v", f.Dir, err))
		return nil
	}
	defer func() { _ = root.Close() }()
	names, err := list(root, ".", maxEntries)
	if err != nil {
		p.warn(f.Dir, fmt.Sprintf("tools in %s can't be read: %v", f.Dir, err))
		return nil
	}
	var out []program
	for _, name := range names {
		prog := program{folder: f, entry: name, path: filepath.Join(f.Dir, name)}
		if p.fill(root, &prog) {
			out = append(out, prog)
		}
	}
	return out
}

// fill completes a program. It reports whether there is one that may run.
func (p *pass) fill(root *os.Root, prog *program) bool {
	if strings.HasPrefix(prog.entry, "_") || strings.HasPrefix(prog.entry, ".") {
		return false
	}
	inside, err := start(root, prog.entry)
	if inside == "" && err == nil {
		return false
	}
	if err == nil {
		prog.file = filepath.Join(prog.folder.Dir, filepath.FromSlash(inside))
		prog.digest, err = digest(root, prog.entry)
	}
	if err != nil {
		p.warn(prog.path, "tool "+prog.path+" "+err.Error())
		return false
	}
	if trusted := prog.folder.Trusted; trusted != nil && !trusted(prog.path, prog.digest) {
		p.warn(prog.key(), "tool "+prog.path+" is not trusted with its current content: review it, then "+
			cmp.Or(prog.folder.Remedy, "trust it with 'inspan trust'"))
		return false
	}
	return true
}

// start returns the path of the file that an entry starts; empty if it is not a program. Errors continue the
// name of the entry.
func start(root *os.Root, entry string) (string, error) {
	info, err := root.Lstat(entry)
	if err != nil {
		return "", fmt.Errorf("can't be looked at: %w", keep.Bare(err))
	}
	if !info.IsDir() {
		return executable(root, entry)
	}
	for _, name := range []string{entry, "run"} {
		found, err := executable(root, path.Join(entry, name))
		if found != "" || err != nil {
			return found, err
		}
	}
	return "", nil
}

// executable returns the path if there is a program. A link counts as its target, which must be a file in the
// same folder of programs.
func executable(root *os.Root, at string) (string, error) {
	link, err := root.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("can't be looked at: %w", keep.Bare(err))
	}
	info, err := root.Stat(at)
	linked := link.Mode()&fs.ModeSymlink != 0
	switch {
	case err != nil && linked:
		return "", errors.New("is a link that leads out of its folder, or nowhere: put the program itself there")
	case err != nil:
		return "", fmt.Errorf("can't be looked at: %w", keep.Bare(err))
	case info.IsDir() && linked:
		return "", errors.New("is a link to a folder: put the folder itself there")
	case !info.Mode().IsRegular():
		return "", nil
	case info.Mode()&0o111 == 0 && script(root, at):
		return "", errors.New("begins with #! but is not executable: chmod +x makes it a tool")
	case info.Mode()&0o111 == 0:
		return "", nil
	}
	return at, nil
}

// script reports whether a file begins with #!.
func script(root *os.Root, at string) bool {
	f, err := keep.OpenFile(root, at)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [2]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && string(head[:]) == "#!"
}

// list returns the names in a folder, sorted.
func list(root *os.Root, at string, most int) ([]string, error) {
	f, err := keep.OpenFile(root, at)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(most + 1)
	if len(names) > most {
		return nil, fmt.Errorf("%s has more than %d files and folders", at, most)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}
