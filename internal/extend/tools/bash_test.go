//go:build unix

package tools_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"
)

func TestBash(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	for command, want := range map[string]string{
		"echo a; echo b >&2":            "a\nb\n[exit code 0]",
		"true":                          "[no output]\n[exit code 0]",
		"printf x; exit 3":              "x\n[exit code 3]",
		"kill -9 $$":                    "[no output]\n[exit code 137, ended by signal 9]",
		"cat; echo $?":                  "0\n[exit code 0]",
		"echo \"$# $0\"":                "0 bash\n[exit code 0]",
		"printf '1%%\\r100%%\\n'":       "100%\n[exit code 0]",
		"printf '\\033[31mred\\033[0m'": "red\n[exit code 0]",
		"echo ${BASH_VERSION:0:1} >/dev/null; [[ a == a ]] && echo yes": "yes\n[exit code 0]",
		"exec echo gone":                  "gone\n[exit code 0]",
		"# only a comment":                "[no output]\n[exit code 0]",
		"cat <<EOF\nhere $((1+1))\nEOF":   "here 2\n[exit code 0]",
		"trap 'echo bye' EXIT; exit 4":    "bye\n[exit code 4]",
		"trap 'echo bye' EXIT":            "bye\n[exit code 0]",
		"set -e; false; echo not reached": "[no output]\n[exit code 1]",
		"set -u; echo $nope":              "bash: line 1: nope: unbound variable\n[exit code 127]",
		"exec 3>&1; echo three >&3":       "three\n[exit code 0]",
		"set -x; true":                    "++ true\n[exit code 0]",
	} {
		if got := s.run("bash", args{"command": command}); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
	says(t, s.run("bash", args{"command": "if; then"}), "syntax error", "[exit code ")
	s.fails("bash", args{"command": "  "}, "command is empty")
	s.fails("bash", args{"command": "a\x00b"}, "NUL")
}

// TestBashState checks the state that one command leaves for the next, however it ends.
func TestBashState(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	if err := os.Mkdir(s.path("a dir\nwith end"), 0o755); err != nil {
		t.Fatal(err)
	}
	steps := []struct{ command, want string }{
		{"cd 'a dir\nwith end'; export A=\"1\n2=3\" B=$'\\xff'; local_only=x; f() { :; }", "[now in " + s.path("a dir\nwith end") + "]"},
		{`printf '%s|%s|%s|%s' "$A" "${#B}" "$local_only" "$(type -t f)"; pwd`, "1\n2=3|1||" + s.path("a dir\nwith end")},
		{"cd ..; export A=exit; exit 7", "[exit code 7]\n[now in " + s.env.Root + "]"},
		{"echo $A; set -e; export A=errexit; cd /; false", "exit\n[exit code 1]\n[now in /]"},
		{"export A=syntax; if; then", "syntax error"},
		{"echo $A; cd -; unset A", "errexit\n" + s.env.Root + "\n"},
		{`echo "${A-unset}"; (cd /; export A=subshell)`, "unset\n[exit code 0]"},
		{`echo "${A-unset}"; PATH= ; IFS=; export PATH A=noPath`, "unset\n[exit code 0]"},
		{`echo "$A"; PATH=/usr/bin:/bin; set -fu; exec 9>&1; export A='*'`, "noPath"},
		{`echo "$A"; printf() { echo fooled; }; pwd() { echo /etc; }; n=1; IFS=1; export A=last`, "*"},
		{`echo "$A $SHLVL"; cd /tmp; kill -9 $$`, "last "},
		{`pwd; trap '' EXIT; export A=trap; cd /`, s.env.Root + "\n[exit code 0]\n[now in /]"},
		{`echo "$A"; env | grep -c INSPAN_CALL; env | grep __inspan`, "trap\n1\n[exit code 1]"},
	}
	for _, step := range steps {
		says(t, s.run("bash", args{"command": step.command}), step.want)
	}
}

func TestBashCwdGone(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.run("bash", args{"command": "mkdir d; cd d"})
	s.run("bash", args{"command": "rmdir ../d"})
	s.fails("bash", args{"command": "rm -rf *"}, "is gone", "nothing was run")
	if s.cwd != s.env.Root {
		t.Errorf("now in %s", s.cwd)
	}
	says(t, s.run("bash", args{"command": "pwd"}), s.env.Root)
}

// TestBashWithoutBash checks the way through plain sh.
func TestBashWithoutBash(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"sh", "env", "mkdir"} {
		real := "/bin/" + name
		if _, err := os.Stat(real); err != nil {
			real = "/usr/bin/" + name
		}
		if err := os.Symlink(real, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	s := newSession(t)
	says(t, s.run("bash", args{"command": "mkdir x; cd x; export A=1; exit 2"}), "[exit code 2]\n[now in "+s.path("x")+"]")
	says(t, s.run("bash", args{"command": "echo $A; echo $0; set -e; export A=2; false"}), "1\nsh\n[exit code 1]")
	says(t, s.run("bash", args{"command": "echo $A"}), "2\n[exit code 0]")
}

func TestBashSecretsStayIn(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "very-secret")
	s := newSession(t)
	if got := s.run("bash", args{"command": "env; cat /proc/self/environ 2>/dev/null"}); strings.Contains(got, "very-secret") {
		t.Error("a key of ours reached a command")
	}
	// Later commands get the variables that a command exports, and nothing else does.
	r, err := s.try(t.Context(), "bash", args{"command": "export TOKEN=hidden-token"})
	if err != nil || strings.Contains(r.Parts.Text(), "hidden-token") {
		t.Errorf("%q, %v", r.Parts.Text(), err)
	}
	says(t, s.run("bash", args{"command": "echo ${#TOKEN}"}), "12\n")
	if matches, err := filepath.Glob(s.path("*")); len(matches) > 0 || err != nil {
		t.Errorf("left in the workspace: %q, %v", matches, err)
	}
}

func TestBashLongOutput(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	for name, command := range map[string]string{
		"in memory": "seq 20000",
		"spilled":   "seq 200000",
	} {
		t.Run(name, func(t *testing.T) {
			got := s.run("bash", args{"command": command})
			if len(got) > 30_300 {
				t.Errorf("%d bytes are shown", len(got))
			}
			n := strings.TrimPrefix(command, "seq ")
			says(t, got, "1\n2\n3\n", " left out …]\n", "\n"+n+"\n[the whole output is in blob:sha256-", "; read_file can read that]\n[exit code 0]")
			_, blob, _ := strings.Cut(got, "is in ")
			blob, _, _ = strings.Cut(blob, ";")
			says(t, s.run("read_file", args{"path": blob, "offset": 12345, "limit": 1}), " 12345\t12345\n[lines 12345-12345 of "+n)
		})
	}
	s.env.Blobs = nil
	says(t, s.run("bash", args{"command": "seq 200000"}), "[the rest is lost]\n[exit code 0]")
}

// TestBashMoves checks that a command that takes too long continues as a job.
func TestBashMoves(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.shell.Soft = 2 * time.Second
	got := s.run("bash", args{"command": "echo first; until [ -e go ]; do sleep 0.02; done; echo second; cd /; exit 5"})
	says(t, got, "first\n[still running as job 1;")
	says(t, s.run("jobs", args{"action": "read"}), "[no new output]\n[job 1 running")
	s.fails("jobs", args{"action": "feed", "id": "1", "input": "x"}, "without an input")
	s.put("go", "")
	got = s.until("1", "ended after")
	says(t, got, "second\n", "[job 1 ended after", "[exit code 5]")
	if s.cwd != s.env.Root {
		t.Error("a job in the background changed the current directory")
	}
	s.shell.Soft, s.shell.Hard = 0, 200*time.Millisecond
	says(t, s.run("bash", args{"command": "sleep 60", "timeout": 600}), "[still running as job 2;")
}

// until reads a job until its output contains a text, and returns all of the output.
func (s *session) until(id, want string) string {
	s.t.Helper()
	all := ""
	testkit.WaitFor(s.t, fmt.Sprintf("job %s to say %q", id, want), func() bool {
		text := s.run("jobs", args{"action": "read", "id": id})
		if !strings.HasPrefix(text, "[no new output]") || strings.Contains(text, want) {
			all += text
		}
		return strings.Contains(all, want)
	}, func() string { return all })
	return all
}

func TestJobs(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	if got := s.run("jobs", args{"action": "list"}); got != "[no jobs]" {
		t.Errorf("got %q", got)
	}
	s.fails("jobs", args{"action": "read", "id": "1"}, "there are no jobs")
	says(t, s.run("bash", args{"command": "while read -r line; do echo \"got $line\"; done; echo end", "background": true}),
		"[still running as job 1;")
	s.fails("jobs", args{"action": "read", "id": "7"}, "the jobs are 1")
	s.fails("jobs", args{"action": "stop", "id": "1"}, "none of list, read, wait, feed, kill")
	says(t, s.run("jobs", args{"action": "feed", "id": "1", "input": "a\nb\n"}), "got a\ngot b\n[sent 4 bytes]\n[job 1 running")
	says(t, s.run("jobs", args{"action": "feed", "id": "1"}), "end\n[closed the input]\n")
	says(t, s.until("1", "[exit code 0]"))
	s.fails("jobs", args{"action": "feed", "id": "1", "input": "x"}, "has ended")
	says(t, s.run("bash", args{"command": "no-such-program", "background": true}), "not found", "[exit code 127]")
	says(t, s.run("bash", args{"command": "sleep 100", "background": true}), "job 2")
	says(t, s.run("jobs", args{"action": "list"}), "job 1: ended after", "job 2: running", ": sleep 100")
	says(t, s.run("jobs", args{"action": "kill", "id": "2"}), "[job 2 ended after", "signal 15")
	says(t, s.run("jobs", args{"action": "kill", "id": "2"}), "[job 2 ended after")
}

// TestFeedingInVain gives the reason why a job takes nothing.
func TestFeedingInVain(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	says(t, s.run("bash", args{"command": "sleep 100", "background": true}), "job 1")
	s.fails("jobs", args{"action": "feed", "id": "1", "input": strings.Repeat("x", 1<<20+1)},
		"the job does not read its input; nothing was added")
	s.run("jobs", args{"action": "feed", "id": "1"})
	s.fails("jobs", args{"action": "feed", "id": "1", "input": "x"}, "the standard input of the job is closed")
}

// TestInteractive feeds a command that asked a question in the foreground.
func TestInteractive(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	says(t, s.run("bash", args{"command": "read -r line; echo \"got $line\""}), "got \n") // no one can answer
	s.shell.Soft = 200 * time.Millisecond
	says(t, s.run("bash", args{"command": "read -r line; echo \"got $line\"", "interactive": true}), "[still running as job 1;")
	says(t, s.run("jobs", args{"action": "feed", "id": "1", "input": "an answer\n", "pattern": "got an answer", "seconds": 60}), "got an answer\n")
	says(t, s.until("1", "[exit code 0]"))
}

func TestTooManyJobs(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.shell.Soft = 10 * time.Millisecond
	for range 50 {
		says(t, s.run("bash", args{"command": "exec sleep 100"}), "still running")
	}
	s.fails("bash", args{"command": "echo here; exec sleep 100"}, "50 jobs running")
	s.run("jobs", args{"action": "kill", "id": "17"})
	says(t, s.run("bash", args{"command": "exec sleep 100"}), "job 51")
	if got := s.run("jobs", args{"action": "list"}); strings.Contains(got, "job 17:") {
		t.Error("the job that has ended was not forgotten")
	}
}

// pids reads process ids that a script has written to a file, one a line.
func (s *session) pids(name string, n int) (pids []int) {
	s.t.Helper()
	text := ""
	testkit.WaitFor(s.t, fmt.Sprintf("%d process ids in %s", n, name), func() bool {
		data, _ := os.ReadFile(s.path(name))
		text = string(data)
		return len(strings.Fields(text)) == n && strings.HasSuffix(text, "\n")
	}, func() string { return text })
	for w := range strings.FieldsSeq(text) {
		pid, err := strconv.Atoi(w)
		if err != nil {
			s.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// allGone checks that no process and no group of these ids is left.
func (s *session) allGone(pids []int) {
	s.t.Helper()
	for _, pid := range pids {
		testkit.WaitFor(s.t, fmt.Sprintf("process and group %d to end", pid), func() bool { return !alive(pid) })
	}
}

// alive reports whether a process or group of that id runs. What has ended and
// waits for init does not.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) && errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return !os.IsNotExist(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// stubborn is a command that ignores SIGTERM, has a child that does too, and a
// grandchild that left the group.
const stubborn = `trap '' TERM
sh -c 'trap "" TERM; echo $$ >>pids; while :; do sleep 0.05; done' &
setsid sh -c 'trap "" TERM HUP; echo $$ >>pids; exec >/dev/null 2>&1; while :; do sleep 0.05; done' &
echo $$ >>pids
echo started
while :; do sleep 0.05; done`

func TestBashCancel(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type outcome struct {
		text string
		err  error
	}
	done := make(chan outcome)
	go func() {
		r, err := s.try(ctx, "bash", args{"command": stubborn})
		done <- outcome{r.Parts.Text(), err}
	}()
	pids := s.pids("pids", 3)
	cancel()
	got := testkit.Receive(t, "the command to end", done)
	if !errors.Is(got.err, context.Canceled) || got.text != "started\n" {
		t.Errorf("got %q, %v", got.text, got.err)
	}
	s.allGone(pids)
}

func TestClose(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.shell.Soft = 300 * time.Millisecond
	says(t, s.run("bash", args{"command": stubborn, "background": true}), "job 1")
	says(t, s.run("bash", args{"command": strings.ReplaceAll(stubborn, "pids", "pids2")}), "job 2")
	s.shell.Soft = testkit.Patience
	left := "nohup sleep 300 >/dev/null 2>&1 & echo $! >>pids3; setsid sleep 300 >/dev/null 2>&1 & echo $! >>pids3"
	says(t, s.run("bash", args{"command": left}), "[exit code 0]")
	pids := append(append(s.pids("pids", 3), s.pids("pids2", 3)...), s.pids("pids3", 2)...)
	for _, pid := range pids {
		if !alive(pid) {
			t.Errorf("process %d has ended too early", pid)
		}
	}
	closed := make(chan bool, 1)
	go func() { s.shell.Close(); closed <- true }()
	testkit.Receive(t, "the shell to close", closed)
	s.allGone(pids)
	s.fails("bash", args{"command": "true"}, "session is closing")
	s.shell.Close()
}

func TestProgress(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	tl, c := s.call("bash", args{"command": "echo working; until [ -e go ]; do sleep 0.02; done; echo over"})
	seen := make(chan string, 100)
	c.Progress = func(text string) { seen <- text }
	go func() {
		if text := <-seen; text != "working\n" {
			t.Errorf("progress is %q", text)
		}
		s.put("go", "")
	}()
	if r, err := tl.Run(t.Context(), c); err != nil || !strings.HasPrefix(r.Parts.Text(), "working\nover\n") {
		t.Errorf("%q, %v", r.Parts.Text(), err)
	}
}

// TestBashLongCommand runs a command that is longer than an argument can be.
func TestBashLongCommand(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	text := strings.Repeat("é", 150_000)
	got := s.run("bash", args{"command": "echo $# \"$0\" \"${1-none}\"; cat >long <<'EOF'\n" + text + "\nEOF\nwc -c <long; exit 3"})
	says(t, got, "0 bash none\n300001\n[exit code 3]")
}
