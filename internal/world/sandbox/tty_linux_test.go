package sandbox_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/tool"
)

// TestTerminalInABox checks that a terminal works inside a box, and that it can't be used to type into other terminals.
func TestTerminalInABox(t *testing.T) {
	env := boxes.Kept(t)
	if !env.Walls.Workspace {
		t.Skip("no workspace box here: " + env.Walls.Why)
	}
	var out bytes.Buffer
	script := `stty size; stty -echo; echo controls >/dev/tty; read -r x </dev/tty; echo "got $x"; touch written && echo written
		perl -e 'my $x = "x"; ioctl(STDIN, 0x5412, $x) or print "refused: $!\n"'`
	p, err := env.Procs.Start(t.Context(), tool.Command{
		Args: []string{"sh", "-c", script}, Dir: env.Root, Stdin: strings.NewReader("word\n"), Output: &out,
		TTY: tool.TTY{Rows: 10, Cols: 70}, Box: tool.Box{Level: tool.BoxWorkspace},
	})
	if err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(); code != 0 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	for _, want := range []string{"10 70\r\n", "controls\r\n", "got word\r\n", "written\r\n", "refused: Operation not permitted\r\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
}
