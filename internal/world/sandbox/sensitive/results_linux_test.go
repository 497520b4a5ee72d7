package sensitive_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// TestResultsAreHandedOut checks that a new file which a tool has written to /tmp, or a command says it writes there,
// is there when the session has ended, and nothing else of the session's.
func TestResultsAreHandedOut(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, results := range []bool{true, false} {
		dir, err := os.MkdirTemp("/tmp", "results-")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(dir); err != nil { // the name alone is wanted
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{
			Self: self, Map: places.Map{Home: t.TempDir(), State: []string{t.TempDir()}}, State: t.TempDir(), Results: results,
		})
		if err != nil {
			t.Fatal(err)
		}
		boxes.Need(t, env, tool.BoxWorkspace)
		for _, name := range []string{"report.txt", "deep/er/b.csv", "replaced", "removed", ".hidden/c", "package.json", "node_modules/x/index.js"} {
			if err := env.Files.Change(t.Context(), tool.Change{Path: filepath.Join(dir, name), Data: []byte(name), IfDigest: tool.NoFile}); err != nil {
				t.Fatal(err)
			}
		}
		boxes.Succeeds(t, env, boxes.Writable, "cd "+dir+" && echo more >>report.txt && echo x >of-a-command && rm removed replaced && ln -s /etc/hostname replaced")
		theirs, err := os.MkdirTemp("/tmp", "theirs-") // a folder of the machine's
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(theirs) })
		p, err := env.Procs.Start(t.Context(), tool.Command{
			Args: []string{"sh", "-c", "echo log >named.log; echo x >unnamed; mkdir folder; ln -s /etc/hostname link; mkdir -p " + theirs + "; echo x >" + theirs + "/x"}, Dir: dir, Box: boxes.Writable,
			Results: []string{filepath.Join(dir, "named.log"), filepath.Join(dir, "folder"), filepath.Join(dir, "link"), filepath.Join(dir, "none"), filepath.Join(theirs, "x")},
		})
		if err != nil {
			t.Fatal(err)
		}
		if code, err := p.Wait(); code != 0 || err != nil {
			t.Fatal(code, err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "deep"), 0o700); err != nil { // someone else's, meanwhile
			t.Fatal(err)
		}
		if err := env.Close(); err != nil {
			t.Fatal(err)
		}
		if list, err := os.ReadDir(theirs); err != nil || len(list) > 0 {
			t.Errorf("in a folder that was there is %v, %v", list, err)
		}
		want := map[string]string{}
		if results {
			want = map[string]string{"report.txt": "report.txtmore\n", "deep/er/b.csv": "deep/er/b.csv", "named.log": "log\n"}
		}
		got := map[string]string{}
		err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path)
			got[rel] = string(data)
			return err
		})
		if err != nil || len(got) != len(want) || got["report.txt"] != want["report.txt"] || got["deep/er/b.csv"] != want["deep/er/b.csv"] || got["named.log"] != want["named.log"] {
			t.Errorf("results %v: on the machine are %q, %v", results, got, err)
		}
	}
}
