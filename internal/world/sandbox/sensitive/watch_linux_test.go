package sensitive_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/tool"
)

// while starts a script in a box, waits until it has said something, calls do,
// and returns the end as script does. The script reads on when do has returned.
func while(t *testing.T, env tool.Env, box tool.Box, text string, do func()) (int, string, []string) {
	t.Helper()
	r, w := io.Pipe()
	in, feed := io.Pipe()
	var out bytes.Buffer
	p, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{"bash", "-c", text}, Dir: env.Root, Output: w, Stdin: in, Box: box})
	if err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	if _, err := r.Read(one); err != nil {
		t.Fatal(err)
	}
	copied := make(chan struct{})
	go func() { _, _ = io.Copy(&out, r); close(copied) }()
	do()
	go func() { _, _ = feed.Write([]byte("\n")); _ = feed.Close() }()
	code, err := p.Wait()
	_ = w.Close()
	<-copied
	if err != nil {
		t.Log(err)
	}
	p.Kill()
	return code, out.String(), p.(interface{ Refused() []string }).Refused()
}

// save puts a new file in the place of an old one, as editors do.
func save(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+"~new", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~new", path); err != nil {
		t.Fatal(err)
	}
}

// TestChangedOutside checks that a box ends when a person changes a place that is closed to it, and that the person's
// text stays.
func TestChangedOutside(t *testing.T) {
	for _, name := range []string{".env", "a/b/.env", ".mcp.json"} {
		env, _, _ := boxes.New(t)
		boxes.Need(t, env, tool.BoxWorkspace)
		path := filepath.Join(env.Root, name)
		code, out, refused := while(t, env, tool.Box{Level: tool.BoxWorkspace},
			"echo; read; sleep 5; cat "+name, func() { save(t, path, "changed") })
		if code == 0 || len(refused) != 1 || !strings.Contains(refused[0], "was ended, because "+path+" was changed from outside") ||
			strings.Contains(out, "changed") {
			t.Errorf("%s: exit code %d, refused %q\n%s", name, code, refused, out)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != "changed" {
			t.Errorf("%s is %q, %v", name, data, err)
		}
	}
	env, _, _ := boxes.New(t)
	code, out, refused := while(t, env, tool.Box{Level: tool.BoxWorkspace}, "mv a a2; mkdir -p a/b; echo x >a/b/.env; echo; read",
		func() { save(t, filepath.Join(env.Root, "plain"), "changed") })
	if code != 0 || len(refused) > 0 {
		t.Errorf("exit code %d, refused %q\n%s", code, refused, out)
	}
	// What is gone when the command ends is theirs too.
	_, _, refused = while(t, env, tool.Box{Level: tool.BoxWorkspace, Git: true}, "echo; read",
		func() { save(t, filepath.Join(env.Root, ".git/config"), "changed") })
	if data, err := os.ReadFile(filepath.Join(env.Root, ".git/config")); err != nil || string(data) != "changed" {
		t.Errorf("the settings of the repository are %q, %v, refused %q", data, err, refused)
	}
}

// TestBoxGitInsides checks the places in a repository that are easily missed.
func TestBoxGitInsides(t *testing.T) {
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	boxes.Put(t, env.Root, map[string]string{
		".git/modules/logs/config": "", ".git/modules/logs/HEAD": "", ".git/modules/x/objects/config": "",
		".git/remotes/origin": "", ".git/info/x": "", ".git/objects/info/x": "",
	})
	box := tool.Box{Level: tool.BoxWorkspace, Git: true}
	for _, name := range []string{".git/modules/logs/config", ".git/modules/x/objects/config", ".git/remotes/origin", ".git/info/y"} {
		_, _, refused := boxes.Run(t, env, box, "echo x >>"+name)
		if data, _ := os.ReadFile(filepath.Join(env.Root, name)); len(data) > 0 {
			t.Errorf("%s was changed to %q, refused %q", name, data, refused)
		}
	}
	for name, text := range map[string]string{
		".git/branches/x": "x", ".git/info/grafts": "x", ".git/objects/info/alternates": "x",
		".git/rebase-merge/git-rebase-todo": "pick 1\nexec x\n", ".git/sequencer/todo": "x y\n",
	} {
		code, out, refused := boxes.Run(t, env, box, "mkdir -p $(dirname "+name+"); printf '"+text+"' >"+name)
		if code != 0 || len(refused) != 1 || !boxes.Gone(filepath.Join(env.Root, name)) {
			t.Errorf("%s stays: %d, %q\n%s", name, code, refused, out)
		}
	}
	if code, _, refused := boxes.Run(t, env, box,
		"mkdir -p .git/rebase-merge; echo pick 1 >.git/rebase-merge/git-rebase-todo; echo x >.git/info/exclude"); code != 0 || len(refused) > 0 {
		t.Errorf("exit code %d, refused %q", code, refused)
	}
}
