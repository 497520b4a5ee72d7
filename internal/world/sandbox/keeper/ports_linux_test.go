package keeper_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// greeter is a server that sends a word to each client.
const greeter = `import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = socket.socket(family)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], int(sys.argv[2])))
s.listen()
while True:
    c, _ = s.accept()
    c.sendall(sys.argv[3].encode() + b"\n")
    c.close()
`

// freePort is one that nothing of the machine listens on.
func freePort(t *testing.T) int {
	t.Helper()
	_, port, err := net.SplitHostPort(testkit.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// greeting is the word of a server of the machine; empty if there is none.
func greeting(host string, port int) string {
	c, err := net.DialTimeout("tcp", net.JoinHostPort(host, fmt.Sprint(port)), time.Second)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(testkit.Patience))
	line, _ := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line)
}

// greets waits until it says a word.
func greets(t *testing.T, host string, port int, want string) {
	t.Helper()
	got := ""
	testkit.WaitFor(t, fmt.Sprintf("%s, port %d to say %q", host, port, want), func() bool { got = greeting(host, port); return got == want },
		func() string { return fmt.Sprintf("it says %q", got) })
}

// TestPortsOfWhatIsKept reaches the ports of a kept command from the machine, while its session runs and afterwards,
// and nothing else of the session.
func TestPortsOfWhatIsKept(t *testing.T) {
	t.Parallel()
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	boxes.Put(t, env.Root, map[string]string{"greet.py": greeter})
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	go func() {
		for {
			c, err := taken.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "machine\n")
			_ = c.Close()
		}
	}()
	one, six, late, other, mine := freePort(t), freePort(t), freePort(t), freePort(t), taken.Addr().(*net.TCPAddr).Port
	vars := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	ended, end := context.WithCancel(context.Background())
	defer end()
	o, err := env.Procs.Start(ended, tool.Command{
		Args: []string{"bash", "-c", fmt.Sprintf("exec python3 greet.py 127.0.0.1 %d other", other)}, Dir: env.Root, Env: vars,
		Output: io.Discard, Box: boxes.Writable,
	})
	if err != nil {
		t.Fatal(err)
	}
	boxes.RunSoon(t, env, boxes.Writable, fmt.Sprintf("exec 9<>/dev/tcp/127.0.0.1/%d", other))
	p, err := env.Procs.Start(context.Background(), tool.Command{
		Args: []string{"bash", "-c", fmt.Sprintf(`python3 greet.py 0.0.0.0 %d four & python3 greet.py ::1 %d six & python3 greet.py 127.0.0.1 %d box &
			until [ -e go ]; do sleep 0.05; done; exec python3 greet.py 127.0.0.1 %d late`, one, six, mine, late)},
		Dir: env.Root, Env: vars, Output: io.Discard, Box: tool.Box{Level: tool.BoxWorkspace, Hosts: []string{"example.com"}}, Keep: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	greets(t, "127.0.0.1", one, "four")
	greets(t, "127.0.0.1", six, "six")
	boxes.RunSoon(t, env, boxes.Writable, fmt.Sprintf("read -r x 9<>/dev/tcp/127.0.0.1/%d <&9; test $x = box", mine))
	output := filepath.Join(t.TempDir(), "out")
	var kept ability.Kept
	ports, err := p.(ability.Keepable).Keep(output, func(k ability.Kept) error { kept = k; return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sandbox.EndKept(context.Background(), kept) }()
	told := map[int]string{}
	for _, p := range ports {
		told[p.Number] = p.Error
	}
	if len(told) != 3 || told[one]+told[six] != "" || !strings.Contains(told[mine], "another program") {
		t.Errorf("told of the ports: %v", ports)
	}
	if got := greeting("127.0.0.1", other); got != "" {
		t.Errorf("what is not kept says %q", got)
	}
	end()
	_, _ = o.Wait()
	if err := env.Close(); err != nil {
		t.Fatal(err)
	}
	greets(t, "127.0.0.1", one, "four")
	greets(t, "127.0.0.1", mine, "machine")
	boxes.Put(t, env.Root, map[string]string{"go": ""})
	greets(t, "127.0.0.1", late, "late")
	if said, err := os.ReadFile(output); err != nil || !strings.Contains(string(said), fmt.Sprintf("localhost:%d]", late)) {
		t.Errorf("a late port is told of as %q, %v", said, err)
	}
	if err := sandbox.EndKept(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	for _, port := range []int{one, six, late} {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Errorf("after the end: %v", err)
			continue
		}
		_ = l.Close()
	}
}
