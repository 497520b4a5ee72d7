package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/tool"
)

// TestNice checks that commands of an environment with lower priority yield to this program, in each box, and that
// others don't.
func TestNice(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	for nice, want := range map[int]string{0: strconv.Itoa(20 - own), 10: strconv.Itoa(min(19, 30-own))} {
		env, err := Local(t.TempDir(), nil, Options{Self: self, Nice: nice})
		if err != nil {
			t.Fatal(err)
		}
		for _, level := range []tool.Level{tool.BoxNone, tool.BoxRead, tool.BoxWorkspace} {
			if level == tool.BoxRead && !env.Walls.Read || level == tool.BoxWorkspace && !env.Walls.Workspace {
				t.Logf("THE %s BOX CAN'T BE BUILT HERE: %s", level, env.Walls.Why)
				continue
			}
			var out bytes.Buffer
			p, err := env.Procs.Start(t.Context(), tool.Command{
				Args: []string{"bash", "-c", "nice; nice & wait"}, Dir: env.Root, Env: []string{"PATH=" + os.Getenv("PATH")}, Box: tool.Box{Level: level}, Output: &out,
			})
			if err != nil {
				t.Fatal(err)
			}
			if code, err := p.Wait(); code != 0 || err != nil {
				t.Fatal(code, err)
			}
			if got := strings.Fields(out.String()); len(got) != 2 || got[0] != want || got[1] != want {
				t.Errorf("%s: the command runs at %q; want %s", level, got, want)
			}
		}
		if err := env.Close(); err != nil {
			t.Error(err)
		}
	}
}
