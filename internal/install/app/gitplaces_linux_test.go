package app_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
)

// TestGitWhereverTheWorkIs checks that an unattended session in mode auto commits, stashes, applies mails and rebases,
// with other programs in the same line, in a repository of its own, in one folder of a monorepo, in a submodule, in a
// work tree and in an additional folder.
func TestGitWhereverTheWorkIs(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(top, "gitconfig"))
	settings := "[user]\nname = Ann\nemail = ann@example.com\n[protocol \"file\"]\nallow = always\n[init]\ndefaultBranch = main\n"
	if err := os.WriteFile(filepath.Join(top, "gitconfig"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	script := func(dir, text string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", text)
		cmd.Dir = filepath.Join(top, dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	const begin = `git init -q; for i in a b c; do echo $i >$i; git add $i; git commit -qm "add $i"; done; `
	script("", `mkdir own mono lib elsewhere; (cd own; `+begin+`)
		(cd mono; git init -q; mkdir -p pkg/one; echo x >x; git add x; git commit -qm base; cd pkg/one; for i in a b c; do echo $i >$i; git add $i; git commit -qm "add $i"; done)
		(cd lib; `+begin+`)
		git init -q outer; cd outer; git submodule -q add ../lib lib; git commit -qm outer
		cd ../own; git worktree add -q ../tree -b side; cd ../elsewhere; `+begin)
	for name, at := range map[string]struct{ workspace, folder, in string }{
		"own":          {"own", "", "."},
		"monorepo":     {"mono/pkg/one", "", "."},
		"submodule":    {"outer", "", "lib"},
		"a submodule":  {"outer/lib", "", "."},
		"work tree":    {"tree", "", "."},
		"other folder": {"lib", "elsewhere", filepath.Join(top, "elsewhere")},
	} {
		t.Run(name, func(t *testing.T) {
			o := app.Options{Model: "script", Mode: "auto", Unattended: true}
			if at.folder != "" {
				o.Folders = []string{filepath.Join(top, at.folder)}
			}
			s, err := boxing(t, "").Host(o, func(string) {}).New(t.Context(), filepath.Join(top, at.workspace))
			work := []string{
				`echo d >d && { sh ./d 2>/dev/null || true; } && git add d && git commit -qm 'add d'`,
				`echo half >>d && git stash -q && git stash pop -q && git checkout -q d`,
				`git format-patch -q -1 --stdout >p.patch && git reset -q --hard HEAD~1 && git am -q p.patch && rm p.patch`,
				`GIT_SEQUENCE_EDITOR="sed -i -e '2s/^pick/fixup/'" git rebase -q -i HEAD~3`,
				`git log --format=%s -n 2`,
			}
			var calls []string
			for _, line := range work {
				calls = append(calls, `bash {"command":"cd `+at.in+` && `+strings.ReplaceAll(line, `"`, `\"`)+`; cd - >/dev/null"}`)
			}
			for i, e := range results(t, s, err, calls...) {
				if e.Outcome != event.OutcomeOK || e.Exit != nil && *e.Exit != 0 {
					t.Errorf("%s: %s: %s", work[i], e.Outcome, e.Parts.Text())
				}
			}
			dir := at.in
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(top, at.workspace, dir)
			}
			rel, err := filepath.Rel(top, dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := script(rel, "git log --format=%s -n 2; git status --short; git stash list"); got != "add d\nadd b" {
				t.Errorf("it has come to %q", got)
			}
		})
	}
}
