package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

// long is a server whose model writes tokens to a ledger, thinking aloud, until
// there are enough of them. It tells summary when it is asked for one.
type long struct {
	ready   chan struct{} // closed when the fields are set
	ledger  string
	summary func()
	broken  atomic.Value // what was wrong with a request
}

const (
	longTask   = "Write all the tokens. Never touch vendor/. Remember the word KINGFISHER."
	longTokens = 40
)

func (l *long) answer(_ *http.Request, body []byte) anthropictest.Answer {
	<-l.ready
	if !bytes.Contains(body, []byte("KINGFISHER")) {
		l.broken.Store("a request lacks what the person said")
	}
	usage := llm.Usage{Input: len(body) * 2 / 7, Output: 10}
	if bytes.Contains(body, []byte("Stop the work here.")) {
		l.summary()
		return anthropictest.Answer{
			Usage: usage,
			Parts: llm.Say("## Goal\nWrite all the tokens.\n## Constraints\nNever touch vendor/.\n## Decisions\nnone\n" +
				"## Files\nledger\n## State of work\nWriting goes on.\n## Open questions\nnone\n## Next\nThe next token.\n"),
		}
	}
	raw, _ := os.ReadFile(l.ledger) // there is none at first
	n := bytes.Count(raw, []byte("\n"))
	if n >= longTokens {
		return anthropictest.Answer{Parts: llm.Say("All are there."), Usage: usage}
	}
	args, _ := json.Marshal(map[string]string{"command": fmt.Sprintf("echo token-%d >> ledger", n)})
	return anthropictest.Answer{Usage: usage, Parts: llm.Parts{
		llm.Text{Text: strings.Repeat("I think aloud about it. ", 200)},
		llm.Call{ID: fmt.Sprintf("call_%d_%d", n, time.Now().UnixNano()), Name: "bash", Args: args},
	}}
}

// TestKillInCompaction kills a real run with SIGKILL while a summary is being
// written, and shortly after it came, and resumes it. Nothing that was said or
// done is lost, and nothing happens twice.
func TestKillInCompaction(t *testing.T) {
	t.Parallel()
	kills := 6
	if testing.Short() {
		kills = 2
	}
	for n := range kills {
		// From before the answer to some milliseconds after it.
		killInCompaction(t, time.Duration(n)*4*time.Millisecond)
		if t.Failed() {
			t.Fatalf("kill %d", n)
		}
	}
}

func killInCompaction(t *testing.T, after time.Duration) {
	t.Helper()
	l := &long{ready: make(chan struct{})}
	h := newHome(t, anthropictest.Start(t, &anthropictest.Server{Answer: l.answer}))
	l.ledger = filepath.Join(h.work, "ledger")
	settings := filepath.Join(h.dir, "config", "config.toml")
	raw, err := os.ReadFile(settings)
	if err == nil {
		err = os.WriteFile(settings, append(raw, "window = 30000\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := h.command(t.Context(), "run", "--mode", "auto", "--output", "stream-json", longTask)
	cmd.Stdout = &out
	started, killed := make(chan struct{}), make(chan struct{})
	kill := func(cmd *exec.Cmd) {
		<-started
		_ = cmd.Process.Kill()
		close(killed)
	}
	var asked atomic.Int32
	l.summary = func() {
		switch {
		case asked.Add(1) > 1:
		case after == 0:
			kill(cmd)
		default:
			time.AfterFunc(after, func() { kill(cmd) })
		}
	}
	close(l.ready)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	if err := cmd.Wait(); err == nil || asked.Load() == 0 {
		t.Fatalf("the run ended (%v) before it was killed, after %d summaries\n%s", err, asked.Load(), out.Bytes())
	}
	<-killed
	acknowledged := stored(t, out.Bytes())
	id := acknowledged[0].Session
	before := logged(t, h, id)
	for _, a := range acknowledged {
		if a.Seq > uint64(len(before)) || !bytes.Equal(before[a.Seq-1].line, a.line) {
			t.Fatalf("event %d was acknowledged and is lost:\n%s", a.Seq, a.line)
		}
	}
	resume(t, h, id, before)
	all := logged(t, h, id)
	if !slices.ContainsFunc(all, func(e entry) bool { _, ok := e.Body.(event.Compacted); return ok }) {
		t.Error("nothing was compacted")
	}
	ledger, err := os.ReadFile(l.ledger)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Fields(string(ledger)) {
		if line != fmt.Sprint("token-", i) {
			t.Fatalf("line %d of the ledger is %s", i, line)
		}
	}
	if n := bytes.Count(ledger, []byte("\n")); n != longTokens || l.broken.Load() != nil {
		t.Errorf("%d tokens; %v", n, l.broken.Load())
	}
}
