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

// The first build in a workspace would compile the standard library, as boxes don't write the
// person's build cache. So they read it: below the cache of the session lies that of the
// person, which the box sees read-only anyway. The go command asks a program of its own for
// both (GOCACHEPROG), which is this one, at a place of its own in the box and behind the same
// walls.

// goLayer is the person's build cache, if a box may read it and has none of another program.
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

// builtCold is what those who ran such a build are told, after "the sandbox".
const builtCold = "built with an empty build cache of Go, as it could read none of yours; later builds in this session are faster"

// builtCold reports whether the command built with an empty cache.
func (k *supervised) builtCold() bool {
	if !k.cold {
		return false
	}
	compiled, err := filepath.Glob(filepath.Join(k.order.Cache, walls.GoBuilds, "*", "*-d"))
	return err == nil && len(compiled) > 0
}
