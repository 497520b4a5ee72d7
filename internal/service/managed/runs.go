package managed

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/service/server"
)

// A run is recorded in one append together with its session and the deployment, or alone if there can be no
// session. The id of a scheduled run is derived from the deployment and the time, so there is one run for a time,
// whenever the server dies.

const ofRun = "managed.deployment_run"

// keptRun is a run in the book.
type keptRun struct {
	Deployment string    `json:"deployment"`
	Agent      reference `json:"agent"`
	Session    string    `json:"session,omitempty"`
	Error      *runError `json:"error,omitempty"`
	Due        time.Time `json:"due,omitzero"` // zero: started by hand
}

// runError is the reason why a run has no session.
type runError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Kinds of errors of runs.
const (
	agentArchived = "agent_archived_error"
	envArchived   = "environment_archived_error"
	envNotFound   = "environment_not_found_error"
	rateLimited   = "session_rate_limited_error"
	rejected      = "session_creation_rejected_error"
)

// runView is a run as clients see it.
type runView struct {
	ID         string         `json:"id"`
	Type       string         `json:"type"`
	Deployment string         `json:"deployment_id"`
	Agent      reference      `json:"agent"`
	Session    *string        `json:"session_id"`
	Error      *runError      `json:"error"`
	Trigger    map[string]any `json:"trigger_context"`
	CreatedAt  string         `json:"created_at"`
}

func runKind() kind[keptRun, runView] {
	return kind[keptRun, runView]{ofRun, "drun_", func(_ *door, o server.Object, k keptRun) (runView, error) {
		v := runView{
			ID: o.ID, Type: "deployment_run", Deployment: k.Deployment, Agent: k.Agent, Session: orNull(k.Session), Error: k.Error,
			Trigger: map[string]any{"type": k.trigger()}, CreatedAt: stamp(o.Created),
		}
		if !k.Due.IsZero() {
			v.Trigger["scheduled_at"] = stamp(k.Due)
		}
		return v, nil
	}}
}

func (k keptRun) trigger() string {
	if k.Due.IsZero() {
		return "manual"
	}
	return "schedule"
}

// errPassed says that a run already exists, or is no longer wanted.
var errPassed = errors.New("its time has passed")

// fire runs a deployment. Due is the scheduled time; zero means it was started by hand.
func (d *door) fire(id, run string, due time.Time) error {
	_, k, err := objectOf[keptDeployment](d.Object, ofDeployment, id)
	if err != nil {
		return err
	}
	session, spec, why, err := k.launch(d, id)
	if err != nil {
		return err
	}
	record := func(e *server.Edit, session string, why *runError) error {
		if _, err := e.Object(ofRun, run); err == nil {
			return errPassed
		}
		o, k, err := objectOf[keptDeployment](e.Object, ofDeployment, id) // in its current state
		if err != nil {
			return err
		}
		if err := e.Put(ofRun, run, o.Tenant, keptRun{id, k.Agent, session, why, due}, server.Content{}); err != nil || due.IsZero() {
			return err
		}
		if k.status() == paused || k.isArchived() || !k.Since.Before(due) {
			return errPassed
		}
		if k.Since = due; why == nil {
			k.Ran = d.Clock.Now()
		} else if slices.Contains([]string{agentArchived, envArchived, envNotFound}, why.Type) { // the next one would fail too
			k.Paused = &pause{"error", &pauseKind{why.Type}}
		}
		return e.Put(ofDeployment, id, o.Tenant, k, o.Content)
	}
	if why == nil {
		var t server.Task
		t, err = d.SubmitAs(ofSession, "sesn_", session, nil, spec, func(e *server.Edit, made string) error {
			if err := session.placed(e); err != nil {
				return err
			}
			return record(e, made, nil)
		})
		if err == nil {
			begin(d.Server, t.ID)
			return nil
		}
		if why = refusal(err); why == nil {
			return err
		}
	}
	return d.Edit(func(e *server.Edit) error { return record(e, "", why) })
}

// launch returns the session of a run and its task, or why it can have none.
func (k keptDeployment) launch(d *door, id string) (s keptSession, spec server.Spec, why *runError, err error) {
	_, env, err := objectOf[keptEnvironment](d.Object, ofEnvironment, k.Environment)
	if why = refusal(err); why != nil {
		return s, spec, &runError{envNotFound, why.Message}, nil
	}
	switch {
	case err != nil:
		return s, spec, nil, err
	case env.isArchived():
		return s, spec, &runError{envArchived, "environment " + k.Environment + " is archived"}, nil
	}
	a, err := shownAgent(d, k.Agent.ID, k.Agent.Version)
	if err == nil && a.ArchivedAt != nil {
		return s, spec, &runError{agentArchived, "agent " + k.Agent.ID + " is archived"}, nil
	}
	s, spec, err = k.session().settle(d)
	if why = refusal(err); why != nil {
		return s, spec, why, nil
	}
	s.Deployment = id
	return s, spec, nil, err
}

// refusal returns the reason why there can be no session, if that is final; nil means a retry may succeed.
func refusal(err error) *runError {
	if err == nil {
		return nil
	}
	switch p := server.ProblemOf(err); {
	case errors.Is(err, errPassed) || p.Status >= http.StatusInternalServerError:
		return nil
	case p.Status == http.StatusTooManyRequests:
		return &runError{rateLimited, p.Message}
	default:
		return &runError{rejected, p.Message}
	}
}

func (d *door) runDeployment() (any, error) {
	id := d.r.PathValue("id")
	o, k, err := objectOf[keptDeployment](d.Object, ofDeployment, id)
	if err != nil {
		return nil, err
	}
	if k.isArchived() {
		return nil, conflict("the deployment is archived")
	}
	run := derived("drun_", id, d.Name(), cmp.Or(d.Key(), rand.Text()))
	as := &door{Visit: d.Behalf(d, d.Name(), o.Tenant, "")}
	if err := as.fire(id, run, time.Time{}); err != nil && !errors.Is(err, errPassed) {
		return nil, err
	}
	return runKind().view(d, run)
}

func (d *door) runs() (any, error) {
	within, err := d.within()
	if err != nil {
		return nil, err
	}
	trigger, err := d.choice("trigger_type", "schedule", "manual")
	if err != nil {
		return nil, err
	}
	failed, err := d.flag("has_error")
	if err != nil {
		return nil, err
	}
	deployment := d.query.Get("deployment_id")
	all := slices.DeleteFunc(newest[keptRun](d, ofRun), func(e entry[keptRun]) bool {
		k := e.kept
		return !within(e.Created) || deployment != "" && k.Deployment != deployment || trigger != "" && k.trigger() != trigger ||
			d.query.Get("has_error") != "" && (k.Error != nil) != failed
	})
	return runKind().page(d, all, 1000)
}

// agenda begins the runs that are due.
type agenda struct {
	*server.Server
	changed chan struct{} // has a token if the next time may have changed
}

// look makes follow check when the next run is due.
func (a *agenda) look() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

const (
	grace    = 5 * time.Minute // a run that is late by no more than this is not a missed one
	farAhead = 24 * time.Hour
)

// follow begins runs until ctx is done.
func (a *agenda) follow(ctx context.Context) {
	for ctx.Err() == nil {
		due, stop := a.Clock.At(a.begin(ctx))
		select {
		case <-due:
		case <-a.changed:
		case <-ctx.Done():
		}
		stop()
	}
}

// begin begins the runs that are due, and returns the time of the next one.
func (a *agenda) begin(ctx context.Context) time.Time {
	now := a.Clock.Now()
	next := now.Add(farAhead)
	for _, e := range entries[keptDeployment](a.Self(ctx).Objects, ofDeployment) {
		o, k := e.Object, e.kept
		if k.Schedule == nil || k.Paused != nil || k.isArchived() {
			continue
		}
		t, err := k.Schedule.read()
		if err == nil {
			if due := t.Last(k.Since, now, 1); len(due) > 0 {
				err = a.fire(ctx, o, k, due[0], now)
			}
		}
		switch {
		case ctx.Err() != nil:
			return next
		case err != nil && !errors.Is(err, errPassed):
			if server.ProblemOf(err).Status != http.StatusServiceUnavailable && a.Warn != nil {
				a.Warn("deployment " + o.ID + " can't run: " + err.Error())
			}
			next = earlier(next, now.Add(again))
		default:
			next = earlier(next, t.After(now))
		}
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}

// fire begins a run that is due, or skips it.
func (a *agenda) fire(ctx context.Context, o server.Object, k keptDeployment, due, now time.Time) error {
	d := &door{Visit: a.Behalf(ctx, k.By, o.Tenant, "")}
	if a.SkipMissed && now.Sub(due) > grace {
		_, _, err := changed(d, ofDeployment, o.ID, func(k *keptDeployment) error {
			if k.Since.Before(due) {
				k.Since = due
			}
			return nil
		})
		return err
	}
	return d.fire(o.ID, derived("drun_", o.ID, stamp(due)), due)
}
