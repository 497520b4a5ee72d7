package app_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
)

// TestPastSession checks the end of a closed session: its text, a new file, and its cost.
func TestPastSession(t *testing.T) {
	a := app.New(&config.Installation{StateDir: t.TempDir()})
	host := &inspan.Host{Dir: a.Store().Dir, Agent: func(context.Context, inspan.SessionSpec) (*inspan.Agent, error) {
		return &inspan.Agent{Model: &script.Model{Steps: []script.Step{{Parts: llm.Say("It was the cache.")}}}}, nil
	}}
	s, err := host.New(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, err := range s.Run(t.Context(), event.Say("what was it?")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "out.md")
	if err := a.Running.Export(t.Context(), s.ID(), path); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(raw), "what was it?") || !strings.Contains(string(raw), "It was the cache.") {
		t.Errorf("%s, %v", raw, err)
	}
	if err := a.Running.Export(t.Context(), s.ID(), path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that is there was written to: %v", err)
	}
	rows, err := a.Running.Spent(t.Context(), s.ID(), func(string) {})
	if err != nil || len(rows) != 2 || rows[0].Key != "script/commands" || rows[1].Key != "total" || rows[1].Replies != 1 {
		t.Errorf("%+v, %v", rows, err)
	}
}
