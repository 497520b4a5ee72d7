package keep

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// Installed returns the folders of a program given by paths, or found in the PATH of a home: the projects of its
// files, or otherwise their folders. The sandbox would hide them, because they may be anywhere below the person's
// home.
func Installed(command []string) []string {
	var out []string
	add := func(path string) {
		for _, dir := range append([]string{path}, interpreters(path)...) {
			if dir != "" && !slices.Contains(out, dir) {
				out = append(out, dir)
			}
		}
	}
	for i, word := range command {
		if i == 0 && !strings.ContainsRune(word, filepath.Separator) {
			word = cmp.Or(inHome(word), word)
		}
		if flag, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(flag, "--") && filepath.IsAbs(value) {
			word = value
			add(named(flag, word))
		} else if i > 0 {
			add(named(command[i-1], word))
		}
		for _, path := range homes(word) {
			add(path)
		}
	}
	return out
}

// inHome returns the path of a program in one of the person's folders; empty means it is found in a system folder
// first, or not at all.
func inHome(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if at := filepath.Join(dir, name); regular(at) {
			if below(dir) {
				return at
			}
			return ""
		}
	}
	return ""
}

// named returns the folder that an option of a launcher names as its project.
func named(option, word string) string {
	options := []string{"--directory", "--project", "--prefix", "--cwd", "--dir", "-C"}
	if slices.Contains(options, option) && filepath.IsAbs(word) && project(filepath.Clean(word)) == filepath.Clean(word) {
		return filepath.Clean(word)
	}
	return "" // data, which the person must open
}

// homes lists the folders of a file: its own, and that of its link target.
func homes(word string) []string {
	if !filepath.IsAbs(word) {
		return nil
	}
	path := filepath.Clean(word)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	out := []string{around(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		out = append(out, around(real))
	}
	return out
}

// interpreters returns the folders of the Python that a virtual environment wraps: that of the folder, or of a
// project's.
func interpreters(dir string) []string {
	var out []string
	for _, env := range []string{dir, filepath.Join(dir, ".venv"), filepath.Join(dir, "venv")} {
		real, err := filepath.EvalSymlinks(filepath.Join(env, "bin", "python"))
		if err != nil || dir == "" || !regular(filepath.Join(env, "pyvenv.cfg")) {
			continue
		}
		if prefix := filepath.Dir(filepath.Dir(real)); prefix != "/" && prefix != Home() {
			out = append(out, prefix)
		}
	}
	return out
}

// around returns the folder that a file needs to run: its modules, its project, or its own folder.
func around(path string) string {
	if before, _, ok := strings.Cut(filepath.ToSlash(path), "/node_modules/"); ok {
		return filepath.Join(filepath.FromSlash(before), "node_modules")
	}
	if dir := project(filepath.Dir(path)); dir != "" {
		return dir
	}
	if dir := filepath.Dir(path); dir != Home() && dir != filepath.Dir(dir) {
		return dir
	}
	return path
}

// project returns the nearest folder, at or above one, that is a project or an environment; empty means none.
func project(dir string) string {
	for ; narrow(dir); dir = filepath.Dir(dir) {
		for _, name := range []string{"package.json", "pyproject.toml", "pyvenv.cfg"} {
			if !regular(filepath.Join(dir, name)) {
				continue
			}
			if up := filepath.Dir(dir); name == "pyvenv.cfg" && narrow(up) && regular(filepath.Join(up, "pyproject.toml")) {
				return up // its code may be there
			}
			return dir
		}
	}
	return ""
}

// narrow reports whether a folder is not the root or directly below it, such as /tmp, and doesn't contain the
// person's home.
func narrow(dir string) bool {
	parent := filepath.Dir(dir)
	return dir != parent && parent != filepath.Dir(parent) && !text.Inside(dir, Home())
}

// below reports whether a folder is below the person's home, and not the home itself.
func below(dir string) bool {
	home := Home()
	return dir != home && text.Inside(home, dir)
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
