package managed

import (
	"encoding/json"
	"strings"

	"github.com/inspan/inspan/internal/service/server"
)

// whose returns the agent and environment that own an object. Agents, environments and deployments can be
// changed only by unconfined visitors. Kinds that are not named here belong to the whole tenant: confined
// visitors don't see them.
func whose(of, id string, value json.RawMessage) server.Place {
	kind, at, _ := strings.Cut(of, ":")
	switch kind {
	case ofAgent:
		return server.Place{Agent: id, Environment: server.Everybody, Fixed: true}
	case ofEnvironment: // a session needs one
		return server.Place{Agent: server.Everybody, Environment: id, Fixed: true}
	case ofSession:
		var k keptSession
		_ = json.Unmarshal(value, &k) // we wrote it, like the next ones
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
