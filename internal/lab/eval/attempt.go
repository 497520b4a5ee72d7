package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
)

// claim is an attempt at a trial. It is recorded before its session begins, and again if it ends without a
// trial.
type claim struct {
	Task    string `json:"task"`
	Try     int    `json:"try"`
	Attempt int    `json:"attempt"` // from 1
	Session string `json:"session"`
	Port    int    `json:"port,omitempty"`
	Broken  string `json:"broken,omitempty"` // why the infrastructure failed
	Void    bool   `json:"void,omitempty"`   // it was ended on request; it does not count

	Cost float64 `json:"cost,omitempty"` // US dollars, if it ended without a trial
}

type claimKey struct {
	task string
	try  int
}

// remember stores the state of an attempt.
func (w *work) remember(c claim) {
	key := claimKey{c.Task, c.Try}
	list := w.claims[key]
	if i := slices.IndexFunc(list, func(o claim) bool { return o.Attempt == c.Attempt }); i >= 0 {
		list[i] = c
		return
	}
	w.claims[key] = append(list, c)
}

// place returns the place of an attempt.
func (w *work) place(c claim) place {
	return place{w.root, fmt.Sprintf("%s-%d-%d", c.Task, c.Try, c.Attempt), c.Port}
}

// removePlaces removes the places of a recorded trial.
func (w *work) removePlaces(j job) error {
	if w.Keep {
		return nil
	}
	w.mu.Lock()
	list := slices.Clone(w.claims[claimKey{j.task.ID, j.try}])
	w.mu.Unlock()
	var err error
	for _, c := range list {
		err = errors.Join(err, w.place(c).remove())
	}
	return err
}

// over records that an attempt has ended without a trial, and its cost.
func (w *work) over(ctx context.Context, c claim) error {
	if st, err := w.Table.Status(ctx, c.Session); err == nil {
		c.Cost = st.Cost
	}
	w.mu.Lock()
	w.progress.Cost += c.Cost
	w.mu.Unlock()
	return w.note(ctx, c)
}

// claimed reports whether a session is one of an attempt of this run.
func (w *work) claimed(session string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, list := range w.claims {
		if slices.ContainsFunc(list, func(c claim) bool { return c.Session == session }) {
			return true
		}
	}
	return false
}

// note records an attempt.
func (w *work) note(ctx context.Context, c claim) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remember(c)
	return appendLine(ctx, w.folder.path(w.h.ID, claimsFile), c)
}

// claim returns the attempt to continue, or a new one; broken is the number of earlier broken ones.
func (w *work) claim(ctx context.Context, j job) (c claim, broken int, err error) {
	w.mu.Lock()
	list := slices.Clone(w.claims[claimKey{j.task.ID, j.try}])
	w.mu.Unlock()
	for _, old := range list {
		switch {
		case old.Broken != "":
			c = old
			broken++
		case !old.Void:
			return old, broken, nil
		}
	}
	if broken >= mostAttempts {
		return c, broken, nil
	}
	log, err := w.Table.Sessions.Create(ctx)
	if err != nil {
		return c, broken, err
	}
	c = claim{Task: j.task.ID, Try: j.try, Attempt: len(list) + 1, Session: log.ID()}
	if j.task.Port {
		c.Port = freePort()
	}
	return c, broken, errors.Join(log.Close(), w.note(ctx, c))
}

// freePort returns a port that is unused at this moment; 0 if unknown.
func freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// attempt is one attempt at a trial. Again says that it does not count, and that another is needed. An error
// ends the run.
func (w *work) attempt(ctx context.Context, j job) (t Trial, again bool, err error) {
	for _, name := range j.task.Needs {
		if keep.Program(name) == "" { // which no other attempt changes
			lacks := fmt.Sprintf("there is no %s, which the task needs", name)
			return Trial{Task: j.task.ID, Try: j.try, Tags: j.task.Tags, Outcome: Broken, Reason: lacks}, false, nil
		}
	}
	c, broken, err := w.claim(ctx, j)
	if err != nil {
		return t, false, err
	}
	if broken >= mostAttempts { // the process that saw the last one break died before recording the trial
		return Trial{Task: j.task.ID, Try: j.try, Tags: j.task.Tags, Outcome: Broken, Reason: c.Broken}, false, nil
	}
	p := w.place(c)
	money, err := w.afford(j.task)
	if err != nil {
		return t, false, err
	}
	t, err = w.perform(ctx, j, c, p, money)
	if w.Budget > 0 {
		w.mu.Lock()
		w.open -= money
		w.mu.Unlock()
	}
	if err != nil && ctx.Err() != nil {
		_, stopErr := w.Table.Stop(context.WithoutCancel(ctx), c.Session, false, endWait)
		c.Void = true
		return t, false, errors.Join(context.Cause(ctx), stopErr, w.over(context.WithoutCancel(ctx), c))
	}
	if err == nil {
		w.stands(true)
		return t, false, nil
	}
	return w.broke(ctx, c, t, broken+1, err)
}

// broke records an attempt whose infrastructure has failed.
func (w *work) broke(ctx context.Context, c claim, t Trial, times int, why error) (Trial, bool, error) {
	if errors.Is(why, ErrBudget) {
		c.Void = true
		return t, false, errors.Join(why, w.over(ctx, c))
	}
	if errors.Is(why, errDied) { // while the run was down: that happens once for each time that the run itself died
		c.Void = true
		return t, true, w.over(ctx, c)
	}
	c.Broken = words.OneLine(why.Error(), 300)
	if err := w.over(ctx, c); err != nil {
		return t, false, err
	}
	if st, err := w.Table.Status(ctx, c.Session); err == nil && st.Stopped == nil && st.Turns == 0 {
		// Nothing happened in it; if it stays, it is listed as empty.
		_ = w.Table.Sessions.Remove(ctx, c.Session)
		t.Session = ""
	}
	t.Outcome, t.Reason = Broken, c.Broken
	if w.stands(false) {
		return t, times < mostAttempts, fmt.Errorf("%w: %s", ErrBroken, c.Broken)
	}
	return t, times < mostAttempts, nil
}

// stands records whether the infrastructure worked, and reports whether it fails all the time.
func (w *work) stands(it bool) (bad bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streak++; it {
		w.streak = 0
	}
	return w.streak >= mostBroken
}

// afford returns the maximum cost of a trial; 0 means no limit. It counts as open until the trial has ended.
func (w *work) afford(t *Task) (float64, error) {
	if w.Budget <= 0 {
		return t.MaxCost, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	left := w.Budget - w.progress.Cost - w.open
	if left <= 0 {
		return 0, ErrBudget
	}
	money := left / float64(max(1, w.Jobs))
	if t.MaxCost > 0 {
		money = min(left, t.MaxCost)
	}
	w.open += money
	return money, nil
}

// How long an agent may take to end on request, and how long one may exceed its time.
const (
	endWait  = 5 * time.Second
	overtime = time.Minute
)

// perform runs the session of an attempt, and checks its task. An error says that the infrastructure has
// failed, or that ctx has ended.
func (w *work) perform(ctx context.Context, j job, c claim, p place, money float64) (Trial, error) {
	t := Trial{Task: j.task.ID, Try: j.try, Session: c.Session, Tags: j.task.Tags}
	st, err := w.session(ctx, j.task, c, p, money)
	if err != nil {
		return t, err
	}
	defer func() { _, _ = w.Table.EndServices(context.WithoutCancel(ctx), c.Session) }()
	if !j.task.Check.Open { // it could wait for the checker
		if _, err := w.Table.EndServices(ctx, c.Session); err != nil {
			return t, err
		}
	}
	t.Cost, t.Priced, t.Turns = st.Cost, !st.Unpriced, st.Turns
	t.Tokens = int64(st.Usage.Prompt() + st.Usage.Output)
	seen, err := w.look(ctx, c.Session, p.work())
	if err != nil {
		return t, err
	}
	if t.Seconds = seen.last.Sub(seen.first).Seconds(); seen.resumed {
		return t, errDied
	}
	ended, err := ending(st, j.task, money)
	if err != nil {
		return t, err
	}
	t.Patch = p.patch(ctx, j.task, w.h.Lent, w.walls(j.task))
	v, err := p.check(ctx, j.task, seen.answer, w.walls(j.task))
	if err != nil {
		return t, fmt.Errorf("check: %w", err)
	}
	for _, a := range j.task.Check.Asserts {
		if !a.holds(seen.answer, t.Cost, t.Seconds) {
			v.fail("it does not hold: " + a.name)
		}
	}
	t.Printed = strings.ToValidUTF8(v.said[max(0, len(v.said)-mostSaid):], "\uFFFD")
	t.Checks, err = w.grade(ctx, j.task, p, seen, &v)
	t.Score, t.Outcome = v.score, Failed
	switch {
	case err != nil:
		return t, fmt.Errorf("grade: %w", err)
	case ended != "":
		t.Reason = ended
	case v.passed:
		t.Outcome = Passed
	default:
		t.Reason = v.why
	}
	return t, nil
}

// walls returns the sandbox of the checker, which may run the agent's code.
func (r *Runner) walls(t *Task) sandbox.Options {
	o := sandbox.Options{
		Self: r.Table.Self, State: r.Table.StateDir,
		Map: places.Map{Home: keep.Home(), State: []string{r.Table.StateDir}, Settings: filepath.Dir(r.Table.ConfigPath)},
	}
	if t.Image != "" {
		o.Container = &sandbox.Container{Image: t.Image, Engine: r.Table.Config.Sandbox.Engine}
	}
	return o
}

// session runs the session of an attempt to its end, whatever its state, and waits until its process has
// exited. A killed run may have left a process that begins only now: if the session is already in use, session
// waits for it.
func (w *work) session(ctx context.Context, t *Task, c claim, p place, money float64) (st inspan.Status, err error) {
	for {
		late, err := w.left(ctx, t, c.Session)
		if err != nil {
			return st, err
		}
		if st, err = w.Table.Status(ctx, c.Session); err != nil {
			return st, err
		}
		if late || st.Stopped != nil && !st.Active {
			return overdue(st, late), nil
		}
		if st.Turns > 0 {
			switch late, err := w.begunLate(ctx, c.Session); {
			case err != nil:
				return st, err
			case late:
				continue
			}
			return st, errDied
		}
		if err := p.prepare(ctx, t, w.h.Lent); err != nil {
			return st, fmt.Errorf("prepare: %w", err)
		}
		start, err := w.Table.Detach(ctx, w.Program, w.args(t, c, p, money), running.Order{
			ID: c.Session, Key: "eval/" + w.h.ID + "/" + c.Session, Text: p.filled(t, t.Prompt), Unattended: true,
			Foreign: w.apart(), Unapproved: true, Vars: w.vars(p),
		})
		if err != nil {
			return st, err
		}
		if start.Session != "" {
			if late, err = w.exit(ctx, t, c.Session, start.Ended); err != nil {
				return st, err
			}
			st, err = w.Table.Status(ctx, c.Session)
			return overdue(st, late), err
		}
		h, err := w.Table.Driver(ctx, c.Session)
		if now, bad := w.Table.Status(ctx, c.Session); err == nil && h == nil && (bad != nil || now.Turns == 0 && now.Stopped == nil) {
			return st, start.Err()
		}
	}
}

// errDied says that an agent was killed. To continue in the middle of its call would be another task.
var errDied = errors.New("the process of the agent died")

// begunLate reports whether an unused session runs after all, or has ended: its process began only now.
func (w *work) begunLate(ctx context.Context, session string) (bool, error) {
	if h, err := w.Table.Driver(ctx, session); h != nil || err != nil {
		return true, err
	}
	st, err := w.Table.Status(ctx, session)
	return err == nil && st.Stopped != nil && !st.Active, err
}

// apart returns the folders that are closed to trials: those with answers, and those of other work.
func (w *work) apart() []string {
	list := []string{w.suite.Path, w.root}
	if w.h.Repos != "" {
		list = append(list, w.h.Repos)
	}
	return list
}

// overdue returns the status of a session whose process was ended because it exceeded its time.
func overdue(st inspan.Status, late bool) inspan.Status {
	if late {
		st.Stopped = &event.Stopped{Reason: event.ReasonMaxTime}
	}
	return st
}

// vars returns the variables of the process of a trial: it has the settings of the run, and a home of its own,
// so that the person's home has no effect.
func (w *work) vars(p place) []string {
	var vars []string
	for _, kv := range os.Environ() { // settings in them would be in no digest; addresses and keys are not settings
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "INSPAN_") && name != "INSPAN_API_KEY" && name != "INSPAN_BASE_URL" {
			vars = append(vars, name+"=")
		}
	}
	return append(vars,
		"HOME="+p.home(), "INSPAN_CONFIG_DIR="+w.folder.path(w.h.ID, configDir), "INSPAN_STATE_DIR="+w.Table.StateDir,
		"GIT_AUTHOR_NAME=inspan", "GIT_AUTHOR_EMAIL=eval@inspan", "GIT_COMMITTER_NAME=inspan", "GIT_COMMITTER_EMAIL=eval@inspan",
	)
}

// exit waits for the end of a process. Late says that it exceeded its time, and was ended.
func (w *work) exit(ctx context.Context, t *Task, session string, ended func() (int, error)) (late bool, err error) {
	over := make(chan error, 1)
	go func() {
		_, err := ended()
		over <- err
	}()
	agent, _ := t.limits()
	timer := time.NewTimer(agent + overtime)
	defer timer.Stop()
	select {
	case err := <-over:
		return false, err
	case <-timer.C:
		_, err := w.Table.Stop(ctx, session, true, endWait)
		return true, errors.Join(err, <-over)
	case <-ctx.Done():
		_, err := w.Table.Stop(context.WithoutCancel(ctx), session, false, endWait)
		return false, errors.Join(context.Cause(ctx), err, <-over)
	}
}

// left waits for the process of a session that a killed run has left. Late is as in [work.exit].
func (w *work) left(ctx context.Context, t *Task, session string) (late bool, err error) {
	agent, _ := t.limits()
	end := time.Now().Add(agent + overtime)
	for {
		h, err := w.Table.Driver(ctx, session)
		if h == nil || err != nil {
			return late, err
		}
		if late = time.Now().After(end); late {
			_, err := w.Table.Stop(ctx, session, true, endWait)
			return late, err
		}
		if err := keep.Sleep(ctx, 50*time.Millisecond); err != nil {
			return false, err
		}
	}
}

// args returns the arguments of the process of a trial.
func (w *work) args(t *Task, c claim, p place, money float64) []string {
	agent, _ := t.limits()
	args := []string{
		"detached", "--cwd=" + p.work(), "--label=eval=" + w.h.ID, "--label=suite=" + w.h.Suite, "--label=task=" + c.Task,
		"--label=try=" + strconv.Itoa(c.Try), "--max-time=" + agent.String(),
	}
	if t.MaxTurns > 0 {
		args = append(args, "--max-turns="+strconv.Itoa(t.MaxTurns))
	}
	if money > 0 {
		args = append(args, "--max-cost="+strconv.FormatFloat(money, 'f', 6, 64))
	}
	if t.Image != "" {
		args = append(args, "--container="+t.Image)
	}
	return slices.Concat(args, t.Flags, w.h.Flags)
}

// ending judges the agent by how its session ended: empty leaves it to the checker, a reason says that it has
// failed whatever the checker says. An error is not the agent's fault.
func ending(st inspan.Status, t *Task, money float64) (reason string, err error) {
	if st.Stopped == nil {
		return "", errors.New("the agent ended without an end of its run")
	}
	stopped := *st.Stopped
	why := fmt.Sprintf("%s %s %s", stopped.Reason, stopped.Cause, stopped.Detail)
	switch stopped.Reason {
	case event.ReasonMaxTurns, event.ReasonMaxTokens, event.ReasonMaxTime, event.ReasonRate:
		return string(stopped.Reason), nil
	case event.ReasonBudget:
		if t.MaxCost > 0 && money >= t.MaxCost {
			return string(stopped.Reason), nil
		}
		return "", fmt.Errorf("%w: %s", ErrBudget, why)
	case event.ReasonCancelled:
		return "", errors.New("somebody stopped it")
	case event.ReasonFailed:
		ours := []llm.Kind{"", llm.KindWindow, llm.KindTooLarge, llm.KindRefused, llm.KindHistory} // about the agent's messages, or their absence
		if !slices.Contains(ours, stopped.Cause) {
			return "", errors.New(words.OneLine(why, 300))
		}
		return cmp.Or(string(stopped.Cause), string(stopped.Reason)), nil
	}
	return "", nil
}
