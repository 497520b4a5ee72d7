// Package sandbox provides the environment of tools: it implements [tool.Env] over the real operating system.
//
// Read in this order: options.go and local.go (how an environment is made), procs.go (a process from its start
// to its end), boxes_linux.go (which restrictions it gets), supervised_linux.go (how its keeper is instructed
// and followed). On Linux a keeper, a process of this very program, runs between inspan and each command;
// elsewhere direct.go starts it.
//
// The subpackages, each importing only those named before it:
//
//	gocache    a build cache of Go in two layers, served to the go command
//	gitfiles   which files a command may leave in a git directory
//	paths      what a path refers to, and how to reach it without following links
//	processes  following and ending processes
//	walls      the parts of a box: Landlock, mounts, system calls, privileges, limits, Seatbelt
//	protocol   the messages between inspan and a keeper
//	ports      ports of commands that outlive inspan, offered on the machine
//	sensitive  sensitive places in a workspace, and moving away new ones
//	gitcopies  taking over the changes of a command in its copy of a git directory
//	keeper     builds the box, starts a command in it, follows it and ends it
//	files      files of the machine, guarded, and the temporary files of a session
//
// The files of this package, by concept:
//
//	permissions of boxes boxes_linux.go, read_grants_linux.go, workspace_plan_linux.go, known_secrets_linux.go,
//	                     available_linux.go (which boxes can be built), seatbelt in boxes_other.go
//	keepers              supervised_linux.go, keeper_link_linux.go, waiting_linux.go and fingerprint_linux.go (keepers
//	                     that wait for the next command), network_linux.go (the loopback network of a session)
//	outside of a box     outside_box_linux.go, closed_places_linux.go, new_repositories_linux.go, inotify_linux.go,
//	                     own_secrets_linux.go
//	copies               throwaway_linux.go, git_copies_linux.go, session_caches_linux.go, gocache_linux.go
//	containers           container.go, container_engine_linux.go, container_instance_linux.go, container_binds_linux.go
//	processes            procs.go, tty.go, report_linux.go, environ.go, output.go, detached.go, foreground.go, kept_linux.go
//	                     (those that outlive inspan), init_linux.go
//	proof                probe.go and children.go test the sandbox
package sandbox
