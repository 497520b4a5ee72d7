package main

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// apart is a machine that shares no folder with others: it has its own folder at the path of the house. Only root can
// make such machines.
func (h *house) apart() *house {
	h.t.Helper()
	if out, err := exec.Command("unshare", "-m", "true").CombinedOutput(); err != nil {
		h.t.Skipf("SKIPPED: only root can make mount namespaces, by util-linux: %v: %s", err, out)
	}
	return &house{t: h.t, dir: h.dir, store: h.store, own: h.t.TempDir()}
}

// command runs the program on the machine.
func (h *house) command(args ...string) *exec.Cmd {
	if h.own == "" {
		return exec.Command(program, args...)
	}
	const mounted = `mount --bind "$1" "$2" && cd "$2" && shift 2 && exec "$@"`
	return exec.Command("unshare", append([]string{"-m", "sh", "-c", mounted, "sh", h.own, h.dir, program}, args...)...)
}

// files is where the machine's files are, as the test sees them.
func (h *house) files(path ...string) string {
	if h.own == "" {
		return filepath.Join(append([]string{h.dir}, path...)...)
	}
	return filepath.Join(append([]string{h.own}, path...)...)
}

func gone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}

// TestServersApart has a server and two workers that share only the store. It kills a worker in the middle of a
// command: the other one continues with the workspace as the last finished command left it, and the server reports the
// commits at the end. When the task is over, workers keep nothing.
func TestServersApart(t *testing.T) { engines(t, apart) }

func apart(t *testing.T, engine ...string) {
	h := newHouse(t)
	origin := t.TempDir()
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--allow-empty", "-qm", "first"},
	} {
		if out, err := exec.Command("git", append([]string{"-C", origin}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	leads := h.apart()
	server := leads.serve(append(slices.Clone(engine), "--only", "api", "--folder", origin)...)
	server.says("leads the servers")
	machines, workers := []*house{h.apart(), h.apart()}, map[int]*house{}
	begin := func(m *house) *served {
		w := m.serve(append(slices.Clone(engine), "--only", "work")...)
		workers[w.cmd.Process.Pid] = m
		return w
	}
	for _, m := range machines {
		begin(m)
	}
	var made task
	in := map[string]any{
		"repository": map[string]any{"url": "file://" + origin}, "keep": "always", "timeout_seconds": 300,
		"prompt": "bash: echo one > a && git add a && git -c user.name=a -c user.email=a@example.com commit -qm one\n" +
			"bash: touch partial; until [ -e go ]; do sleep 0.05; done\n" +
			"bash: ls > listing; git log --format=%s >> listing\nsay: done",
	}
	server.h.until("a task", func() bool { return server.call(http.MethodPost, "/api/v1/tasks", in, &made) == http.StatusCreated })
	work := filepath.Join("state-tasks", made.ID)
	var on *house
	h.until("the command", func() bool {
		for _, m := range machines {
			if !gone(m.files(work, "partial")) {
				on = m
			}
		}
		return on != nil
	})
	driver := h.driver(server.reaches(made.ID, "running").Session)
	if workers[driver] != on {
		t.Fatalf("process %d drives the session", driver)
	}
	if err := syscall.Kill(driver, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var got struct {
		task
		Result struct {
			Evidence struct{ Commits []string }
		}
	}
	server.reaches(made.ID, "completed")
	if code := server.call(http.MethodGet, "/api/v1/tasks/"+made.ID, nil, &got); code != http.StatusOK {
		t.Fatal(code)
	}
	if c := got.Result.Evidence.Commits; len(c) != 1 || !strings.HasSuffix(c[0], " one") {
		t.Errorf("the server tells of the commits %q", c)
	}
	listing, err := os.ReadFile(leads.files(work, "listing"))
	if err != nil || string(listing) != "a\nlisting\none\nfirst\n" {
		t.Errorf("on the other machine the workspace was %q, %v", listing, err)
	}
	begin(on) // it sweeps what the one that was killed has left
	for _, m := range machines {
		h.until("the worker has cleared up", func() bool { return gone(m.files(work)) })
	}
	if code := server.call(http.MethodDelete, "/api/v1/tasks/"+made.ID+"/workspace", nil, nil); code/100 != 2 || !gone(leads.files(work)) {
		t.Errorf("the workspace is removed with %d, and is gone: %v", code, gone(leads.files(work)))
	}
	if code := server.call(http.MethodPost, "/api/v1/tasks", map[string]any{"prompt": "say: x", "folder": origin}, nil); code != http.StatusBadRequest {
		t.Errorf("a task in a folder of one machine: %d", code)
	}
}

// finds runs the doctor on a machine.
func (h *house) finds(want ...string) {
	h.t.Helper()
	cmd := h.command("doctor", "cluster")
	cmd.Env, cmd.Dir = h.env(), h.dir
	out, err := cmd.CombinedOutput()
	text := strings.Join(strings.Fields(string(out)), " ") // without its line breaks
	for _, what := range want {
		if err != nil || !strings.Contains(text, what) {
			h.t.Errorf("inspan doctor cluster: %v\n%s\nwithout %q", err, out, what)
		}
	}
}

// TestTwoCommands starts one command on each of two machines that share nothing but the URL of the store. They are a
// cluster: the second machine has no owner's token, and when the first is lost with its disk in the middle of a command,
// the second leads and continues with the workspace as the last finished command left it.
func TestTwoCommands(t *testing.T) {
	h := newHouse(t)
	one, other := h.apart(), h.apart()
	other.owner = one
	one.finds("no server has used this store yet", "no token yet; the first server makes", "a commit takes ", "0 sessions wait for one")
	first := one.serve()
	first.says("leads the servers")
	one.finds(first.url+" leads, and can be reached from here", "is that of the servers")
	other.finds("this machine has no token, and joins the servers with theirs")
	second := other.serve("--at-once", "1")
	second.says("standby;")
	var held []task
	for range 3 { // one of them is driven by the first machine
		held = append(held, second.begins("bash: echo one > a; echo none > effects\n"+
			"bash: cat /proc/sys/kernel/random/uuid > partial; until [ -e go ]; do sleep 0.05; done\nbash: ls > listing\nsay: done"))
	}
	folder := func(m *house, k task, name string) string { return m.files("state-tasks", k.ID, name) }
	var on task
	h.until("a command on the first machine", func() bool {
		for _, k := range held {
			if !gone(folder(one, k, "partial")) {
				on = k
			}
		}
		return on.ID != ""
	})
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	second.says("leads the servers")
	for _, k := range held {
		h.until("the end of "+k.ID, func() bool {
			for _, k := range held {
				if !gone(folder(other, k, "partial")) { // it is driven there
					_ = os.WriteFile(folder(other, k, "go"), nil, 0o600) // again if the folder is replaced
				}
			}
			return second.call(http.MethodGet, "/api/v1/tasks/"+k.ID, nil, &k) == http.StatusOK && k.Stage == "completed"
		})
	}
	listing, err := os.ReadFile(folder(other, on, "listing"))
	if err != nil || strings.Contains(string(listing), "partial") || !strings.Contains(string(listing), "a\n") {
		t.Errorf("on the second machine the workspace was %q, %v", listing, err)
	}
	if !gone(other.files("state", "server.token")) {
		t.Error("the second machine has an owner's token of its own")
	}
}
