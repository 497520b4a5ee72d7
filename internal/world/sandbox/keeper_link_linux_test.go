package sandbox

import (
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox/keeper"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
)

// TestEndsBeforeItBegins checks that a keeper ends, and leaves no command, whose inspan has ended when it had just
// asked for one.
func TestEndsBeforeItBegins(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	line, err := protocol.Encode(protocol.Request{Op: protocol.OpRun, N: 1, Files: 3, Order: &protocol.Order{Path: "/bin/sleep", Args: []string{"sleep", "300"}, Dir: "/"}})
	if err != nil {
		t.Fatal(err)
	}
	fd := int(null.Fd())
	for range 20 {
		keeper, conn, err := startKeeper(Options{Self: self}, keeper.Name, &syscall.SysProcAttr{Setsid: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := conn.WriteMsgUnix(line, unix.UnixRights(fd, fd, fd), nil); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		ended := make(chan error, 1)
		go func() { _, err := keeper.Wait(); ended <- err }()
		if err := testkit.Receive(t, "the end of the keeper", ended); err != nil {
			t.Fatal(err)
		}
	}
}
