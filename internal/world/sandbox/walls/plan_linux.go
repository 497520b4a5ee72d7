package walls

import (
	"os"
	"slices"

	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/tool"
)

// Plan is the walls of a box on paper. Paths are absolute and resolved.
type Plan struct {
	Level     tool.Level
	Root      string  // the workspace
	Read      []Grant // what may be read
	Write     []string
	Cache     string // a folder that stands at CacheDir, to be written; empty: none
	GoCache   string // the person's build cache of Go, to be read below the one in Cache; empty: none
	Temp      string // a folder to make for temporary files and to remove again; BoxRead only
	Isolated  bool   // it has a file system and namespaces of its own, in the network of its session
	Tmp       string // the session's folder for temporary files; empty: there is none
	AllTmp    bool   // the command is to see all of Tmp, so its variables name it; BoxRead only
	Throwaway string // a folder for what is written in the workspace, which is not to stay; empty: it stays
	Copies    []Copy // git directories that are copied when they are written
	View      View   // BoxWorkspace only
	Limits    Limits
	ABI       int // highest version of Landlock to use; 0: any; below 0: none
}

// Grant opens a file, or a folder with all below it but the holes.
type Grant struct {
	Path  string
	Holes []string `json:",omitempty"`
}

// View is what a workspace box sees of the file system besides the grants of
// the plan.
type View struct {
	Frozen []string         // in the workspace, not to be changed
	Pinned []string         // folders in the workspace that can't be renamed
	Before []paths.Identity // sensitive places in the workspace, as they were
	Passwd string           // content of /etc/passwd, empty for the one of the machine
	Group  string
}

// Copy is an overlay over a git directory.
type Copy struct {
	Path string // of the git directory
	Dir  string // holds what differs
}

// Copied reports whether a place lies in a git directory of which the box has a copy.
func (p Plan) Copied(path string) bool {
	return slices.ContainsFunc(p.Copies, func(c Copy) bool { return tool.Inside(c.Path, path) })
}

// Overlays reports whether the box has overlays.
func (p Plan) Overlays() bool { return p.Throwaway != "" || len(p.Copies) > 0 }

// OwnTemp is where a read box that is made of mounts has temporary files of its
// own.
const OwnTemp = "/run/tmp"

// TempVars is the variables that say where temporary files go. A read box can't write
// the session's, so it has a folder of its own unless its command is to see all of the session's.
func (p Plan) TempVars(own string) []string {
	dir := "/tmp"
	if p.Level == tool.BoxRead && (p.Tmp != "" || p.Isolated) && !p.AllTmp {
		dir = own
	}
	return []string{"TMPDIR=" + dir, "TMP=" + dir, "TEMP=" + dir}
}

// TempFolders lists what is seen in place of the machine's, and the names of
// those folders in ours.
func TempFolders() [][2]string { return [][2]string{{"/tmp", "tmp"}, {"/var/tmp", "var"}} }

// CacheDir is where a workspace box sees its caches. Their true place may lie
// below one that is closed.
const CacheDir = "/var/cache/inspan"

// GoCacheProgram is where a box sees the program that serves Go's build cache, and its name.
const GoCacheProgram = "/run/inspan-gocache"

// GoCacheVars is the variable that leads the go command to both layers, if the program stands.
func (p Plan) GoCacheVars() []string {
	if p.GoCache == "" {
		return nil
	}
	if info, err := os.Stat(GoCacheProgram); err != nil || !info.Mode().IsRegular() {
		return nil // its file has been replaced outside, and can't be mounted any more
	}
	return []string{"GOCACHEPROG=" + GoCacheProgram + " '" + p.GoCache + "'"}
}

// GoBuilds is the folder among them where Go keeps what it has compiled.
const GoBuilds = "go-build"
