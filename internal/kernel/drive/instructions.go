package drive

import (
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// instructions adds instructions for parts of the workspace, once a call uses a file there.
type instructions struct {
	cfg     *Config
	journal *journal
	asked   map[string]bool // folders already looked up since the last compaction
}

// forTouched returns the instructions for folders that the results touch for the first time. They are stored after the
// results, so the earlier prompt stays the same.
func (in *instructions) forTouched(results []event.Body) []event.Body {
	if in.cfg.Dynamic.Instructions == nil {
		return nil
	}
	state, redact := in.journal.state, in.journal.secrets.Vault.Redact
	known := slices.Concat(state.Sources, state.AddedSources)
	var out []event.Body
	for _, body := range results {
		end, ok := body.(event.Ended)
		if !ok {
			continue
		}
		for _, path := range in.paths(end) {
			if in.asked[filepath.Dir(path)] {
				continue
			}
			in.asked[filepath.Dir(path)] = true
			for _, added := range in.cfg.Dynamic.Instructions(path) {
				if source := redact(added.Source); !slices.Contains(known, source) {
					known, out = append(known, source), append(out, added)
				}
			}
		}
	}
	return out
}

// paths returns the paths below the workspace that a call has read or written.
func (in *instructions) paths(end event.Ended) []string {
	var out []string
	add := func(path string) {
		if root := in.journal.state.Root; path != root && text.Inside(root, path) {
			out = append(out, path)
		}
	}
	for _, f := range end.Files {
		add(f.Path)
	}
	call, _ := in.journal.state.Call(end.Call)
	for _, e := range call.Effects {
		if e.Kind == tool.Read || e.Kind == tool.Write {
			add(e.Path)
		}
	}
	return out
}
