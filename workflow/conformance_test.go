package workflow_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/inspan/inspan/workflow"
)

const corpus = "testdata"

// files are those of a folder of the corpus, by name.
func files(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(corpus, folder, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", folder, len(paths), err)
	}
	out := map[string][]byte{}
	for _, path := range paths {
		if out[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// used finds the workflows that others of the corpus use.
func used(name string) (file string, data []byte, err error) {
	path := filepath.Join(corpus, "used", name+".yaml")
	data, err = os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil, fmt.Errorf("there is no workflow %q", name)
	}
	return path, data, err
}

// TestGoodFiles checks that every good file of the corpus can run, and says first what it shows.
func TestGoodFiles(t *testing.T) {
	good := files(t, "good")
	if len(good) < 25 {
		t.Errorf("only %d files", len(good))
	}
	for name, data := range good {
		if w, err := workflow.Parse(name, data, used); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if same(t, w); !bytes.HasPrefix(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("# ")) {
			t.Errorf("%s does not say what it shows", name)
		}
	}
}

// TestBadFiles holds that every bad file is refused for its one mistake, because its first line has it:
//
//	# WANT LINE FIELD: part of what is wrong | part of what to do
//
// The field is - for what concerns no field.
func TestBadFiles(t *testing.T) {
	bad := files(t, "bad")
	if len(bad) < 90 {
		t.Errorf("only %d files", len(bad))
	}
	for name, data := range bad {
		first, _, _ := strings.Cut(string(data), "\n")
		where, fragments, _ := strings.Cut(first, ": ")
		line, field, _ := strings.Cut(strings.TrimPrefix(where, "# WANT "), " ")
		what, remedy, well := strings.Cut(strings.TrimSpace(fragments), " | ")
		if !well || field == "" || remedy == "" {
			t.Errorf("%s begins with %q", name, first)
			continue
		}
		_, err := workflow.Parse(name, data, used)
		var problems workflow.Problems
		if !errors.As(err, &problems) || len(problems) != 1 {
			t.Errorf("%s: want one problem, got\n%v", name, err)
			continue
		}
		p := problems[0]
		if strconv.Itoa(p.Line) != line || p.Field != strings.TrimPrefix(field, "-") || p.File != name ||
			!strings.Contains(p.What, what) || !strings.Contains(p.Remedy, remedy) {
			t.Errorf("%s: want %s\ngot %v", name, first, p)
		}
	}
}

// same holds that a workflow survives JSON, and is as good after it.
func same(t *testing.T, w *workflow.Workflow) {
	t.Helper()
	other, err := w.Clone()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Check(), other.Check()); err != nil {
		t.Errorf("%s: %v", w.Name, err)
	}
	if a, b := asJSON(t, w), asJSON(t, other); a != b {
		t.Errorf("%s: behind JSON\n%s\nbefore\n%s", w.Name, b, a)
	}
}

func asJSON(t *testing.T, w *workflow.Workflow) string {
	t.Helper()
	raw, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
