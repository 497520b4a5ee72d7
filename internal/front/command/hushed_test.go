package command

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoSecretOnTheScreen checks that a question about a command with a secret shows no secret, offers no rule for it,
// and leaves none behind, neither in the log nor among the approvals.
func TestNoSecretOnTheScreen(t *testing.T) {
	t.Parallel()
	const secret = "hunterzq77wkk31vx"
	h := withoutModel(t)
	for name, text := range map[string]string{"env": "export DEPLOY_TOKEN=" + secret, "task": "bash: make " + secret} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := newTerminal(t, h, 100, 24)
	s.Types(`. ../env; inspan run "$(cat ../task)"`)
	s.Shows("? bash asks", "$ make [secret:", "1 Yes (y)", "2 No (n)", "or say what")
	s.Types("p")
	s.Shows("No rule is safe for this call")
	s.Types("n")
	if screen := s.Shows("session 20"); strings.Contains(screen, secret) {
		t.Errorf("the screen shows the secret:\n%s", screen)
	}
	err := filepath.WalkDir(filepath.Join(h.dir, "state"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), secret) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
