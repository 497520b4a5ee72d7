package temporal_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/inspan/inspan/engine/temporal"
	"github.com/inspan/inspan/event"
)

// Histories that were recorded stay as they are: workflows like them may be running somewhere.
var update = flag.Bool("update", false, "record one more history in testdata")

func replayer() worker.WorkflowReplayer {
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(temporal.Supervise, workflow.RegisterOptions{Name: temporal.WorkflowName})
	return r
}

// TestReplay checks that running workflows continue under this code.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no histories", err)
	}
	for _, file := range files {
		if err := replayer().ReplayWorkflowHistoryFromJSONFile(quiet(), file); err != nil {
			t.Errorf("%s: %v; put the change behind workflow.GetVersion", file, err)
		}
	}
}

// TestHistory leads a session through everything that a workflow does, and replays the history that the server has
// kept. The history contains no text of the session.
func TestHistory(t *testing.T) {
	p := newPlace(t, calls("look", "ask", "step"))
	id := p.begins()
	first := p.worker()
	if err := p.client.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.reached("look0", 0)
	first.sends(t, syscall.SIGTERM)
	p.opens(0)
	<-first.ended
	p.worker()
	p.stands(id, temporal.Asks)
	if err := p.client.Approve(t.Context(), id, p.yes(id)); err != nil {
		t.Fatal(err)
	}
	p.stands(id, temporal.Done)
	said := event.Say("Go on.")
	said.Message = "key-2"
	if err := p.client.Send(t.Context(), id, said); err != nil {
		t.Fatal(err)
	}
	p.stands(id, temporal.Done)
	if err := p.client.Cancel(t.Context(), id, event.Cancelled{By: "test", Message: "key-3"}); err != nil {
		t.Fatal(err)
	}
	p.until("it is over", func() bool {
		d, err := p.client.Describe(t.Context(), id)
		return err == nil && !d.Supervised
	})
	h := p.history(id)
	if err := replayer().ReplayWorkflowHistory(quiet(), h); err != nil {
		t.Error(err)
	}
	if wire, err := proto.Marshal(h); err != nil || bytes.Contains(wire, []byte("Go on.")) || bytes.Contains(wire, []byte("finished")) {
		t.Errorf("what was said is in the history, or %v", err)
	}
	raw, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d events, %d bytes as JSON", len(h.Events), len(raw))
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile("testdata/supervise-1.json", append(raw, '\n'), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *place) history(id string) *historypb.History {
	p.t.Helper()
	h := &historypb.History{}
	const every = enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT
	for all := p.client.Temporal.GetWorkflowHistory(p.t.Context(), id, "", false, every); all.HasNext(); {
		e, err := all.Next()
		if err != nil {
			p.t.Fatal(err)
		}
		h.Events = append(h.Events, e)
	}
	return h
}
