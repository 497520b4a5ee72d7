package lsp

import (
	"context"
	"path/filepath"

	"github.com/inspan/inspan/internal/base/text"
)

// programs returns the folders of a project in which package managers install programs.
func programs() []string {
	return []string{
		filepath.Join("node_modules", ".bin"), filepath.Join(".venv", "bin"),
		filepath.Join("venv", "bin"), filepath.Join("vendor", "bin"),
	}
}

// local returns the project's own copy of a server, in the nearest program folder from its root up to the
// workspace; ok is false if there is none. It comes with the repository, so the one in PATH takes precedence, its
// name and command show its location to the person who is asked, and it runs in the same sandbox as all servers.
func (m *Manager) local(ctx context.Context, s Server, root string) (_ Server, ok bool) {
	if filepath.Base(s.Command[0]) != s.Command[0] { // it is given by its path
		return s, false
	}
	for dir := root; text.Inside(m.Env.Root, dir); dir = filepath.Dir(dir) {
		for _, folder := range programs() {
			path := filepath.Join(dir, folder, s.Command[0])
			if m.exists(ctx, path) {
				s = s.clone()
				s.Name += " in " + filepath.ToSlash(folder)
				s.Command[0] = path
				return s, true
			}
		}
		if dir == m.Env.Root {
			break
		}
	}
	return s, false
}
