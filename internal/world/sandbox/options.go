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

// Options say how processes are walled in and watched over. The zero value has
// neither: processes start directly and may do what the user may.
type Options struct {
	// Self is the path of a program that calls [Keeper] first of all; on
	// Linux "/proc/self/exe" is right for the running one. Empty: there are
	// no keepers, so no boxes either.
	Self string
	// Map tells what is secret or never written. Local fills in Root. The
	// zero Map guards nothing.
	Map places.Map
	// Shown lists folders of the person that every box may read besides, such as those of
	// skills, whose scripts run there. Secrets in them stay closed.
	Shown []string
	// State is the folder where caches of boxes and what was taken away from
	// them are kept. Empty: boxes get no caches, and what must be taken away
	// is renamed beside its place.
	State string
	// Default is the level of commands that ask for none; empty means
	// [tool.BoxNone].
	Default tool.Level
	// Environ names variables that are passed on to processes although they would be
	// held back.
	Environ []string
	// Keys names the variables that hold keys of inspan itself, which are always
	// held back.
	Keys []string
	// Guard dials for processes in boxes that may reach some hosts; its Allow
	// is asked besides the hosts of the box. Nil means the zero Guard.
	Guard *netguard.Guard
	// Nice is how far processes that a keeper keeps stand back behind this program, as nice(1)
	// has it: 0 to 19. The kernel sees it within a group of processes only.
	Nice int
	// Alone keeps read boxes from seeing the processes outside: each has namespaces of its own, as
	// workspace boxes have. Without, they can't signal or inspect these, and read their arguments.
	Alone bool
	// Results has files that tools and the words of commands have written into the session's own folders for
	// temporary files, as /tmp/report.txt, be in those of the machine when the environment is closed, unless there is
	// something of that name.
	Results bool
	// Registries are hosts that every workspace box may reach, where single hosts can be opened. From those of Fetches
	// processes only fetch, see [netguard.Proxy]; that needs a Swap. Those of Near may have any address.
	Registries, Fetches, Near netguard.Hosts
	// Swap replaces what stands for secrets in what processes in boxes send. Nil: nothing is.
	Swap *netguard.Swap
	// Vars are variables that processes get besides, as NAME=VALUE.
	Vars []string
	// Limits hold for every process in a box.
	Limits Limits
	// Container makes every command run in a container. Nil: none does.
	Container *Container
	// Landlock is the highest version of it to use, for trying what a kernel without
	// some of its features does. 0: any; below 0: none.
	Landlock int
	// Pool is shared with other environments of this program. Nil: this one
	// has its own.
	Pool *Pool

	look *files.Looker // set by Local
}

// Self is the path of the running program for [Options], also when its file is replaced
// while it runs; empty if it is not known.
func Self() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	path, _ := os.Executable()
	return path
}

// Limits bound what a process in a box may use up. Zero fields mean the
// default.
type Limits struct {
	CPU    time.Duration // of each process, in whole seconds; no limit by default
	Memory int64         // bytes of private memory of each process, of all together in a container; no limit by default
	// at once in a workspace box or a container; by default 4096. In a workspace box the kernel doesn't count those of root
	Processes int
	FileSize  int64 // bytes; by default 16 GiB, 256 MiB in a read box
	OpenFiles int   // of each process; by default what inspan itself was given
}

// level returns the level that a box asks for.
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
