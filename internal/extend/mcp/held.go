package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

// without are the tools that are not among those that the person has agreed to, exactly as
// they are defined: new ones, and such that have changed. Of several that have one name all
// are, if one is, as a call can't say which of them it means. Agreed is nil if the person
// has agreed to none.
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

// free are the tools of a server that can be offered: those that the person has agreed to,
// and, once it is connected, that it still has. The lock of the Manager is held.
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

// freed reports whether a tool can be called as it was defined when it was offered, and
// completes what was not known then. The lock is held.
func (m *Manager) freed(s *slot, offered *definition) bool {
	list := m.free(s)
	i := slices.IndexFunc(list, func(d definition) bool { return d.digest == offered.digest })
	if i >= 0 {
		*offered = list[i]
	}
	return i >= 0
}

const maxNamed = 5 // tools that are held back and named

// holding says which tools of a server are held back, and why; empty: none are. The lock is
// held.
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
	return "tools are held back until you agree to them (" + strings.Join(parts, "; ") + ")"
}

func several(names []string) string {
	names = slices.Compact(names)
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// pins are those that hold for a server.
func (m *Manager) pins(s Server) Pins {
	if s.Unpinned {
		return Pins{}
	}
	return m.Pins
}

// agreed is what the person has agreed to of a server, nil if nothing. Another
// process may have asked them. The lock is held.
func (m *Manager) agreed(s *slot) *toolset {
	if m.pins(s.server).Dir == "" {
		return s.tools
	}
	if !s.looked || s.unread || s.pin != nil && len(s.tools.without(s.pin)) > 0 {
		s.looked = true
		pin, err := m.Pins.load(s.server, m.Env.Root)
		if s.unread = err != nil; s.unread {
			s.why = "what was agreed to can't be read: " + err.Error()
		}
		if pin != nil || s.unread { // else what is known here stands, as it could not be kept
			s.pin = pin
		}
	}
	return s.pin
}

// Agree takes what a server offers now as agreed to by the person. Digest is that of
// the definitions that they have seen.
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
