package tools

import (
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/tool"
)

// unresolved matches how programs say that they can't find the address of a host. In a sandbox without a
// network that is all they notice. It is compiled when a command has failed.
const unresolved = `(?:Could not resolve host: |getaddrinfo (?:ENOTFOUND|EAI_AGAIN) |dial tcp: lookup |Failed to resolve '|` +
	`Could not resolve hostname |Temporary failure resolving '|unable to resolve host address '|dns error: .*lookup address information: )` +
	`([A-Za-z0-9][A-Za-z0-9.-]*\.[A-Za-z]{2,})`

const mostBlocked = 8 // listed hosts

// blocked lists the hosts that the sandbox kept a command from, each once, with the setting that allows them.
// The model and the person read the same.
func (j *job) blocked() (lines []string) {
	for _, r := range j.end.refused {
		if strings.HasPrefix(r, "blocked ") {
			lines = append(lines, "the sandbox "+r)
		}
	}
	closed := !j.box.Throwaway && j.box.Level != tool.BoxNone && j.box.Level != tool.BoxDefault && len(j.box.Hosts) == 0
	if !closed || j.end.code == 0 {
		return lines
	}
	text, _ := j.all()
	for _, m := range regexp.MustCompile(unresolved).FindAllStringSubmatch(text, -1) {
		line := netguard.Blocked(strings.ToLower(m[1]))
		if !slices.Contains(lines, line) && len(lines) < mostBlocked {
			lines = append(lines, line)
		}
	}
	return lines
}
