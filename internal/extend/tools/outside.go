package tools

import (
	"context"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// closedPath finds the path in an error message of a program that could not open it.
const (
	closedLine = `(?m)^.*(?:No such file or directory|Permission denied|Read-only file system|cannot find|does not exist|not found|ENOENT|EACCES|EROFS|os error (?:2|13|30)).*$`
	closedPath = `(?:^|[\s'"=:(])(/[\w.@%+,~-]+(?:/[\w.@%+,~-]+)*)`
)

const mostClosed = 4 // listed folders

// outside lists folders of the machine beyond the workspace that a command failed to reach because its sandbox
// closes them: each exists, and the command has printed that it could not open something in it.
func (j *job) outside(ctx context.Context, c *tool.Call, home string) (folders []string) {
	if j.box.Throwaway || j.box.Level == tool.BoxNone || j.box.Level == tool.BoxDefault || j.end.code == 0 {
		return nil
	}
	text, _ := j.all()
	machine := c.Env.Unwalled()
	for _, line := range regexp.MustCompile(closedLine).FindAllString(text, -1) {
		for _, m := range regexp.MustCompile(closedPath).FindAllStringSubmatch(line, -1) {
			dir := folderOf(ctx, machine, filepath.Clean(m[1]))
			if dir != "" && !slices.Contains(folders, dir) && len(folders) < mostClosed && !j.open(c, dir, home) {
				folders = append(folders, dir)
			}
		}
	}
	return folders
}

// folderOf returns a path that is a folder of the machine, or the folder of the path; empty means there is none.
func folderOf(ctx context.Context, env tool.Env, path string) string {
	for range 2 {
		f, err := env.Files.Open(ctx, path)
		if err == nil {
			_, is := f.(fs.ReadDirFile)
			if info, err := f.Stat(); err == nil && is && info.IsDir() {
				_ = f.Close()
				return path
			}
			_ = f.Close()
		}
		path = filepath.Dir(path)
	}
	return ""
}

// open reports whether --add-dir would not open a folder to the command: it is open already, belongs to the
// system, or is too much.
func (j *job) open(c *tool.Call, dir, home string) bool {
	inside := func(top string) bool { return text.Inside(top, dir) }
	return inside(c.Env.Root) || slices.ContainsFunc(c.Env.Folders, inside) || slices.ContainsFunc(j.box.Write, inside) ||
		slices.Contains([]string{"/", "/tmp", "/var/tmp", "/run"}, dir) || home != "" && text.Inside(dir, home) || c.Env.IsTemporary(dir, false) ||
		places.Map{}.Of(dir).Zone == places.System
}

// closedTo says how to open such a folder, for models and people.
func closedTo(dir string) string {
	return "the sandbox closed " + text.ShellWord(dir) + ", which is outside the workspace; --add-dir " + text.ShellWord(dir) +
		" opens it to a session, and --preset container all of a throwaway machine"
}

// ways returns the flags that open what the sandbox closed to a command.
func (j *job) ways(folders []string) (flags []string) {
	for _, line := range j.blocked() {
		if _, flag, ok := strings.Cut(line, "allow with "); ok {
			flag, _, _ = strings.Cut(flag, " or ")
			flags = append(flags, flag)
		}
	}
	for _, dir := range folders {
		flags = append(flags, "--add-dir "+text.ShellWord(dir))
	}
	return flags
}
