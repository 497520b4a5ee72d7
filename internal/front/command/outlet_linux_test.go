package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/testkit"
)

// TestUnreadOutput asks commands to end whose output no one reads.
func TestUnreadOutput(t *testing.T) {
	h := newHome(t, "http://unused.invalid")
	suite := filepath.Join(h.dir, "suite", "one")
	for path, text := range map[string]string{"task.toml": "[check]\nanswer = \"x\"\n", "instruction.md": "say: x\n"} {
		if err := errors.Join(os.MkdirAll(suite, 0o755), os.WriteFile(filepath.Join(suite, path), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	say := h.command(t.Context(), "run", "--model", "script", "--mode", "yolo", "-")
	say.Stdin = bytes.NewReader(append([]byte("say: "), bytes.Repeat([]byte("x"), 300_000)...))
	if out, err := say.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, c := range map[string]struct {
		args  []string
		errs  bool   // standard error is not read, instead of standard output
		began string // a file that the command makes
	}{
		"logs":  {args: []string{"logs", "-f", "last"}},
		"serve": {args: []string{"serve", "--model", "script", "--listen", "127.0.0.1:0"}, errs: true, began: "state/server.token"},
		"eval": {
			args: []string{"eval", "run", filepath.Dir(suite), "--model", "script", "--mode", "auto"}, errs: true,
			began: "state/evals/*/run.json",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = errors.Join(out.Close(), in.Close()) }()
			ctx, end := context.WithTimeout(t.Context(), testkit.Patience)
			defer end()
			cmd := h.command(ctx, c.args...)
			full := fillPipe(t, in)
			if c.errs {
				cmd.Stderr = in
			} else {
				cmd.Stdout = in
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if c.began == "" { // it begins to write, and more than there is room for
				if _, err := io.ReadFull(out, make([]byte, full/2)); err != nil {
					t.Fatal(err)
				}
			}
			testkit.WaitFor(t, "the command begins", func() bool {
				found, _ := filepath.Glob(filepath.Join(h.dir, c.began))
				unread, err := unix.IoctlGetInt(int(out.Fd()), unix.TIOCINQ)
				return len(found) > 0 && err == nil && unread > full/2
			})
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			err = cmd.Wait()
			if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited || ctx.Err() != nil {
				t.Errorf("it does not end: %v", err)
			}
		})
	}
}

// fillPipe writes into a pipe until it takes no more, and returns how much it took.
func fillPipe(t *testing.T, in *os.File) (size int) {
	t.Helper()
	raw, err := in.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Write(func(fd uintptr) bool {
		for {
			n, full := syscall.Write(int(fd), make([]byte, 4096))
			if full != nil {
				return true
			}
			size += n
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}
