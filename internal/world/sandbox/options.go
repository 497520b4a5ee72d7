package sandbox

import (
	"os"
	"runtime"
	"time"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/files"
	"github.com/inspan/inspan/tool"
)

// Options configure the sandbox and the supervision of processes. With the zero value processes start directly
// and may do anything that the user may.
type Options struct {
	// Self is the path of a program that calls [Keeper] first in main; on Linux "/proc/self/exe" is right for the
	// running one. Empty means no keepers and no boxes.
	Self string
	// Map says which places are secret or never written. Local fills in Root. The zero Map guards nothing.
	Map places.Map
	// Shown lists further folders of the person that every box may read, such as those of skills, whose scripts
	// run there. Secrets in them stay closed.
	Shown []string
	// State is the folder for caches of boxes and for files that were removed from workspaces. Empty means boxes
	// get no caches, and removed files are renamed in place.
	State string
	// Default is the level of commands that request none; empty means [tool.BoxNone].
	Default tool.Level
	// Environ names variables that are passed to processes although they look like secrets.
	Environ []string
	// Keys names the variables with inspan's own keys, which are always withheld.
	Keys []string
	// Guard dials for processes in boxes that may reach some hosts; its Allow is checked in addition to the
	// hosts of the box. Nil means the zero Guard.
	Guard *netguard.Guard
	// Nice lowers the priority of processes with a keeper relative to this program, as in nice(1): 0 to 19. The
	// kernel applies it only within a group of processes.
	Nice int
	// Alone keeps read boxes from seeing outside processes: each gets its own namespaces, as workspace boxes
	// do. Otherwise they can't signal or inspect these, but can read their arguments.
	Alone bool
	// Results copies files that tools and declared commands wrote into the session's own folders for temporary
	// files, such as /tmp/report.txt, to the machine's folders when the environment is closed, unless the name
	// is taken.
	Results bool
	// Registries are hosts that every workspace box may reach, if single hosts can be opened. From Fetches
	// processes can only fetch, see [netguard.Proxy]; that needs a Swap. Near may have any address.
	Registries, Fetches, Near netguard.Hosts
	// Swap replaces the stand-ins of secrets in requests of processes in boxes. Nil means none are replaced.
	Swap *netguard.Swap
	// Vars are further variables of processes, as NAME=VALUE.
	Vars []string
	// Limits apply to every process in a box.
	Limits Limits
	// Container runs every command in a container. Nil means none.
	Container *Container
	// Landlock is the highest version to use, for testing older kernels. 0 means any; below 0: none.
	Landlock int
	// Pool is shared with other environments of this program. Nil means this one has its own.
	Pool *Pool

	look *files.Looker // set by Local
}

// Self returns the path of the running program for [Options], valid even if its file is replaced while it runs;
// empty if unknown.
func Self() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	path, _ := os.Executable()
	return path
}

// Limits bound the resources of a process in a box. Zero fields mean the default.
type Limits struct {
	CPU    time.Duration // of each process, in whole seconds; default: no limit
	Memory int64         // bytes of private memory of each process, in a container of all together; default: no limit
	// at once in a workspace box or a container; default 4096. In a workspace box the kernel doesn't count
	// those of root
	Processes int
	FileSize  int64 // bytes; default 16 GiB, 256 MiB in a read box
}

// level returns the level that a box requests.
func (o Options) level(box tool.Box) tool.Level {
	level := box.Level
	if level == tool.BoxDefault {
		level = o.Default
	}
	if level == tool.BoxDefault {
		level = tool.BoxNone
	}
	return level
}
