package mcp

import (
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

// State is the state of a server.
type State string

// States.
const (
	Connecting State = "connecting"
	Ready      State = "ready"
	Changed    State = "changed" // connected, but the person has not agreed to the definitions of some of its tools
	Login      State = "login"   // the person has to log in
	Failed     State = "failed"
	Off        State = "off"
)

// Status describes a server at one time.
type Status struct {
	Name     string
	Kind     string
	Source   string
	State    State
	Why      string        // it failed, is not waited for, or which tools are held back; for people
	Revision string        // of the protocol, once connected
	Version  string        // what the server calls itself
	Tools    int           // that it defines, or did when it was connected last
	Tokens   int           // of their definitions, about; they are paid for with each request
	Digest   string        // of the definitions, for Agree; empty means not connected
	Latency  time.Duration // until it answered when its tools were read last; 0 means not connected
	Typical  time.Duration // of its calls: half of the last 64 took less; 0 means there were none
	Restarts int
}

// Status returns the state of all servers, in the order of Servers.
func (m *Manager) Status() []Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Status
	for _, s := range m.slots {
		one := s.status()
		if held := m.holding(s); one.State == Ready && held != "" {
			one.State = Changed
			one.Why = strings.TrimPrefix(one.Why+"; "+held, "; ")
		}
		if tools := m.agreed(s); s.tools == nil && tools != nil && s.kept {
			one.Tools, one.Tokens = len(tools.list), tools.tokens
		}
		out = append(out, one)
	}
	return out
}

// status is called with the lock of the Manager held.
func (s *slot) status() Status {
	out := Status{
		Name: words.OneLine(s.server.Name, 60), Kind: words.OneLine(s.server.kind(), 20), Source: s.server.Source,
		State: s.state, Why: words.OneLine(s.why, 1000), Restarts: s.restarts,
	}
	if s.silent && s.state == Connecting {
		out.Why = "it did not answer in time; 'inspan mcp list' tries again"
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
	out.Tools, out.Tokens, out.Digest, out.Latency = len(s.tools.list), s.tools.tokens, s.tools.digest, s.client.latency
	return out
}

// Definitions returns a server's current tools and their digest, for approval, and the approved ones. Now is
// empty if it is not connected, agreed if none are approved.
func (m *Manager) Definitions(server string) (now, agreed []Definition, digest string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.slots, func(s *slot) bool { return s.server.Name == server })
	if i < 0 {
		return nil, nil, ""
	}
	s := m.slots[i]
	if s.tools != nil {
		digest = s.tools.digest
	}
	return s.tools.definitions(), m.agreed(s).definitions(), digest
}

func (t *toolset) definitions() []Definition {
	if t == nil {
		return nil
	}
	var list []Definition
	for _, d := range t.list {
		list = append(list, Definition{text.Visible(d.name), d.spec.Name, d.spec.Description, slices.Clone(d.spec.Schema), d.says})
	}
	return list
}
