package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/tool"
)

// TestFetchedOnce has Go fetch a module in a box that reaches hosts, from what the person
// has, and use it in one that reaches none. Until then their own folder is read.
func TestFetchedOnce(t *testing.T) {
	said, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOROOT").Output()
	lines := strings.Fields(string(said))
	if err != nil || len(lines) != 2 {
		t.Skip("no Go: ", err)
	}
	own, goroot := lines[0], lines[1]
	t.Setenv("GOMODCACHE", own)
	env, _, state := boxed(t)
	need(t, env, tool.BoxWorkspace)
	sum, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	module, _, _ := strings.Cut(string(sum[strings.Index(string(sum), "github.com/google/go-cmp "):]), " h1:")
	for name, text := range map[string]string{
		"go.mod": "module m\n\nrequire " + module + "\n", "go.sum": string(sum),
		"m.go": "package m\n\nimport _ \"github.com/google/go-cmp/cmp\"\n",
	} {
		if err := os.WriteFile(filepath.Join(env.Root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	box := tool.Box{Level: tool.BoxWorkspace, Read: []string{own, goroot}}
	vars := []string{
		"PATH=" + filepath.Join(goroot, "bin") + ":/usr/bin:/bin",
		"GOMODCACHE=" + own, "GOFLAGS=-mod=mod", "GONOSUMDB=*", "GOTOOLCHAIN=local",
	}
	if code, out, _ := script(t, env, box, "go env GOMODCACHE", vars...); code != 0 || strings.TrimSpace(out) != own {
		t.Errorf("%d %s", code, out)
	}
	with := box
	with.Hosts = []string{"proxy.example.com"}
	if code, out, _ := script(t, env, with, "go mod download", vars...); code != 0 {
		t.Fatalf("%d %s", code, out)
	}
	if kept, err := filepath.Glob(filepath.Join(state, "cache", "*", "go-mod", "cache", "download", "github.com", "google")); err != nil ||
		len(kept) != 1 {
		t.Errorf("fetched to %q, %v", kept, err)
	}
	box.Read = []string{goroot}
	if code, out, _ := script(t, env, box, "go list -deps ./... && go mod verify", vars...); code != 0 || !strings.Contains(out, "go-cmp/cmp\n") {
		t.Errorf("%d %s", code, out)
	}
	// so that it can be removed
	if code, out, _ := script(t, env, tool.Box{Level: tool.BoxWorkspace}, "chmod -R u+w $GOMODCACHE", vars...); code != 0 {
		t.Errorf("%d %s", code, out)
	}
}
