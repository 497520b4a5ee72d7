package oracle

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/lib/environments"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

// workerOf is the environment of a process that is to be a worker.
const workerOf = "INSPAN_ORACLE_WORKER_OF"

// TestMain runs the tests, or is the official worker, so that tests can kill it.
func TestMain(m *testing.M) {
	environment := os.Getenv(workerOf)
	if environment == "" {
		os.Exit(m.Run())
	}
	if err := officialWorker(environment, ".").Run(context.Background()); err != nil {
		slog.Error(err.Error())
		os.Exit(1)
	}
}

// officialWorker is the worker of the SDK. Its leases are short, to keep waits short.
func officialWorker(environment, dir string) *environments.EnvironmentWorker {
	short := func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/heartbeat") {
			q := r.URL.Query()
			q.Set("desired_ttl_seconds", "2")
			r.URL.RawQuery = q.Encode()
		}
		return next(r)
	}
	idle := 500 * time.Millisecond
	client := anthropic.NewClient(option.WithBaseURL(os.Getenv("INSPAN_ORACLE_URL")), option.WithAPIKey("none"))
	return environments.NewEnvironmentWorker(client, environments.EnvironmentWorkerOptions{
		EnvironmentID: environment, EnvironmentKey: os.Getenv("INSPAN_ORACLE_TOKEN"), Workdir: dir, MaxIdle: &idle,
		RequestOptions: []option.RequestOption{option.WithMiddleware(short)},
	})
}

// officialProcess is the official worker as a process that works in a folder.
func (s *served) officialProcess(environment, dir string) *exec.Cmd {
	s.t.Helper()
	w := exec.Command(os.Args[0])
	w.Dir = dir
	w.Env = append(os.Environ(), workerOf+"="+environment, "INSPAN_ORACLE_URL="+s.url, "INSPAN_ORACLE_TOKEN="+s.token)
	s.begin(w)
	return w
}

// ownWorker is the worker of the command, as a process that works in a folder.
func (s *served) ownWorker(environment, dir string) *exec.Cmd {
	s.t.Helper()
	w := exec.Command(s.bin, "worker", "--remote", s.url, "--environment", environment,
		"--folder", dir, "--mode", "auto")
	home := s.t.TempDir()
	w.Env = append(os.Environ(), "INSPAN_REMOTE_TOKEN="+s.token, "INSPAN_CONFIG_DIR="+home, "INSPAN_STATE_DIR="+filepath.Join(home, "state"))
	s.begin(w)
	return w
}

// begin starts a process, and prints its output if the test fails.
func (s *served) begin(w *exec.Cmd) {
	s.t.Helper()
	out, err := os.CreateTemp(s.t.TempDir(), "worker")
	if err != nil {
		s.t.Fatal(err)
	}
	w.Stderr = out
	if err := w.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = w.Process.Kill()
		_ = w.Wait()
		if text, err := os.ReadFile(out.Name()); err == nil && s.t.Failed() {
			s.t.Logf("a worker:\n%s", text)
		}
		_ = out.Close()
	})
}

// workedFor is a session of a self-hosted environment, with the tools of the toolset.
func (s *served) workedFor(ctx context.Context) (environment, session string) {
	s.t.Helper()
	e, err := s.client.Beta.Environments.New(ctx, anthropic.BetaEnvironmentNewParams{
		Name: "workers", Config: anthropic.BetaEnvironmentNewParamsConfigUnion{OfSelfHosted: new(anthropic.NewBetaSelfHostedConfigParams())},
	})
	if err != nil || e.Config.Type != "self_hosted" {
		s.t.Fatal(e, err)
	}
	agent, err := s.client.Beta.Agents.New(ctx, anthropic.BetaAgentNewParams{
		Name: "a", Model: anthropic.BetaManagedAgentsModelConfigParams{ID: "script"},
		Tools: []anthropic.BetaAgentNewParamsToolUnion{{OfAgentToolset20260401: &anthropic.BetaManagedAgentsAgentToolset20260401Params{
			Type: "agent_toolset_20260401",
		}}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	made, err := s.client.Beta.Sessions.New(ctx, anthropic.BetaSessionNewParams{
		Agent: anthropic.BetaSessionNewParamsAgentUnion{OfString: param.NewOpt(agent.ID)}, EnvironmentID: e.ID,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return e.ID, made.ID
}

// TestOwnWorker has the worker of the command make the calls of a session. One that is asked to end in a call
// finishes that and lets go of the session, which another has at once.
func TestOwnWorker(t *testing.T) {
	s := serve(t)
	ctx, end := context.WithTimeout(t.Context(), 2*time.Minute)
	defer end()
	environment, session := s.workedFor(ctx)
	first, second := t.TempDir(), t.TempDir()
	leaves := s.ownWorker(environment, first)
	s.tell(ctx, session, `call: write {"file_path":"a/b.txt","content":"one two"}
call: edit {"file_path":"a/b.txt","old_string":"two","new_string":"three"}
call: read {"file_path":"a/b.txt","view_range":[1,1]}
call: bash {"command":"touch here; until test -e go; do sleep 0.1; done; cat a/b.txt"}
call: bash {"command":"pwd"}
call: glob {"pattern":"**/*.txt"}
call: grep {"pattern":"thr.e"}
call: write {"file_path":"../out.txt","content":"x"}
say: done`)
	awaitFile(ctx, t, filepath.Join(first, "here"))
	if err := leaves.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	next := s.ownWorker(environment, second)
	if err := os.WriteFile(filepath.Join(second, "c.txt"), []byte("three"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(first, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	results := s.idles(ctx, session, 8)
	for i, want := range []string{"a/b.txt", "1 replacement", "one three", "one three", second, "c.txt", "three", "Denied by mode auto"} {
		if !strings.Contains(results[i].text, want) || results[i].failed != (i == 7) {
			t.Errorf("result %d is %+v, want %q", i, results[i], want)
		}
	}

	// The server is killed in a call. The item and the lease survive, and so does the worker.
	s.tell(ctx, session, `call: bash {"command":"touch here; until test -e go; do sleep 0.1; done; echo survived"}`+"\nsay: done")
	awaitFile(ctx, t, filepath.Join(second, "here"))
	address := strings.TrimPrefix(s.url, "http://")
	s.stop()
	s.start(address)
	if err := os.WriteFile(filepath.Join(second, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if results = s.idles(ctx, session, 9); !strings.Contains(results[8].text, "survived") {
		t.Errorf("the result after the server was killed is %+v", results[8])
	}

	// A call that is interrupted ends.
	s.tell(ctx, session, `call: bash {"command":"touch begun; sleep 600"}`+"\nsay: done")
	awaitFile(ctx, t, filepath.Join(second, "begun"))
	interrupt := anthropic.BetaManagedAgentsEventParamsUnion{
		OfUserInterrupt: &anthropic.BetaManagedAgentsUserInterruptEventParams{Type: "user.interrupt"},
	}
	_, err := s.client.Beta.Sessions.Events.Send(ctx, session, anthropic.BetaSessionEventSendParams{
		Events: []anthropic.BetaManagedAgentsEventParamsUnion{interrupt},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []*exec.Cmd{leaves, next} {
		_ = w.Process.Signal(os.Interrupt)
		if err := w.Wait(); err != nil {
			t.Errorf("a worker that is asked to end: %v", err)
		}
	}
}

// TestOfficialWorker has the worker of the official SDK, as it is, make the calls of a session of the real server:
// in its own folder, with results that come back. One that is killed in a call is followed by another, and each
// call has one result.
func TestOfficialWorker(t *testing.T) {
	s := serve(t)
	ctx, end := context.WithTimeout(t.Context(), 2*time.Minute)
	defer end()
	environment, session := s.workedFor(ctx)
	first, second := t.TempDir(), t.TempDir()
	killed := s.officialProcess(environment, first)
	s.tell(ctx, session, `call: write {"file_path":"a/b.txt","content":"one two"}
call: edit {"file_path":"a/b.txt","old_string":"two","new_string":"three"}
call: read {"file_path":"a/b.txt"}
call: bash {"command":"cat a/b.txt; echo; pwd"}
call: glob {"pattern":"**/*.txt"}
call: grep {"pattern":"thr.e"}
call: read {"file_path":"missing"}
say: done`)
	results := s.idles(ctx, session, 7)
	for i, want := range []string{"", "", "one three", first, "a/b.txt", "one three", "no such file"} {
		if !strings.Contains(results[i].text, want) || results[i].failed != (i == 6) {
			t.Errorf("result %d is %+v, want %q", i, results[i], want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(first, "a", "b.txt")); err != nil || string(text) != "one three" {
		t.Errorf("%s %v", text, err)
	}
	if held, err := filepath.Glob(filepath.Join(s.dir, "state", "tasks", "*", "*")); err != nil || len(held) > 0 {
		t.Errorf("the server has %v, %v", held, err)
	}

	s.tell(ctx, session, `call: bash {"command":"if mkdir begun 2>/dev/null; then touch here; sleep 60; fi; echo finished"}`+"\nsay: done")
	awaitFile(ctx, t, filepath.Join(first, "here"))
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(second, "begun"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.officialProcess(environment, second)
	results = s.idles(ctx, session, 8)
	if got := results[7]; !strings.Contains(got.text, "finished") || got.failed {
		t.Errorf("the result of the call that was taken over is %+v", got)
	}
	for stats := (*anthropic.BetaSelfHostedWorkQueueStats)(nil); ; { // the worker lets go of a session that is idle
		var err error
		stats, err = s.client.Beta.Environments.Work.Stats(ctx, environment, anthropic.BetaEnvironmentWorkStatsParams{})
		if err != nil {
			t.Fatal(err)
		}
		work, err := s.client.Beta.Environments.Work.List(ctx, environment, anthropic.BetaEnvironmentWorkListParams{})
		if err != nil || len(work.Data) != 1 {
			t.Fatal(work, err)
		}
		if work.Data[0].State == "stopped" && stats.Depth+stats.Pending == 0 && stats.WorkersPolling > 0 {
			break
		}
		pause(ctx, t)
	}
}

// pause waits a little for something that is asked for again.
func pause(ctx context.Context, t *testing.T) {
	t.Helper()
	timer := time.NewTimer(50 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		t.Fatal("it takes too long")
	}
}

func awaitFile(ctx context.Context, t *testing.T, path string) {
	t.Helper()
	for {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			return
		}
		pause(ctx, t)
	}
}

// tell says something to the agent of a session.
func (s *served) tell(ctx context.Context, session, text string) {
	s.t.Helper()
	block := &anthropic.BetaManagedAgentsTextBlockParam{Type: "text", Text: text}
	message := &anthropic.BetaManagedAgentsUserMessageEventParams{
		Type: "user.message", Content: []anthropic.BetaManagedAgentsUserMessageEventParamsContentUnion{{OfText: block}},
	}
	_, err := s.client.Beta.Sessions.Events.Send(ctx, session, anthropic.BetaSessionEventSendParams{
		Events: []anthropic.BetaManagedAgentsEventParamsUnion{{OfUserMessage: message}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// result is a worker's result for a call.
type result struct {
	text   string
	failed bool
}

// idles waits until a session is idle after so many calls, and returns their results. Each call has
// one.
func (s *served) idles(ctx context.Context, session string, calls int) (results []result) {
	s.t.Helper()
	for {
		made, answered, last := 0, map[string]int{}, ""
		results = nil
		events := s.client.Beta.Sessions.Events.ListAutoPaging(ctx, session, anthropic.BetaSessionEventListParams{})
		for events.Next() {
			switch e := events.Current(); e.Type {
			case "agent.tool_use":
				made++
			case "user.tool_result":
				answered[e.ToolUseID]++
				got := e.AsUserToolResult()
				r := result{failed: got.IsError}
				for _, c := range got.Content {
					r.text += c.Text
				}
				results = append(results, r)
			case "session.status_idle", "session.status_running":
				last = e.Type
			}
		}
		if events.Err() != nil {
			s.t.Fatal(events.Err())
		}
		for id, n := range answered {
			if n != 1 {
				s.t.Fatalf("call %s has %d results", id, n)
			}
		}
		if made == calls && len(results) == calls && last == "session.status_idle" {
			return results
		}
		if ctx.Err() == nil && made > calls {
			s.t.Fatalf("%d calls, want %d", made, calls)
		}
		pause(ctx, s.t)
	}
}
