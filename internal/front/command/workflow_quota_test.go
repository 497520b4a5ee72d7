package command

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

// allowance is a vendor whose quota is used up once three agents have been answered: the next three that ask
// learn of it at the same time, and for a while everybody who asks.
type allowance struct {
	mu       sync.Mutex
	answered map[string]int // agents, by what they work on
	refused  int
	wait     time.Duration // until the quota is there again
	until    time.Time
	all      chan struct{} // three have been refused
	early    int           // requests while it was known
}

func (v *allowance) answer(_ *http.Request, body []byte) anthropictest.Answer {
	_, after, _ := bytes.Cut(body, []byte("Number "))
	v.mu.Lock()
	switch {
	case len(v.answered) < 3 || !v.until.IsZero() && time.Now().After(v.until):
		defer v.mu.Unlock()
		v.answered[string(after[:1])]++
		return anthropictest.Answer{Parts: llm.Say("Done."), Usage: llm.Usage{Input: 100, Output: 10}}
	case !v.until.IsZero():
		v.early++
	default:
		if v.refused++; v.refused == 3 {
			v.until = time.Now().Add(v.wait)
			close(v.all)
		}
	}
	v.mu.Unlock()
	<-v.all
	return anthropictest.Answer{
		Status: 429, Type: "rate_limit_error", Message: "You have reached your spend limit.", Header: http.Header{"Retry-After": {fmt.Sprint(v.wait.Seconds())}},
	}
}

// TestQuotaOfAScript checks that a used-up quota is one wait for all agents of a script: those that met it together and
// those that had not begun. Nothing is sent meanwhile, not even by the process that takes over from a killed one;
// finished work stays finished, and the run ends whole.
func TestQuotaOfAScript(t *testing.T) {
	t.Parallel()
	v := &allowance{answered: map[string]int{}, all: make(chan struct{}), wait: 4 * time.Second}
	h := newHome(t, anthropictest.Start(t, &anthropictest.Server{Answer: v.answer}))
	const flow = `/* workflow
name: flow
limits: {concurrency: 3}
*/
return (await each(["1", "2", "3", "4", "5", "6", "7", "8"], n => agent("Number " + n))).join(" ");
`
	if err := os.WriteFile(filepath.Join(h.work, "flow.js"), []byte(flow), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	h.does(t, 0, "ps")
	v.wait = max(v.wait, (10 * time.Since(began)).Round(time.Second)) // the next process begins within it
	cmd := h.command(t.Context(), "workflow", "run", "--mode", "auto", "--output", "stream-json", "flow.js")
	until(t, cmd, "paused", func() { _ = cmd.Process.Kill() })
	id := h.begun(t)
	r, code := h.live(t, 0, "workflow", "resume", "--output", "json", id)
	if code != console.ExitDone || r.Text == "" {
		t.Fatalf("exit code %d: %+v", code, r)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if fmt.Sprint(v.answered) != "map[1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1]" || v.early > 0 || v.refused != 3 {
		t.Errorf("answered %v, refused %d, and %d early", v.answered, v.refused, v.early)
	}
	pauses, children := 0, map[string]bool{}
	for e, err := range store.Events(t.Context(), h.store(), id) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Paused:
			pauses++
		case event.StepEnded:
			if b.Outcome != event.OutcomeOK {
				t.Errorf("%+v", b)
			}
		case event.Spawned:
			children[b.Child] = true
		}
	}
	if pauses != 1 || len(children) != 8 {
		t.Errorf("%d pauses, %d agents", pauses, len(children))
	}
	for child := range children {
		h.endedOnce(t, child)
	}
}
