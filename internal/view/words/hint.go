package words

import "strings"

// Command returns a command of inspan for a hint, with the server that has the session; empty means this
// machine.
func Command(server, name string, args ...string) string {
	parts := []string{"inspan", name}
	if server != "" {
		parts = append(parts, "--remote", OneLine(server, 200))
	}
	return strings.Join(append(parts, args...), " ")
}

// On says where a session on a server is; empty if it is on this machine.
func On(server string) string {
	if server == "" {
		return ""
	}
	_, host, there := strings.Cut(server, "://")
	if !there {
		host = server
	}
	return "on " + OneLine(strings.TrimSuffix(host, "/"), 200)
}
