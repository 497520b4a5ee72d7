package console

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// TestReaderStands checks that a run ends in time although no one reads its output, and that all of it arrives, in
// order, if someone reads late.
func TestReaderStands(t *testing.T) {
	t.Parallel()
	open := func(limit time.Duration, steps ...script.Step) *inspan.Session {
		wait := tool.New("wait", "waits to be stopped", func(ctx context.Context, _ *tool.Call, _ struct{}) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		})
		wait.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return []tool.Effect{}, nil }
		a := inspan.Agent{Model: &script.Model{Steps: steps}, Limits: inspan.Limits{Time: limit}, Tools: []tool.Tool{wait}, Env: tool.Env{Root: "/w"}}
		s, err := a.Open(t.Context(), event.NewMemory("m"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	long := llm.Text{Text: strings.Repeat("words ", 20_000)}
	said := script.Step{Parts: llm.Parts{long}}
	calls := script.Step{Parts: llm.Parts{long, llm.Call{ID: "a", Name: "wait", Args: json.RawMessage("{}")}}}
	for what, s := range map[string]*inspan.Session{
		"it waits":    open(200*time.Millisecond, calls),
		"it is ready": open(time.Second, said),
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c := &Console{Form: StreamJSON, Out: w, Err: io.Discard, patience: 20 * time.Millisecond}
		if code := c.Run(t.Context(), s, event.Say("go")); code != ExitMaxTime {
			t.Errorf("%s: code %d", what, code)
		}
		_ = r.Close() // and with that the writer ends
		_ = w.Close()
	}

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	code := make(chan int, 1)
	go func() {
		c := &Console{Form: StreamJSON, Out: w, Err: io.Discard, patience: time.Millisecond}
		code <- c.Run(t.Context(), open(0, said), event.Say("go"))
		_ = w.Close()
	}()
	head := make([]byte, 1)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r)
	if n := bytes.Count(rest, []byte("words ")); err != nil || n < 20_000 || <-code != ExitDone {
		t.Errorf("%d words arrived, %v", n, err)
	}
	var last Result
	lines := bytes.Split(bytes.TrimSpace(rest), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil || last.Type != "result" {
		t.Errorf("the last line is %.80s, %v", lines[len(lines)-1], err)
	}
	for _, line := range lines[1 : len(lines)-1] {
		if _, err := event.Decode(line); err != nil {
			t.Errorf("%.80s: %v", line, err)
		}
	}
}
