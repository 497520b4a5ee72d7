package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// Runner performs runs. Each trial is a session in a process of its own, which has ended before its task is
// checked. The session is claimed in a file before it begins, and its trial is written once after that. So a
// run that was killed at any moment can resume, and loses or doubles no trial.
type Runner struct {
	Table   *running.Table
	Program string // runs the trials, see [running.Table.Detach]
	Jobs    int    // concurrent trials; 0 means one
	Fresh   bool   // earlier trials of the same content are not reused
	Keep    bool   // places of trials are not removed
	// Budget limits the cost of the whole run, in US dollars, and Time the duration of [Runner.Go]. 0 is the
	// value with which the run began, and no limit if it had none; a negative one is no limit. A run that began
	// Fresh stays so, too.
	Budget  float64
	Time    time.Duration
	OnTrial func(Progress) // is called for each finished trial, one at a time; may be nil
}

// Progress is the progress of a run.
type Progress struct {
	Trial                          Trial
	Hidden                         bool // the task is held out: its result must not be shown
	Done, All, Passed, Failed, Bad int
	Cost                           float64
}

// Plan is a new run.
type Plan struct {
	Suite    *Suite
	Repos    string  // as for [OpenSuite]
	Config   string  // name
	Settings []byte  // a settings file
	Beside   []File  // what trials find next to it, by path
	Proposal *Change // what the trials include; nil means only settings
	Without  bool    // they have its file without the change
	Model    string  // empty means that of the settings
	Mode     tool.Mode
	Flags    []string // of 'inspan run', in addition to model and mode
	Version  string
	Split    Split    // empty means all except held-out tasks
	Only     []string // globs over ids; none: all
	Tries    int      // 0 means one
	Visible  bool     // the agent may be able to see the checkers
	Outside  bool     // checkers may run without a sandbox
}

// Errors that end a run early. It can be resumed later.
var (
	ErrBudget = errors.New("the budget of the run is used up")
	ErrTime   = errors.New("the time of the run is over")
	ErrBroken = errors.New("one trial after the other breaks")
)

// Limits of a run.
const (
	mostAttempts = 3 // at one trial, if the infrastructure fails
	mostBroken   = 6 // consecutive broken attempts, at any trials
	lockWait     = 5 * time.Second
)

// Begin makes a run. Nothing in it has started when it returns.
func (r *Runner) Begin(p Plan) (*Run, error) {
	h := &header{Source: p.Suite.Path, Open: p.Visible, Budget: max(r.Budget, 0), Time: r.Time, Fresh: r.Fresh}
	if p.Repos != "" {
		var err error
		if h.Repos, err = filepath.Abs(p.Repos); err != nil {
			return nil, err
		}
	}
	h.Run = Run{
		Suite: p.Suite.Name, Digest: p.Suite.Digest, Config: p.Config, Pinned: pinned(p.Settings, p.Beside), Model: p.Model, Version: p.Version,
		Split: p.Split, Tries: max(1, p.Tries),
	}
	if p.Proposal != nil {
		if err := h.propose(&p, filepath.Dir(r.Table.ConfigPath)); err != nil {
			return nil, err
		}
	}
	if p.Model != "" {
		h.Flags = append(h.Flags, "--model="+p.Model)
	}
	if p.Mode != "" {
		h.Flags = append(h.Flags, "--mode="+string(p.Mode))
	}
	h.Flags = append(h.Flags, p.Flags...)
	for _, t := range p.Suite.Of(p.Split) {
		if len(p.Only) == 0 || slices.ContainsFunc(p.Only, func(glob string) bool { ok, _ := doublestar.Match(glob, t.ID); return ok }) {
			h.Tasks = append(h.Tasks, t.ID)
		}
	}
	if len(h.Tasks) == 0 {
		return nil, words.Misuse{Err: fmt.Errorf("the suite %s has no such task", p.Suite.Name)}
	}
	if err := errors.Join(r.visible(h, p), r.outside(h, p)); err != nil {
		return nil, err
	}
	return &h.Run, r.folder().add(h, p.Settings, p.Beside)
}

// propose gives the trials of a run the file of a proposal. Settings and files next to the person's settings, which
// are in the folder own, are changed in place. Other files are lent to the workspaces.
func (h *header) propose(p *Plan, own string) error {
	c := *p.Proposal
	h.Proposal, h.Without, h.Settings = c.ID(), p.Without, h.Pinned
	made := c
	if p.Without {
		made = c.Back()
	}
	file := filepath.Join(c.Root, filepath.FromSlash(c.File))
	beside, err := filepath.Rel(own, keep.Real(file))
	personal := err == nil && filepath.IsLocal(beside)
	beside = filepath.ToSlash(beside)
	before := p.Settings
	if i := slices.IndexFunc(p.Beside, func(f File) bool { return personal && f.Path == beside }); i >= 0 {
		before = p.Beside[i].Content
	} else if !c.Settings() {
		if before, err = config.ReadAtMost(file, mostFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	changed, err := made.On(string(before))
	switch {
	case err != nil && c.Settings():
		return words.Misuse{Err: fmt.Errorf("the settings of the trials are not those that the proposal is about: %w", err)}
	case err != nil:
		return words.Misuse{Err: err}
	}
	back, err := c.Back().On(changed)
	if err != nil {
		return err
	}
	switch {
	case c.Settings():
		p.Settings, h.Settings = []byte(changed), pinned([]byte(back), p.Beside)
		h.Pinned = pinned(p.Settings, p.Beside)
	case personal:
		p.Beside, h.Settings = with(p.Beside, beside, changed), pinned(p.Settings, with(p.Beside, beside, back))
		h.Pinned = pinned(p.Settings, p.Beside)
	default:
		if h.Lent.Path, h.Lent.Content = c.File, changed; changed == "" { // then there is no such file
			h.Lent = Lent{}
		}
		h.Pinned = textDigest(h.Settings, h.Lent.Path, h.Lent.Content)
	}
	return nil
}

func (r *Runner) folder() Folder { return FolderIn(r.Table.StateDir) }

// outside refuses a run with checkers that have no sandbox, unless a person has allowed them: a suite may come
// from anywhere, and such a checker can do everything that the person can.
func (r *Runner) outside(h *header, p Plan) error {
	if p.Outside {
		return nil
	}
	env, err := sandbox.Local(os.TempDir(), nil, r.walls(&Task{}))
	if err != nil {
		return err
	}
	defer func() { _ = env.Close() }()
	for _, t := range p.Suite.Tasks {
		why := "open = true in its [check]"
		switch {
		case !slices.Contains(h.Tasks, t.ID) || len(t.Check.Commands) == 0:
			continue
		case t.Check.Open:
		case t.Image != "" || env.Walls.Workspace:
			continue
		default:
			why = cmp.Or(env.Walls.Why, "there is none here")
		}
		return words.Misuse{Err: fmt.Errorf("the checker of %s would run without a sandbox (%s): read it, and add --open-checks if you trust "+
			"all checkers of the suite", t.ID, why)}
	}
	return nil
}

// visible refuses a run whose agents could see the checkers: mode yolo has no sandbox.
func (r *Runner) visible(h *header, p Plan) error {
	var c config.Config
	if err := config.Decode("the settings", p.Settings, &c); err != nil {
		return err
	}
	mode := p.Mode
	if mode == "" {
		mode = c.Mode
	}
	boxed := mode != tool.ModeYolo && !c.Sandbox.Off || c.Sandbox.Container != ""
	contained := func(t *Task) bool { return t.Image != "" || !slices.Contains(h.Tasks, t.ID) }
	if boxed || p.Suite.Open || p.Visible || !slices.ContainsFunc(p.Suite.Tasks, func(t *Task) bool { return !contained(t) }) {
		return nil
	}
	return words.Misuse{Err: errors.New("without a sandbox the agent could read the checkers; use mode auto, sandbox.container, " +
		"or --visible if you know that it won't look")}
}

// Go performs the rest of a run, and returns it. An error together with the run gives the reason why the run is not
// finished: Go can resume it.
func (r *Runner) Go(ctx context.Context, id string) (*Run, error) {
	f := r.folder()
	lock, err := keep.LockFile(ctx, f.path(id, lockFile), lockWait)
	if err != nil {
		return nil, fmt.Errorf("another process works on run %s: %w", id, err)
	}
	defer func() { _ = lock.Close() }()
	w, err := r.open(id)
	if err != nil {
		return nil, err
	}
	ctx, w.stop = context.WithCancelCause(ctx)
	defer w.stop(nil)
	if w.Time > 0 {
		late := time.AfterFunc(w.Time, func() { w.stop(ErrTime) })
		defer late.Stop()
	}
	if err := errors.Join(w.noteLook(ctx), w.noteBounds()); err != nil {
		return nil, err
	}
	w.all(ctx)
	run, err := f.Open(id)
	if cause := context.Cause(ctx); cause != nil {
		return run, errors.Join(err, cause)
	}
	if len(run.Trials) == len(w.h.Tasks)*w.h.Tries {
		for _, dir := range []string{w.root, w.root + "-homes"} {
			_ = os.Remove(dir) // it is empty, unless places are kept
		}
	}
	return run, err
}

// work is a run in progress.
type work struct {
	*Runner
	folder Folder
	h      header
	suite  *Suite
	root   string // of the places
	by     string // see [performer]
	stop   context.CancelCauseFunc

	mu       sync.Mutex
	claims   map[claimKey][]claim
	progress Progress
	open     float64 // possible cost of running trials
	streak   int     // consecutive broken attempts
}

// open reads a run to resume it.
func (r *Runner) open(id string) (*work, error) {
	own := *r
	w := &work{Runner: &own, folder: r.folder(), root: filepath.Join(os.TempDir(), "inspan-eval-"+id), claims: map[claimKey][]claim{}}
	var err error
	if w.h, err = w.folder.header(id); err != nil {
		return nil, err
	}
	if w.suite, err = OpenSuite(w.h.Source, w.h.Repos); err != nil {
		return nil, err
	}
	if w.suite.Digest != w.h.Digest {
		return nil, fmt.Errorf("%w since the run began: run it anew", ErrChanged)
	}
	if w.by, err = performer(w.Program); err != nil {
		return nil, err
	}
	w.Budget, w.Time, w.Fresh = cmp.Or(w.Budget, w.h.Budget), cmp.Or(w.Time, w.h.Time), w.Fresh || w.h.Fresh
	claims, err := readLines[claim](w.folder.path(id, claimsFile))
	for _, c := range claims {
		w.remember(c)
		w.progress.Cost += c.Cost
	}
	w.progress.All = len(w.h.Tasks) * w.h.Tries
	return w, err
}

// noteLook counts that held-out tasks are tried, once a run.
func (w *work) noteLook(ctx context.Context) error {
	list, err := readLines[look](w.folder.path(looksFile))
	held := func(t *Task) bool { return t.Split == HeldOut && slices.Contains(w.h.Tasks, t.ID) }
	if err != nil || !slices.ContainsFunc(w.suite.Tasks, held) || slices.ContainsFunc(list, func(l look) bool { return l.Run == w.h.ID }) {
		return err
	}
	one := look{Time: time.Now().UTC(), Run: w.h.ID, Suite: w.h.Suite, Digest: w.h.Digest, Config: w.h.Pinned}
	return appendLine(ctx, w.folder.path(looksFile), one)
}

// job is one remaining trial.
type job struct {
	task *Task
	try  int
}

// all performs the remaining trials.
func (w *work) all(ctx context.Context) {
	run, err := w.folder.Open(w.h.ID)
	if err != nil {
		w.stop(err)
		return
	}
	done := map[claimKey]bool{}
	for _, t := range run.Trials {
		done[claimKey{t.Task, t.Try}] = true
		w.count(t)
	}
	jobs := make(chan job)
	var group sync.WaitGroup
	for range max(1, w.Jobs) {
		group.Go(func() {
			for j := range jobs {
				if err := w.trial(ctx, j); err != nil {
					w.stop(err)
				}
			}
		})
	}
	defer group.Wait()
	defer close(jobs)
	tasks := map[string]*Task{}
	for _, t := range w.suite.Tasks {
		tasks[t.ID] = t
	}
	order := Order(w.h.Digest, w.h.Tasks) // that of looks at a running run
	for try := 1; try <= w.h.Tries; try++ {
		for _, id := range order {
			t := tasks[id]
			if t == nil || done[claimKey{id, try}] {
				continue
			}
			select {
			case jobs <- job{t, try}:
			case <-ctx.Done():
				return
			}
		}
	}
}

// trial performs one trial, and records it once.
func (w *work) trial(ctx context.Context, j job) error {
	// The key has everything on which the outcome depends, except chance. A held-out trial is not reused once the
	// task is not held out.
	key := textDigest(j.task.ID, j.task.Digest, string(j.task.Split), w.h.Pinned, w.h.Model, w.h.Version, w.by,
		strings.Join(w.h.Flags, "\x00"), fmt.Sprint(j.try))
	if !w.Fresh {
		if t := w.folder.cached(key); t != nil {
			t.Cached = !w.claimed(t.Session) // else the process that had it died before recording it
			return errors.Join(w.write(ctx, *t), w.removePlaces(j))
		}
	}
	for ctx.Err() == nil {
		t, again, err := w.attempt(ctx, j)
		switch {
		case err != nil && (again || t.Outcome == ""):
			return err
		case err != nil: // the trial and the run have ended
			return errors.Join(err, w.write(ctx, t), w.removePlaces(j))
		case again:
			continue
		}
		if t.Outcome != Broken {
			if err := w.folder.keepTrial(key, t); err != nil {
				return err
			}
		}
		return errors.Join(w.write(ctx, t), w.removePlaces(j))
	}
	return context.Cause(ctx)
}

// write adds a trial to the run, even if the run is being ended.
func (w *work) write(ctx context.Context, t Trial) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := appendLine(context.WithoutCancel(ctx), w.folder.path(w.h.ID, trialsFile), t); err != nil {
		return err
	}
	w.count(t)
	w.progress.Trial, w.progress.Hidden = t, slices.ContainsFunc(w.suite.Of(HeldOut), func(k *Task) bool { return k.ID == t.Task })
	if w.OnTrial != nil {
		w.OnTrial(w.progress)
	}
	return nil
}

// count adds a trial to the totals.
func (w *work) count(t Trial) {
	w.progress.Done++
	if !t.Cached && t.Outcome != Broken { // otherwise the cost is that of their attempts
		w.progress.Cost += t.Cost
	}
	switch t.Outcome {
	case Passed:
		w.progress.Passed++
	case Failed:
		w.progress.Failed++
	default:
		w.progress.Bad++
	}
}
