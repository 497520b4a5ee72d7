package setup

import (
	"go/build"
	"os"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/internal/base/keep"
)

// HowToUpdate returns the steps for a person to replace the program at a path with a newer release, by the way in
// which it was installed.
func HowToUpdate(program string) string {
	dir := filepath.Dir(keep.Real(program))
	switch {
	case slices.Contains(goBins(), dir):
		return "run: go install github.com/inspan/inspan/cmd/inspan@latest"
	case dir == "/usr/bin" && exists("/var/lib/dpkg/info/inspan.list"):
		return "install the newer deb package: sudo dpkg -i FILE"
	case dir == "/usr/bin":
		return "install the newer rpm package: sudo rpm -U FILE"
	case exists("/.dockerenv") || exists("/run/.containerenv"):
		return "build or pull the newer image, and start the container from it"
	}
	return "put the newer archive's binary into " + dir + ", for example with: scripts/install --dir " + dir
}

// goBins returns the folders into which go installs programs.
func goBins() []string {
	bins := []string{keep.AtHome("go", "bin")}
	if bin := os.Getenv("GOBIN"); bin != "" {
		bins = append(bins, bin)
	}
	for _, path := range filepath.SplitList(build.Default.GOPATH) {
		bins = append(bins, filepath.Join(path, "bin"))
	}
	for i := range bins {
		bins[i] = keep.Real(bins[i])
	}
	return bins
}
