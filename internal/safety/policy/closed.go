package policy

import (
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// Close adds to a map the places that rules deny by path alone, read(GLOB) and write(GLOB), so file tools and
// sandboxes enforce them too, for calls whose effects can't all be known in advance.
func Close(m places.Map, rules []Rule) places.Map {
	for _, r := range rules {
		switch {
		case r.Action != tool.Deny || r.pattern == "":
		case r.Scope == TrustedContent:
			m.Kept = append(m.Kept[:len(m.Kept):len(m.Kept)], r.glob(m))
		case r.tool == string(tool.Read):
			m.Hidden = append(m.Hidden[:len(m.Hidden):len(m.Hidden)], r.glob(m))
		case r.tool == string(tool.Write):
			m.Closed = append(m.Closed[:len(m.Closed):len(m.Closed)], r.glob(m))
		}
	}
	return m
}
