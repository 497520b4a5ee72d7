//go:build unix

package hook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// TestBoxes checks that programs of hooks run in the sandbox, whatever the model has written for them, unless the
// person's own settings exempt this one program.
func TestBoxes(t *testing.T) {
	base := keep.Real(t.TempDir())
	home, root := filepath.Join(base, "home"), filepath.Join(base, "shop")
	t.Setenv("HOME", home)
	mark, notes := filepath.Join(base, "mark"), filepath.Join(base, "notes")
	write(t, home, "bin/notify", "#!/bin/sh\ntouch "+mark+"\n")
	write(t, home, "bin/check", "#!/bin/sh\n. \"$(dirname \"$0\")/lib.sh\"\n")
	write(t, home, "bin/lib.sh", "touch made\n")
	write(t, root, "bin/notify", "#!/bin/sh\ntouch "+mark+"\n")
	write(t, notes, "old", "")
	if err := os.Symlink(filepath.Join(root, "bin", "notify"), filepath.Join(home, "linked")); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(base, "state")
	env, err := sandbox.Local(root, nil, sandbox.Options{
		Self: sandbox.Self(), State: state, Default: tool.BoxWorkspace,
		Map: places.Map{Home: home, Settings: filepath.Join(state, "config"), State: []string{state}}.Indexed(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close() })
	if !env.Walls.Workspace {
		t.Skip("no walls here: " + env.Walls.Why)
	}
	notify, inside, linked := filepath.Join(home, "bin", "notify"), filepath.Join(root, "bin", "notify"), filepath.Join(home, "linked")
	outside := []string{notify, inside, linked}
	both := "touch made " + mark
	for name, tc := range map[string]struct {
		c    hook.Config
		mode tool.Mode
		lent bool // it is a repository's
		want string
	}{
		"the workspace is writable":         {hook.Config{Command: "touch made"}, "ask", false, "made"},
		"the rest is not":                   {hook.Config{Command: both}, "edit", false, "made"},
		"of a repository":                   {hook.Config{Command: both}, "auto", true, "made"},
		"mode yolo has no sandbox":          {hook.Config{Command: both}, tool.ModeYolo, false, "made mark"},
		"a script of the person":            {hook.Config{Command: "~/bin/check"}, "ask", false, "made"},
		"a script by the variable":          {hook.Config{Command: "sh $HOME/bin/check"}, "ask", false, "made"},
		"a program that is let out":         {hook.Config{Command: notify + " 'it is done'"}, "auto", false, "mark"},
		"by the home":                       {hook.Config{Command: "~/bin/notify"}, "auto", false, "mark"},
		"with arguments":                    {hook.Config{Command: notify, Args: []string{"x"}}, "auto", false, "mark"},
		"not a repository's":                {hook.Config{Command: notify}, "auto", true, ""},
		"not with another command":          {hook.Config{Command: "touch made; " + notify}, "auto", false, "made"},
		"not with a command within":         {hook.Config{Command: notify + " $(touch made)"}, "auto", false, "made"},
		"not by its name":                   {hook.Config{Command: "PATH=$PATH:$HOME/bin; notify"}, "auto", false, ""},
		"not another":                       {hook.Config{Command: "/bin/sh " + notify}, "auto", false, ""},
		"not what the workspace has":        {hook.Config{Command: inside}, "auto", false, ""},
		"nor where a link leads there":      {hook.Config{Command: linked}, "auto", false, ""},
		"its own output":                    {hook.Config{Command: "cat >>" + mark + "; touch made"}, "auto", false, "made mark"},
		"not that of a repository's":        {hook.Config{Command: "cat >>" + mark}, "auto", true, ""},
		"a folder that is opened":           {hook.Config{Command: "cp -r " + notes + "/old made; touch " + notes + "/new", Write: []string{notes}}, "auto", false, "made new"},
		"a repository opens no folder":      {hook.Config{Command: "touch made " + notes + "/new", Write: []string{notes}}, "auto", true, "made"},
		"a file that is opened for reading": {hook.Config{Command: "cp -r " + notes + "/old made; touch " + notes + "/new", Read: []string{notes}}, "auto", false, "made"},
	} {
		t.Run(name, func(t *testing.T) {
			paths := []string{filepath.Join(root, "made"), mark, filepath.Join(notes, "new")}
			for _, path := range paths {
				_ = os.Remove(path)
			}
			tc.c.On = tool.RunStop
			w := &warnings{}
			s := &hook.Set{Hooks: []hook.Config{tc.c}, Env: env, Warn: w.add, Walls: hook.Walls{Own: !tc.lent, Outside: outside}}
			must(t, s, tool.Point{Moment: tool.RunStop, Root: root, Mode: tc.mode})
			var got []string
			for _, path := range paths {
				if _, err := os.Stat(path); err == nil {
					got = append(got, filepath.Base(path))
				}
			}
			if got := strings.Join(got, " "); got != tc.want {
				t.Errorf("it made %q, not %q; %s", got, tc.want, w.take())
			}
		})
	}
}

// TestHooksWithoutWalls checks that hooks run where there are no walls, as commands do.
func TestHooksWithoutWalls(t *testing.T) {
	s, w := set(t, hook.Config{On: tool.RunStop, Command: "touch made"})
	must(t, s, at(tool.RunStop, s.Env))
	if _, err := os.Stat(filepath.Join(s.Env.Root, "made")); err != nil {
		t.Error(err, w.take())
	}
}
