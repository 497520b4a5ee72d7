package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

// fiftyCalls is a script with fifty calls that leave tokens in a file, every other one during a parallel read.
const fiftyCalls = `
const leave = async (i) => {
  try { await tools.bash({command: "echo token-" + i + " >> ledger"}); return "left" }
  catch (e) { return e.outcome }
};
const out = {};
for (let i = 0; i < 50; i += 2) {
  out[i] = await leave(i);
  const pair = await Promise.all([leave(i + 1), tools.read_file({path: "ledger"})]);
  out[i + 1] = pair[0];
  out["read " + i] = pair[1].text.includes("token-" + i) || out[i] !== "left";
}
return out`

// TestKillInsideScripts kills a real run with SIGKILL while a script makes fifty calls, again and again
// until the script has ended: no call that has ended runs again, none is lost, and the script sees the same.
func TestKillInsideScripts(t *testing.T) {
	t.Parallel()
	kills := 200
	if testing.Short() {
		kills = 10
	}
	chance := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	args, err := json.Marshal(map[string]string{"code": fiftyCalls})
	if err != nil {
		t.Fatal(err)
	}
	for killed := 0; killed < kills && !t.Failed(); {
		killed += killScript(t, args, chance, kills-killed)
	}
}

// killScript runs one script to its end through at most so many kills, and returns how many there were.
func killScript(t *testing.T, args json.RawMessage, chance *rand.Rand, most int) (kills int) {
	t.Helper()
	url := anthropictest.Start(t, &anthropictest.Server{Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
		a, err := parse(body)
		switch {
		case err != nil:
			return anthropictest.Answer{Status: 400, Message: err.Error()}
		case a.replies > 0:
			return anthropictest.Answer{Parts: llm.Say("Done.")}
		}
		return anthropictest.Answer{Parts: llm.Parts{llm.Call{ID: "call_1", Name: "script", Args: args}}}
	}})
	h := newHome(t, url)
	settings, err := os.OpenFile(filepath.Join(h.dir, "config", "config.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = settings.WriteString("[levers]\nscript = 'on'\n")
	if err := errors.Join(err, settings.Close(), os.WriteFile(filepath.Join(h.work, "ledger"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	command := []string{"run", "--mode", "auto", "go"}
	for {
		cmd := h.command(t.Context(), command...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		after := time.Duration(50+chance.Int64N(150)) * time.Millisecond
		if kills >= most {
			after = time.Minute
		}
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		id, known := h.store().Resolve(t.Context(), "last")
		if known == nil && over(logged(t, h, id)) {
			checkScript(t, h, logged(t, h, id))
			return kills
		}
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
			t.Fatalf("the run was not killed, and has no end in its log: %v", err)
		}
		kills++
		if known == nil && len(logged(t, h, id)) > 3 {
			command = []string{"resume", id}
		}
	}
}

func over(log []entry) bool { return len(log) > 0 && log[len(log)-1].Body.Kind() == "stopped" }

// checkScript compares the log with the effects.
func checkScript(t *testing.T, h home, log []entry) {
	t.Helper()
	ends, starts, result := map[string]event.Ended{}, map[string]int{}, ""
	names := map[string]string{}
	for _, e := range log {
		switch b := e.Body.(type) {
		case event.Judged:
			names[b.Call] = string(b.Args)
		case event.Started:
			if starts[b.Call]++; ends[b.Call].Call != "" {
				t.Errorf("%s was started after it had ended", b.Call)
			}
		case event.Ended:
			if ends[b.Call].Call != "" {
				t.Errorf("%s has ended twice", b.Call)
			}
			if ends[b.Call] = b; b.Parent == "" {
				result = b.Parts.Text()
				if b.Outcome != event.OutcomeOK {
					t.Errorf("the script has %s: %s", b.Outcome, result)
				}
			}
		}
	}
	var seen map[string]any
	if err := json.Unmarshal([]byte(result), &seen); err != nil {
		t.Fatalf("%v in %q", err, result)
	}
	data, err := os.ReadFile(filepath.Join(h.work, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		times := strings.Count(string(data), fmt.Sprintf("token-%d\n", i))
		switch told := seen[fmt.Sprint(i)]; {
		case told == "left" && times != 1, told == "unknown" && times > 1, told != "left" && told != "unknown":
			t.Errorf("token %d was left %d times, and the script saw %v", i, times, told)
		}
	}
	for id, b := range ends {
		if strings.Contains(names[id], "echo") && b.Outcome == event.OutcomeOK && starts[id] != 1 {
			t.Errorf("%s was started %d times", id, starts[id])
		}
	}
}
