package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// TestFetchedOnce has Go fetch a module in a box with hosts, starting from the person's cache, and use it in a box
// without hosts. Until then the person's own folder is read.
func TestFetchedOnce(t *testing.T) {
	said, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOROOT").Output()
	lines := strings.Fields(string(said))
	if err != nil || len(lines) != 2 {
		t.Skip("no Go: ", err)
	}
	own, goroot := lines[0], lines[1]
	t.Setenv("GOMODCACHE", own)
	env, _, state := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	sum, err := os.ReadFile("../../../go.sum")
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
	if code, out, _ := boxes.Run(t, env, box, "go env GOMODCACHE", vars...); code != 0 || strings.TrimSpace(out) != own {
		t.Errorf("%d %s", code, out)
	}
	with := box
	with.Hosts = []string{"proxy.example.com"}
	if code, out, _ := boxes.Run(t, env, with, "go mod download", vars...); code != 0 {
		t.Fatalf("%d %s", code, out)
	}
	// where go keeps the state of the checksum database, and Maven its downloads
	if code, out, _ := boxes.Run(t, env, with, `touch "${MAVEN_OPTS##* -Dmaven.repo.local.tail=}" 2>/dev/null && exit 9; set -e
mkdir -p "$(go env GOPATH)/pkg/sumdb/sum.golang.org"
set -- $MAVEN_OPTS; touch "${1#-Dmaven.repo.local=}/fetched"`, vars...); code != 0 {
		t.Errorf("%d %s", code, out)
	}
	if kept, err := filepath.Glob(filepath.Join(state, "cache", "*", "go-mod", "cache", "download", "github.com", "google")); err != nil ||
		len(kept) != 1 {
		t.Errorf("fetched to %q, %v", kept, err)
	}
	box.Read = []string{goroot}
	if code, out, _ := boxes.Run(t, env, box, "go list -deps ./... && go mod verify", vars...); code != 0 || !strings.Contains(out, "go-cmp/cmp\n") {
		t.Errorf("%d %s", code, out)
	}
	// so that it can be removed
	if code, out, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, "chmod -R u+w $GOMODCACHE", vars...); code != 0 {
		t.Errorf("%d %s", code, out)
	}
}

// TestCachesEndWithTheSession checks that the next session does not see, and so does not run, what a session left in a
// cache, and that a program with a cache of its own finds that cache again, alone.
func TestCachesEndWithTheSession(t *testing.T) {
	env, _, state := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	open := func() tool.Env {
		env, err := sandbox.Local(env.Root, nil, sandbox.Options{
			Self: sandbox.Self(), Map: places.Map{State: []string{state}}, State: state,
		})
		if err != nil {
			t.Fatal(err)
		}
		return env
	}
	mine := tool.Box{Level: tool.BoxWorkspace, Cache: "server"}
	list := func(env tool.Env, box tool.Box) string {
		code, out, _ := boxes.Run(t, env, box, "ls $XDG_CACHE_HOME $GOCACHE $npm_config_cache | grep evil | tr '\\n' ' '")
		if code != 0 {
			t.Fatal(code, out)
		}
		return strings.TrimSpace(out)
	}
	first, second := open(), open()
	put := "for d in $XDG_CACHE_HOME $GOCACHE $npm_config_cache; do touch $d/evil; done"
	if code, out, _ := boxes.Run(t, first, tool.Box{Level: tool.BoxWorkspace}, put); code != 0 {
		t.Fatal(out)
	}
	if code, out, _ := boxes.Run(t, first, mine, "touch $XDG_CACHE_HOME/evil-server"); code != 0 {
		t.Fatal(out)
	}
	if got := list(first, tool.Box{Level: tool.BoxWorkspace}); got != "evil evil evil" {
		t.Errorf("the session's next command finds %q", got)
	}
	if got := list(second, tool.Box{Level: tool.BoxWorkspace}); got != "" {
		t.Errorf("another session finds %q", got)
	}
	boxes.Close(t, first)
	boxes.Close(t, second)
	third := open()
	t.Cleanup(func() { boxes.Close(t, third) })
	if got := list(third, tool.Box{Level: tool.BoxWorkspace}); got != "" {
		t.Errorf("the next session finds %q", got)
	}
	if got := list(third, mine); got != "evil-server" {
		t.Errorf("the program finds %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(state, "cache", "session-*")); len(left) != 2 { // a folder and its note
		t.Errorf("sessions left %q", left)
	}
	// The next session removes the folder of a killed one.
	killed := filepath.Join(state, "cache", "session-KILLED")
	if err := os.MkdirAll(filepath.Join(killed, "xdg"), 0o700); err != nil {
		t.Fatal(err)
	}
	fourth := open()
	t.Cleanup(func() { boxes.Close(t, fourth) })
	if got := list(fourth, tool.Box{Level: tool.BoxWorkspace}); got != "" {
		t.Errorf("the session after a kill finds %q", got)
	}
	if _, err := os.Stat(killed); err == nil {
		t.Error("what a killed session left is still there")
	}
}
