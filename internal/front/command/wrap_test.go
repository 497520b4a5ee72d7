package command

import (
	"bufio"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"github.com/inspan/inspan/internal/front/console"
)

// TestHelpFitsTheTerminal checks that help texts break between words in a terminal, but for examples, which are to be
// copied, and that nothing is lost.
func TestHelpFitsTheTerminal(t *testing.T) {
	for _, args := range []string{"--help", "help all", "help permissions", "run --help", "doctor --help", "help exit-codes", "serve --help"} {
		var whole strings.Builder
		if code := (Program{}).Main(strings.Fields(args), strings.NewReader(""), &whole, &whole); code != 0 {
			t.Fatalf("%s: exit %d: %s", args, code, whole.String())
		}
		for _, cells := range []uint16{80, 50} {
			got := onTerminal(t, cells, args)
			if a, b := strings.Fields(got), strings.Fields(whole.String()); strings.Join(a, " ") != strings.Join(b, " ") {
				t.Errorf("%s: at %d other words:\n%s", args, cells, got)
			}
			example := false
			for line := range strings.Lines(got) {
				line = strings.TrimRight(line, "\n")
				example = strings.HasPrefix(line, "Examples:") || strings.HasPrefix(line, "Usage:") || example && line != ""
				if n := ansi.StringWidth(line); n > int(cells) && !example && strings.Contains(strings.TrimSpace(line), " ") {
					t.Errorf("%s: %d cells at %d: %s", args, n, cells, line)
				}
			}
		}
	}
}

// onTerminal is the output of a command on a terminal with so many cells in a line.
func onTerminal(t *testing.T, cells uint16, args string) string {
	t.Helper()
	window, tty, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer window.Close()
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: cells}); err != nil {
		t.Fatal(err)
	}
	printed := make(chan string, 1)
	go func() {
		var b strings.Builder
		for s := bufio.NewScanner(window); s.Scan() && s.Text() != "END"; {
			b.WriteString(s.Text() + "\n")
		}
		printed <- b.String()
	}()
	Program{}.Main(strings.Fields(args), strings.NewReader(""), tty, tty)
	_, _ = tty.WriteString("END\n") // if it fails, nothing is read
	defer tty.Close()
	return <-printed
}

// TestHelpListsAll checks that 'inspan help all' lists every command that is there for people, and that shells offer
// few of them.
func TestHelpListsAll(t *testing.T) {
	_, all, _ := prints(t, "help", "all")
	offered := 0
	for _, cmd := range (&command{console: &console.Console{}}).root().Commands() {
		if cmd.IsAvailableCommand() || cmd.Name() == "help" {
			offered++
		}
		if cmd.Name() != "detached" && !strings.Contains(all, "\n  "+cmd.Name()+" ") {
			t.Errorf("%s is not in the help of all", cmd.Name())
		}
	}
	if offered != len(strings.Fields(shownCommands)) || offered > 25 {
		t.Errorf("%d commands are offered", offered)
	}
}
