package sandbox

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// bind is a mount of a part of the machine's file system in a container.
type bind struct {
	from, to string
	write    bool
	mask     bool // hidden: from is empty
}

// args returns the arguments for an engine. Its two notations exclude different characters in paths.
func (m bind) args() ([]string, error) {
	both := m.from + m.to
	switch {
	case !strings.ContainsAny(both, ",\"\n\r"):
		text := "type=bind,source=" + m.from + ",target=" + m.to
		if !m.write {
			text += ",readonly"
		}
		return []string{"--mount", text}, nil
	case !strings.ContainsAny(both, ":\\\n\r"):
		if m.write {
			return []string{"--volume", m.from + ":" + m.to}, nil
		}
		return []string{"--volume", m.from + ":" + m.to + ":ro"}, nil
	}
	return nil, fmt.Errorf("%w: no engine can be told of the path %q", tool.ErrNoBox, m.to)
}

// binds lists the mounts of an order, parents first. Masks are the files in the folder for them.
func binds(o protocol.Order, masks string) []bind {
	best := make(map[string]bind)
	put := func(m bind) { best[m.to] = m }
	for _, g := range o.Read {
		put(bind{from: g.Path, to: g.Path})
	}
	for _, path := range o.Write {
		put(bind{from: path, to: path, write: true})
	}
	if o.Tmp != "" {
		for _, r := range walls.TempFolders() {
			put(bind{from: filepath.Join(o.Tmp, r[1]), to: r[0], write: o.Level == tool.BoxWorkspace})
		}
	}
	if o.Cache != "" {
		put(bind{from: o.Cache, to: walls.CacheDir, write: true})
	}
	// Later entries can only restrict a place further.
	for _, path := range o.View.Pinned {
		if _, ok := best[path]; !ok {
			put(bind{from: path, to: path, write: true})
		}
	}
	for _, path := range o.View.Frozen {
		put(bind{from: path, to: path})
	}
	for _, m := range submounts(best) {
		put(m)
	}
	for _, g := range o.Read {
		for _, hole := range g.Holes {
			put(bind{from: masks, to: hole, mask: true})
		}
	}
	return settled(best)
}

// settled removes places that are missing, can't be mounted over or are in a mask, and sorts the rest.
func settled(best map[string]bind) []bind {
	var masked []string
	for path, m := range best {
		if m.mask {
			masked = append(masked, path)
		}
	}
	var out []bind
	for path, m := range best {
		st, ok := paths.StampOf(path)
		if m.from != m.to && !m.mask {
			st, ok = paths.StampOf(m.from)
		}
		if !ok || st.Link || slices.ContainsFunc(masked, func(f string) bool { return f != path && text.Inside(f, path) }) {
			continue
		}
		if m.mask {
			m.from += maskFile
			if st.Dir {
				m.from = strings.TrimSuffix(m.from, maskFile) + maskFolder
			}
		}
		out = append(out, m)
	}
	slices.SortStableFunc(out, func(a, b bind) int {
		return cmp.Or(cmp.Compare(strings.Count(a.to, "/"), strings.Count(b.to, "/")), cmp.Compare(a.to, b.to))
	})
	return out
}

// Names in the folder of masks.
const (
	maskFile   = "/nothing"
	maskFolder = "/none"
)

// submounts lists the mounts below read-only places on this machine: an engine includes them, but not all of
// them read-only.
func submounts(best map[string]bind) []bind {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer file.Close()
	var out []bind
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		point := unescaped(fields[4])
		if _, ok := best[point]; ok {
			continue
		}
		if m, ok := over(best, point); ok && !m.write {
			out = append(out, bind{from: point, to: point})
		}
	}
	return out
}

// over returns the deepest bind that contains a path.
func over(best map[string]bind, path string) (bind, bool) {
	var out bind
	for at, m := range best {
		if len(at) > len(out.to) && m.from == m.to && text.Inside(at, path) {
			out = m
		}
	}
	return out, out.to != ""
}

// unescaped decodes the kernel's escapes of blanks in paths.
func unescaped(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// wallsOf returns the expected state of mounts.
func wallsOf(list []bind) ([]walls.Expected, error) {
	var out []walls.Expected
	for _, m := range list {
		st, ok := paths.StampOf(m.from)
		if !ok {
			return nil, fmt.Errorf("%w: %s is gone; try again", tool.ErrNoBox, m.to)
		}
		out = append(out, walls.Expected{Path: m.to, Dev: st.Dev, Ino: st.Ino, Write: m.write})
	}
	return out, nil
}
