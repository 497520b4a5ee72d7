package command

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/testkit"
)

// TestLaterVersions checks that a session which only a later version understands is shown, and that no command writes
// to it.
func TestLaterVersions(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	store := &session.Store{Dir: filepath.Join(home, ".local", "state", "inspan", "sessions")}
	log, err := store.Create(t.Context())
	if err == nil {
		err = log.Lease(t.Context())
	}
	if err == nil {
		_, err = harnesstest.Write(t.Context(), log, event.Opened{Format: 99, Root: home}, event.Titled{Title: "from later"})
	}
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"send", "ID", "hello"},
		{"send", "--steer", "ID", "hello"},
		{"send", "--allow", "x", "ID"},
		{"sessions", "fork", "ID"},
		{"resume", "ID"},
		{"compact", "ID"},
		{"context", "ID"},
		{"rewind", "ID", "--to", "1"},
		{"sessions", "show", "--events", "ID"},
	} {
		for i, a := range args {
			args[i] = strings.ReplaceAll(a, "ID", log.ID())
		}
		cmd := exec.CommandContext(t.Context(), testkit.Command(t), args...)
		cmd.Env, cmd.Dir = []string{"HOME=" + home, "PATH=/usr/bin:/bin"}, home
		out, err := cmd.CombinedOutput()
		shown := args[1] == "show"
		if failed := err != nil; failed == shown || shown != !strings.Contains(string(out), "a later version of inspan wrote this session") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	list, err := store.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Events != 2 {
		t.Errorf("%+v, %v", list, err)
	}
}
