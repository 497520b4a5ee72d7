package mcp

import (
	"slices"
	"time"

	"github.com/inspan/inspan/internal/words"
)

// State is how a server is.
type State string

// States.
const (
	Connecting State = "connecting"
	Ready      State = "ready"
	Changed    State = "changed" // connected, but the person has not agreed to the definitions of its tools
	Failed     State = "failed"
	Off        State = "off"
)

// Status is how a server is at one time.
type Status struct {
	Name     string
	Kind     string
	Source   string
	State    State
	Why      string        // it failed; for people
	Since    time.Time     // it is so
	Revision string        // of the protocol, once connected
	Version  string        // what the server calls itself
	Tools    int           // that it defines
	Tokens   int           // of their definitions, about; they are paid for with each request
	Digest   string        // of the definitions, for Pinned; empty: not connected
	Typical  time.Duration // of its calls: half of the last 64 took less; 0: there were none
	Restarts int
}

// Status tells how all servers are, in the order of Servers.
func (m *Manager) Status() []Status {
	m.mu.Lock()
	var out []Status
	for _, s := range m.slots {
		out = append(out, s.status())
	}
	m.mu.Unlock()
	for i := range out {
		if out[i].State == Ready && !m.pinned(out[i].Name, out[i].Digest) {
			out[i].State = Changed
		}
	}
	return out
}

// status is called with the lock of the Manager held.
func (s *slot) status() Status {
	out := Status{
		Name: words.OneLine(s.server.Name, 60), Kind: words.OneLine(s.server.kind(), 20), Source: s.server.Source,
		State: s.state, Why: words.OneLine(s.why, 1000), Since: s.since, Restarts: s.restarts,
	}
	if len(s.took) > 0 {
		sorted := slices.Sorted(slices.Values(s.took))
		out.Typical = sorted[len(sorted)/2]
	}
	if s.client == nil {
		return out
	}
	if said := s.client.session.InitializeResult(); said != nil {
		out.Revision = words.OneLine(said.ProtocolVersion, 20)
		if said.ServerInfo != nil {
			out.Version = words.OneLine(said.ServerInfo.Name+" "+said.ServerInfo.Version, 80)
		}
	}
	out.Tools, out.Tokens, out.Digest = len(s.tools.list), s.tools.tokens, s.tools.digest
	return out
}

// Definitions are those of a server's tools as they are now, and their digest, for
// a person to agree to. They are empty if it is not connected.
func (m *Manager) Definitions(server string) (list []Definition, digest string) {
	for _, o := range m.offers() {
		if o.slot.server.Name != server {
			continue
		}
		for _, d := range o.tools.list {
			list = append(list, Definition{words.Visible(d.name), d.spec.Name, d.spec.Description, slices.Clone(d.spec.Schema)})
		}
		return list, o.tools.digest
	}
	return nil, ""
}
