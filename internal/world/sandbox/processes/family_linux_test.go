package processes

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestFamilyOver checks that signals for a family that is gone reach no later one: a keeper runs one command after
// another.
func TestFamilyOver(t *testing.T) {
	rings := make(chan os.Signal, 1)
	next := exec.Command("cat")
	in, err := next.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	f := Family{Done: make(chan struct{})}
	f.Reap(rings, func(int, syscall.WaitStatus) {}) // there is no child
	if err := next.Start(); err != nil {
		t.Fatal(err)
	}
	f.strike()
	f.Kill()
	f.Terminate()
	if err := f.Signal(next.Process.Pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("a signal was sent: %v", err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := next.Wait(); err != nil {
		t.Errorf("who came next: %v", err)
	}
}
