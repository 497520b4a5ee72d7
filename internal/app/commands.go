package app

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/command"
	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/keep"
)

// maxCommands is how many files of one folder are read.
const maxCommands = 500

// Commands lists the slash commands that are markdown files: those of the
// workspace, of its other agents' folder, and the user's. Of two with one name the
// first counts. Warn is told of files that are none.
func (a *App) Commands(root string, warn func(string)) []command.Command {
	var out []command.Command
	taken := map[string]bool{}
	dir, _ := config.Dir()
	for _, at := range []struct{ path, source string }{
		{filepath.Join(root, ".inspan", "commands"), "project"},
		{filepath.Join(root, ".claude", "commands"), "project"},
		{filepath.Join(dir, "commands"), "user"},
		{atHome(".claude", "commands"), "user"},
	} {
		for _, c := range commandsIn(at.path, at.source, warn) {
			if !taken[c.Name] {
				taken[c.Name] = true
				out = append(out, c)
			}
		}
	}
	plugins, _ := a.enabledPlugins()
	for _, p := range plugins {
		out = append(out, p.Commands...)
	}
	return out
}

// commandsIn reads a folder of commands. Links are not followed.
func commandsIn(dir, source string, warn func(string)) []command.Command {
	var out []command.Command
	root, err := keep.OpenFolder(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) { // mostly there is none
			warn(err.Error())
		}
		return nil
	}
	defer func() { _ = root.Close() }()
	seen := 0
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.HasSuffix(path, ".md") {
			return err
		}
		if seen++; seen > maxCommands {
			return fs.SkipAll
		}
		c, err := commandAt(root, path, source)
		if err != nil {
			warn(filepath.Join(dir, path) + " is no command: " + err.Error())
		} else {
			out = append(out, c)
		}
		return nil
	})
	if err != nil {
		warn(err.Error())
	}
	return out
}

func commandAt(root *os.Root, path, source string) (command.Command, error) {
	f, err := keep.OpenFile(root, path)
	if err != nil {
		return command.Command{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, command.MaxSize+1))
	if err != nil {
		return command.Command{}, err
	}
	return command.Parse(path, source, data)
}
