package managed

import (
	"context"
	"crypto/rand"
	_ "embed" // the grader's instructions
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// An outcome is sent to the agent as a message. When its run is done, a grader reads the workspace: a task of
// the server with the same model that may change nothing. Its verdict is recorded in the session, and the agent
// continues with it, until the outcome is satisfied or the client's limit of iterations is reached. The
// progress is in the session's log, so the next server continues after a crash.

// grader is the prompt of a grader.
//
//go:embed grader.md
var grader string

const (
	usualIterations = 3
	mostIterations  = 20
	graderTurns     = 30
	graderTime      = 20 * 60 // seconds
)

// Outcome is a goal of a session, and its progress.
type Outcome struct {
	ID          string    `json:"id,omitempty"`
	Description string    `json:"description"`
	Rubric      rubric    `json:"rubric"`
	Most        int       `json:"max_iterations"`
	Iteration   int       `json:"iteration"`
	Result      string    `json:"result,omitempty"`
	Explanation string    `json:"explanation,omitempty"`
	Completed   time.Time `json:"completed,omitzero"`

	start string // id of the event that has begun the evaluation
}

// Results of outcomes. The others are a grader's, and final.
const (
	producing = "running"
	grading   = "evaluating"
	revise    = "needs_revision"
	exhausted = "max_iterations_reached"
)

// rubric is how an outcome is graded.
type rubric struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

// evaluation is the note about a grading.
type evaluation struct {
	Begins      bool      `json:"begins,omitempty"`
	Result      string    `json:"result,omitempty"`
	Explanation string    `json:"explanation,omitempty"`
	Usage       llm.Usage `json:"usage,omitzero"`
}

func (o *Outcome) active() bool { return o.Result == producing || o.Result == grading }

func (o *Outcome) fields() map[string]any {
	return map[string]any{"outcome_id": o.ID, "description": o.Description, "max_iterations": o.Most, "rubric": o.Rubric}
}

// view returns an outcome as clients see it in its session.
func (o *Outcome) view() map[string]any {
	return map[string]any{
		"type": "outcome_evaluation", "outcome_id": o.ID, "description": o.Description, "iteration": o.Iteration,
		"result": o.Result, "explanation": orNull(o.Explanation), "completed_at": when(o.Completed),
	}
}

// outcome returns the current outcome; nil means there is none.
func (f *Fold) outcome() *Outcome {
	for _, id := range f.order {
		if o := f.outcomes[id]; o.active() {
			return o
		}
	}
	return nil
}

// evaluated folds the note about a grading.
func (f *Fold) evaluated(b event.Recorded) {
	o, e := f.outcomes[b.ID], evaluation{}
	if o == nil || !o.active() || json.Unmarshal(b.Value, &e) != nil {
		return
	}
	if e.Begins {
		if o.Result == producing {
			o.Result = grading
			o.start = f.add("span.outcome_evaluation_start", map[string]any{"outcome_id": o.ID, "iteration": o.Iteration})
		}
		return
	}
	if o.Result != grading {
		return
	}
	if e.Result == revise && o.Iteration+1 >= o.Most {
		e.Result = exhausted
	}
	f.graded(o, e)
	if o.active() {
		return
	}
	if e.Result != exhausted && !f.transcript.Run.Busy { // else a last turn follows
		f.idle(map[string]any{"type": "end_turn"}, nil)
	}
}

// graded ends an evaluation.
func (f *Fold) graded(o *Outcome, e evaluation) {
	f.add("span.outcome_evaluation_end", map[string]any{
		"outcome_id": o.ID, "iteration": o.Iteration, "outcome_evaluation_start_id": o.start, "result": e.Result,
		"explanation": e.Explanation, "usage": modelUsage(e.Usage),
	})
	o.Result, o.Explanation = e.Result, e.Explanation
	if e.Result == revise {
		o.Result = producing
		o.Iteration++
		return
	}
	o.Completed = f.at
}

// giveUp ends the current outcome without a verdict.
func (f *Fold) giveUp(result string) {
	o := f.outcome()
	switch {
	case o == nil:
	case o.Result == grading:
		f.graded(o, evaluation{Result: result})
	default:
		o.Result, o.Completed = result, f.at
	}
}

// list returns the outcomes of a session, oldest first.
func (f *Fold) list() (out []*Outcome) {
	for _, id := range f.order {
		out = append(out, f.outcomes[id])
	}
	return out
}

// wanted reads a user.define_outcome.
func (d *door) wanted(at string, raw []byte) (Outcome, error) {
	var m struct {
		Type        string `json:"type"`
		Description string `json:"description"`
		Rubric      struct {
			Type    string `json:"type"`
			Content string `json:"content"`
			FileID  string `json:"file_id"`
		} `json:"rubric"`
		Most *int `json:"max_iterations"`
	}
	if err := strict(raw, &m); err != nil {
		return Outcome{}, server.Within(at, err)
	}
	o := Outcome{Description: m.Description, Rubric: rubric{"text", m.Rubric.Content}, Most: usualIterations}
	if m.Most != nil {
		o.Most = *m.Most
	}
	switch {
	case m.Rubric.Type == "file":
		return o, unserved(at+".rubric.type", "rubrics by file; use text")
	case m.Rubric.Type != "text" || m.Rubric.FileID != "":
		return o, invalid(at+".rubric.type", "it is unknown, or there is a file", "text")
	case o.Most < 1 || o.Most > mostIterations:
		return o, invalid(at+".max_iterations", fmt.Sprintf("it is %d", o.Most), fmt.Sprintf("1 to %d", mostIterations))
	}
	if err := bounded(at+".rubric.content", o.Rubric.Content, 1, mostContent); err != nil {
		return o, err
	}
	return o, bounded(at+".description", o.Description, 1, mostContent)
}

// define adds an outcome to a session.
func (d *door) define(id string, o Outcome, key string) (uint64, error) {
	h, err := d.history(id, "")
	if err != nil {
		return 0, err
	}
	o.ID = "outc_" + strings.ToLower(rand.Text())
	if key == "" {
		key = o.ID
	} else {
		o.ID = derived("outc_", id, key) // so that one that a crash has interrupted is recognized
	}
	before, seq := h.fold.outcome(), h.last
	switch {
	case before == nil:
		seq, err = d.Note(id, ofOutcome, o.ID, o)
	case before.ID != o.ID:
		err = conflict("the session works on another outcome")
	}
	if err != nil {
		return 0, err
	}
	if _, err := d.Say(id, llm.Say(o.Description+"\n\nIt is graded by this rubric:\n\n"+o.Rubric.Content), outcomeKey+key); err != nil {
		return 0, err
	}
	if _, _, err := changed(d, ofSession, id, func(k *keptSession) error { k.Outcomes = true; return nil }); err != nil {
		return 0, err
	}
	tend(d.Server, id)
	return seq, nil
}

// tendAll continues all current outcomes, and pending initial inputs of sessions.
func tendAll(s *server.Server) {
	s.Go(func(ctx context.Context) {
		for _, e := range entries[keptSession](s.Self(ctx).Objects, ofSession) {
			switch {
			case e.kept.isArchived():
				continue
			case len(e.kept.Initial) > 0:
				begin(s, e.ID)
			}
			if e.kept.Outcomes {
				tend(s, e.ID)
			}
		}
	})
}

// tend works on the outcome of a session until that is done.
func tend(s *server.Server, id string) {
	s.Go(func(ctx context.Context) {
		v, err := s.For(ctx, id, "")
		for more := true; err == nil && more; {
			more, err = (&door{Visit: v}).advance(id)
		}
		if err != nil && ctx.Err() == nil && s.Warn != nil {
			s.Warn("the outcome of session " + id + " is not seen to any more: " + err.Error())
		}
	})
}

// advance waits until the run of a session is done, and has its result graded. It reports whether there is more
// to do.
func (d *door) advance(id string) (more bool, err error) {
	if err := d.atRest(id); err != nil {
		return false, err
	}
	h, err := d.history(id, "")
	if err != nil {
		return false, err
	}
	if h.fold.outcome() == nil {
		return false, d.acknowledged(id, h.fold)
	}
	o := *h.fold.outcome()
	if o.Iteration > 0 && o.Result == producing { // once, because the key is that of the iteration
		if _, err := d.Say(id, llm.Say("The work does not meet the rubric yet:\n\n"+o.Explanation), o.turn()); err != nil {
			return false, err
		}
		if err := d.atRest(id); err != nil {
			return false, err
		}
	}
	if _, err := d.Note(id, ofEvaluation, o.ID, evaluation{Begins: true}); err != nil {
		return false, err
	}
	e, err := d.grade(id, o, h)
	if err != nil {
		return false, err
	}
	if _, err := d.Note(id, ofEvaluation, o.ID, e); err != nil {
		return false, err
	}
	return e.Result == revise, nil
}

// acknowledged informs the agent that an outcome was given up, unless it already is.
func (d *door) acknowledged(id string, f *Fold) error {
	list := f.list()
	if len(list) == 0 || list[len(list)-1].Result != exhausted || f.transcript.Run.Busy || f.shown != running {
		return nil
	}
	o := *list[len(list)-1]
	o.Iteration++
	text := "The work does not meet the rubric, and is not graded again. Say in short what is missing:\n\n" + o.Explanation
	_, err := d.Say(id, llm.Say(text), o.turn())
	return err
}

// turn returns the key of the message before an iteration.
func (o *Outcome) turn() string { return fmt.Sprintf("%s%s/%d", outcomeKey, o.ID, o.Iteration) }

// atRest waits until a session is idle without questions.
func (d *door) atRest(id string) error {
	var st inspan.Status
	var failed error
	_, err := d.Wait(id, func(t server.Task) bool {
		st, failed = d.Status(id)
		return failed != nil || statusOf(t.Stage, st) == terminated || t.Stage == server.StageIdle && !st.Active
	})
	return errors.Join(err, failed)
}

// grade has the result of a session graded.
func (d *door) grade(id string, o Outcome, h history) (evaluation, error) {
	v, err := d.For(d, id, fmt.Sprintf("%s%s/%d/grader", outcomeKey, o.ID, o.Iteration))
	if err != nil {
		return evaluation{}, err
	}
	work, err := d.Find(id)
	if err != nil {
		return evaluation{}, err
	}
	said := ""
	for _, e := range slices.Backward(h.events) {
		if list, is := e.Fields["content"].([]block); is && e.Type == "agent.message" {
			said = list[0].Text
			break
		}
	}
	t, err := v.Submit(server.Spec{
		Title: "grading of " + id, Beside: id, Model: work.Spec.Model, Mode: tool.ModePlan, Unattended: true,
		System: grader, MaxCost: work.Spec.MaxCost, MaxTurns: graderTurns, Timeout: graderTime,
		Prompt: strings.Join([]string{
			"What was to be made:", o.Description, "What the agent says of it:", said, "The rubric:", o.Rubric.Content,
		}, "\n\n"),
	})
	if err != nil {
		return evaluation{}, err
	}
	t, err = v.Wait(t.ID, func(t server.Task) bool { return statusOf(t.Stage, inspan.Status{}) == terminated })
	if err != nil {
		return evaluation{}, err
	}
	st, err := v.Status(t.ID)
	if err != nil {
		return evaluation{}, err
	}
	e := evaluation{Result: "failed", Explanation: "the grader gave no verdict: it ended as " + string(t.Stage) + " " + t.Why}
	if t.Result != nil {
		if judged, is := verdict(t.Result.Says); is {
			e = judged
		}
	}
	e.Usage = st.Usage
	return e, nil
}

// verdict reads a grader's last message.
func verdict(says string) (e evaluation, is bool) {
	line := says[strings.LastIndex(strings.TrimSpace(says), "\n")+1:]
	var v struct{ Result, Explanation string }
	if json.Unmarshal([]byte(line), &v) != nil || !slices.Contains([]string{"satisfied", revise, "failed"}, v.Result) {
		return e, false
	}
	return evaluation{Result: v.Result, Explanation: v.Explanation}, true
}
