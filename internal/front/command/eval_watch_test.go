package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/running"
)

// once does something after the first write.
type once struct {
	bytes.Buffer
	do func()
}

func (o *once) Write(p []byte) (int, error) {
	if o.do != nil {
		o.do()
		o.do = nil
	}
	return o.Buffer.Write(p)
}

// TestWatchEval follows a run until no process works on it.
func TestWatchEval(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "evals", "r1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"run.json":     `{"id":"r1","suite":"mine","tasks":["a","b"],"tries":2,"budget":5}`,
		"trials.jsonl": `{"task":"b","try":1,"outcome":"failed","reason":"no","cost":2,"seconds":60}` + "\n",
		"claims.jsonl": `{"task":"a","try":1,"attempt":1,"session":"x"}` + "\n",
		"bounds.json":  `{"jobs":1,"budget":7}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := keep.LockFile(t.Context(), filepath.Join(dir, "run.lock"), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	out := &once{do: func() {
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
	}}
	e := evaluation{Table: &running.Table{Installation: &config.Installation{StateDir: state}}, Out: out}
	if err := e.watch(t.Context(), "last", false); err != nil {
		t.Fatal(err)
	}
	want := `r1 of mine: 1 failed, 1 running, 2 open of 4 trials, $2.00 of $7.00, about 3m0s left
r1 of mine: 1 failed, 3 open of 4 trials, $2.00 of $7.00; interrupted; continue with: inspan eval resume r1
a  open        open
b  failed: no  open
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if err := e.watch(t.Context(), "r2", false); err == nil || !strings.Contains(err.Error(), "no run") {
		t.Error(err)
	}
}
