package managed

import (
	"encoding/json"
	"strings"

	"github.com/inspan/inspan/internal/service/server"
)

// whose says to which agent and environment an object belongs. Agents, environments and deployments
// are for whoever may make them to change, and the kinds that are not named here belong to the whole
// tenant: who is confined does not see them.
func whose(of, id string, value json.RawMessage) server.Place {
	kind, at, _ := strings.Cut(of, ":")
	switch kind {
	case ofAgent:
		return server.Place{Agent: id, Environment: server.Everybody, Fixed: true}
	case ofEnvironment: // a session needs one
		return server.Place{Agent: server.Everybody, Environment: id, Fixed: true}
	case ofSession:
		var k keptSession
		_ = json.Unmarshal(value, &k) // we have written it, as the next ones
		return server.Place{Agent: k.Agent.ID, Environment: k.Environment}
	case ofDeployment:
		var k keptDeployment
		_ = json.Unmarshal(value, &k)
		return server.Place{Agent: k.Agent.ID, Environment: k.Environment, Fixed: true}
	case ofRun:
		var k keptRun
		_ = json.Unmarshal(value, &k)
		return server.Place{Agent: k.Agent.ID}
	case strings.TrimSuffix(ofWork(""), ":"):
		var k keptWork
		_ = json.Unmarshal(value, &k)
		return server.Place{Task: k.Session, Environment: at}
	case ofFile:
		return server.Place{Private: true}
	}
	return server.Place{}
}
