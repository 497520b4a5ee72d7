//go:build linux

package command

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/tui"
)

// serves runs a server in a terminal until it is killed. It returns its address, and the shell knows
// the token.
func (s *terminal) serves(h home, listen string, more ...string) string {
	s.t.Helper()
	_ = os.Remove(filepath.Join(h.work, "served"))
	s.shows("$") // what is typed before would stand on two lines
	s.types("inspan serve --model script --mode ask --listen " + listen + " " + strings.Join(more, " ") + " </dev/null >served 2>&1 & SERVER=$!")
	at := regexp.MustCompile(`serving tasks at (http[^;]*)/;`)
	found := ""
	soon(s.t, "the server to serve", func() bool {
		raw, _ := os.ReadFile(filepath.Join(h.work, "served"))
		if m := at.FindSubmatch(raw); m != nil {
			found = string(m[1])
		}
		return found != ""
	})
	s.clears()
	return found
}

// joins gives the shell the token of the server.
func (s *terminal) joins() {
	s.t.Helper()
	s.shows("$")
	s.types("export INSPAN_REMOTE_TOKEN=$(cat $INSPAN_STATE_DIR/server.token)")
	s.clears()
}

// TestScreenRemote drives a session of a server from the front end as one of this machine: it asks,
// is steered, queues and is interrupted. A second person sees it and answers. The server is killed in
// the middle and comes back: what was typed meanwhile arrives once.
func TestScreenRemote(t *testing.T) {
	h := withoutModel(t)
	backstage := newTerminal(t, h, 100, 30)
	url := backstage.serves(h, "127.0.0.1:0")
	s := newTerminal(t, h, 100, 30)
	s.joins()
	s.types("inspan --remote " + url)
	s.shows("on 127.0.0.1:", "say what to do")
	s.types("say: heron")
	s.shows("› say: heron", "■ done", "script/commands · 127.0.0.1:")
	s.types("bash: echo some; touch made")
	s.shows("? bash asks", "rule for s: bash(touch *)", "y yes, once · s for this session · n no", "or say what to do instead")
	id := regexp.MustCompile(`\d{8}-\d{6}-\w{4}`).FindString(s.shows("? bash asks"))

	// Another person is there too, and answers.
	other := newTerminal(t, h, 60, 20)
	other.joins()
	other.types(fmt.Sprintf("inspan attach --remote %s %s", url, id))
	other.shows("› owner: say: heron", "? bash asks", "or say what to do instead")
	other.keys("y")
	other.shows("✓ some", "■ done")
	s.shows("answered by owner: bash is allowed", "✓ some")

	// A run that one has begun is the other's too.
	other.types("bash: sleep 4071")
	s.shows("› owner: bash: sleep 4071", "▸ bash sleep 4071")
	other.shows("▸ bash sleep 4071", "Enter steers the run")
	s.types("say: steered")
	s.shows("↳ steering: say: steered")
	s.tmux("send-keys", "-l", "say: queued")
	s.keys("Tab")
	s.shows("↳ queued: say: queued")
	s.keys("Escape")
	s.shows("› say: queued", "a queued message was taken back")
	s.keys("C-u", "Escape")
	s.shows("■ cancelled")
	other.shows("■ cancelled")

	// Text that waits while the model answers is taken back at once, and an interrupt leaves none.
	s.tmux("send-keys", "-l", "delay: 4000s")
	s.keys("C-j")
	s.types("say: never")
	s.shows("› delay: 4000s\n  say: never", "working")
	for _, text := range []string{"say: one", "say: two"} {
		s.tmux("send-keys", "-l", text)
		s.keys("Tab")
		s.shows("↳ queued: " + text)
	}
	s.keys("Escape", "Escape")
	s.shows("› say: one\n  say: two", "taken back\n■ cancelled")
	s.keys("C-c")
	if text := s.shows("› say what to do"); strings.Count(text, "■ cancelled") != 2 || strings.Contains(text, "› say: one") {
		t.Errorf("what was taken back ran:\n%s", text)
	}
	other.keys("C-d")
	other.shows("it stays open on the server; come back with: inspan attach", "end it with: inspan stop --remote "+url)

	// Pull the plug of the server in the middle of a run, and type on.
	s.types("bash: touch begun; sleep 4072")
	s.shows("$ touch begun; sleep 4072", "or say what to do instead")
	s.keys("y")
	s.shows("▸ bash touch begun; sleep 4072")
	backstage.types("kill -9 $SERVER; wait")
	s.shows("! the connection is lost: the server at "+url+" can't be reached", "server away · ")
	s.types("say: typed while it was away")
	s.shows("↳ steering: say: typed while it was away")
	backstage.serves(h, strings.TrimPrefix(url, "http://"))
	s.shows("the connection is back", "› say: typed while it was away", "utcome unknown")
	s.shows("■ done")
	logs := h.does(t, 0, "sessions", "show", "--events", id)
	if n := strings.Count(logs, `"say: typed while it was away"`); n != 1 {
		t.Errorf("it was said %d times:\n%s", n, logs)
	}

	// Nothing runs, and the server goes away for good.
	backstage.types("kill -9 $SERVER; wait")
	s.shows("server away · ")
	s.types("say: never heard")
	s.shows("↳ sending: say: never heard")
	s.keys("C-d")
	s.shows("session "+id, "not sent: say: never heard")
}

// slowly passes on connections to an address that comes later, a few bytes at a time, and returns its
// own.
func slowly(t *testing.T, to <-chan string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	pass := func(to io.WriteCloser, from io.ReadCloser) {
		defer to.Close()
		defer from.Close()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for some := make([]byte, 256); ; <-tick.C {
			n, err := from.Read(some)
			if _, bad := to.Write(some[:n]); bad != nil || err != nil {
				return
			}
		}
	}
	go func() {
		to := <-to
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			go pass(far, near)
			go pass(near, far)
		}
	}()
	return l.Addr().String()
}

// TestCommandsRemote runs every slash command in a session of a server over a slow link: each works,
// or says in a sentence why it can't.
func TestCommandsRemote(t *testing.T) {
	h := withoutModel(t)
	backstage := newTerminal(t, h, 100, 30)
	to := make(chan string, 1)
	link := slowly(t, to)
	to <- strings.TrimPrefix(backstage.serves(h, "127.0.0.1:0", "--host", link), "http://")
	s := newTerminal(t, h, 100, 50)
	s.joins()
	s.types("inspan --remote http://" + link + " 'say: heron'")
	s.shows("› say: heron", "■ done")
	here := "is not for sessions of a server: "
	table := []struct{ typed, want, then string }{
		{"/help", "list the keys, if the input is empty", ""},
		{"/status", "server     http://" + link, ""},
		{"/config", "\nserver     http://" + link, ""},
		{"/sessions", "just now", ""},
		{"/reasoning", "the model has shown no reasoning yet", ""},
		{"/context", "reserved for the reply", ""},
		{"/cost", "total  ", ""},
		{"/spend", "the system prompt", ""},
		{"/todo", "the todo list is empty", ""},
		{"/diff", "no file tool has changed a file", ""},
		{"/copy", "copied, if the terminal supports it", ""},
		{"/jobs", "no background jobs were started", ""},
		{"/subagents", "there are no subagents yet", ""},
		{"/export out.md", "written to " + h.work + "/out.md", ""},
		{"/continue", "the run is done; type a new task", ""},
		{"/model other", "/model " + here + "its model is chosen when it starts, with --model", ""},
		{"/effort low", "/effort " + here, ""},
		{"/mode auto", "/mode " + here, ""},
		{"/plan", "/plan " + here, ""},
		{"/permissions", "/permissions " + here, ""},
		{"/compact", "/compact " + here, ""},
		{"/tools", "/tools " + here, ""},
		{"/doctor", "/doctor " + here + "it is about this machine", ""},
		{"/undo", "no changes since then, according to the checkpoints", ""},
		{"/rewind", "rewind to before", "Escape"},
		{"/resume", "just now · ", "Escape"},
		{"/theme light", "tui.theme", ""},
		{"/vim off", "tui.vim", ""},
		{"/loop 1h say: egret", "loop at ", ""},
		{"/fork", "the loop has ended: its session is closed", ""},
		{"/new", "stays open on the server; /resume ", ""},
		{"/clear", "your next message starts a new session", ""},
		{"/close", "there is no task yet", ""},
		{"!ls", "! runs commands on this machine, and the session is on a server", ""},
		{"/exit", "$ ", ""},
	}
	tried := map[string]bool{"quit": true} // as exit
	for _, c := range table {
		name, _, _ := strings.Cut(strings.TrimPrefix(c.typed, "/"), " ")
		tried[name] = true
		s.tmux("send-keys", "-l", c.typed)
		s.shows("› " + c.typed)
		s.keys("Enter")
		s.shows(c.want)
		if c.then != "" {
			s.keys(c.then)
			soon(t, "the list to close", func() bool { return strings.Contains(s.tmux("capture-pane", "-p"), "say what to do") })
		}
	}
	for _, c := range tui.Commands() {
		if !tried[c.Name] {
			t.Errorf("nobody has tried /%s", c.Name)
		}
	}
	if _, err := os.Stat(filepath.Join(h.work, "out.md")); err != nil {
		t.Error(err)
	}
}
