package keeper

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/walls"
)

// Name is the whole command line of a keeper.
const Name = "inspan-keeper"

// keeperFD is the keeper's end of the connection, outside of containers.
const keeperFD = 3

// Run is for a process that may have been started as a keeper, or as the holder of a session's network: then it
// works as one until it is no longer needed, and the caller must exit with the code. A keeper in a container
// finds programs with lookPath.
func Run(lookPath func(program string) (string, error)) (ran bool, code int) {
	if len(os.Args) == 1 && os.Args[0] == ContainerProgram {
		fd, err := callHome()
		if err != nil {
			fmt.Fprintln(os.Stderr, "reach the other side of the container:", err)
			return true, 1
		}
		return true, runKeeper(fd, lookPath)
	}
	if len(os.Args) == 2 && os.Args[0] == walls.GoCacheProgram {
		return true, serveGoCache(os.Args[1])
	}
	if len(os.Args) != 1 || os.Args[0] != Name && os.Args[0] != NetworkName {
		return false, 0
	}
	var st unix.Stat_t
	if unix.Fstat(keeperFD, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return false, 0
	}
	unix.CloseOnExec(keeperFD)
	if os.Args[0] == NetworkName {
		return true, holdNetwork()
	}
	return true, runKeeper(keeperFD, nil)
}
