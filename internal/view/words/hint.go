package words

import "strings"

// Command is a command of inspan as hints name it: with the server whose sessions it is about; empty
// means those of this machine.
func Command(server, name string, args ...string) string {
	parts := []string{"inspan", name}
	if server != "" {
		parts = append(parts, "--remote", OneLine(server, 200))
	}
	return strings.Join(append(parts, args...), " ")
}

// On says where a session is that a server has; empty: this machine has it.
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
