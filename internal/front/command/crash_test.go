package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

// home is a folder with settings that name the fake server as provider "fake".
type home struct {
	bin, dir, work string
}

func newHome(t testing.TB, url string) home {
	t.Helper()
	h := home{bin: testkit.Command(t), dir: t.TempDir()}
	h.work = filepath.Join(h.dir, "work")
	for _, dir := range []string{h.work, filepath.Join(h.dir, "config")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Findings(t, h.bin, filepath.Join(h.dir, "state"))
	settings := fmt.Sprintf("model = 'fake/m'\n[providers.fake]\nkind = 'anthropic'\nbase_url = '%s'\n[providers.fake.models.m]\n"+
		"price = { input = 1.0, output = 1.0 }\n", url)
	if err := os.WriteFile(filepath.Join(h.dir, "config", "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h home) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.bin, args...)
	cmd.Dir = h.work
	cmd.Env = []string{
		"HOME=" + h.dir, "PATH=" + os.Getenv("PATH"), "INSPAN_STATE_DIR=" + filepath.Join(h.dir, "state"),
		"INSPAN_CONFIG_DIR=" + filepath.Join(h.dir, "config"),
	}
	return cmd
}

func (h home) store() *session.Store {
	return &session.Store{Dir: filepath.Join(h.dir, "state", "sessions")}
}

// asked is a request as the server sees it: the position in the conversation, and all of its content in order.
type asked struct {
	replies int
	content []string
}

func parse(body []byte) (asked, error) {
	var req struct {
		System   json.RawMessage
		Tools    json.RawMessage
		Messages []struct {
			Role    string
			Content []map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return asked{}, err
	}
	a := asked{content: []string{unmarked(req.Tools), unmarked(req.System)}}
	for _, m := range req.Messages {
		if m.Role == "assistant" {
			a.replies++
		}
		for _, c := range m.Content {
			delete(c, "cache_control")
			raw, err := json.Marshal(c)
			if err != nil {
				return asked{}, err
			}
			a.content = append(a.content, m.Role+string(raw))
		}
	}
	return a, nil
}

// unmarked drops cache markers, which are not part of the cached prompt.
func unmarked(raw json.RawMessage) string {
	return strings.ReplaceAll(string(raw), `,"cache_control":{"type":"ephemeral"}`, "")
}

// twentyCalls answers with one call at a time that leaves a token in a file, and with a parallel read every third time.
func twentyCalls(replies int) anthropictest.Answer {
	usage := llm.Usage{Input: 100, Output: 10}
	if replies >= 20 {
		return anthropictest.Answer{Parts: llm.Say("All twenty are done."), Usage: usage}
	}
	args := fmt.Sprintf(`{"command":"echo token-%d >> ledger"}`, replies)
	parts := llm.Parts{llm.Text{Text: "Next."}, llm.Call{ID: fmt.Sprintf("call_%d", replies), Name: "bash", Args: json.RawMessage(args)}}
	if replies%3 == 2 {
		parts = append(parts, llm.Call{ID: fmt.Sprintf("look_%d", replies), Name: "read_file", Args: json.RawMessage(`{"path":"ledger"}`)})
	}
	return anthropictest.Answer{Parts: parts, Usage: usage}
}

// TestKillAnywhere kills a real run with SIGKILL at random moments and resumes
// it. The server checks every request as the vendor would, so a resumed
// session that sends anything invalid fails.
func TestKillAnywhere(t *testing.T) {
	t.Parallel()
	kills := 200
	if testing.Short() {
		kills = 10
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	whole := min(killOnce(t, 0), killOnce(t, 0), killOnce(t, 0))
	t.Logf("a run takes %v", whole)
	var inside int
	for n := range kills {
		after := time.Duration(chance.Int64N(int64(whole)))
		if took := killOnce(t, after); took == 0 {
			inside++
		} else {
			whole = took // the machine is less busy than it was
		}
		if t.Failed() {
			t.Fatalf("kill %d, after %v", n, after)
		}
	}
	if inside < kills/2 {
		t.Errorf("only %d of %d kills hit a running process", inside, kills)
	}
}

// killOnce runs, kills after the time (0: not at all), resumes and checks. It
// returns how long the run took, 0 if it was killed.
func killOnce(t *testing.T, after time.Duration) time.Duration {
	t.Helper()
	var mu sync.Mutex
	var requests []asked
	url := anthropictest.Start(t, &anthropictest.Server{Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
		a, err := parse(body)
		if err != nil {
			return anthropictest.Answer{Status: 400, Message: err.Error()}
		}
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, a)
		return twentyCalls(a.replies + 10) // the last ten
	}})
	h := newHome(t, url)
	var out bytes.Buffer
	began := time.Now()
	cmd := h.command(t.Context(), "run", "--mode", "auto", "--output", "stream-json", "go")
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if after > 0 {
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err := cmd.Wait()
	took := time.Since(began)
	if err != nil {
		took = 0
	}
	acknowledged := stored(t, out.Bytes())
	name := "last"
	if len(acknowledged) > 0 {
		name = acknowledged[0].Session // the last one has said something, which this one may not yet
	}
	id, err := h.store().Resolve(t.Context(), name)
	if err != nil {
		if len(acknowledged) > 0 {
			t.Errorf("%d events were acknowledged and there is no session: %v", len(acknowledged), err)
		}
		return took
	}
	before := logged(t, h, id)
	for _, a := range acknowledged {
		if a.Seq > uint64(len(before)) || !bytes.Equal(before[a.Seq-1].line, a.line) {
			t.Fatalf("event %d was acknowledged and is lost:\n%s", a.Seq, a.line)
		}
	}
	if took == 0 {
		resume(t, h, id, before)
	}
	checkRun(t, h, before, logged(t, h, id))
	mu.Lock()
	defer mu.Unlock()
	for i := 1; i < len(requests); i++ {
		a, b := requests[i-1].content, requests[i].content
		if len(b) < len(a) || !slices.Equal(a, b[:len(a)]) {
			t.Errorf("request %d does not continue the one before", i+1)
		}
	}
	return took
}

// resume continues a killed session. If it was killed before the task was stored, or after the run had stopped, there
// is nothing to continue, and it says so.
func resume(t *testing.T, h home, id string, before []entry) {
	t.Helper()
	raw, err := h.command(t.Context(), "resume", id, "--output", "json").Output()
	var r struct{ Reason, Detail string }
	if json.Unmarshal(raw, &r) != nil {
		t.Fatalf("resume: %v\n%s", err, raw)
	}
	want := ""
	switch n := len(before); {
	case n == 0:
		want = "is empty"
	case before[n-1].Body.Kind() == "stopped":
		want = "is done"
	case !slices.ContainsFunc(before, func(e entry) bool { return e.Body.Kind() == "said" }):
		want = "there is nothing to do"
	}
	if want == "" && r.Reason != "done" || !strings.Contains(r.Detail, want) {
		t.Fatalf("resume: %v, want %q\n%s", err, want, raw)
	}
}

// stored returns the whole lines of a stream that hold stored events.
func stored(t *testing.T, stream []byte) []entry {
	t.Helper()
	whole := stream[:bytes.LastIndexByte(stream, '\n')+1]
	var out []entry
	for line := range bytes.Lines(whole) {
		line = bytes.TrimSpace(line)
		if e, err := event.Decode(line); err == nil && !e.Transient() {
			out = append(out, entry{e, line})
		}
	}
	return out
}

type entry struct {
	event.Event
	line []byte
}

// logged reads a session from the disk, repaired as for any reader.
func logged(t *testing.T, h home, id string) []entry {
	t.Helper()
	log, err := h.store().Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var out []entry
	for e, err := range log.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		line, err := event.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, entry{e, line})
	}
	return out
}

// checkRun compares the ledger outside with the log: a finished call ran once, one with an unknown outcome at most
// once, and none that had ended before the kill ran again.
func checkRun(t *testing.T, h home, before, after []entry) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.work, "ledger"))
	if err != nil && len(after) > 30 {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, token := range strings.Fields(string(raw)) {
		count[token]++
	}
	started, outcome := map[string]int{}, map[string]event.Outcome{}
	for i, e := range after {
		if i < len(before) && !bytes.Equal(before[i].line, e.line) {
			t.Fatalf("event %d changed", i+1)
		}
		switch b := e.Body.(type) {
		case event.Started:
			started[b.Call]++
			if outcome[b.Call] != "" {
				t.Errorf("%s was started again after it had ended", b.Call)
			}
		case event.Ended:
			if outcome[b.Call] != "" {
				t.Errorf("%s ended twice", b.Call)
			}
			outcome[b.Call] = b.Outcome
		}
	}
	for id, o := range outcome {
		n, isToken := strings.CutPrefix(id, "call_")
		if !isToken {
			continue
		}
		switch ran := count["token-"+n]; {
		case o == event.OutcomeOK && ran != 1, o == event.OutcomeUnknown && ran > 1, ran > started[id]:
			t.Errorf("%s: %s, started %d times, ran %d times", id, o, started[id], ran)
		}
	}
}

// has reports whether the workspace has a file.
func (h home) has(name string) bool {
	_, err := os.Stat(filepath.Join(h.work, name))
	return err == nil
}

// does runs a command that must end with the code, and returns its output.
func (h home) does(t *testing.T, code int, args ...string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), testkit.Patience)
	defer stop()
	cmd := h.command(ctx, args...)
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("%s: exit code %d, want %d: %v\n%s", strings.Join(args, " "), got, code, err, out)
	}
	return string(out)
}
