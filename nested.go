package inspan

import (
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/tool"
)

// nested are the instructions of parts of the workspace that calls have touched
// for the first time. They come behind the results, so that the prompt before
// them stands.
func (d *driver) nested(batch []event.Body) []event.Body {
	if d.agent.Instructions == nil {
		return nil
	}
	known := slices.Concat(d.state.Sources, d.state.Noted)
	var out []event.Body
	for _, body := range batch {
		end, ok := body.(event.Ended)
		if !ok {
			continue
		}
		for _, path := range touched(d.state, end) {
			if d.looked[filepath.Dir(path)] {
				continue
			}
			d.looked[filepath.Dir(path)] = true
			for _, added := range d.agent.Instructions(path) {
				if !slices.Contains(known, d.vault.Redact(added.Source)) {
					known, out = append(known, d.vault.Redact(added.Source)), append(out, added)
				}
			}
		}
	}
	return out
}

// touched lists the paths below the workspace that a call was about.
func touched(st *loop.State, end event.Ended) []string {
	var out []string
	add := func(path string) {
		if path != st.Root && tool.Inside(st.Root, path) {
			out = append(out, path)
		}
	}
	for _, f := range end.Files {
		add(f.Path)
	}
	call, _ := st.Call(end.Call)
	for _, e := range call.Effects {
		if e.Kind == tool.Read || e.Kind == tool.Write {
			add(e.Path)
		}
	}
	return out
}
