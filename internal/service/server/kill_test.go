package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
)

// process is the real command, which is killed and started again.
type process struct {
	t         testing.TB
	bin, home string
	token     string
	room      string   // size of the memory that holds all that it keeps; empty means it is on the disk of the home
	under     []string // the program that the command runs under, with its arguments; empty means none
	addr      string
	cmd       *exec.Cmd
	ended     chan struct{} // closed when the command has ended
	printed   printed
}

// printed is the file with the command's standard error.
type printed string

func (p printed) String() string {
	raw, err := os.ReadFile(string(p))
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func newProcess(t testing.TB) *process {
	t.Helper()
	if testkit.Race {
		t.Skip("the servers are processes, and run without the race detector")
	}
	p := &process{t: t, bin: testkit.Command(t), home: t.TempDir(), token: ownersToken, addr: testkit.Address(t)}
	if err := os.MkdirAll(filepath.Join(p.home, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.home, "state", "server.token"), []byte(ownersToken), 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Findings(t, p.bin, filepath.Join(p.home, "state"))
	t.Cleanup(p.kill)
	return p
}

// start starts the server and waits until it takes requests.
func (p *process) start(args ...string) {
	p.t.Helper()
	args = append([]string{"serve", "--model", "script", "--mode", "auto", "--listen", p.addr}, args...)
	p.cmd = exec.CommandContext(context.WithoutCancel(p.t.Context()), p.bin, args...)
	if p.room != "" { // mounts of its own, as in a container
		script := `umask 077; mount -t tmpfs -o size=$ROOM x "${INSPAN_STATE_DIR%/*}" && mkdir "$INSPAN_STATE_DIR" &&
			printf %s "$CARD" >"$INSPAN_STATE_DIR/server.token" && exec "$0" "$@"`
		p.cmd.Path, p.cmd.Args = "/usr/bin/unshare", append([]string{"unshare", "-Urm", "sh", "-c", script}, p.cmd.Args...)
	}
	if len(p.under) > 0 {
		p.cmd.Path, p.cmd.Args = p.under[0], append(slices.Clone(p.under), p.cmd.Args...)
	}
	p.cmd.Env = []string{
		"ROOM=" + p.room, "CARD=" + p.token,
		"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "INSPAN_STATE_DIR=" + p.state(),
		"INSPAN_CONFIG_DIR=" + filepath.Join(p.home, "config"),
	}
	p.printed = printed(filepath.Join(p.home, "printed"))
	file, err := os.Create(string(p.printed))
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd.Stderr = file
	if err := errors.Join(p.cmd.Start(), file.Close()); err != nil {
		p.t.Fatal(err)
	}
	cmd, ended := p.cmd, make(chan struct{})
	p.ended = ended
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	p.eventually("the server to start", func() bool {
		res, err := http.Get("http://" + p.addr + "/readyz")
		if err == nil {
			_ = res.Body.Close()
		}
		return err == nil
	})
}

// state is the state folder.
func (p *process) state() string {
	if p.room != "" {
		return filepath.Join(p.home, "room", "state")
	}
	return filepath.Join(p.home, "state")
}

// kill kills the server.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	p.cmd = nil
}

// send sends a request; an error is one of the connection.
func (p *process) send(method, path, key string, body any) (int, []byte, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(p.t.Context(), method, "http://"+p.addr+path, strings.NewReader(string(raw)))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if body == nil {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	raw, err = io.ReadAll(res.Body)
	return res.StatusCode, raw, err
}

// follow reads the events of a task over all deaths of the server, until its run has stopped.
func (p *process) follow(id string) (seqs []uint64) {
	for p.t.Context().Err() == nil {
		after := uint64(0)
		if len(seqs) > 0 {
			after = seqs[len(seqs)-1]
		}
		if p.read(id, after, func(seq uint64) { seqs = append(seqs, seq) }) {
			return seqs
		}
	}
	return seqs
}

// read reads one stream, and reports whether it came to the end.
func (p *process) read(id string, after uint64, saw func(uint64)) bool {
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "http://"+p.addr+"/api/v1/tasks/"+id+"/events", nil)
	if err != nil {
		return true
	}
	req.Header.Set("Authorization", "Bearer "+ownersToken)
	req.Header.Set("Last-Event-ID", strconv.FormatUint(after, 10))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		select {
		case <-time.After(5 * time.Millisecond): // as clients do
		case <-p.t.Context().Done():
		}
		return false
	}
	defer res.Body.Close()
	seq, kind := uint64(0), ""
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
		case "id":
			seq, _ = strconv.ParseUint(value, 10, 64)
		case "event":
			kind = value
		case "":
			if seq > 0 {
				saw(seq)
			}
			if kind == "stopped" {
				return true
			}
			seq, kind = 0, ""
		}
	}
	return false
}

// kills is how often the server dies in a test; INSPAN_KILLS says another number.
func kills(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("INSPAN_KILLS"))
	switch {
	case err != nil && testing.Short():
		return 6
	case err != nil:
		return 12
	}
	t.Logf("%d kills", n)
	return n
}

// TestKill kills the real server at random moments with many tasks. Every task ends, no call is made twice, no task
// is there twice, and clients that continue after their last event see each event once.
func TestKill(t *testing.T) {
	t.Parallel()
	tasks := 30
	if testing.Short() {
		tasks = 12
	}
	times := kills(t)
	steps := max(12, times) // so that there is work left when it dies last
	p := newProcess(t)
	p.start("--keep", "always", "--at-once", "6")
	ids := make([]string, tasks)
	submitted := make(chan struct{})
	go func() { // while the server dies
		defer close(submitted)
		for i := range ids {
			var prompt []string
			for n := range steps {
				prompt = append(prompt, fmt.Sprintf("bash: echo %d >> log; sleep 0.0%d", n, 1+n%3))
			}
			for ids[i] == "" && t.Context().Err() == nil {
				spec := server.Spec{Prompt: strings.Join(prompt, "\n")}
				if status, raw, err := p.send("POST", "/api/v1/tasks", strconv.Itoa(i), spec); err == nil && status == http.StatusCreated {
					var made server.Task
					if json.Unmarshal(raw, &made) == nil {
						ids[i] = made.ID
					}
				}
			}
		}
	}()
	<-submitted
	followed := make([][]uint64, 4)
	var readers sync.WaitGroup
	for i := range followed {
		readers.Go(func() { followed[i] = p.follow(ids[i*tasks/len(followed)]) })
	}
	for range times {
		<-time.After(time.Duration(rand.IntN(400)) * time.Millisecond) //nolint:gosec // any moment
		p.kill()
		p.start("--keep", "always", "--at-once", "6")
	}
	t.Logf("%d of %d tasks had ended when it died last", p.count(server.StageCompleted), tasks)
	for i, id := range ids {
		p.ends(i, id, steps)
	}
	readers.Wait()
	for _, seqs := range followed {
		for i, seq := range seqs {
			if seq != uint64(i)+1 {
				t.Errorf("events %v", seqs)
				break
			}
		}
	}
	var list struct{ Tasks []server.Task }
	if _, raw, err := p.send("GET", "/api/v1/tasks?limit=1000", "", nil); err != nil || json.Unmarshal(raw, &list) != nil || len(list.Tasks) != tasks {
		t.Errorf("%d tasks are there: %v", len(list.Tasks), err)
	}
}

// ends waits for the end of a task and checks its work.
func (p *process) ends(i int, id string, steps int) {
	p.t.Helper()
	var task server.Task
	testkit.WaitFor(p.t, fmt.Sprintf("task %d to end", i), func() bool {
		if _, raw, err := p.send("GET", "/api/v1/tasks/"+id, "", nil); err != nil || json.Unmarshal(raw, &task) != nil {
			p.t.Fatalf("task %d: %v %s", i, err, raw)
		}
		return task.Stage == server.StageCompleted
	}, func() string { return fmt.Sprintf("it is %s: %s", task.Stage, task.Why) }, p.printed.String)
	raw, err := os.ReadFile(filepath.Join(task.Workspace, "log"))
	if err != nil {
		p.t.Fatal(err)
	}
	lines := strings.Fields(string(raw))
	sorted := slices.Clone(lines)
	slices.SortFunc(sorted, func(a, b string) int { x, _ := strconv.Atoi(a); y, _ := strconv.Atoi(b); return x - y })
	if len(slices.Compact(slices.Clone(sorted))) != len(lines) || !slices.Equal(sorted, lines) || len(lines) > steps {
		p.t.Errorf("task %d made calls twice, or in another order: %v", i, lines)
	}
}
