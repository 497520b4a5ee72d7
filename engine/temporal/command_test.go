package temporal_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/inspan/inspan/engine/temporal"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
)

// TestCommand lets inspan-worker drive a session by the settings of its machine, and ends it by SIGTERM. Commands of
// the agent don't see the variables with which the worker reaches its database.
func TestCommand(t *testing.T) {
	p := newPlace(t, "")
	program := filepath.Join(t.TempDir(), "inspan-worker")
	if out, err := exec.Command("go", "build", "-o", program, "./cmd/inspan-worker").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Setenv("HOME", t.TempDir()) // not before: the caches of go are there
	t.Setenv("INSPAN_STATE_DIR", t.TempDir())
	a, err := app.Load(app.Self())
	if err != nil {
		t.Fatal(err)
	}
	a.Running.Sessions = p.store
	s, err := a.Host(app.Options{Model: "script", Mode: "yolo"}, func(string) {}).New(t.Context(), p.Conf.Root)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Send(t.Context(), event.Say("bash: echo yes > done; env >> done")), s.Close()); err != nil {
		t.Fatal(err)
	}
	w := exec.Command(program, "--temporal", p.Conf.Temporal, "--queue", p.Conf.Queue, "--schema", p.Conf.Schema)
	w.Env = append(os.Environ(), "INSPAN_STORE="+p.Conf.URL, "TEMPORAL_API_VERSION=secret")
	w.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if w.Stdout, w.Stderr, err = os.Stdout, os.Stderr, w.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Process.Kill() }()
	if err := p.client.Start(t.Context(), s.ID()); err != nil {
		t.Fatal(err)
	}
	p.stands(s.ID(), temporal.Done)
	did, err := os.ReadFile(filepath.Join(p.Conf.Root, "done"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(did)
	if !strings.HasPrefix(text, "yes\n") || strings.Contains(text, "INSPAN_STORE") || strings.Contains(text, "TEMPORAL_API") {
		t.Errorf("the command of the agent left %q", text)
	}
	if err := w.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(); err != nil {
		t.Error(err)
	}
}
