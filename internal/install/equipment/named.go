package equipment

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/tool"
)

// ToolNames lists the names of the tools that a session in the folder root can have in addition to built-in
// ones and those of MCP servers: programs of the user, of plugins and of the workspace. Untrusted ones are
// included, by the names of their files. Without a root those of a workspace are left out.
func (s *Set) ToolNames(ctx context.Context, root string) (names []string) {
	dirs := []string{s.ToolsDir()}
	if root != "" {
		dirs = append(dirs, filepath.Join(root, ".inspan", "tools"))
	}
	for _, p := range s.Plugins() {
		for _, f := range p.Tools {
			dirs = append(dirs, f.Dir)
		}
	}
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir) // a missing folder has no entries
		for _, e := range entries {
			if name := e.Name(); !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, ".") {
				names = append(names, name, strings.TrimSuffix(name, filepath.Ext(name)))
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	env, err := s.Env(cmp.Or(root, os.TempDir()))
	if err != nil {
		return names
	}
	defer func() { _ = env.Close() }()
	come := s.Tools(Session{
		Root: env.Root, Env: env, Wrap: func(list []tool.Tool) []tool.Tool { return list }, Warn: func(string) {}, Scripts: true,
	})
	return append(names, namesOf(come(ctx))...)
}
