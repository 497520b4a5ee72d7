package setup

import (
	"context"
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/extend/profile"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/llm/ollama"
)

// video reports the free graphics memory of all cards, and the window that usually fits into it.
func video(devices []profile.Device) Finding {
	free := profile.Free(devices)
	window := ollama.Shape{}.Fit(free)
	if len(devices) == 0 {
		return Finding{Check: "gpu", State: Skip, Found: fmt.Sprintf("none found; local models run on the processor, with a window of about %s",
			tokens(window))}
	}
	var names []string
	for _, d := range devices {
		name := fmt.Sprintf("%s with %s", d.Name, bytes(d.Memory))
		if d.Free > 0 {
			name = fmt.Sprintf("%s with %s free of %s", d.Name, bytes(d.Free), bytes(d.Memory))
		}
		if d.Unified {
			name += " of the shared memory"
		}
		names = append(names, name)
	}
	f := Finding{Check: "gpu", State: Good, Found: fmt.Sprintf("%s; good for a window of about %s", strings.Join(names, ", "), tokens(window))}
	if len(devices) > 1 {
		f.Found = fmt.Sprintf("%s free in all: %s", bytes(free), f.Found)
	}
	if all := profile.Memory(devices); free < all/4 {
		f.State, f.Remedy = Warn, "most of it is in use: end other programs on the card, or unload models, such as with 'ollama stop'"
	}
	return f
}

// local reports the window that fits, for each model of the available Ollama servers.
func local(ctx context.Context, a *app.App) []Finding {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var findings []Finding
	for _, f := range a.Providers.Discover(ctx) {
		if f.Provider.Kind != "ollama" {
			continue
		}
		for _, m := range f.Models {
			shape, err := ollama.Show(ctx, a.Providers.Endpoint(f.Provider, m.Model))
			if err != nil {
				findings = append(findings, Finding{Check: "model " + m.Route(), State: Skip, Found: err.Error()})
				continue
			}
			findings = append(findings, fits(shape, f.Provider.Models[m.Model].Window, a.Providers.Room(ctx, f.Provider, shape)))
		}
	}
	return findings
}

// fits compares the configured and the loaded window of a model to the one that fits. set is the window of the
// settings, 0 means none; memory is that of the GPUs, 0 means none.
func fits(s ollama.Shape, set int, memory int64) Finding {
	window := s.Fit(memory)
	f := Finding{Check: "model " + s.Route(), State: Good, Found: fmt.Sprintf("a window of %s fits", tokens(window))}
	if s.Window > 0 {
		f.Found += fmt.Sprintf(", the model has %s", tokens(s.Window))
	}
	if s.PerToken > 0 {
		f.Found += fmt.Sprintf(" at %s each 1K", bytes(s.PerToken<<10))
	}
	if s.Loaded > 0 {
		f.Found += fmt.Sprintf("; loaded with %s", tokens(s.Loaded))
	}
	if s.NoTools {
		f.Found += "; no tool support"
	}
	remedy := fmt.Sprintf("set providers.%s.models.%q.window to %d", s.Provider, s.Model, window)
	switch {
	case s.Window > 0 && set > s.Window:
		f.State, f.Remedy = Warn, remedy
		f.Found += fmt.Sprintf("; the settings ask for %s, which does not fit", tokens(set))
	case memory > 0 && s.OnCPU > 0:
		f.State, f.Remedy = Warn, remedy+", or choose a smaller model"
		f.Found += fmt.Sprintf("; partly on the CPU, which is slow: %s did not fit", bytes(s.OnCPU))
	case memory > 0 && set > window:
		f.State, f.Remedy = Warn, remedy
		f.Found += fmt.Sprintf("; the settings ask for %s, which would be partly on the CPU", tokens(set))
	}
	return f
}

// tokens formats a window for people.
func tokens(n int) string {
	if n >= 1<<10 {
		return fmt.Sprintf("%dK", n>>10)
	}
	return fmt.Sprint(n)
}

// bytes formats an amount of memory.
func bytes(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MB", n>>20)
}
