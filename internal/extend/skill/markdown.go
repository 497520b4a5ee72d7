package skill

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

// MaxText bounds the file of a command or of a kind of agent, in bytes.
const MaxText = 100 << 10

// markdown finds and reads single files of one kind.
type markdown[T any] struct {
	files string // their plural: "commands"
	most  int    // of one folder
	depth int    // nested folders, including the first
	parse func(file, source string, data []byte) (T, error)
	name  func(T) string
}

// find reads the files of folders in order.
func (m markdown[T]) find(s *shelf, folders []Folder) (out []T) {
	for _, f := range folders {
		if f.Path != "" {
			out = append(out, m.look(s, f)...)
		}
	}
	return out
}

// look reads the files of one folder.
func (m markdown[T]) look(s *shelf, f Folder) (out []T) {
	files, dir, end, err := (&place{Folder: f}).open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var names []string
	var more bool
	if err == nil {
		defer end()
		names, more, err = m.names(files)
	}
	if err != nil {
		s.warn("%s in %s can't be read: %v", m.files, f.Path, keep.Bare(err))
	}
	if more {
		s.warn("%s has more than %d files of %s; inspan ignores the rest", f.Path, m.most, m.files)
	}
	for _, name := range names {
		at := filepath.Join(dir, filepath.FromSlash(name))
		data, info, err := readAll(files, name, MaxText)
		var one T
		if err == nil {
			one, err = m.parse(name, f.Source, data)
		}
		if err != nil {
			s.warn("%s is not a usable %s: %v", at, s.kind, keep.Bare(err))
		} else if s.put(m.name(one), spot{at, info}) {
			out = append(out, one)
		}
	}
	return out
}

// names lists the markdown files of a folder, as many as are read.
func (m markdown[T]) names(files fs.FS) (names []string, more bool, err error) {
	all, more, err := walk(files, m.depth, maxEntries)
	for _, l := range all {
		if strings.HasSuffix(l.path, ".md") {
			names = append(names, l.path)
		}
	}
	more = more || len(names) > m.most
	return names[:min(len(names), m.most)], more, err
}

// read splits the file of a command or a kind of agent. Wrong front matter is a problem, but the readable part of
// it still counts.
func read(data []byte) (head map[string]any, body string, problem, err error) {
	if err := fits(data, MaxText); err != nil {
		return nil, "", nil, err
	}
	matter, body, err := SplitMatter(data)
	if err != nil {
		return nil, "", nil, err
	}
	problem = DecodeMatter(matter, &head)
	return head, strings.TrimSpace(text.Clean(body)), problem, nil
}

// mostDescription is how many characters of a description the standard of skills allows.
const mostDescription = 1024

// described returns the description from the settings, or else the first line of the text.
func described(given any, body string) string {
	if given := line(given); given != "" {
		return given
	}
	first, _, _ := strings.Cut(strings.TrimSpace(body), "\n")
	return line(strings.TrimLeft(first, "# "))
}

// line returns a value as one line without invisible characters.
func line(v any) string {
	s := Line(v)
	if !text.Holds(s, text.Hidden) {
		return s
	}
	return Line(words.Result(s))
}

// lines returns the non-empty texts of a list, or of a text with commas.
func lines(v any) (out []string) {
	for _, s := range List(v) {
		if s = line(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
