package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// place is where a trial happens. The folders that its agent can reach, its home, are apart from the others.
type place struct {
	root string // of the places of the run
	name string
	port int // the value for PORT
}

func (p place) dir() string  { return filepath.Join(p.root, p.name) }
func (p place) work() string { return filepath.Join(p.dir(), "work") }
func (p place) home() string { return filepath.Join(p.root+"-homes", p.name) }

// checked returns the folder that the checker is copied to, once the agent has ended.
func (p place) checked() string { return filepath.Join(p.dir(), "check") }

// state returns the folder for the caches of the checker's sandboxes, so that they never use what the agent's
// have built or fetched. Like all of the place except the workspace, it is closed to the agent.
func (p place) state() string { return filepath.Join(p.dir(), "state") }

// remove removes the place, including folders in it that their maker has closed.
func (p place) remove() error {
	var err error
	for _, dir := range []string{p.dir(), p.home()} {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// filled returns a text of a task with its placeholders filled in.
func (p place) filled(t *Task, text string) string {
	switch {
	case t.Port:
		return strings.ReplaceAll(text, "PORT", strconv.Itoa(p.port))
	case t.Moved:
		return strings.NewReplacer("/logs/verifier", p.checked(), "/tests/", p.checked()+"/", "/app", p.work()).Replace(text)
	}
	return text
}

// fillChecker fills in the placeholders in the scripts of a checker.
func (p place) fillChecker(t *Task) error {
	if !t.Moved {
		return nil
	}
	return filepath.WalkDir(p.checked(), func(path string, d os.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || !d.Type().IsRegular() || ext != ".sh" && ext != ".py" {
			return err
		}
		data, err := keep.Read(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(p.filled(t, string(data))), 0o755)
	})
}

// prepare makes the place of a trial, once: an existing one stays as it is, as an agent may be at work there.
// An error means that the task can't be tried here.
func (p place) prepare(ctx context.Context, t *Task, l Lent) error {
	made := filepath.Join(p.dir(), "made")
	if _, err := os.Stat(made); err == nil {
		return nil
	}
	if err := errors.Join(p.fill(ctx, t), p.lend(l)); err != nil {
		return err
	}
	return os.WriteFile(made, nil, 0o600)
}

// lend puts a file into the workspace, which must not have it.
func (p place) lend(l Lent) error {
	if l.Path == "" {
		return nil
	}
	dir, err := os.OpenRoot(p.work())
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if _, err := dir.Lstat(l.Path); err == nil {
		return fmt.Errorf("the task has its own %s, so that of the proposal can't be tried on it", l.Path)
	}
	return replace(dir, l.Path, l.Content)
}

// fill makes the place with all files of the task.
func (p place) fill(ctx context.Context, t *Task) error {
	if err := p.remove(); err != nil {
		return err
	}
	for _, dir := range []string{p.home(), p.work()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := p.clone(ctx, t.Clone); err != nil {
		return err
	}
	if t.Files != "" {
		if err := os.CopyFS(p.work(), os.DirFS(t.Files)); err != nil {
			return err
		}
	}
	for _, f := range t.Texts {
		at := filepath.Join(p.work(), f[0])
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(p.filled(t, f[1])), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// clone clones a repository into the workspace, without commits after the chosen one: those may contain the
// answer.
func (p place) clone(ctx context.Context, c Clone) error {
	if c.From == "" {
		return nil
	}
	for _, args := range [][]string{
		{"git", "init", "--quiet"},
		{"git", "-c", "protocol.version=2", "fetch", "--quiet", "--no-tags", c.From, c.Commit},
		{"git", "checkout", "--quiet", "--detach", c.Commit},
		{"rm", "-f", ".git/FETCH_HEAD"},
	} {
		said, code, err := p.command(ctx, args, nil, sandbox.Options{}, false)
		if err == nil && code != 0 {
			err = fmt.Errorf("it ended with code %d: %s", code, words.OneLine(said, 200))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
	}
	return nil
}

// mostPatch is the limit for a patch in bytes.
const mostPatch = 4 << 20

// patch returns the agent's changes since the first commit, from whatever it left of the repository. If they are
// unknown or too large, there are none. Git runs in the checker's sandbox, because the agent may have configured it
// to run programs. It uses its own index and objects, as those of the workspace can't be written there, and the
// checker must find them as the agent left them.
func (p place) patch(ctx context.Context, t *Task, l Lent, o sandbox.Options) *string {
	if t.Clone.From == "" {
		return nil
	}
	const script = `export GIT_INDEX_FILE="$HOME/index" GIT_OBJECT_DIRECTORY="$HOME/objects"
export GIT_ALTERNATE_OBJECT_DIRECTORIES="$PWD/.git/objects" && mkdir -p "$GIT_OBJECT_DIRECTORY" &&
cp .git/index "$GIT_INDEX_FILE" && git -c core.fsmonitor= add -A &&
exec git -c core.fsmonitor= -c core.quotePath=true diff --cached --binary --no-color --no-ext-diff --no-textconv --no-renames \
  --src-prefix=a/ --dst-prefix=b/ "$1" -- . ${2:+":(exclude,literal)$2"} >"$HOME/patch"`
	text := ""
	o.State = p.state()
	if _, code, err := p.command(ctx, []string{"sh", "-c", script, "sh", t.Clone.Commit, l.Path}, nil, o, false); err != nil || code != 0 {
		return &text
	}
	if raw, err := config.ReadAtMost(filepath.Join(p.home(), "patch"), mostPatch); err == nil {
		text = string(raw)
	}
	return &text
}

// mostSaid is how much of a checker's output is stored.
const mostSaid = 4 << 10

// command runs a program in the workspace, and returns the end of its output. With a sandbox it can write
// there, in the home of the trial, and where scores are left.
func (p place) command(
	ctx context.Context, args []string, in io.Reader, o sandbox.Options, scores bool,
) (said string, code int, err error) {
	env, err := sandbox.Local(p.work(), nil, o)
	if err != nil {
		return "", -1, err
	}
	defer func() { _ = env.Close() }()
	box := tool.Box{Level: tool.BoxNone}
	if env.Walls.Workspace {
		box = tool.Box{Level: tool.BoxWorkspace, Read: []string{keep.Real(p.checked())}, Write: []string{keep.Real(p.home())}}
		if scores {
			box.Write = append(box.Write, keep.Real(p.checked()))
		}
	}
	out := &keep.Tail{Limit: mostSaid}
	proc, err := env.Procs.Start(ctx, tool.Command{
		Args: args, Dir: env.Root, Stdin: in, Output: out, Box: box,
		Env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + p.home(), "LANG=C.UTF-8", "CHECK=" + p.checked(), "WORKSPACE=" + p.work(),
			"PYTHONDONTWRITEBYTECODE=1", "GIT_CONFIG_NOSYSTEM=1",
		},
	})
	if err != nil {
		return "", -1, err
	}
	code, err = proc.Wait()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return strings.ToValidUTF8(out.Text(), "\uFFFD"), code, err
}

// verdict is a checker's verdict.
type verdict struct {
	passed bool
	score  float64
	why    string // why it failed, as in [Trial.Reason]
	said   string // the end of its output
}

func whole(passed bool) verdict {
	if passed {
		return verdict{passed: true, score: 1}
	}
	return verdict{why: "the check says no"}
}

// fail makes it a failure. The first reason stays.
func (v *verdict) fail(why string) {
	*v = verdict{why: cmp.Or(v.why, why), said: v.said}
}

// check runs the checker of a task on the agent's work. An error means that the checker could not begin, which says
// nothing about the agent. Any later error counts against the agent, because its code may run in the checker:
// otherwise it could stop the checker to have its failures set aside.
func (p place) check(ctx context.Context, t *Task, answer string, o sandbox.Options) (v verdict, err error) {
	switch {
	case t.Check.Match != nil:
		return whole(t.Check.Match.MatchString(answer)), nil
	case t.Check.Answer != "":
		return whole(strings.EqualFold(strings.TrimSpace(answer), strings.TrimSpace(t.Check.Answer))), nil
	}
	v = whole(true)
	if os.Chmod(p.work(), 0o755) != nil {
		v.fail("the agent has removed the workspace")
		return v, nil
	}
	if err := p.bringChecker(t); err != nil {
		return v, err
	}
	if o.State = p.state(); t.Check.Open {
		o = sandbox.Options{}
	}
	_, most := t.limits()
	slow := fmt.Errorf("the check took longer than %s", most)
	ctx, stop := context.WithTimeoutCause(ctx, most, slow)
	defer stop()
	err = p.runChecks(ctx, t, o, &v)
	if errors.Is(context.Cause(ctx), slow) {
		v.fail(slow.Error())
		return v, nil
	}
	return v, err
}

// bringChecker puts the checker where it runs.
func (p place) bringChecker(t *Task) error {
	// The agent may have put something in its place.
	if err := errors.Join(os.RemoveAll(p.checked()), os.RemoveAll(p.state()), os.MkdirAll(p.checked(), 0o755)); err != nil {
		return err
	}
	if t.Check.Folder == "" {
		return nil
	}
	if err := os.CopyFS(p.checked(), os.DirFS(t.Check.Folder)); err != nil {
		return err
	}
	return p.fillChecker(t)
}

// runChecks runs all commands of a checker.
func (p place) runChecks(ctx context.Context, t *Task, o sandbox.Options, v *verdict) error {
	if t.Check.Patch != "" {
		said, code, err := p.command(ctx, []string{"git", "apply", "--whitespace=nowarn", "-"}, strings.NewReader(t.Check.Patch), o, false)
		if v.said = said; err != nil || code != 0 {
			v.fail("the agent has put something in the way of the tests")
			return err
		}
	}
	for _, args := range t.Check.Commands {
		if err := p.runCheck(ctx, t, args, o, v); err != nil {
			return err
		}
	}
	p.reward(t, v)
	return nil
}

// runCheck runs one command of a checker.
func (p place) runCheck(ctx context.Context, t *Task, args []string, o sandbox.Options, v *verdict) error {
	var filled []string
	for _, arg := range args {
		filled = append(filled, strings.ReplaceAll(p.filled(t, arg), "$CHECK", p.checked()))
	}
	said, code, err := p.command(ctx, filled, nil, o, t.Check.Reward != "")
	v.said += said
	switch unfound := code == 126 || code == 127; {
	case (err != nil || unfound) && ctx.Err() == nil && p.agents(filled[0]):
		v.fail("the agent has made no " + args[0] + " that the check can run")
	case err != nil:
		return fmt.Errorf("the checker could not begin: %w", err)
	case unfound && o.Container != nil && !p.finds(ctx, filled[0], o):
		return fmt.Errorf("the checker could not begin: the image has no %s", filled[0])
	case code != 0:
		v.fail("the check says no")
	}
	return nil
}

// agents reports whether the agent was to make a program: it is neither of the machine nor of the checker.
func (p place) agents(program string) bool {
	if !filepath.IsAbs(program) {
		return strings.ContainsRune(program, filepath.Separator)
	}
	rel, err := filepath.Rel(p.work(), program)
	return err == nil && filepath.IsLocal(rel)
}

// finds reports whether an image has a program.
func (p place) finds(ctx context.Context, program string, o sandbox.Options) bool {
	_, code, err := p.command(ctx, []string{"sh", "-c", `command -v "$1"`, "sh", program}, nil, o, false)
	return err == nil && code == 0
}

// reward reads the score that a checker leaves in a file, if any.
func (p place) reward(t *Task, v *verdict) {
	if t.Check.Reward == "" {
		return
	}
	raw, err := config.ReadAtMost(filepath.Join(p.checked(), t.Check.Reward), mostSaid)
	if err != nil {
		v.fail("the check left no score")
		return
	}
	score, err := strconv.ParseFloat(strings.TrimSpace(string(raw)), 64)
	switch {
	case err != nil || !(score >= 0 && score <= 1): // false for NaN too
		v.fail(fmt.Sprintf("the check left %q, which is not a score from 0 to 1", words.OneLine(string(raw), 40)))
	case score < 1:
		v.fail("the check says no")
		v.score = score
	default:
		said := v.said
		*v = whole(true)
		v.said = said
	}
}
