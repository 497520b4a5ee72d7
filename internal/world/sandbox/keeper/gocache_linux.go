package keeper

import (
	"fmt"
	"os"

	"github.com/inspan/inspan/internal/world/sandbox/gocache"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
)

// serveGoCache serves the go command, and returns the exit code. If the environment sets another cache, there
// is no lower layer.
func serveGoCache(below string) int {
	l := gocache.Cache{Top: os.Getenv("GOCACHE"), Below: below}
	if l.Top != walls.CacheDir+"/"+walls.GoBuilds {
		l.Below = ""
	}
	if err := l.Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "inspan: serve Go's build cache:", err)
		return 1
	}
	return 0
}
