package walls

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// TestProfile checks the profiles for macOS against golden files. Run with INSPAN_UPDATE=1 to write them.
func TestProfile(t *testing.T) {
	m := places.Map{Root: "/ws \"x\"", Home: "/Users/u", State: []string{"/Users/u/state"}, Shared: []string{"/Users/u/state/plugins"}}
	apart := places.Map{Root: "/tasks/a", Apart: []string{"/tasks"}}
	for name, box := range map[string]tool.Box{
		"read": {Level: tool.BoxRead, Read: []string{"/data"}}, "workspace": {Level: tool.BoxWorkspace, Write: []string{"/data"}},
		"git":    {Level: tool.BoxWorkspace, Git: true},
		"apart":  {Level: tool.BoxWorkspace, Read: []string{"/"}},
		"plugin": {Level: tool.BoxWorkspace, Read: []string{"/Users/u/state/plugins/kit", "/Users/u/state/sessions"}},
	} {
		m := m
		if name == "apart" {
			m = apart
		}
		got := SeatbeltProfile(m, m.Root, box, "/private/tmp/t")
		path := filepath.Join("testdata", "seatbelt", name+".sb")
		if os.Getenv("INSPAN_UPDATE") != "" {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
