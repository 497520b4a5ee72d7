package server_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/server"
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
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); ; {
		status, raw, err := p.send("GET", "/readyz", "", nil)
		if err != nil {
			p.t.Fatal(err)
		}
		if status == want {
			return string(raw)
		}
		select {
		case <-tick.C:
		case <-late:
			p.t.Fatalf("readyz is %d %s, not %d\n%s", status, raw, want, p.printed)
		}
	}
}

// twoSteps is a prompt for a command that runs until a file is there, and one behind it.
const twoSteps = "bash: touch began; until [ -e go ]; do sleep 0.02; done; echo one >> done\nbash: echo two >> done"

// TestDiskFull holds that a disk without any room ends no task: what could not be written is tried
// again, requests are told to come again, the operator is told once, and when there is room all
// goes on.
func TestDiskFull(t *testing.T) {
	p := small(t, "12m", "--disk", "0", "--keep", "always")
	id := p.submit(server.Spec{Prompt: twoSteps})
	task := p.until(id, event.StageRunning)
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
	if p.call("GET", "/api/v1/tasks/"+id, nil, http.StatusOK, &task); task.Stage != event.StageRunning && task.Stage != event.StageWaiting {
		t.Errorf("the task is %s: %s", task.Stage, task.Why)
	}
	if err := os.Remove(p.inside("fill")); err != nil {
		t.Fatal(err)
	}
	p.ready(http.StatusOK)
	task = p.until(id, event.StageCompleted, event.StageFailed)
	if got, err := os.ReadFile(filepath.Join(p.inside("state-tasks"), id, "done")); err != nil ||
		task.Stage != event.StageCompleted || !strings.Contains(string(got), "two") {
		t.Errorf("%s %s: %q %v", task.Stage, task.Why, got, err)
	}
	if n := strings.Count(p.printed.String(), "no room to work"); n != 1 {
		t.Errorf("the operator is told %d times:\n%s", n, p.printed)
	}
}

// began waits until the first command of twoSteps runs.
func (p *process) began(id string) {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); ; {
		if _, err := os.Stat(filepath.Join(p.inside("state-tasks"), id, "began")); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			p.t.Fatalf("task %s never begins\n%s", id, p.printed)
		}
	}
}

// TestDiskFloor holds that with less room than must stay no task begins, that one at work rests
// between two calls and says why, and that both go on when there is room again.
func TestDiskFloor(t *testing.T) {
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
	if rests := p.until(works, event.StageWaiting); !strings.HasPrefix(rests.Why, "disk: ") {
		t.Errorf("it waits as %q", rests.Why)
	}
	if got, err := os.ReadFile(filepath.Join(p.inside("state-tasks"), works, "done")); err != nil || string(got) != "one\n" {
		t.Errorf("it goes on without room: %q %v", got, err)
	}
	var task server.Task
	if p.call("GET", "/api/v1/tasks/"+queued, nil, http.StatusOK, &task); task.Stage != event.StageSubmitted {
		t.Errorf("a task begins without room: %s", task.Stage)
	}
	if err := os.Remove(p.inside("fill")); err != nil {
		t.Fatal(err)
	}
	p.until(queued, event.StageCompleted)
	p.until(works, event.StageCompleted)
	if got, err := os.ReadFile(filepath.Join(p.inside("state-tasks"), works, "done")); err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("%q %v", got, err)
	}
	if said := p.printed.String(); !strings.Contains(said, "MiB free, and 32 must stay") || !strings.Contains(said, "there is room again") {
		t.Errorf("the operator is told:\n%s", said)
	}
}

// TestDiskQuota holds that a tenant whose workspaces hold more than they may has its work stopped
// for that reason and begins nothing, that another goes on, and that removing a workspace makes
// room.
func TestDiskQuota(t *testing.T) {
	h := newHouse(t, nil)
	red, blue := h.identity("ann", "red", server.Operator), h.identity("ann", "blue", server.Operator)
	works := red.submit(server.Spec{Prompt: "bash: head -c 3000000 /dev/urandom > big; echo all > written; until [ -e never ]; do sleep 0.02; done"}).ID
	h.appears(filepath.Join("..", "tasks", works, "written"), "all") // or the bound would cut it short
	h.call("PUT", "/api/v1/tenants/red", map[string]any{"disk": 1 << 20}, http.StatusOK, nil)
	task := red.until(works, event.StageFailed, event.StageCompleted)
	if task.Stage != event.StageFailed || !strings.HasPrefix(task.Why, "disk quota: ") {
		t.Errorf("%s: %s", task.Stage, task.Why)
	}
	var bounds struct{ Held, Disk int64 }
	if h.call("GET", "/api/v1/tenants/red", nil, http.StatusOK, &bounds); bounds.Held < 3000000 || bounds.Disk != 1<<20 {
		t.Errorf("%+v", bounds)
	}
	waits := red.submit(server.Spec{Prompt: "bash: true"}).ID
	blue.until(blue.submit(server.Spec{Prompt: "bash: true"}).ID, event.StageCompleted)
	if got := red.task(waits); got.Stage != event.StageSubmitted {
		t.Errorf("a task of a tenant without room is %s", got.Stage)
	}
	red.call("DELETE", "/api/v1/tasks/"+waits+"/workspace", nil, http.StatusConflict, nil)
	blue.call("DELETE", "/api/v1/tasks/"+works+"/workspace", nil, http.StatusNotFound, nil)
	red.call("DELETE", "/api/v1/tasks/"+works+"/workspace", nil, http.StatusNoContent, nil)
	red.until(waits, event.StageCompleted)
}
