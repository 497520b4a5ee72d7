package running_test

import (
	"context"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// TestLeaveFinishes lets go of a run while the model is asked, and after an event between two steps.
// What had begun is finished, and nothing is begun: each request has its reply, and each call its end.
func TestLeaveFinishes(t *testing.T) {
	const asked, replied, ended = "asked", "replied", "ended"
	for _, when := range []string{asked, replied, ended} {
		var sessions store.Memory
		host := &inspan.Host{Store: &sessions, Agent: func(context.Context, inspan.SessionSpec) (*inspan.Agent, error) {
			work := tool.New("work", "Works.", func(context.Context, *tool.Call, struct{}) (tool.Result, error) { return tool.Text("done"), nil })
			model, err := script.Parse([]byte("-- reply --\ndelay: 50ms\ncall: work {}\n-- reply --\ncall: work {}\n-- reply --\nDone.\n"))
			return &inspan.Agent{Model: model, Tools: []tool.Tool{work}, Mode: "yolo"}, err
		}}
		s, err := host.New(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		at, left := make(chan bool), make(chan bool)
		seen := map[string]int{}
		pool := running.Pool{Open: host.Open, OnEvent: func(e event.Event) {
			if seen[e.Body.Kind()]++; e.Body.Kind() == when && seen[when] == 1 {
				at <- true
				<-left
			}
		}}
		r, err := pool.Drive(t.Context(), s.ID(), s, event.Say("Work."))
		if err != nil {
			t.Fatal(err)
		}
		<-at
		r.Detach()
		left <- true
		<-r.Done()
		pool.Close()
		if seen[asked] != seen[replied] || seen["started"] != seen[ended] || seen["stopped"] > 0 || seen[asked] > 2 {
			t.Errorf("left when %s: %v", when, seen)
		}
	}
}
