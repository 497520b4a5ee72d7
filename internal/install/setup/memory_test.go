package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/extend/profile"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/testkit/ollamatest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/ollama"
)

func TestMemory(t *testing.T) {
	for name, c := range map[string]struct {
		devices []profile.Device
		state   State
		words   []string
	}{
		"none": {nil, Skip, []string{"none found", "8K"}},
		"24":   {[]profile.Device{{Name: "RTX 4090", Memory: 24564 << 20}}, Good, []string{"RTX 4090 with 24.0 GB", "128K"}},
		"16":   {[]profile.Device{{Name: "T4", Memory: 15360 << 20}}, Good, []string{"T4", "32K"}},
		"8":    {[]profile.Device{{Name: "RTX 4060", Memory: 8188 << 20}}, Good, []string{"about 8K"}},
		"two":  {[]profile.Device{{Name: "A", Memory: 12288 << 20}, {Name: "B", Memory: 12288 << 20}}, Good, []string{"A", "B", "128K"}},
		"in use": {
			[]profile.Device{{Name: "A", Memory: 24564 << 20, Free: 2048 << 20}},
			Warn,
			[]string{"2.0 GB free of 24.0 GB", "8K", "in use"},
		},
		"partly": {
			[]profile.Device{{Name: "A", Memory: 12288 << 20, Free: 6144 << 20}, {Name: "B", Memory: 12288 << 20, Free: 9216 << 20}},
			Good,
			[]string{"15.0 GB free in all", "A with 6.0 GB free of 12.0 GB", "32K"},
		},
		"apple": {[]profile.Device{{Name: "Apple", Memory: 25769803776, Unified: true}}, Good, []string{"shared memory", "128K"}},
	} {
		holds(t, name, video(c.devices), c.state, c.words)
	}
}

func holds(t *testing.T, name string, f Finding, state State, words []string) {
	t.Helper()
	if f.State != state || (f.Remedy != "") != (state == Warn) {
		t.Errorf("%s: %+v, want %s", name, f, state)
	}
	for _, w := range words {
		if !strings.Contains(f.Found+" → "+f.Remedy, w) {
			t.Errorf("%s: %+v lacks %q", name, f, w)
		}
	}
}

func TestFits(t *testing.T) {
	llama := ollama.Shape{Info: llm.Info{Provider: "ollama", Model: "llama3.1:8b", Window: 131072}, Weights: 4_920_753_328, PerToken: 131_072}
	loaded, spilled, mute := llama, llama, llama
	loaded.Loaded = 4096
	spilled.Loaded, spilled.OnCPU = 131072, 5<<30
	mute.NoTools, mute.PerToken, mute.Window = true, 0, 0
	for name, c := range map[string]struct {
		shape  ollama.Shape
		set    int
		memory int64
		state  State
		words  []string
	}{
		"all well": {llama, 0, 16e9, Good, []string{"63K fits", "the model has 128K", "128 MB each 1K"}},
		"loaded":   {loaded, 32768, 16e9, Good, []string{"loaded with 4K"}},
		"spilled": {spilled, 0, 16e9, Warn, []string{
			"partly on the CPU", "5.0 GB",
			`providers.ollama.models."llama3.1:8b".window to 64512`,
		}},
		"no gpu":       {spilled, 0, 0, Good, []string{"8K fits"}},
		"set too high": {llama, 131072, 16e9, Warn, []string{"the settings ask for 128K", "64512"}},
		"set too low":  {llama, 8192, 16e9, Good, nil},
		"beyond model": {llama, 262144, 0, Warn, []string{"does not fit"}},
		"no tools":     {mute, 0, 24e9, Good, []string{"128K fits", "no tool support"}},
	} {
		holds(t, name, fits(c.shape, c.set, c.memory), c.state, c.words)
	}
}

// TestLocal asks a server for its models; those of other kinds are left alone.
func TestLocal(t *testing.T) {
	info := llm.Info{Provider: "home", Model: "small:1b", Window: 8192}
	server := ollamatest.Start(t, &ollamatest.Server{Models: []llm.Info{info}, Key: "token-test"})
	dir := t.TempDir()
	t.Setenv("INSPAN_CONFIG_DIR", dir)
	settings := fmt.Sprintf("[providers.home]\nkind='ollama'\nbase_url='%s'\nkey_command='echo token-test'\n[providers.other]\n"+
		"kind='openai'\nbase_url='%s'\n", server, server)
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.Load("")
	if err != nil {
		t.Fatal(err)
	}
	// Other servers of this machine may be found too.
	got := slices.DeleteFunc(local(t.Context(), a), func(f Finding) bool { return !strings.HasPrefix(f.Check, "model home/") })
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	holds(t, "there", got[0], Good, []string{"8K fits"})
}
