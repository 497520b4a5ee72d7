package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

// crew is a model whose session has some others write to a ledger, the last of them
// in the background.
func crew(agents, steps int) func(*http.Request, []byte) anthropictest.Answer {
	part := regexp.MustCompile(`"text":"part (\d+)"`)
	return func(_ *http.Request, body []byte) anthropictest.Answer {
		turn := bytes.Count(body, []byte(`"role":"assistant"`))
		m := part.FindSubmatch(body)
		switch {
		case m != nil && turn < steps:
			return anthropictest.Answer{Parts: llm.Parts{callOf(fmt.Sprintf("step_%d", turn), "bash",
				map[string]any{"command": fmt.Sprintf("echo %s-%d >> ledger", m[1], turn)})}}
		case m != nil:
			return anthropictest.Answer{Parts: llm.Say(fmt.Sprintf("Result of %s.", m[1]))}
		case turn > 0:
			return anthropictest.Answer{Parts: llm.Say("I have heard of them.")}
		}
		var parts llm.Parts
		for i := range agents {
			parts = append(parts, callOf(fmt.Sprintf("call_%d", i), "spawn_agent",
				map[string]any{"task": fmt.Sprint("part ", i), "background": i == agents-1}))
		}
		return anthropictest.Answer{Parts: parts}
	}
}

func callOf(id, name string, args map[string]any) llm.Call {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return llm.Call{ID: id, Name: name, Args: raw}
}

// TestKillWithAgents kills a real run with SIGKILL while others work for it, and
// resumes it: each of them comes back with its result, and no command that had
// ended runs twice.
func TestKillWithAgents(t *testing.T) {
	t.Parallel()
	const agents, steps = 5, 3
	kills := 6
	if testing.Short() {
		kills = 2
	}
	whole := killCrew(t, agents, steps, 0)
	for n := range kills {
		killCrew(t, agents, steps, time.Duration(rand.Int64N(int64(whole))))
		if t.Failed() {
			t.Fatalf("kill %d", n)
		}
	}
}

func killCrew(t *testing.T, agents, steps int, after time.Duration) time.Duration {
	t.Helper()
	h := newHome(t, anthropictest.Start(t, &anthropictest.Server{Answer: crew(agents, steps)}))
	cmd := h.command(t.Context(), "run", "--mode", "auto", "go")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if after > 0 {
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err := cmd.Wait()
	took := time.Since(began)
	if after == 0 && err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	id, err := h.store().Resolve(t.Context(), "last")
	if err != nil {
		return took // it was killed before there was a session
	}
	if log := logged(t, h, id); len(log) > 0 && log[len(log)-1].Body.Kind() != "stopped" &&
		slices.ContainsFunc(log, func(e entry) bool { return e.Body.Kind() == "said" }) {
		if raw, err := h.command(t.Context(), "resume", id, "--mode", "auto").CombinedOutput(); err != nil {
			t.Fatalf("resume: %v\n%s", err, raw)
		}
	} else if after > 0 {
		return took
	}
	checkCrew(t, h, id, agents, steps)
	return took
}

// checkCrew compares a session whose agents were interrupted with its required result.
func checkCrew(t *testing.T, h home, id string, agents, steps int) {
	t.Helper()
	heard, back := "", map[string]int{}
	for _, e := range logged(t, h, id) {
		switch b := e.Body.(type) {
		case event.Ended:
			heard += b.Parts.Text()
		case event.Returned:
			heard += b.Parts.Text()
			back[b.Child]++
		}
	}
	for i := range agents {
		if want := fmt.Sprintf("Result of %d.", i); !strings.Contains(heard, want) {
			t.Errorf("the session has not heard %q:\n%s", want, heard)
		}
	}
	if len(back) != agents {
		t.Errorf("%d of %d agents came back", len(back), agents)
	}
	raw, err := os.ReadFile(filepath.Join(h.work, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(raw))
	slices.Sort(lines)
	if twice := len(lines) - len(slices.Compact(slices.Clone(lines))); twice > 0 {
		t.Errorf("%d commands ran twice: %v", twice, lines)
	}
	if len(lines) < agents*(steps-1) {
		t.Errorf("only %d of %d commands ran: %v", len(lines), agents*steps, lines)
	}
}

// TestKilledTree kills a tree of agents with SIGKILL at random moments and resumes it, again and again: children in the
// foreground, in the background and in a copy, with children of their own. No command that had begun runs twice, each
// agent is known to its parent and returns to it, and the content of the copy is reported.
func TestKilledTree(t *testing.T) {
	t.Parallel()
	kills := 50
	if testing.Short() {
		kills = 5
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	_, whole := killTree(t, func() time.Duration { return 0 }, 0)
	for done := 0; done < kills && !t.Failed(); {
		n, _ := killTree(t, func() time.Duration { return time.Duration(chance.Int64N(int64(whole))) }, min(5, kills-done))
		done += n
	}
}

// forest is a model with a tree of agents, each of which writes to the ledger, or to a file of its copy.
func forest(_ *http.Request, body []byte) anthropictest.Answer {
	turn, task := bytes.Count(body, []byte(`"role":"assistant"`)), "lead"
	if m := regexp.MustCompile(`"text":"part (\w+)"`).FindSubmatch(body); m != nil {
		task = string(m[1])
	}
	spawn := func(task string, more ...any) llm.Call {
		args := map[string]any{"task": "part " + task}
		for i := 0; i < len(more); i += 2 {
			args[more[i].(string)] = more[i+1]
		}
		return callOf("spawn_"+task, "spawn_agent", args)
	}
	step := func(file string) llm.Parts {
		return llm.Parts{callOf(fmt.Sprintf("step_%d", turn), "bash", map[string]any{"command": fmt.Sprintf("echo %s-%d >> %s", task, turn, file)})}
	}
	first := map[string]llm.Parts{
		"lead":  {spawn("a"), spawn("b"), spawn("back", "background", true), spawn("apart", "isolation", "worktree")},
		"a":     {spawn("under")},
		"back":  {spawn("below")},
		"apart": step("made"),
	}[task]
	switch {
	case turn == 0 && first != nil:
		return anthropictest.Answer{Parts: first}
	case turn < 3 && task == "apart":
		return anthropictest.Answer{Parts: step("made")}
	case turn < 3 && task != "lead":
		return anthropictest.Answer{Parts: step("ledger")}
	}
	return anthropictest.Answer{Parts: llm.Say("Result of " + task + ".")}
}

// killTree has the tree work until it is done, and kills it up to so many times on the way. It returns how often it
// did, and how long all took.
func killTree(t *testing.T, after func() time.Duration, most int) (kills int, took time.Duration) {
	t.Helper()
	h := newHome(t, anthropictest.Start(t, &anthropictest.Server{Answer: forest}))
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "a"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		if cmd.Dir = h.work; cmd.Run() != nil {
			t.Fatal("no repository")
		}
	}
	args, began, id := []string{"run", "--mode", "auto", "go"}, time.Now(), ""
	for {
		cmd := h.command(t.Context(), args...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if kills < most {
			timer := time.AfterFunc(after(), func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
		}
		err := cmd.Wait()
		if err == nil {
			took = time.Since(began)
			break
		}
		if kills++; kills > most {
			t.Fatalf("%v\n%s", err, out.Bytes())
		}
		if id, err = h.store().Resolve(t.Context(), "last"); err != nil {
			continue
		}
		log := logged(t, h, id)
		if len(log) > 0 && log[len(log)-1].Body.Kind() == "stopped" {
			break // it was killed on its way out
		}
		if slices.ContainsFunc(log, func(e entry) bool { return e.Body.Kind() == "said" }) {
			args = []string{"resume", id, "--mode", "auto"}
		}
	}
	id, err := h.store().Resolve(t.Context(), "last")
	if err != nil {
		t.Fatal(err)
	}
	checkTree(t, h, id)
	return kills, took
}

func checkTree(t *testing.T, h home, id string) {
	t.Helper()
	ids, err := h.store().IDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A process killed before its first message began nothing.
	ids = slices.DeleteFunc(ids, func(other string) bool { return !kin.In(id, other) })
	heard, open, copied := "", map[string]bool{}, ""
	for _, id := range ids {
		for _, e := range logged(t, h, id) {
			switch b := e.Body.(type) {
			case event.Opened:
				if b.Root != h.work && !strings.HasSuffix(b.Root, "/work") {
					copied = b.Root
				}
			case event.Spawned:
				open[b.Child] = true
			case event.Ended:
				heard += b.Parts.Text()
			case event.Returned:
				heard += b.Parts.Text()
				open[b.Child] = false
			}
		}
	}
	for _, child := range ids {
		if back, known := open[child]; child != id && (!known || back) {
			t.Errorf("agent %s: its parent knows of it: %v; it has not come back: %v", child, known, back)
		}
	}
	for _, task := range []string{"a", "b", "back", "apart", "under", "below"} {
		if !strings.Contains(heard, "Result of "+task+".") {
			t.Errorf("nobody heard of %s", task)
		}
	}
	for _, path := range []string{filepath.Join(h.work, "ledger"), filepath.Join(copied, "made")} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Fields(string(raw))
		slices.Sort(lines)
		if len(slices.Compact(slices.Clone(lines))) < len(lines) {
			t.Errorf("a command ran twice: %v", lines)
		}
	}
	if out, err := h.command(t.Context(), "copies", "list", id).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("1 file")) {
		t.Errorf("the copies: %v\n%s", err, out)
	}
}

// TestInterruptReachesAgents interrupts a run while commands of its agents sleep:
// nothing of them is left.
func TestInterruptReachesAgents(t *testing.T) {
	t.Parallel()
	const agents = 8
	h := newHome(t, "http://127.0.0.1:9")
	nap := fmt.Sprint(700 + rand.Float64())
	prompt := ""
	for i := range agents {
		task := fmt.Sprintf("bash: echo %d >> pids; exec sleep %s", i, nap)
		raw, err := json.Marshal(map[string]string{"task": task})
		if err != nil {
			t.Fatal(err)
		}
		prompt += fmt.Sprintf("+ call: spawn_agent %s\n", raw)
	}
	cmd := h.command(t.Context(), "run", "--model", "script", "--mode", "auto", "--output", "stream-json", strings.TrimPrefix(prompt, "+ "))
	var began time.Time
	out := until(t, cmd, "spawned", func() {
		testkit.WaitFor(t, "the commands of all agents", func() bool {
			raw, _ := os.ReadFile(h.work + "/pids")
			return bytes.Count(raw, []byte("\n")) == agents && sleeps(nap)
		})
		began = time.Now()
		_ = cmd.Process.Signal(os.Interrupt)
	})
	took := time.Since(began)
	if sleeps(nap) {
		t.Error("a command of an agent still runs")
	}
	if r := result(t, out); r.Reason != "cancelled" {
		t.Errorf("%+v", r)
	}
	t.Logf("all was quiet after %v", took)
}

// BenchmarkAgents has fifty agents work at once in one process.
func BenchmarkAgents(b *testing.B) {
	const agents = 50
	h := newHome(b, anthropictest.Start(b, &anthropictest.Server{Answer: crew(agents, 2)}))
	var most, took []float64
	for b.Loop() {
		var pid atomic.Int64
		peak := 0.0
		done := make(chan struct{})
		began := time.Now()
		cmd := h.command(b.Context(), "run", "--mode", "auto", "go")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		pid.Store(int64(cmd.Process.Pid))
		go func() {
			defer close(done)
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for range tick.C {
				raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid.Load()))
				if err != nil || !bytes.Contains(raw, []byte("VmHWM")) {
					return
				}
				peak = max(peak, resident(b, int(pid.Load()), "VmHWM"))
			}
		}()
		if err := cmd.Wait(); err != nil {
			b.Fatalf("%v\n%.2000s", err, out.Bytes())
		}
		took = append(took, ms(time.Since(began)))
		<-done
		most = append(most, peak)
		if n := strings.Count(out.String(), "came back: done"); n != agents {
			b.Fatalf("%d of %d came back\n%s", n, agents, out.String())
		}
	}
	b.ReportMetric(median(most), "MB-peak")
	b.ReportMetric(median(took), "ms/run")
	b.ReportMetric(0, "ns/op")
}
