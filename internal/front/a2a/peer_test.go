package a2a_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
)

// TestPeer has the client that others have written drive the server.
func TestPeer(t *testing.T) {
	dir := testkit.Dir(t)
	h := newHouse(t, "ask")
	drive := func(into any, action, argument string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(dir, "node_modules", ".bin", "node22"),
			"testdata/drive.mjs", dir, h.url, annsToken, action, argument)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, into)
		}
		if err != nil {
			t.Fatalf("%s: %v: %s", action, err, out)
		}
		return string(out)
	}
	type seen struct {
		ID, State, Question string
		Artifacts           map[string]any
	}
	var card struct {
		Name, URL string
		Streaming bool
	}
	if out := drive(&card, "card", ""); card.Name != "inspan" || card.URL != h.url+"/" || !card.Streaming {
		t.Error(out)
	}
	var sent seen
	if out := drive(&sent, "send", "say: hello"); sent.State != "TASK_STATE_COMPLETED" || sent.Artifacts["answer"] != "hello" {
		t.Error(out)
	}
	var streamed struct{ States []string }
	if out := drive(&streamed, "stream", "say: looking\nread: none.txt\nsay: end"); len(streamed.States) < 3 ||
		streamed.States[len(streamed.States)-1] != "TASK_STATE_COMPLETED" || streamed.States[len(streamed.States)-2] != "artifact answer" {
		t.Error(out)
	}
	var answered struct{ Asks, Done seen }
	if out := drive(&answered, "answer", write+"\nsay: made"); answered.Asks.State != "TASK_STATE_INPUT_REQUIRED" ||
		!strings.Contains(answered.Asks.Question, "May write_file run") ||
		answered.Done.State != "TASK_STATE_COMPLETED" || h.read("new.txt") != "made" {
		t.Error(out)
	}
	var cancelled struct{ Works, Cancelled seen }
	if out := drive(&cancelled, "cancel", "delay: 10m\nsay: late"); cancelled.Works.State != "TASK_STATE_WORKING" ||
		cancelled.Cancelled.State != "TASK_STATE_CANCELED" {
		t.Error(out)
	}
	h.stop()
	h.start("ask")
	var got seen
	if out := drive(&got, "get", answered.Done.ID); got.State != "TASK_STATE_COMPLETED" || got.Artifacts["answer"] != "made" {
		t.Error(out)
	}
}
