//go:build linux

package command

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/schedule"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/store"
)

// gets puts a file into the workspace that no longer changes.
func (h home) gets(t *testing.T, name, text string) {
	t.Helper()
	path, old := filepath.Join(h.work, name), time.Now().Add(-time.Minute)
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, old, old))
	if err != nil {
		t.Fatal(err)
	}
}

// scheduled is the only schedule, with its past occasions.
func (h home) scheduled(t *testing.T) schedule.Schedule {
	t.Helper()
	out, err := h.command(t.Context(), "schedule", "list", "--json").Output()
	var list []schedule.Schedule
	if err = errors.Join(err, json.Unmarshal(out, &list)); err != nil || len(list) != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	return list[0]
}

// due begins due runs, and returns their sessions.
func (h home) due(t *testing.T) []string {
	t.Helper()
	out, err := h.command(t.Context(), "schedule", "due").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// ledger is how often the command of the schedule has run.
func (h home) ledger(t *testing.T) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.work, "ledger"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(raw), "\n")
}

// ranOnce waits until nothing runs any more, and holds how often runs have begun.
func (h home) ranOnce(t *testing.T, want int) {
	t.Helper()
	testkit.WaitFor(t, "the runs end", func() bool { return h.ledger(t) >= want && len(h.runs(t)) == 0 })
	if n := h.ledger(t); n != want {
		t.Errorf("the command ran %d times for %d occasions", n, want)
	}
	list, err := h.store().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	full := 0
	for _, info := range list {
		if !info.Empty {
			full++
		}
	}
	if full != want {
		t.Errorf("%d sessions for %d occasions", full, want)
	}
}

// TestDueTwice has two processes look at once.
func TestDueTwice(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	h.cleanUp(t)
	h.does(t, 0, "schedule", "add", "--on", "file:in/*", "--task", "bash: echo x >> ledger", "--mode", "auto", "--overlap", "parallel")
	rounds := 20
	if testing.Short() {
		rounds = 8
	}
	for n := range rounds {
		h.gets(t, fmt.Sprint("in/", n), fmt.Sprint(n))
		a, b := h.attached(t, "schedule", "due"), h.attached(t, "schedule", "due")
		a.Ends(0)
		b.Ends(0)
		if begun := strings.Fields(a.Printed() + b.Printed()); len(begun) != 1 {
			t.Fatalf("round %d: they began %q", n, begun)
		}
	}
	h.ranOnce(t, rounds)
}

// TestDueIsKilled kills the process that looks with SIGKILL at random moments, and those after it.
func TestDueIsKilled(t *testing.T) {
	t.Parallel()
	occasions := 30
	if testing.Short() {
		occasions = 10
	}
	if n, err := strconv.Atoi(os.Getenv("INSPAN_KILLS")); err == nil {
		occasions = n
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	h := withoutModel(t)
	h.cleanUp(t)
	h.does(t, 0, "schedule", "add", "--on", "file:in/*", "--task", "bash: echo x >> ledger", "--mode", "auto", "--overlap", "parallel")
	var whole time.Duration
	for _, name := range []string{"first", "second"} { // which is faster
		h.gets(t, "in/"+name, name)
		began := time.Now()
		h.due(t)
		whole = time.Since(began)
	}
	kills := 0
	for n := range occasions {
		h.gets(t, fmt.Sprint("in/", n), fmt.Sprint(n))
		for range 3 {
			cmd := h.command(t.Context(), "schedule", "due")
			began := time.Now()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(time.Duration(chance.Int64N(int64(whole))), func() { _ = cmd.Process.Kill() })
			_ = cmd.Wait()
			timer.Stop()
			if cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
				kills++
			} else {
				whole = time.Since(began) // the machine is less busy than it was
			}
		}
	}
	testkit.WaitFor(t, "nothing is open", func() bool { h.due(t); return len(h.scheduled(t).Open) == 0 })
	t.Logf("%d kills, a look takes %v", kills, whole)
	if kills < occasions/4 {
		t.Errorf("only %d were killed", kills)
	}
	for _, o := range h.scheduled(t).Past {
		if o.Session == "" {
			t.Errorf("an occasion has no run: %+v", o)
		}
	}
	h.ranOnce(t, occasions+2)
}

// TestOverlap has an occasion come during the run of the one before.
func TestOverlap(t *testing.T) {
	t.Parallel()
	for _, overlap := range []schedule.Overlap{schedule.Skip, schedule.Queue, schedule.Parallel} {
		t.Run(string(overlap), func(t *testing.T) {
			h := withoutModel(t)
			h.cleanUp(t)
			h.does(t, 0, "schedule", "add", "--name", "x", "--on", "file:in/*", "--mode", "auto", "--overlap", string(overlap),
				"--task", "bash: until [ -e go ]; do sleep 0.05; done; echo x >> ledger")
			h.gets(t, "in/1", "1")
			if begun := h.due(t); len(begun) != 1 {
				t.Fatal(begun)
			}
			h.gets(t, "in/2", "2")
			second := h.due(t)
			switch one := h.scheduled(t); {
			case overlap == schedule.Parallel && len(second) != 1, overlap != schedule.Parallel && len(second) != 0:
				t.Errorf("it began %q", second)
			case overlap == schedule.Queue && len(one.Open) != 1:
				t.Errorf("nothing waits: %+v", one)
			case overlap == schedule.Skip:
				if out := h.does(t, 0, "schedule", "list"); !strings.Contains(out, "left out: the previous run had not ended") {
					t.Error(out)
				}
				if out := h.does(t, 0, "schedule", "run", "x"); out != "left out: the previous run had not ended\n" {
					t.Error(out)
				}
			}
			want := 2
			switch overlap {
			case schedule.Skip:
				want = 1
			case schedule.Queue:
				if out := h.does(t, 0, "schedule", "run", "x"); out != "the run starts as soon as the previous run has ended\n" {
					t.Error(out)
				}
				want = 3
			}
			h.gets(t, "go", "")
			testkit.WaitFor(t, "all have run", func() bool { h.due(t); return h.ledger(t) >= want })
			h.ranOnce(t, want)
		})
	}
}

// TestUntrustedAtFireTime changes a workflow of the project after a schedule was made for it.
func TestUntrustedAtFireTime(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	h.cleanUp(t)
	const flow = "name: w\nsteps:\n  - {id: a, kind: run, run: 'echo x >> ledger'}\n"
	h.gets(t, ".inspan/workflows/w.yaml", flow)
	out := h.does(t, 1, "schedule", "add", "--on", "file:in/*", "--workflow", "w", "--mode", "auto")
	if !strings.Contains(out, "inspan trust") {
		t.Errorf("a schedule for a workflow that is not trusted: %s", out)
	}
	h.does(t, 0, "trust", "--yes")
	h.does(t, 0, "schedule", "add", "--on", "file:in/*", "--workflow", "w", "--mode", "auto")
	h.gets(t, "in/1", "1")
	if begun := h.due(t); len(begun) != 1 {
		t.Fatal(begun)
	}
	h.ranOnce(t, 1)
	h.gets(t, ".inspan/workflows/w.yaml", strings.ReplaceAll(flow, "echo x", "echo evil; echo x"))
	h.gets(t, "in/2", "2")
	if begun := h.due(t); len(begun) != 0 {
		t.Errorf("it began %q", begun)
	}
	if out := h.does(t, 0, "schedule", "list"); !strings.Contains(out, "failed: ") || !strings.Contains(out, "trust") {
		t.Errorf("the list does not say why: %s", out)
	}
	h.ranOnce(t, 1)
}

// posts calls a webhook with the signature of Standard Webhooks, and checks the response.
func posts(t *testing.T, url, secret, id, body string, code int, answer string) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	stamp, m := strconv.FormatInt(time.Now().Unix(), 10), hmac.New(sha256.New, key)
	fmt.Fprintf(m, "%s.%s.%s", id, stamp, body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", stamp)
	req.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != code || !strings.Contains(string(raw), answer) {
		t.Fatalf("%d %s, want %d %s", res.StatusCode, raw, code, answer)
	}
}

// secret is the secret that a new schedule prints for callers of its webhook.
func secret(t *testing.T, printed string) string {
	t.Helper()
	s := regexp.MustCompile(`whsec_\S+`).FindString(printed)
	if s == "" {
		t.Fatal(printed)
	}
	return s
}

// TestHookAnswersAStep has a workflow wait for a webhook, which a server takes.
func TestHookAnswersAStep(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	h.cleanUp(t)
	url, _ := h.serves(t, "--listen", "127.0.0.1:0")
	url += "/hooks/deployed"
	key := secret(t, h.does(t, 0, "schedule", "add", "--on", "webhook", "--name", "deployed"))
	h.gets(t, "w.yaml", "name: w\nsteps:\n  - id: hook\n    kind: wait\n    webhook: deployed\n"+
		"    output: {type: object, required: [version], properties: {version: {type: string}}}\n"+
		"  - {id: tell, kind: run, env: {V: '${hook.version}'}, run: 'echo \"$V\" >> ledger'}\n")
	begin := func() string {
		t.Helper()
		lines := strings.Fields(h.does(t, 0, "workflow", "run", "--detach", "--mode", "auto", "w.yaml"))
		id := lines[len(lines)-1]
		h.asks(t, id)
		return id
	}
	begin()
	posts(t, url, schedule.NewSecret(), "m0", `{"version": "evil"}`, http.StatusUnauthorized, "wrong signature")
	first, again := `{"version": "1.2"}`, "m1"
	posts(t, url, key, again, first, http.StatusAccepted, "steps that were answered: 1")
	testkit.WaitFor(t, "the step goes on", func() bool { return h.ledger(t) == 1 && len(h.runs(t)) == 0 })
	if raw, err := os.ReadFile(filepath.Join(h.work, "ledger")); string(raw) != "1.2\n" || err != nil {
		t.Errorf("%q, %v", raw, err)
	}

	// The next run is not answered by the same call.
	id := begin()
	posts(t, url+"?session="+id, key, again, first, http.StatusAccepted, "taken before")
	posts(t, url+"?session="+id, key, "m2", `{"version": "1.3"}`, http.StatusAccepted, "answered: 1")
	testkit.WaitFor(t, "the step goes on", func() bool { return h.ledger(t) == 2 && len(h.runs(t)) == 0 })
	h.does(t, 2, "schedule", "run", "deployed")
}

// TestHookBeginsARun checks that a run that a webhook begins marks the text of strangers.
func TestHookBeginsARun(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	h.cleanUp(t)
	url, _ := h.serves(t, "--listen", "127.0.0.1:0")
	url += "/hooks/"
	h.gets(t, "w.yaml", "name: w\ninputs: {n: {type: integer}, event: {type: object}}\nsteps:\n"+
		"  - {id: a, kind: run, env: {N: '${inputs.n}'}, run: 'echo \"$N\" >> ledger'}\n")
	for name, what := range map[string][]string{"task": {"--task", "bash: echo x >> ledger"}, "flow": {"--workflow", "w.yaml"}} {
		key := secret(t, h.does(t, 0, append([]string{"schedule", "add", "--on", "webhook", "--name", name, "--mode", "auto"}, what...)...))
		before := h.ledger(t)
		posts(t, url+name, key, name, `{"n": 42}`, http.StatusAccepted, "the run begins")
		testkit.WaitFor(t, "the run ends", func() bool { return h.ledger(t) > before && len(h.runs(t)) == 0 })
	}
	list, err := h.store().List(t.Context())
	if len(list) != 2 || err != nil {
		t.Fatal(list, err)
	}
	for _, info := range list {
		tainted := 0
		for e, err := range store.Events(t.Context(), h.store(), info.ID) {
			if err != nil {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case event.Said:
				if b.Untrusted {
					tainted++
				}
			case event.Steered:
				if b.Untrusted && strings.Contains(b.Parts.Text(), `{"n":42}`) {
					tainted++
				}
			}
		}
		if tainted != 1 {
			t.Errorf("session %s: %d events of others", info.ID, tainted)
		}
	}
	raw, err := os.ReadFile(filepath.Join(h.work, "ledger"))
	if !strings.Contains(string(raw), "42\n") || !strings.Contains(string(raw), "x\n") || err != nil {
		t.Errorf("%q, %v", raw, err)
	}
}

// TestScheduleUnits has systemd check the units.
func TestScheduleUnits(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("there is no systemd-analyze: nothing checks the units of 'schedule install'")
	}
	h := withoutModel(t)
	h.dir = filepath.Join(h.dir, "a $x %h 'folder'") // which is in the command of the service
	out := h.does(t, 0, "schedule", "install", "--print")
	files := map[string]string{}
	for part := range strings.SplitSeq(out, "# ") {
		path, text, _ := strings.Cut(part, "\n")
		if text != "" {
			files[filepath.Base(path)] = text
		}
	}
	if len(files) != 2 {
		t.Fatal(out)
	}
	dir := t.TempDir()
	args := []string{"verify", "--user", "--man=no"}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	cmd := exec.CommandContext(t.Context(), "systemd-analyze", args...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
	said, err := cmd.CombinedOutput()
	if err != nil || len(said) > 0 {
		t.Errorf("%v: %s\n%s", err, said, out)
	}
}
