package connect

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/config"
)

// Foreign is a server from a settings file of another program.
type Foreign struct {
	Name, Path string
	Server     config.MCPServer
	Project    bool // the other program has it in the workspace only
	Had        bool // the person has the same program or address under this name
}

// Missing returns the variables that the server needs and that are not set here.
func (f Foreign) Missing() []string {
	var missing []string
	for _, name := range configured(config.MCP{Servers: map[string]config.MCPServer{f.Name: f.Server}})[0].Variables() {
		if os.Getenv(name) == "" {
			missing = append(missing, name)
		}
	}
	return missing
}

// Foreign reads servers from the named files of other programs, or from all existing ones. The first of two servers
// with the same name counts, of the person and of the workspace. It leaves out a server if the person has another
// one of its name.
func (h *Hubs) Foreign(paths []string, root string, warn func(string)) ([]Foreign, error) {
	settings, _ := os.UserConfigDir() // without one, no file exists there
	files := foreignFiles(root, keep.Home(), settings)
	if len(paths) > 0 {
		files = nil
	}
	for _, path := range paths {
		at, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		files = append(files, foreignFilesAt(at, root)...)
	}
	var out []Foreign
	for _, f := range files {
		servers, warnings, err := f.all()
		switch {
		case err != nil && len(paths) > 0:
			return nil, err
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			warn(err.Error())
		}
		for _, text := range warnings {
			warn(text)
		}
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			own, taken := h.Config.MCP.Servers[name]
			had := taken && own.URL == servers[name].URL && slices.Equal(own.Command, servers[name].Command)
			if taken && !had || slices.ContainsFunc(out, func(b Foreign) bool { return b.Name == name && b.Project == f.project }) {
				warn(fmt.Sprintf("%s: an MCP server %s already exists; this one is ignored", f.path, name))
				continue
			}
			out = append(out, Foreign{name, f.path, servers[name], f.project, had})
		}
	}
	return out, nil
}
