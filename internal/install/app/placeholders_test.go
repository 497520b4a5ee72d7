package app_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
)

// TestPlaceholdersLast checks that a secret has one placeholder for one user, whichever of several processes comes
// first, that the key is in a private file and in no log, and that without a usable file there is another placeholder
// for each run.
func TestPlaceholdersLast(t *testing.T) {
	v := newVictim(t)
	t.Setenv("DEPLOY_TOKEN", "hunterzq77wkk31vx")
	said := make([]string, 4)
	var wg sync.WaitGroup
	for i := range said {
		wg.Go(func() { said[i], _ = v.hears(t, "use hunterzq77wkk31vx") })
	}
	wg.Wait()
	for _, text := range said {
		if text != said[0] || !regexp.MustCompile(`^use \[secret:[a-z2-7]{8}\]$`).MatchString(text) {
			t.Errorf("it heard %q and %q", said[0], text)
		}
	}
	a, err := app.Load("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(a.StateDir, "placeholder.key")
	key, err := os.ReadFile(path)
	if err != nil || len(key) < 32 {
		t.Fatalf("key of %d bytes: %v", len(key), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if left, _ := filepath.Glob(path + "?*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	logs, _ := filepath.Glob(filepath.Join(a.StateDir, "sessions", "*", "*"))
	if len(logs) == 0 {
		t.Error("there are no logs")
	}
	for _, name := range logs {
		if raw, _ := os.ReadFile(name); strings.Contains(string(raw), strings.TrimSpace(string(key))) ||
			strings.Contains(string(raw), "hunterzq77wkk31vx") {
			t.Errorf("%s holds the key, or the secret", name)
		}
	}
	if err := os.WriteFile(path, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, warned := v.hears(t, "use hunterzq77wkk31vx")
	if text == said[0] || !strings.HasPrefix(text, "use [secret:") || !strings.Contains(warned, "it is too short") {
		t.Errorf("with a cut key it heard %q, warned: %s", text, warned)
	}
}

// hears sends a message to a new session and returns what a model would read, and the warnings.
func (v *victim) hears(t *testing.T, text string) (heard, warned string) {
	a, err := app.Load("/proc/self/exe")
	if err != nil {
		t.Error(err)
		return "", ""
	}
	s, err := a.Host(app.Options{Model: "script", Mode: "auto"}, func(text string) { warned += text + "\n" }).New(t.Context(), v.work)
	if err != nil {
		t.Error(err)
		return "", ""
	}
	defer s.Close()
	for e, err := range s.Run(t.Context(), event.Say(text)) {
		if err != nil {
			t.Error(err)
		}
		if b, ok := e.Body.(event.Said); ok {
			heard = b.Parts.Text()
		}
	}
	return heard, warned
}
