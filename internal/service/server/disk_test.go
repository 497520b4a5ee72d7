package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/inspan/inspan/internal/delegate/subagent"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
)

// small starts a server whose state and workspaces are in so much memory. It skips where users may
// not have namespaces.
func small(t *testing.T, room string, args ...string) *process {
	t.Helper()
	if exec.CommandContext(t.Context(), "unshare", "-Urm", "true").Run() != nil {
		fmt.Fprintln(os.Stderr, "SKIPPED "+t.Name()+": no namespaces for users here")
		t.Skip("no namespaces for users here")
	}
	p := newProcess(t)
	p.room = room
	if err := os.Mkdir(filepath.Join(p.home, "room"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.start(args...)
	return p
}

// inside is a path of the memory, as it is seen from outside.
func (p *process) inside(name string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", p.cmd.Process.Pid), p.home, "room", name)
}

// fill writes a file of so many bytes, or as many as there is room for.
func (p *process) fill(bytes int) {
	p.t.Helper()
	if err := os.WriteFile(p.inside("fill"), make([]byte, bytes), 0o600); err != nil && !strings.Contains(err.Error(), "no space") {
		p.t.Fatal(err)
	}
}

// ready waits until the server says that it takes tasks, or that it does not.
func (p *process) ready(want int) (text string) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("/readyz answers %d", want), func() bool {
		status, raw, err := p.send("GET", "/readyz", "", nil)
		if err != nil {
			p.t.Fatal(err)
		}
		text = string(raw)
		return status == want
	})
	return text
}

// twoSteps is a prompt for a command that runs until a file is there, and one after it.
const twoSteps = "bash: touch began; until [ -e go ]; do sleep 0.02; done; echo one >> done\nbash: echo two >> done"

// TestDiskFull checks that a full disk ends no task: failed writes are repeated, requests are asked to come again, the
// operator gets one warning, and everything continues when there is room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	p := small(t, "12m", "--disk", "0", "--keep", "always")
	id := p.submit(server.Spec{Prompt: twoSteps})
	task := p.until(id, server.StageRunning)
	p.began(id)
	p.fill(64 << 20)
	if err := os.WriteFile(filepath.Join(p.inside("state-tasks"), id, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := p.ready(http.StatusServiceUnavailable); !strings.Contains(text, "no room") || strings.Contains(text, p.home) {
		t.Errorf("readyz says %s", text)
	}
	status, raw, err := p.send("POST", "/api/v1/tasks", "", server.Spec{Prompt: "bash: " + strings.Repeat("true; ", 20000)})
	if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(string(raw), "overloaded_error") ||
		strings.Contains(string(raw), p.home) {
		t.Errorf("a task on a full disk: %d %s", status, raw)
	}
	if p.call("GET", "/api/v1/tasks/"+id, nil, http.StatusOK, &task); task.Stage != server.StageRunning && task.Stage != server.StageWaiting {
		t.Errorf("the task is %s: %s", task.Stage, task.Why)
	}
	if err := os.Remove(p.inside("fill")); err != nil {
		t.Fatal(err)
	}
	p.ready(http.StatusOK)
	task = p.until(id, server.StageCompleted, server.StageFailed)
	if got, err := os.ReadFile(filepath.Join(p.inside("state-tasks"), id, "done")); err != nil ||
		task.Stage != server.StageCompleted || !strings.Contains(string(got), "two") {
		t.Errorf("%s %s: %q %v", task.Stage, task.Why, got, err)
	}
	if n := strings.Count(p.printed.String(), "no room to work"); n != 1 {
		t.Errorf("the operator is told %d times:\n%s", n, p.printed)
	}
}

// TestDiskFullMeanwhile checks that a task continues after a call that ran all the time in which there was no room.
func TestDiskFullMeanwhile(t *testing.T) {
	t.Parallel()
	p := small(t, "64m", "--disk", "32", "--keep", "always")
	id := p.submit(server.Spec{Prompt: twoSteps})
	p.began(id)
	p.fill(48 << 20)
	p.ready(http.StatusServiceUnavailable)
	if err := os.Remove(p.inside("fill")); err != nil {
		t.Fatal(err)
	}
	p.ready(http.StatusOK)
	if err := os.WriteFile(filepath.Join(p.inside("state-tasks"), id, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if task := p.until(id, server.StageCompleted, server.StageFailed); task.Stage != server.StageCompleted {
		t.Errorf("the task is %s: %s", task.Stage, task.Why)
	}
}

// began waits until the first command of twoSteps runs.
func (p *process) began(id string) {
	p.t.Helper()
	p.eventually("task "+id+" to begin", func() bool {
		_, err := os.Stat(filepath.Join(p.inside("state-tasks"), id, "began"))
		return err == nil
	})
}

// TestDiskFloor checks that with less room than required no task begins, that a running one pauses between two
// calls and gives the reason why, and that both continue when there is room again.
func TestDiskFloor(t *testing.T) {
	t.Parallel()
	p := small(t, "64m", "--disk", "32", "--keep", "always")
	works := p.submit(server.Spec{Prompt: twoSteps})
	p.began(works)
	p.fill(48 << 20)
	if text := p.ready(http.StatusServiceUnavailable); !strings.Contains(text, "no room") {
		t.Errorf("readyz says %s", text)
	}
	queued := p.submit(server.Spec{Prompt: "bash: echo one >> done"})
	if err := os.WriteFile(filepath.Join(p.inside("state-tasks"), works, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if rests := p.until(works, server.StageWaiting); !strings.HasPrefix(rests.Why, "disk: ") {
		t.Errorf("it waits as %q", rests.Why)
	}
	if got, err := os.ReadFile(filepath.Join(p.inside("state-tasks"), works, "done")); err != nil || string(got) != "one\n" {
		t.Errorf("it goes on without room: %q %v", got, err)
	}
	var task server.Task
	if p.call("GET", "/api/v1/tasks/"+queued, nil, http.StatusOK, &task); task.Stage != server.StageSubmitted {
		t.Errorf("a task begins without room: %s", task.Stage)
	}
	if err := os.Remove(p.inside("fill")); err != nil {
		t.Fatal(err)
	}
	p.until(queued, server.StageCompleted)
	p.until(works, server.StageCompleted)
	if got, err := os.ReadFile(filepath.Join(p.inside("state-tasks"), works, "done")); err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("%q %v", got, err)
	}
	if said := p.printed.String(); !strings.Contains(said, "MiB free, and 32 must stay") || !strings.Contains(said, "there is room again") {
		t.Errorf("the operator is told:\n%s", said)
	}
}

// TestDiskQuota checks that the work of a tenant over its quota is stopped for that reason and begins nothing, that
// another tenant continues, and that removing a workspace makes room.
func TestDiskQuota(t *testing.T) {
	t.Parallel()
	t.Run("folders", func(t *testing.T) { diskQuota(t, nil) })
	t.Run("travelling", func(t *testing.T) { diskQuota(t, (*server.Server).Travel) })
}

func diskQuota(t *testing.T, set func(*server.Server)) {
	t.Parallel()
	h := newHouse(t, set)
	red, blue := h.identity("ann", "red", server.Operator), h.identity("ann", "blue", server.Operator)
	works := red.submit(server.Spec{Prompt: "bash: head -c 3000000 /dev/urandom > big; echo all > written; until [ -e never ]; do sleep 0.02; done"}).ID
	h.appears(filepath.Join("..", "tasks", works, "written"), "all") // or the bound would cut it short
	h.call("PUT", "/api/v1/tenants/red", map[string]any{"disk": 1 << 20}, http.StatusOK, nil)
	task := red.until(works, server.StageFailed, server.StageCompleted)
	if task.Stage != server.StageFailed || !strings.HasPrefix(task.Why, "disk quota: ") {
		t.Errorf("%s: %s", task.Stage, task.Why)
	}
	var bounds struct{ Held, Disk int64 }
	if h.call("GET", "/api/v1/tenants/red", nil, http.StatusOK, &bounds); bounds.Held < 3000000 || bounds.Disk != 1<<20 {
		t.Errorf("%+v", bounds)
	}
	waits := red.submit(server.Spec{Prompt: "bash: true"}).ID
	blue.until(blue.submit(server.Spec{Prompt: "bash: true"}).ID, server.StageCompleted)
	if got := red.task(waits); got.Stage != server.StageSubmitted {
		t.Errorf("a task of a tenant without room is %s", got.Stage)
	}
	red.call("DELETE", "/api/v1/tasks/"+waits+"/workspace", nil, http.StatusConflict, nil)
	blue.call("DELETE", "/api/v1/tasks/"+works+"/workspace", nil, http.StatusNotFound, nil)
	red.call("DELETE", "/api/v1/tasks/"+works+"/workspace", nil, http.StatusNoContent, nil)
	red.until(waits, server.StageCompleted)
}

// TestDiskFaults holds that a disk that fails for a while, or a quota that is used up, ends no task
// and loses nothing that the server has said yes to: requests are told to come again, and what they
// were about is there once, now and for the next server.
//
// One of the faults is none that anybody would think of: whatever the system says, the disk has failed.
//
// strace injects the faults into what the real command does with its book, until it is ended.
func TestDiskFaults(t *testing.T) {
	t.Parallel()
	strace := tracer(t)
	kinds := []string{"write:error=EDQUOT", "fdatasync:error=ENOSYS", "write:error=EIO", "fdatasync:error=EIO"}
	if testing.Short() {
		kinds = kinds[:2] // make test-long has them all
	}
	for _, fault := range kinds {
		t.Run(strings.ReplaceAll(fault, ":", " "), func(t *testing.T) {
			t.Parallel()
			p := newProcess(t)
			call, _, _ := strings.Cut(fault, ":")
			p.under = []string{
				strace, "-I", "2", "-D", "-f", "-qq", "-o", os.DevNull,
				"-P", filepath.Join(p.state(), "sessions", "book-server", "log.jsonl"),
				"-e", "trace=" + call, "-e", "inject=" + fault + ":when=3+", // of each thread
			}
			p.start("--keep", "always")
			const tasks, faults = 12, 3
			ids, refused := []string{}, 0
			p.eventually("all tasks to be taken", func() bool {
				key := fmt.Sprint("key ", len(ids))
				status, raw, err := p.send("POST", "/api/v1/tasks", key, server.Spec{Prompt: "say: done"}) // a command would be traced, too
				var made server.Task
				switch {
				case err == nil && status == http.StatusCreated && json.Unmarshal(raw, &made) == nil:
					ids = append(ids, made.ID)
				case err == nil && status == http.StatusServiceUnavailable && strings.Contains(string(raw), "overloaded_error"):
					if refused++; refused == faults {
						p.ready(http.StatusServiceUnavailable)
						p.untrace()
					}
				default:
					t.Fatalf("a task on a disk that fails: %d %s %v", status, raw, err)
				}
				return len(ids) == tasks
			})
			if refused < faults {
				t.Errorf("only %d requests have met the fault", refused)
			}
			for _, id := range ids {
				if task := p.until(id, server.StageCompleted, server.StageFailed); task.Stage != server.StageCompleted {
					t.Errorf("a task is %s: %s", task.Stage, task.Why)
				}
			}
			p.ready(http.StatusOK)
			p.kill()
			p.under = nil
			p.start("--keep", "always")
			if n := p.count(server.StageCompleted); n != tasks {
				t.Errorf("the next server knows of %d tasks that are done, not %d", n, tasks)
			}
			if ids = slices.Compact(slices.Sorted(slices.Values(ids))); len(ids) != tasks {
				t.Errorf("the server has said yes to %d different tasks, not %d", len(ids), tasks)
			}
		})
	}
}

// untrace ends the program that traces the server.
func (p *process) untrace() {
	p.t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "TracerPid:")
	tracer, err := strconv.Atoi(strings.TrimSpace(rest[:strings.IndexByte(rest, '\n')]))
	if err != nil || tracer == 0 {
		p.t.Fatalf("nothing traces the server: %v", err)
	}
	strace, err := os.FindProcess(tracer)
	if err == nil {
		err = strace.Signal(os.Interrupt)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// TestSessionDiskFault checks that a temporary fault of the disk under a session's log loses nothing: a message is
// refused or accepted, a repeated one counts once, no call is made twice, and the task continues.
func TestSessionDiskFault(t *testing.T) {
	t.Parallel()
	strace := tracer(t)
	for _, fault := range []string{"write:error=EIO", "fdatasync:error=EIO"} {
		t.Run(strings.ReplaceAll(fault, ":", " "), func(t *testing.T) {
			t.Parallel()
			p := newProcess(t)
			p.start("--keep", "always")
			id := p.submit(server.Spec{Prompt: "say: heron", Open: true})
			task := p.until(id, server.StageIdle)
			say := func(key, text string) (status int, raw []byte) {
				status, raw, err := p.send("POST", "/api/v1/tasks/"+id+"/messages", key, map[string]string{"text": text})
				if err != nil {
					t.Fatal(err)
				}
				return status, raw
			}
			call, _, _ := strings.Cut(fault, ":")
			fail := func() (heal func()) {
				trace := exec.CommandContext(t.Context(), strace, "-I", "2", "-f", "-qq", "-o", os.DevNull,
					"-P", filepath.Join(p.state(), "sessions", task.Session, "log.jsonl"),
					"-e", "trace="+call, "-e", "inject="+fault, "-p", strconv.Itoa(p.cmd.Process.Pid))
				if err := trace.Start(); err != nil {
					t.Fatal(err)
				}
				p.traced()
				return func() {
					p.untrace()
					_ = trace.Wait() // it was interrupted
				}
			}

			const once = "bash: echo egret >> birds"
			heal := fail()
			if status, raw := say("key", once); status != http.StatusServiceUnavailable {
				t.Errorf("a message that can't be kept: %d %s", status, raw)
			}
			heal()
			p.eventually("a message is taken", func() bool {
				status, _ := say("key", once)
				return status/100 == 2
			})
			birds := func() string {
				raw, _ := os.ReadFile(filepath.Join(task.Workspace, "birds"))
				return string(raw)
			}
			p.eventually("the message is heard", func() bool { return birds() != "" })
			p.idles(id)

			if status, raw := say("", "bash: touch begun; until test -e go; do sleep 0.1; done; echo ibis >> birds\nsay: wren"); status/100 != 2 {
				t.Fatalf("%d %s", status, raw)
			}
			p.eventually("the call runs", func() bool {
				_, err := os.Stat(filepath.Join(task.Workspace, "begun"))
				return err == nil
			})
			heal = fail()
			if err := os.WriteFile(filepath.Join(task.Workspace, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			p.until(id, server.StageWaiting)
			heal()
			p.idles(id)
			if made := birds(); made != "egret\nibis\n" || !strings.Contains(p.said(task.Session), "wren") {
				t.Errorf("the task has made %q:\n%s", made, p.said(task.Session))
			}
		})
	}
}

// idles waits until an open task has nothing more to do.
func (p *process) idles(id string) {
	p.t.Helper()
	p.eventually("the task goes on", func() bool {
		var task server.Task
		p.call("GET", "/api/v1/tasks/"+id, nil, http.StatusOK, &task)
		return task.Stage == server.StageIdle
	})
}

// eventually waits until something is so.
func (p *process) eventually(what string, is func() bool) {
	p.t.Helper()
	testkit.WaitFor(p.t, what, func() bool {
		select {
		case <-p.ended:
			p.t.Fatalf("the server has ended before %s\n%s", what, p.printed)
		default:
		}
		return is()
	}, p.stacks)
}

// stacks ends a server that a test has waited for in vain. It returns the state of each of its threads, as a tracer may
// have left one stopped, and its output, which includes the stacks of its goroutines.
func (p *process) stacks() (all string) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.cmd.Process.Pid))
	if err != nil {
		return err.Error()
	}
	for _, thread := range threads {
		raw, _ := os.ReadFile(thread) // it may have ended
		_, state, _ := strings.Cut(string(raw), "State:")
		state, _, _ = strings.Cut(state, "\n")
		all += thread + state + "\n"
	}
	_ = p.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
	testkit.Poll(testkit.Patience, func() bool {
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	})
	return all + p.printed.String()
}

// tracer is the path of strace. It skips where that can't trace.
func tracer(t *testing.T) string {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil || exec.CommandContext(t.Context(), strace, "-D", "-f", "-o", os.DevNull, "true").Run() != nil {
		fmt.Fprintln(os.Stderr, "SKIPPED "+t.Name()+": strace is missing or can't trace here (apt-get install strace)")
		t.Skip("no strace")
	}
	return strace
}

// traced waits until all threads of the server are traced.
func (p *process) traced() {
	p.t.Helper()
	p.eventually("all threads are traced", func() bool {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.cmd.Process.Pid))
		return len(files) > 0 && !slices.ContainsFunc(files, func(file string) bool {
			raw, _ := os.ReadFile(file)
			return strings.Contains(string(raw), "TracerPid:\t0\n")
		})
	})
}

// TestUnmergedCopies checks that a workspace is removed with the copies in which agents of its task have worked, and
// stays while one of them has unmerged changes, unless these are to be deleted.
func TestUnmergedCopies(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // where copies lie
	trees := subagent.Copies()
	h := newHouse(t, func(s *server.Server) { s.Trees = trees })
	left := func() int {
		entries, _ := os.ReadDir(trees.Dir)
		return len(entries)
	}
	run := func(child string, keep server.Keep) server.Task {
		return h.until(h.submit(server.Spec{Keep: keep, Prompt: "bash: git init -q . && git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m a\n" +
			`call: spawn_agent {"isolation":"worktree","task":"` + child + `"}`}).ID, server.StageCompleted)
	}
	there := func(task server.Task) bool {
		_, err := os.Stat(filepath.Join(h.s.Dir, task.ID))
		return err == nil
	}
	const changes = "bash: echo new > made"
	for _, c := range []struct {
		child string
		keep  server.Keep
		stays bool
	}{
		{"say: nothing", server.KeepFailed, false},
		{changes, server.KeepNever, false},
		{changes, server.KeepFailed, true},
	} {
		task := run(c.child, c.keep)
		testkit.WaitFor(t, "the workspace and its copies to stay or go", func() bool { return there(task) == c.stays && (left() > 0) == c.stays })
		if !c.stays {
			continue
		}
		at := "/api/v1/tasks/" + task.ID + "/workspace"
		h.call("DELETE", at, nil, http.StatusConflict, nil)
		if !there(task) || left() != 1 {
			t.Fatal("what was refused has been done")
		}
		h.call("DELETE", at+"?discard=true", nil, http.StatusNoContent, nil)
		if there(task) || left() != 0 {
			t.Errorf("the workspace is there: %v, with %d copies", there(task), left())
		}
	}
}
