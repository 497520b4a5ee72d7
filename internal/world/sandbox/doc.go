// Package sandbox gives tools a world to work in: it implements [tool.Env] over the real operating system.
//
// Read in this order: options.go and local.go (how an environment is made), procs.go (a process from its start to its
// end), boxes_linux.go (which walls it gets), supervised_linux.go (how its keeper is told and followed). On Linux a
// keeper, a process of this very program, stands between inspan and each command; elsewhere direct.go starts it.
//
// The rooms below, each of which imports only those named before it:
//
//	gocache    a build cache of Go in two layers, served to the go command
//	gitfiles   which files a command may leave in a git directory
//	paths      what a path stands for, and how to reach it through no link
//	processes  following and ending processes
//	walls      what a box is made of: Landlock, mounts, system calls, privileges, limits, Seatbelt
//	protocol   what inspan and a keeper say to each other
//	ports      ports of commands that go on, offered on the machine
//	sensitive  what in a workspace is sensitive, and taking away what must not appear in it
//	gitcopies  what a command has left in its copy of a git directory, taken over
//	keeper     builds the walls, starts a command within them, follows it and ends it
//	files      files of the machine, guarded, and the temporary files of a session
//
// What stands here, by concept:
//
//	what a box may do    boxes_linux.go, read_grants_linux.go, workspace_plan_linux.go, known_secrets_linux.go,
//	                     available_linux.go (which boxes can be built), seatbelt in boxes_other.go
//	keepers              supervised_linux.go, keeper_link_linux.go, waiting_linux.go and fingerprint_linux.go (keepers
//	                     that wait for the next command), network_linux.go (the loopback network of a session)
//	outside of a box     outside_box_linux.go, closed_places_linux.go, new_repositories_linux.go, inotify_linux.go,
//	                     own_secrets_linux.go
//	copies               throwaway_linux.go, git_copies_linux.go, session_caches_linux.go, gocache_linux.go
//	containers           container.go, container_engine_linux.go, container_instance_linux.go, container_binds_linux.go
//	processes            procs.go, tty.go, report_linux.go, environ.go, output.go, detached.go, foreground.go, kept_linux.go
//	                     (those that went on without inspan), init_linux.go
//	proof                probe.go and children.go try the walls
package sandbox
