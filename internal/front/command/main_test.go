package command

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
)

func TestMain(m *testing.M) {
	if ran, code := app.Helper(); ran {
		os.Exit(code)
	}
	testscript.Main(m, map[string]func(){"inspan": Program{}.Run})
}

// TestScripts runs the command the way people do. Each script has a home of
// its own and no keys.
func TestScripts(t *testing.T) {
	goroot, modcache := os.Getenv("GOROOT"), os.Getenv("GOMODCACHE")
	examples, err := filepath.Abs("../../../examples")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var pool sandbox.Pool // so that it is found out once which boxes work here
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Deadline:            time.Now().Add(10 * time.Minute), // one that hangs leaves time for the other tests
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"await": await, "fill": fill},
		Condition: func(name string) (bool, error) {
			if name != "walls" && name != "throwaway" {
				return false, fmt.Errorf("there is no condition %q", name)
			}
			env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{Self: self, Pool: &pool})
			return err == nil && env.Walls.Workspace && (name == "walls" || env.Walls.Throwaway), err
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("INSPAN_STATE_DIR", filepath.Join(env.WorkDir, ".state"))
			env.Setenv("INSPAN_CONFIG_DIR", filepath.Join(env.WorkDir, ".config"))
			env.Setenv("GOROOT", goroot)
			env.Setenv("GOMODCACHE", modcache)
			env.Setenv("GOCACHE", filepath.Join(env.WorkDir, ".gocache"))
			env.Setenv("GOFLAGS", "-mod=mod")
			env.Setenv("NO_COLOR", "1")
			env.Setenv("EXAMPLES", examples)
			env.Setenv("UNIQUE", "inspan-script-"+rand.Text())
			testkit.Findings(t, "inspan", filepath.Join(env.WorkDir, ".state"))
			env.Defer(func() { endAll(filepath.Join(env.WorkDir, ".state", "sessions")) })
			return nil
		},
	})
}

// fill puts the name that is this run's own in the place of UNIQUE in files: scripts of several
// runs of the tests meet in /tmp.
func fill(ts *testscript.TestScript, _ bool, files []string) {
	for _, file := range files {
		path := ts.MkAbs(file)
		ts.Check(os.WriteFile(path, []byte(strings.ReplaceAll(ts.ReadFile(file), "UNIQUE", ts.Getenv("UNIQUE"))), 0o600))
	}
}

// await runs a command again and again until its output matches a pattern.
func await(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: await PATTERN COMMAND ...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	if !testkit.Poll(testkit.Patience, func() bool {
		_ = ts.Exec(args[1], args[2:]...) // which may fail until it is so
		return pattern.MatchString(ts.ReadFile("stdout") + ts.ReadFile("stderr"))
	}) {
		ts.Fatalf("waited %v for %s", testkit.Patience, args[0])
	}
}

// endAll ends the processes that drive the sessions in a folder, so that a test that
// failed leaves none.
func endAll(dir string) {
	held, _ := (&session.Store{Dir: dir}).Held(context.Background())
	for _, h := range held {
		if p, err := os.FindProcess(h.PID); err == nil && h.Here() {
			_ = p.Kill()
		}
	}
}
