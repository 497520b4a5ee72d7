// Package keeper is the process between inspan and a command: it builds the box, starts the command in it,
// follows it and all its descendants, and ends them on request or when inspan ends.
//
// Read keeper_linux.go first (a keeper runs one command after another), then command_linux.go (one command from
// its start to its end). The rest by concept: landlocked_linux.go, isolated_linux.go and container_linux.go put
// a command into its box; network_linux.go holds the loopback network of a session; connect_linux.go connects
// sockets for commands; alone_linux.go continues without inspan; gocache_linux.go serves Go's build cache.
package keeper
