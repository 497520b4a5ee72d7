package transcript_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/view/transcript"
)

var update = flag.Bool("update", false, "write the golden exports anew")

// logs lists the logs that every version must read; see test/journeys/testdata/logs.
func logs(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../../test/journeys/testdata/logs/*/*.jsonl")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d logs, %v", len(paths), err)
	}
	return paths
}

func readLog(t *testing.T, path string) (events []event.Event, raw []byte) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		e, err := event.Decode(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatalf("event %d: %v", len(events)+1, err)
		}
		events = append(events, e)
	}
	return events, raw
}

func sequence(events []event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func blobPath(digest string) string { return "blobs/" + digest }

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (rewrite with -update):\n%s", path, diff)
	}
}

func TestCorpusKeepsItsBytes(t *testing.T) {
	for _, path := range logs(t) {
		events, raw := readLog(t, path)
		var again bytes.Buffer
		for _, e := range events {
			line, err := event.Encode(e)
			if err != nil {
				t.Fatalf("%s: event %d: %v", path, e.Seq, err)
			}
			again.Write(append(line, '\n'))
		}
		if diff := cmp.Diff(string(raw), again.String()); diff != "" {
			t.Errorf("%s: written again it is different:\n%s", path, diff)
		}
	}
}

func TestCorpusExports(t *testing.T) {
	for _, path := range logs(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			events, _ := readLog(t, path)
			var md, atif bytes.Buffer
			if err := transcript.Markdown(&md, sequence(events)); err != nil {
				t.Error(err)
			}
			if err := transcript.ATIF(&atif, sequence(events), blobPath); err != nil {
				t.Error(err)
			}
			golden(t, strings.TrimSuffix(path, "jsonl")+"md", md.Bytes())
			golden(t, strings.TrimSuffix(path, "jsonl")+"atif.json", atif.Bytes())
		})
	}
}

// validate checks trajectories with the model that Harbor, whose format it is,
// checks them with itself.
const validate = `
import json, sys
from harbor.models.trajectories import Trajectory
bad = 0
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as f:
        try:
            Trajectory.model_validate(json.load(f))
        except ValueError as e:
            bad += 1
            print(path, e)
sys.exit(3 if bad else 0)
`

const rejected = 3 // exit code of validate

func TestTrajectoriesAreValid(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	python := harbor(ctx, t)
	dir := t.TempDir()
	args := []string{"-I", "-c", validate}
	for _, path := range logs(t) {
		events, _ := readLog(t, path)
		var b bytes.Buffer
		if err := transcript.ATIF(&b, sequence(events), blobPath); err != nil {
			t.Fatal(err)
		}
		args = append(args, save(t, dir, strings.TrimSuffix(filepath.Base(path), "jsonl")+filepath.Base(filepath.Dir(path))+".json", b.Bytes()))
	}
	if out, err := exec.CommandContext(ctx, python, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// The validator must be able to say no.
	raw, err := os.ReadFile(args[len(args)-1])
	if err != nil {
		t.Fatal(err)
	}
	wrong := save(t, dir, "wrong.json", bytes.Replace(raw, []byte(`"step_id": 1`), []byte(`"step_id": 7`), 1))
	err = exec.CommandContext(ctx, python, "-I", "-c", validate, wrong).Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != rejected {
		t.Errorf("steps out of order: %v", err)
	}
}

func save(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// harbor returns a Python that has Harbor's models. They are installed once
// for all runs, in the user's cache. Without Python or network the test is
// skipped, aloud.
func harbor(ctx context.Context, t *testing.T) (python string) {
	t.Helper()
	skip := func(format string, args ...any) {
		text := "NOT VALIDATED: trajectories (ATIF) were not checked with Harbor's own validator: " + fmt.Sprintf(format, args...)
		fmt.Fprintln(os.Stderr, text)
		t.Skip(text)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		skip("%v", err)
	}
	home := filepath.Join(cache, "inspan-test", "harbor-0.25.0")
	python = filepath.Join(home, "bin", "python")
	works := func() bool {
		return exec.CommandContext(ctx, python, "-I", "-c", "import harbor.models.trajectories").Run() == nil
	}
	if works() {
		return python
	}
	base := testkit.Python(ctx)
	if base == "" {
		skip("no Python 3.12 or later found")
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		skip("%v", err)
	}
	// Made under another name first, so that a broken one is never used.
	fresh, err := os.MkdirTemp(filepath.Dir(home), "new-")
	if err != nil {
		skip("%v", err)
	}
	defer os.RemoveAll(fresh)
	inFresh := filepath.Join(fresh, "bin", "python")
	for _, args := range [][]string{
		{base, "-I", "-m", "venv", fresh},
		{inFresh, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pydantic==2.14.3"},
		{inFresh, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "harbor==0.25.0"},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			skip("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	err = os.Rename(fresh, home)
	if err != nil && !works() { // not another run that was faster, but something broken
		err = errors.Join(os.RemoveAll(home), os.Rename(fresh, home))
	}
	if !works() {
		t.Fatalf("Harbor is installed in %s and can't be imported: %v", home, err)
	}
	return python
}
