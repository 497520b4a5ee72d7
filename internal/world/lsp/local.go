package lsp

import (
	"context"
	"path/filepath"

	"github.com/inspan/inspan/internal/base/text"
)

// local returns the project's own copy of a server, in the nearest program folder from its root up to the
// workspace; ok is false if there is none. It comes with the repository, so the one in PATH takes precedence, its
// name and command show its location to the person who is asked, and it runs in the same sandbox as all servers.
func (m *Manager) local(ctx context.Context, s Server, root string) (_ Server, ok bool) {
	if filepath.Base(s.Command[0]) != s.Command[0] { // it is given by its path
		return s, false
	}
	for dir := root; text.Inside(m.Env.Root, dir); dir = filepath.Dir(dir) {
		// Package managers install programs in these folders of a project.
		for _, folder := range []string{"node_modules/.bin", ".venv/bin", "venv/bin", "vendor/bin"} {
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
