package lsp

import (
	"context"
	"path/filepath"

	"github.com/inspan/inspan/tool"
)

// programs are the folders of a project in which package managers put programs.
func programs() []string {
	return []string{
		filepath.Join("node_modules", ".bin"), filepath.Join(".venv", "bin"),
		filepath.Join("venv", "bin"), filepath.Join("vendor", "bin"),
	}
}

// local is a server that the project brings with it, in the nearest folder of programs from
// its root up to the workspace; ok is false if there is none. It comes with the repository,
// so it goes after the one in PATH, has a name and a command that say where it is, for
// whoever is asked, and runs in the same walls as all servers.
func (m *Manager) local(ctx context.Context, s Server, root string) (_ Server, ok bool) {
	if filepath.Base(s.Command[0]) != s.Command[0] { // it is named by its path
		return s, false
	}
	for dir := root; tool.Inside(m.Env.Root, dir); dir = filepath.Dir(dir) {
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
