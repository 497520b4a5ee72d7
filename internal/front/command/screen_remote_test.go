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

	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/testkit"
)

// serves runs a server until it is killed or the test ends, and returns its address.
func (h home) serves(t *testing.T, args ...string) (url string, server *testkit.Process) {
	t.Helper()
	server = testkit.Start(t, h.command(t.Context(), append([]string{"serve"}, args...)...))
	at := regexp.MustCompile(`serving tasks at (http[^;]*)/;`)
	server.WaitFor("the address", func() bool {
		m := at.FindStringSubmatch(server.Printed())
		if m != nil {
			url = m[1]
		}
		return m != nil
	})
	return url, server
}

// joins gives the shell the token of the server.
func (s *terminal) joins() {
	s.t.Helper()
	s.Prompts()
	s.Types("export INSPAN_REMOTE_TOKEN=$(cat $INSPAN_STATE_DIR/server.token)")
	s.Clears()
}

// TestScreenRemote drives a session of a server from the front end like one of this machine: it asks, is steered,
// queues and is interrupted. A second person sees it and answers. The server is killed in the middle and comes back:
// text typed meanwhile arrives once.
func TestScreenRemote(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	serve := func(listen string) (string, *testkit.Process) {
		return h.serves(t, "--model", "script", "--mode", "ask", "--listen", listen)
	}
	url, server := serve("127.0.0.1:0")
	s := newTerminal(t, h, 100, 30)
	s.joins()
	s.Types("inspan --remote " + url)
	s.Shows("on 127.0.0.1:", "say what to do")
	s.Types("say: heron")
	s.Shows("› say: heron", "■ done", "script/commands · 127.0.0.1:")
	s.idles()
	s.Types("bash: echo some; touch made")
	s.Shows("? bash asks", "`touch *` in this session (s)", "3 No (n)", "or say what to do instead")
	id := regexp.MustCompile(`\d{8}-\d{6}-\w{4}`).FindString(s.Shows("? bash asks"))

	// Another person is there too, and answers.
	other := newTerminal(t, h, 60, 20)
	other.joins()
	other.Types(fmt.Sprintf("inspan attach --remote %s %s", url, id))
	other.Shows("› owner: say: heron", "? bash asks", "or say what to do instead")
	other.Keys("y")
	other.Shows("✓ some", "■ done")
	s.Shows("answered by owner: bash is allowed", "✓ some")

	// A run that one has begun is the other's too.
	other.idles()
	other.Types("bash: sleep 4071")
	s.Shows("› owner: bash: sleep 4071", "▸ bash sleep 4071")
	other.Shows("▸ bash sleep 4071", "Enter steers the run")
	s.Types("say: steered")
	s.Shows("↳ steering: say: steered")
	s.Writes("say: queued")
	s.Keys("Tab")
	s.Shows("↳ queued: say: queued")
	s.Keys("Escape")
	s.Shows("› say: queued", "a queued message was taken back")
	s.Keys("C-u", "Escape")
	s.Shows("■ cancelled")
	other.Shows("■ cancelled")

	// Text that waits while the model answers is taken back at once, and an interrupt leaves none.
	s.idles()
	s.Writes("delay: 4000s")
	s.Keys("C-j")
	s.Types("say: never")
	s.Shows("› delay: 4000s\n  say: never", "working")
	for _, text := range []string{"say: one", "say: two"} {
		s.Writes(text)
		s.Keys("Tab")
		s.Shows("↳ queued: " + text)
	}
	s.Keys("Escape", "Escape")
	s.Shows("› say: one\n  say: two", "taken back\n■ cancelled")
	s.Keys("C-c")
	if text := s.Shows("› say what to do"); strings.Count(text, "■ cancelled") != 2 || strings.Contains(text, "› say: one") {
		t.Errorf("what was taken back ran:\n%s", text)
	}
	other.Keys("C-d")
	other.Shows("it stays open on the server; come back with: inspan attach", "end it with: inspan stop --remote "+url)

	// Pull the plug of the server in the middle of a run, and type on.
	s.idles()
	s.Types("bash: touch begun; sleep 4072")
	s.Shows("$ touch begun; sleep 4072", "or say what to do instead")
	s.Keys("y")
	s.Shows("▸ bash touch begun; sleep 4072")
	server.Kill()
	s.Shows("! the connection is lost: the server at "+url, "server away · ") // the reason depends on what was under way
	s.Types("say: typed while it was away")
	s.Shows("↳ steering: say: typed while it was away")
	_, server = serve(strings.TrimPrefix(url, "http://"))
	s.Shows("the connection is back", "› say: typed while it was away", "utcome unknown")
	s.idles()
	logs := h.does(t, 0, "sessions", "show", "--events", id)
	if n := strings.Count(logs, `"say: typed while it was away"`); n != 1 {
		t.Errorf("it was said %d times:\n%s", n, logs)
	}

	// Nothing runs, and the server goes away for good.
	server.Kill()
	s.Shows("server away · ")
	s.Types("say: never heard")
	s.Shows("↳ sending: say: never heard")
	s.Keys("C-d")
	s.Shows("session "+id, "not sent: say: never heard")
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
	t.Parallel()
	h := withoutModel(t)
	to := make(chan string, 1)
	link := slowly(t, to)
	url, _ := h.serves(t, "--model", "script", "--mode", "ask", "--listen", "127.0.0.1:0", "--host", link)
	to <- strings.TrimPrefix(url, "http://")
	s := newTerminal(t, h, 100, 50)
	s.joins()
	s.Types("inspan --remote http://" + link + " 'say: heron'")
	s.Shows("› say: heron", "■ done")
	here := "is not for sessions of a server: "
	table := []struct{ typed, want, then string }{
		{"/help", "show the model's last reasoning in full", "Escape"},
		{"/status", "server     http://" + link, ""},
		{"/config", "\nserver     http://" + link, ""},
		{"/sessions", "just now", ""},
		{"/reasoning", "the model has shown no reasoning yet", ""},
		{"/context", "reserved for the reply", ""},
		{"/cost", "total  ", ""},
		{"/usage", "total  ", ""},
		{"/rename the new name", "the session is called the new name", ""},
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
		{"/add-dir x", "/add-dir " + here, ""},
		{"/mode auto", "/mode " + here, ""},
		{"/plan", "/plan " + here, ""},
		{"/permissions", "/permissions " + here, ""},
		{"/compact", "/compact " + here, ""},
		{"/tools", "/tools " + here, ""},
		{"/team", "/team " + here + "its team is on the server", ""},
		{"/doctor", "/doctor " + here + "it is about this machine", ""},
		{"/undo", "no changes since then, according to the checkpoints", ""},
		{"/rewind", "rewind to before", "Escape"},
		{"/resume", "just now · ", "Escape"},
		{"/output-style concise", "it is for sessions on this machine", ""},
		{"/theme light", "tui.theme", ""},
		{"/vim off", "tui.vim", ""},
		{"/loop 1h say: egret", "loop at ", ""},
		{"/fork", "the loop has ended: its session is closed", ""},
		{"/new", "stays open on the server; /resume ", ""},
		{"/btw what is it?", "it asks in a copy on this machine", ""},
		{"/clear", "your next message starts a new session", ""},
		{"/close", "there is no task yet", ""},
		{"!ls", "! runs commands on this machine, and the session is on a server", ""},
		{"/exit", "$ ", ""},
	}
	tried := map[string]bool{"quit": true} // as exit
	for _, c := range table {
		s.idles()
		name, _, _ := strings.Cut(strings.TrimPrefix(c.typed, "/"), " ")
		tried[name] = true
		s.Writes(c.typed)
		s.Shows("› " + c.typed)
		s.Keys("Enter")
		s.Shows(c.want)
		if c.then != "" {
			s.Keys(c.then)
			testkit.WaitFor(t, "the list to close", func() bool { return strings.Contains(s.Screen(), "say what to do") }, s.Screen)
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
