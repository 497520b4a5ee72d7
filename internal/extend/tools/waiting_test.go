//go:build unix

package tools_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/tool"
)

// ended returns the next job whose end the session has learned of.
func (s *session) ended() tool.JobEnd {
	s.t.Helper()
	return testkit.Receive(s.t, "the end of a job", s.ends)
}

// did makes a call and returns all that it brings.
func (s *session) did(name string, a args) tool.Result {
	s.t.Helper()
	r, err := s.try(s.t.Context(), name, a)
	if err != nil {
		s.t.Fatalf("%s %v: %v", name, a, err)
	}
	return r
}

// TestJobEnds follows a job to its end. The session learns of the end once, and the model in the first result that
// shows it.
func TestJobEnds(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	r := s.did("bash", args{
		"command":    "until [ -e go ]; do sleep 0.02; done; printf 'one\\nlast \\033[1mline\\033[m\\n\\n'; exit 3",
		"background": true,
	})
	if r.Job == nil || r.Job.ID != "1" || !strings.HasPrefix(r.Job.Command, "until ") || r.Exit != nil || len(r.EndedJobs) > 0 {
		t.Errorf("the beginning: %+v", r)
	}
	if r := s.did("jobs", args{"action": "list"}); len(r.EndedJobs) > 0 {
		t.Errorf("it runs, and %q is told to have ended", r.EndedJobs)
	}
	if err := os.WriteFile(s.path("go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	end := s.ended()
	if end.ID != "1" || end.Exit == nil || *end.Exit != 3 || end.Line != "last line" || end.Error != "" || end.Seconds <= 0 {
		t.Errorf("the end: %+v", end)
	}
	for _, action := range []string{"list", "read", "wait", "kill"} {
		if r := s.did("jobs", args{"action": action}); !slices.Equal(r.EndedJobs, []string{"1"}) {
			t.Errorf("%s tells the end of %q", action, r.EndedJobs)
		}
	}
	s.shell.Soft = 10 * time.Millisecond
	if r := s.did("bash", args{"command": "sleep 0.1; echo moved"}); r.Job == nil {
		t.Errorf("a command that takes long is no job: %+v", r)
	}
	if end := s.ended(); end.ID != "2" || end.Line != "moved" {
		t.Errorf("the end of the second: %+v", end)
	}
	if len(s.ends) > 0 {
		t.Errorf("more is said to have ended: %+v", <-s.ends)
	}
}

// TestWait waits in one call for an end, for a text and for a time.
func TestWait(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.did("bash", args{
		"command":    "for f in a b c; do until [ -e $f ]; do sleep 0.02; done; printf 'now (%s' $f; echo ')'; done",
		"background": true,
	})
	later := func(name string) {
		time.AfterFunc(300*time.Millisecond, func() { _ = os.WriteFile(s.path(name), nil, 0o644) })
	}
	later("a")
	says(t, s.run("jobs", args{"action": "wait", "id": "1", "pattern": `^now \(a\)$`, "seconds": 20}), "now (a)\n[job 1 running")
	later("b")
	says(t, s.run("jobs", args{"action": "wait", "pattern": "now (b", "seconds": 20}), "now (b", "[job 1 running") // no expression, so a text
	if got := s.run("jobs", args{"action": "wait", "pattern": "now .a", "seconds": 1}); !strings.Contains(got,
		"[waited 1s and the pattern has not come]\n[job 1 running") {
		t.Errorf("it was found in output that is old: %s", got)
	}
	later("c")
	says(t, s.run("jobs", args{"action": "wait", "pattern": "never"}), "now (c)\n[job 1 ended after", "[exit code 0]]")
	s.fails("jobs", args{"action": "wait", "id": "1", "seconds": -1}, "negative")
}

// TestWaitIsInterrupted leaves the job alone, and shows its output meanwhile.
func TestWaitIsInterrupted(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.did("bash", args{"command": "read -r line; echo \"got $line\"; sleep 100", "background": true})
	tl, c := s.call("jobs", args{"action": "wait", "id": "1"})
	shown := make(chan string, 100)
	c.Progress = func(text string) { shown <- text }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := tl.Run(ctx, c)
		done <- err
	}()
	s.did("jobs", args{"action": "feed", "id": "1", "input": "x\n"})
	if got := <-shown; got != "got x\n" {
		t.Errorf("shown was %q", got)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	says(t, s.run("jobs", args{"action": "list"}), "job 1: running")
}

// TestPatternInAFlood finds a pattern in passing output that is not kept.
func TestPatternInAFlood(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.did("bash", args{"command": "read -r _; seq 300000; printf 'the nee'; printf 'dle\\n'; seq 3000000; sleep 100", "background": true})
	says(t, s.run("jobs", args{"action": "feed", "id": "1", "input": "\n", "pattern": "^the needle$", "seconds": 60}), "[job 1 running")
}

// TestFeedAnswers returns a program's answer to its input, however long it takes.
func TestFeedAnswers(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.did("bash", args{
		"command":    "echo hello; while read -r line; do [ $line = slow ] && sleep 1; echo \"got $line\"; done",
		"background": true,
	})
	says(t, s.run("jobs", args{"action": "feed", "input": "one\n"}), "got one\n[sent 4 bytes]\n[job 1 running")
	says(t, s.run("jobs", args{"action": "feed", "input": "slow\n"}), "got slow\n")
	says(t, s.run("jobs", args{"action": "feed", "input": "two\nslow\n", "pattern": "got slow", "seconds": 20}), "got two\ngot slow\n")
	from := time.Now()
	says(t, s.run("jobs", args{"action": "feed", "input": "unfinished", "seconds": 5}), "[no new output]\n[sent 10 bytes]")
	if took := time.Since(from); took < 5*time.Second { // three, if nothing is said
		t.Errorf("it waited %v for an answer", took)
	}
}

// TestLeft reports whether a process that is not a job is still running.
func TestLeft(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	if r := s.did("bash", args{"command": "echo x"}); r.LeftProcesses {
		t.Error("nothing is left, and it is said that something is")
	}
	r := s.did("bash", args{"command": "sleep 300 >/dev/null 2>&1 & echo $! >pid"})
	if !r.LeftProcesses || r.Job != nil {
		t.Errorf("a process is left: %+v", r)
	}
	if r := s.did("bash", args{"command": "echo y"}); !r.LeftProcesses {
		t.Error("it is still there")
	}
	s.did("bash", args{"command": "kill $(cat pid); while kill -0 $(cat pid) 2>/dev/null; do sleep 0.01; done"})
	if r := s.did("bash", args{"command": "echo z"}); r.LeftProcesses {
		t.Error("it has ended, and is said to be left")
	}
}

// TestInherit hands the processes that a session leaves running to the session it works for, with which they end.
func TestInherit(t *testing.T) {
	t.Parallel()
	parent, child := newSession(t), newSession(t)
	child.did("bash", args{"command": "echo $$ >job; exec sleep 300", "background": true})
	child.did("bash", args{"command": "sleep 300 >/dev/null 2>&1 & echo $! >left"})
	pids := append(child.pids("job", 1), child.pids("left", 1)...)
	if kept, ended := child.shell.Leave(tools.Leaving{All: true, To: parent.shell}); len(kept)+len(ended) > 0 {
		t.Errorf("kept %+v, ended %+v", kept, ended)
	}
	for _, pid := range pids {
		if !alive(pid) {
			t.Errorf("process %d has ended with the child", pid)
		}
	}
	if r := parent.did("bash", args{"command": "true"}); !r.LeftProcesses {
		t.Error("the parent does not know of it")
	}
	if _, ended := parent.shell.Leave(tools.Leaving{None: true}); len(ended) != 2 {
		t.Errorf("ended are %+v", ended)
	}
	parent.allGone(pids)
}
