package sandbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/inspan/inspan/internal/world/sandbox"
)

// leavesBehind is a program that is started as process 1: it leaves a process after that ends, says when that is
// reaped, and ends by SIGTERM.
func leavesBehind() {
	if ran, code := sandbox.RunAsInit(); ran {
		os.Exit(code)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	out, err := exec.Command("sh", "-c", "true >/dev/null & echo $!").Output()
	if err != nil {
		panic(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		panic(err)
	}
	for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
	}
	fmt.Println("process", os.Getpid(), "left one behind that is gone")
	<-signals
	os.Exit(7)
}

// TestFirst checks that a program that is process 1 reaps orphans, passes signals on, and ends with the exit code of
// its work.
func TestFirst(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), sandbox.Self())
	cmd.Env = append(os.Environ(), "SANDBOX_TEST_FIRST=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip("NO NAMESPACE OF PROCESSES CAN BE MADE HERE: ", err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(said, "process ") || strings.HasPrefix(said, "process 1 ") {
		t.Errorf("%q, %v", said, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("it ended as %v", cmd.ProcessState)
	}
}
