package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

// without returns the tools that are not approved exactly as they are defined: new and changed ones. If one of
// several tools with the same name is among them, all are, as a call can't say which one it means. Agreed is
// nil if the person has approved none.
func (t *toolset) without(agreed *toolset) []definition {
	if t == nil || agreed != nil && t.digest == agreed.digest {
		return nil
	}
	known, odd := map[string]bool{}, map[string]bool{}
	if agreed != nil {
		for _, d := range agreed.list {
			known[d.digest] = true
		}
	}
	for _, d := range t.list {
		odd[d.name] = odd[d.name] || !known[d.digest]
	}
	var out []definition
	for _, d := range t.list {
		if odd[d.name] {
			out = append(out, d)
		}
	}
	return out
}

// free returns the tools of a server that can be offered: approved ones that, once it is connected, it still
// has. The lock of the Manager is held.
func (m *Manager) free(s *slot) []definition {
	agreed := m.agreed(s)
	switch {
	case agreed == nil:
		return nil
	case s.tools == nil:
		return agreed.list
	}
	held := map[string]bool{}
	for _, d := range s.tools.without(agreed) {
		held[d.name] = true
	}
	return slices.DeleteFunc(slices.Clone(s.tools.list), func(d definition) bool { return held[d.name] })
}

// freed reports whether a tool can be called as it was defined when it was offered, and completes the details
// that were unknown then. The lock is held.
func (m *Manager) freed(s *slot, offered *definition) bool {
	list := m.free(s)
	i := slices.IndexFunc(list, func(d definition) bool { return d.digest == offered.digest })
	if i >= 0 {
		*offered = list[i]
	}
	return i >= 0
}

const maxNamed = 5 // tools that are held back and named

// holding says which tools of a server are held back, and why; empty means none. The lock is held.
func (m *Manager) holding(s *slot) string {
	agreed := m.agreed(s)
	known := map[string]bool{}
	if agreed != nil {
		for _, d := range agreed.list {
			known[d.name] = true
		}
	}
	var changed, added []string
	for _, d := range s.tools.without(agreed) {
		if name := words.OneLine(d.name, 60); known[d.name] {
			changed = append(changed, name)
		} else {
			added = append(added, name)
		}
	}
	var parts []string
	if len(changed) > 0 {
		parts = append(parts, "changed: "+several(changed))
	}
	if len(added) > 0 {
		parts = append(parts, "new: "+several(added))
	}
	if parts == nil {
		return ""
	}
	return "tools are unavailable until you approve them (" + strings.Join(parts, "; ") + ")"
}

func several(names []string) string {
	names = slices.Compact(names)
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// pins returns the pins that apply to a server.
func (m *Manager) pins(s Server) Pins {
	if s.Unpinned {
		return Pins{}
	}
	return m.Pins
}

// agreed returns the approved tools of a server, nil if there are none. Another process may have asked the
// person. The lock is held.
func (m *Manager) agreed(s *slot) *toolset {
	if m.pins(s.server).Dir == "" {
		return s.tools
	}
	if !s.looked || s.unread || s.pin != nil && len(s.tools.without(s.pin)) > 0 {
		s.looked = true
		pin, err := m.Pins.load(s.server, m.Env.Root)
		if s.unread = err != nil; s.unread {
			s.why = "the approvals can't be read: " + err.Error()
		}
		if pin != nil || s.unread { // else what is known here stands, because it could not be kept
			s.pin = pin
		}
	}
	return s.pin
}

// Agree approves a server's current tools. Digest is the digest of the definitions that the person has seen.
func (m *Manager) Agree(server, digest string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.slots, func(s *slot) bool { return s.server.Name == server })
	switch {
	case i < 0:
		return errors.New("there is no MCP server " + text.Cut(server, 60))
	case m.slots[i].tools == nil:
		return errors.New("the MCP server " + server + " is not connected")
	case m.slots[i].tools.digest != digest:
		return errors.New("the MCP server " + server + " has changed its tools meanwhile")
	}
	s := m.slots[i]
	if m.pins(s.server).Dir != "" {
		if err := m.Pins.store(s.server, m.Env.Root, s.tools); err != nil {
			return err
		}
	}
	s.pin, s.unread = s.tools, false
	m.ring()
	return nil
}
