package eval

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
)

// File is a file next to the settings of trials, such as AGENTS.md.
type File struct {
	Path    string // below the folder of the settings, with slashes
	Content []byte
	Program bool
}

// mostBeside limits the bytes of all files next to the settings.
const mostBeside = 16 << 20

// Beside reads the files of a folder of settings that sessions read there, apart from config.toml: instructions,
// skills, kinds of agents, commands, styles, tools, workflows and prices.
func Beside(dir string) (list []File, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	size := 0
	for _, name := range []string{"AGENTS.md", "agents", "commands", "output-styles", "prices.toml", "skills", "tools", "workflows"} {
		err := fs.WalkDir(root.FS(), name, func(path string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist) && path == name:
				return nil
			case err != nil || e.IsDir():
				return err
			case !e.Type().IsRegular():
				return fmt.Errorf("%s is neither a file nor a folder; give the folder a copy of what it stands for", filepath.Join(dir, path))
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			content, err := keep.ReadFile(root, path, mostBeside-size)
			if err != nil {
				return fmt.Errorf("%s: %w (all files beside the settings have %d MiB at most)", filepath.Join(dir, path), err, mostBeside>>20)
			}
			size += len(content)
			list = append(list, File{path, content, info.Mode()&0o100 != 0})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// pinned returns the digest of a configuration: of the settings, and of the files next to them.
func pinned(settings []byte, beside []File) string {
	if len(beside) == 0 {
		return keep.SHA256(settings)
	}
	texts := []string{keep.SHA256(settings)}
	for _, f := range beside {
		texts = append(texts, fmt.Sprint(f.Path, f.Program), string(f.Content))
	}
	return textDigest(texts...)
}

// with returns the files with another content of one; without that file if the content is empty.
func with(beside []File, path, content string) []File {
	list := slices.Clone(beside)
	i, had := slices.BinarySearchFunc(list, path, func(f File, path string) int { return strings.Compare(f.Path, path) })
	switch {
	case content == "" && had:
		return slices.Delete(list, i, i+1)
	case content == "":
		return list
	case had:
		list[i].Content = []byte(content)
		return list
	}
	return slices.Insert(list, i, File{Path: path, Content: []byte(content)})
}

// writeBeside writes the files into a folder.
func writeBeside(dir string, list []File) error {
	for _, f := range list {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := keep.MakeDir(filepath.Dir(path)); err != nil {
			return err
		}
		if err := keep.Write(path, f.Content); err != nil {
			return err
		}
		if f.Program {
			if err := os.Chmod(path, 0o700); err != nil {
				return err
			}
		}
	}
	return nil
}
