package plugin_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/extend/plugin"
)

func TestGit(t *testing.T) {
	s, src := store(t), t.TempDir()
	repository(t, src, full())
	first := strings.TrimSpace(run(t, src, "rev-parse", "HEAD"))
	run(t, src, "tag", "v1")
	put(t, src, map[string]string{
		manifest:               `{"name":"acme","version":"2"}`,
		"sub/part/plugin.json": `{"name":"part"}`, "sub/bare/commands/x.md": "x",
	})
	second := commit(t, src)
	run(t, src, "branch", "side")
	for from, want := range map[string]string{"#": second, "#v1": first, "#main": second, "#" + first: first, "#side": second} {
		p := install(t, s, src+from)
		if p.Name != "acme" || p.Commit != want || (p.Version == "2") != (want == second) || p.Source != src+from {
			t.Errorf("%s: %+v", from, p)
		}
		if _, err := os.Lstat(filepath.Join(p.Dir, ".git")); err == nil {
			t.Error("what git keeps is there")
		}
		if err := s.Remove(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
	}
	empty(t, s)
	for from, want := range map[string]string{"#:sub/part": "part", "#v1:": "acme", "#main:./sub/bare/": "bare", "#side:.": "acme"} {
		if p := install(t, s, src+from); p.Name != want || s.Remove(t.Context(), p.Name) != nil {
			t.Errorf("%s: %+v", from, p)
		}
	}
	for from, want := range map[string]string{
		"#none": "git fetch: ", "#:sub/none": "its folder sub/none",
		"#:../x": "not a folder of a repository", "#:sub/part/plugin.json": "its folder",
	} {
		_, err := s.Install(t.Context(), src+from)
		refused(t, err, want)
	}
	empty(t, s)
}

func TestGitUpdate(t *testing.T) {
	s, src := store(t), t.TempDir()
	repository(t, src, full())
	was := install(t, s, src+"#main")
	put(t, src, map[string]string{"rules.txt": "x"})
	second := commit(t, src)
	_, now, err := s.Update(t.Context(), "acme")
	if err != nil || now.Commit != second || was.Commit == second || !now.Enabled || get(t, s, "acme").Commit != second {
		t.Errorf("%+v %v", now, err)
	}
	p, err := s.Install(t.Context(), src+"#main")
	if err != nil || !p.Enabled || p.Commit != second {
		t.Errorf("%+v %v", p, err)
	}
	_, err = (&plugin.Store{Dir: s.Dir}).Install(t.Context(), src+"#main")
	refused(t, err, "git is not installed")
	if err := s.Remove(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	install(t, s, src+"#")
	put(t, src, map[string]string{"rules.txt": "not committed"})
	if was, now, err := s.Update(t.Context(), "acme"); err != nil || was.Digest != now.Digest || now.Commit != second {
		t.Errorf("%+v %v", now, err)
	}
}

func TestSources(t *testing.T) {
	s := store(t)
	var asked []string
	s.Git = func(_ context.Context, _ string, args ...string) (string, error) {
		asked = append(asked, strings.Join(args, " "))
		if args[len(args)-1] == "." {
			return "", nil
		}
		return "", errors.New("no network")
	}
	for _, from := range []string{
		"https://h.example/a.git", "https://h.example/a.git#v1",
		"ssh://git@h.example/a", "ssh://h.example:22/a#:x", "git@h.example:a/b.git#main",
	} {
		asked = nil
		_, err := s.Install(t.Context(), from)
		refused(t, err, "git fetch: no network")
		if len(asked) != 2 || !strings.Contains(asked[1], " -- "+strings.Split(from, "#")[0]+" ") {
			t.Errorf("%s: %q", from, asked)
		}
		for _, set := range []string{"protocol.allow=never", "protocol.ext.allow=never", "core.hooksPath=/dev/null"} {
			if !strings.Contains(asked[1], "-c "+set+" ") {
				t.Errorf("%s is not set: %s", set, asked[1])
			}
		}
		if strings.Contains(asked[1], "protocol.file.allow=always") {
			t.Error("files are open to a server: ", asked[1])
		}
	}
	asked = nil
	for _, from := range []string{
		"ext::sh -c touch% x", "ext::sh#main", "-u", "--upload-pack=x", "--upload-pack=x#main", "file:///etc#main", "file://host/x",
		"http://h.example/a", "git://h.example/a", "ftp://h/a", "fd::17",
		"https://-oProxyCommand=x/a", "ssh://-oProxyCommand=touch%20x/a", "ssh://git@-x/a", "git@-oProxyCommand=x:a", "-o@h:a", "git@h:-a",
		"git@h.example:a:b", "a::b@c:d", "https://u:p@h/a", "https://tok@h/a", "ssh://u:p@h/a", "ssh://-u@h/a",
		"https:///a", "https://h.example", "https://h.example/?x=1", "https://h.example/a#-x", "https://h.example/a#x:../y",
		"https://h.example/a#x..y", "https://h.example/a#+x", "https://h.example/a#a b", "https://h.example/a#a*",
		"https://h.example/a\n", "\x00", "", strings.Repeat("a", 3000), "rel/ative#main", "rel/ative",
	} {
		if _, err := s.Install(t.Context(), from); err == nil {
			t.Errorf("%q was taken", from)
		}
	}
	if asked != nil {
		t.Errorf("git was asked: %q", asked)
	}
	empty(t, s)
}

// TestHostileRepositories checks that nothing of a repository runs, and that its references to other places are not
// fetched.
func TestHostileRepositories(t *testing.T) {
	s, src, other, evil := store(t), t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "evil")
	repository(t, other, map[string]string{"secret.txt": "x"})
	script := "#!/bin/sh\ntouch " + evil + "\n"
	put(t, os.Getenv("GIT_TEST_HOME"), map[string]string{".gitconfig": "[filter \"lfs\"]\n\tsmudge = touch " + evil + "\n\tprocess = touch " +
		evil + "\n\trequired = true\n[core]\n\thooksPath = " + filepath.Join(other, "hooks") + "\n[init]\n\ttemplateDir = " +
		filepath.Join(other, "template") + "\n[submodule]\n\trecurse = true\n"})
	put(t, other, map[string]string{
		"hooks/post-checkout*":         script,
		"hooks/reference-transaction*": script, "template/hooks/post-checkout*": script,
	})
	put(t, src, with(map[string]string{
		".gitattributes": "*.bin filter=lfs\n", "a.bin": "version https://git-lfs.github.com/spec/v1\n",
		".gitmodules": "[submodule \"m\"]\n\tpath = m\n\turl = " + other + "\n",
	}))
	plain := func(args ...string) {
		run(t, src, append([]string{
			"-c", "filter.lfs.process=", "-c", "filter.lfs.smudge=",
			"-c", "filter.lfs.required=false", "-c", "core.hooksPath=/dev/null",
		}, args...)...)
	}
	plain("init", "--quiet", "--template=", "--initial-branch=main")
	plain("add", "--all")
	plain("update-index", "--add", "--cacheinfo", "160000,"+strings.TrimSpace(run(t,
		other, "-c", "core.hooksPath=/dev/null", "rev-parse", "HEAD"))+",m")
	plain("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message=x")
	remove(t, evil)
	p := install(t, s, src+"#main")
	if _, err := os.Stat(evil); err == nil {
		t.Error("something ran")
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "m", "secret.txt")); err == nil {
		t.Error("the submodule is there")
	}
	if all := strings.Join(p.Problems, "\n"); !strings.Contains(all, "a.bin is a pointer") || !strings.Contains(all, "submodules") {
		t.Errorf("%q", p.Problems)
	}
}

// TestUntellable checks that a commit with names that are one on other systems is refused, also where the checkout
// would not show it.
func TestUntellable(t *testing.T) {
	s, src := store(t), t.TempDir()
	repository(t, src, full())
	blob := strings.TrimSpace(run(t, src, "rev-parse", "HEAD:rules.txt"))
	for _, name := range []string{"RULES.txt", "Skills/x"} {
		run(t, src, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+name)
		run(t, src, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message=x")
		_, err := s.Install(t.Context(), src+"#main")
		refused(t, err, "the repository has both")
		run(t, src, "reset", "--quiet", "HEAD~")
	}
	if _, err := s.Install(t.Context(), src+"#main"); err != nil {
		t.Error(err)
	}
	run(t, src, "rm", "--quiet", "--cached", "rules.txt")
	run(t, src, "update-index", "--add", "--cacheinfo", "120000,"+blobOf(t, src, "/etc/passwd")+",leak.md")
	run(t, src, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message=x")
	_, err := s.Install(t.Context(), src+"#main")
	refused(t, err, "leak.md in it, which leads out")
}

func blobOf(t *testing.T, dir, text string) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(run(t, dir, "hash-object", "-w", at))
}

// TestManyInGit checks that the bounds count before a commit is written to the disk.
func TestManyInGit(t *testing.T) {
	s, src := store(t), t.TempDir()
	repository(t, src, full())
	var list strings.Builder
	for range plugin.MaxFiles + 1 {
		list.WriteString("100644 blob " + strings.Repeat("0", 40) + "  1\tf" + strings.Repeat("x", list.Len()%7) + "\x00")
	}
	for want, out := range map[string]string{"more than 5,000 files": list.String(), "more than 50 MiB": "100644 blob 0 99999999\tbig\x00"} {
		fake := plugin.Store{Dir: s.Dir, Git: func(ctx context.Context, dir string, args ...string) (string, error) {
			for _, a := range args {
				if a == "ls-tree" {
					return out, nil
				}
				if a == "checkout" {
					t.Error("it was checked out")
				}
			}
			return git(ctx, dir, args...)
		}}
		_, err := fake.Install(t.Context(), src+"#main")
		refused(t, err, want)
	}
	empty(t, s)
}
