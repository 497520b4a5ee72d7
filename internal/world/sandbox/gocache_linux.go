package sandbox

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
)

// The first build in a workspace would compile the standard library, because boxes don't write the person's build
// cache. So they read it: the session's cache is layered over the person's, which is readable in the box anyway.
// The go command accesses both through a program (GOCACHEPROG): this program, mounted at its own place in the box
// and restricted like any command.

// goLayer returns the person's build cache, if a box may read it and env sets no other program.
func (b *boxes) goLayer(cache string, env []string) string {
	if cache == "" || b.engine != nil || slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "GOCACHEPROG=") }) {
		return ""
	}
	dir := os.Getenv("GOCACHE")
	if dir == "" {
		dir = filepath.Join(cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(b.o.Map.Home, ".cache")), walls.GoBuilds)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || !filepath.IsAbs(real) || b.o.Map.Of(real).Zone != places.System || strings.ContainsAny(real, "'\n") {
		return ""
	}
	return real
}

// builtCold is the note about such a build, after "the sandbox".
const builtCold = "built with an empty build cache of Go, as it could read none of yours; later builds in this session are faster"

// builtCold reports whether the command built with an empty cache.
func (k *supervised) builtCold() bool {
	if !k.cold {
		return false
	}
	compiled, err := filepath.Glob(filepath.Join(k.order.Cache, walls.GoBuilds, "*", "*-d"))
	return err == nil && len(compiled) > 0
}
