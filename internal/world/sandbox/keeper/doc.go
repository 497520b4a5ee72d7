// Package keeper is the process that stands between inspan and a command: it builds the walls, starts the command within
// them, follows it and all its descendants, and ends them when it is told to or when inspan ends.
//
// Read keeper_linux.go first (a keeper runs one command after another), then command_linux.go (one command from its start
// to its end). The rest by concept: landlocked_linux.go, isolated_linux.go and container_linux.go put a command behind
// the walls of its box; network_linux.go holds the loopback network of a session; connect_linux.go connects sockets in
// place of commands; alone_linux.go goes on without inspan; gocache_linux.go
// serves Go's build cache.
package keeper
