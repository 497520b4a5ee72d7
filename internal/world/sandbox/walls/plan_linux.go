package walls

import (
	"os"
	"slices"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/tool"
)

// Plan describes a box. Paths are absolute and resolved.
type Plan struct {
	Level     tool.Level
	Root      string  // the workspace
	Read      []Grant // readable places
	Write     []string
	Cache     string // folder mounted at CacheDir, writable; empty means none
	GoCache   string // the person's Go build cache, read below the one in Cache; empty means none
	Temp      string // folder for temporary files to create and remove; BoxRead only
	Isolated  bool   // it has its own file system and namespaces, in the network of its session
	Tmp       string // the session's folder for temporary files; empty means none
	AllTmp    bool   // the command sees all of Tmp, so its variables name it; BoxRead only
	Throwaway string // folder for changes of the workspace, which are discarded; empty means they are kept
	Copies    []Copy // git directories that are copied on write
	View      View   // BoxWorkspace only
	Limits    Limits
	ABI       int // highest version of Landlock to use; 0 means any; below 0: none
}

// Grant opens a file, or a folder with everything below it except the holes.
type Grant struct {
	Path  string
	Holes []string `json:",omitempty"`
}

// View is the part of the file system that a workspace box sees in addition to the grants of the plan.
type View struct {
	Frozen []string         // read-only places in the workspace
	Pinned []string         // folders in the workspace that can't be renamed
	Before []paths.Identity // initial sensitive places in the workspace
	Passwd string           // content of /etc/passwd, empty for that of the machine
	Group  string
}

// Copy is an overlay over a git directory.
type Copy struct {
	Path string // the git directory
	Dir  string // contains the changes
}

// Copied reports whether a place is in a git directory that the box has a copy of.
func (p Plan) Copied(path string) bool {
	return slices.ContainsFunc(p.Copies, func(c Copy) bool { return text.Inside(c.Path, path) })
}

// Overlays reports whether the box has overlays.
func (p Plan) Overlays() bool { return p.Throwaway != "" || len(p.Copies) > 0 }

// OwnTemp is the private folder for temporary files of a read box with mounts.
const OwnTemp = "/run/tmp"

// TempVars returns the variables that name the folder for temporary files. A read box can't write the
// session's, so it has its own, unless its command sees all of the session's.
func (p Plan) TempVars(own string) []string {
	dir := "/tmp"
	if p.Level == tool.BoxRead && (p.Tmp != "" || p.Isolated) && !p.AllTmp {
		dir = own
	}
	return []string{"TMPDIR=" + dir, "TMP=" + dir, "TEMP=" + dir}
}

// TempFolders lists the folders that replace those of the machine, with their names in the session's folder.
func TempFolders() [][2]string { return [][2]string{{"/tmp", "tmp"}, {"/var/tmp", "var"}} }

// CacheDir is where a workspace box sees its caches. Their real place may be below a closed one.
const CacheDir = "/var/cache/inspan"

// GoCacheProgram is the path and name, in a box, of the program that serves Go's build cache.
const GoCacheProgram = "/run/inspan-gocache"

// GoCacheVars returns the variable that makes the go command use both layers, if the program is mounted.
func (p Plan) GoCacheVars() []string {
	if p.GoCache == "" {
		return nil
	}
	if info, err := os.Stat(GoCacheProgram); err != nil || !info.Mode().IsRegular() {
		return nil // its file was replaced outside, and can't be mounted any more
	}
	return []string{"GOCACHEPROG=" + GoCacheProgram + " '" + p.GoCache + "'"}
}

// GoBuilds is the cache folder of Go's build results.
const GoBuilds = "go-build"
