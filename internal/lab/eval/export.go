package eval

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

// Shapes returns the export formats of a run: the folder of a job of Harbor, a line of JSON for each trial, and
// predictions of SWE-bench.
func Shapes() []string { return []string{ShapeHarbor, "jsonl", ShapeSWE} }

// Shapes used elsewhere.
const (
	ShapeHarbor = "harbor" // the only one that is a folder
	ShapeSWE    = "swe-bench"
)

// CanExport returns the reason why a run has nothing for a shape.
func (r *Run) CanExport(shape string) error {
	patched := false
	for i := range r.Trials {
		patched = patched || r.Trials[i].Patch != nil
	}
	switch {
	case len(r.Trials) == 0:
		return words.Misuse{Err: fmt.Errorf("no trial of run %s has ended", r.ID)}
	case shape == ShapeSWE && !patched:
		return words.Misuse{Err: fmt.Errorf("run %s has no patches: its tasks have no repository, or it is of an earlier version", r.ID)}
	}
	return nil
}

// Lines writes a run in one of the [Shapes] with lines, and returns how many trials are omitted. SWE-bench
// accepts one prediction for each task: that of the first try that did not break.
func (r *Run) Lines(w io.Writer, shape string) (left int, err error) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	trials := r.sorted()
	done := map[string]bool{}
	for i := range trials {
		t := &trials[i]
		switch {
		case shape != ShapeSWE:
			err = enc.Encode(struct {
				*Run
				*Trial
			}{r, t})
		case t.Outcome == Broken || t.Patch == nil || done[t.Task]:
			left++
		default:
			done[t.Task] = true
			err = enc.Encode(struct {
				Instance string `json:"instance_id"`
				Model    string `json:"model_name_or_path"`
				Patch    string `json:"model_patch"`
			}{t.Task, "inspan-" + r.Version + "+" + cmp.Or(r.Model, "default"), *t.Patch})
		}
		if err != nil {
			return left, err
		}
	}
	return left, nil
}

// sorted returns the trials by task and try.
func (r *Run) sorted() []Trial {
	list := append([]Trial(nil), r.Trials...)
	slices.SortFunc(list, func(a, b Trial) int {
		return cmp.Or(strings.Compare(a.Task, b.Task), cmp.Compare(a.Try, b.Try))
	})
	return list
}

// details are the facts about a trial in its session.
type details struct {
	began      time.Time
	usage      llm.Usage
	trajectory []byte // in ATIF; nil means the session is gone
}

// detailsOf reads the details from a session. A missing or unreadable one has none.
func detailsOf(ctx context.Context, sessions store.Store, session string) (d details) {
	table := running.Table{Sessions: sessions}
	st, err := table.Status(ctx, session)
	if err != nil {
		return d
	}
	d.usage = st.Usage
	for e, err := range table.Past(ctx, session) {
		if err == nil {
			d.began = e.Time
		}
		break
	}
	var b bytes.Buffer
	if transcript.ATIF(&b, table.Past(ctx, session), func(digest string) string { return digest }) == nil {
		d.trajectory = b.Bytes()
	}
	return d
}

// harborTexts are the result files of Harbor, as far as we have the data.
//
//go:embed harbor.txt
var harborTexts string

// harborJob is the folder of a job of Harbor while it is written.
type harborJob struct {
	*Run
	dir            string
	name           string // of the model, without its provider
	provider       any    // nil means unknown
	ended          time.Time
	sum            float64
	graded, errors int
	scores, broken map[string][]string // names of trials
	tasks          []map[string]string
}

// Harbor writes the folder of a job of Harbor, which must not exist. Planned is the planned number of trials.
func (r *Run) Harbor(ctx context.Context, dir string, planned int, sessions store.Store) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	j := &harborJob{
		Run: r, dir: dir, ended: r.Began, name: cmp.Or(r.Model, "default"), scores: map[string][]string{}, broken: map[string][]string{},
	}
	if provider, model, ok := strings.Cut(r.Model, "/"); ok {
		j.name, j.provider = model, provider
	}
	for _, t := range r.sorted() {
		if err := j.trial(&t, detailsOf(ctx, sessions, t.Session)); err != nil {
			return err
		}
	}
	return writeFiles(dir, map[string]string{
		"result.json": string(text.Filled(harborTexts, "job", "$ID", text.UUID(r.ID), "$BEGAN", r.Began, "$ENDED", j.ended,
			"$TOTAL", max(planned, len(r.Trials)), "$TRIALS", len(r.Trials), "$EVAL", "inspan__"+j.name+"__"+r.Suite, "$GRADED", j.graded,
			"$ERRORS", j.errors, "$MEAN", j.sum/float64(len(r.Trials)), "$SCORES", j.scores, "$EXCEPTIONS", j.broken)),
		"config.json": string(text.Filled(harborTexts, "jobconfig", "$JOB", filepath.Base(dir), "$TRIES", max(1, r.Tries), "$MODEL", r.Model,
			"$TASKS", j.tasks)),
	})
}

// trialName returns the name of the folder of a trial, which Harbor keeps short. Long ids often begin alike.
func trialName(task string, try int) string {
	const most = 32
	if len(task) > most {
		task = task[:most-9] + "-" + text.UUID(task)[:8]
	}
	return fmt.Sprintf("%s__%d", task, try)
}

// trial writes the folder of a trial.
func (j *harborJob) trial(t *Trial, d details) error {
	name, path := trialName(t.Task, t.Try), j.Suite+"/"+t.Task
	if n := len(j.tasks); n == 0 || j.tasks[n-1]["path"] != path {
		j.tasks = append(j.tasks, map[string]string{"path": path})
	}
	files := map[string]string{"verifier/test-stdout.txt": t.Printed, "agent/trajectory.json": string(d.trajectory)}
	var input, cache, output, began, ended, price, rewards, exception any // nil means unknown, or none
	at := d.began.Add(time.Duration(t.Seconds * float64(time.Second)))
	if d.trajectory != nil {
		input, cache, output, began, ended = d.usage.Prompt(), d.usage.CacheRead, d.usage.Output, d.began, at
	}
	if at.After(j.ended) {
		j.ended = at
	}
	if t.Priced {
		price = t.Cost
	}
	why := ""
	switch {
	case t.Outcome == Broken:
		why = "InfrastructureError"
	case t.Reason == string(event.ReasonMaxTime):
		why = "AgentTimeoutError"
	}
	if why != "" {
		j.errors++
		j.broken[why] = append(j.broken[why], name)
		exception, files["exception.txt"] = text.Filled(harborTexts, "exception", "$TYPE", why, "$REASON", t.Reason, "$AT", at), t.Reason
	}
	if t.Outcome != Broken {
		j.graded++
		j.sum += t.Score
		score := fmt.Sprint(t.Score)
		j.scores[score] = append(j.scores[score], name)
		rewards, files["verifier/reward.txt"] = text.Filled(harborTexts, "rewards", "$SCORE", t.Score), score
	}
	config := text.Filled(harborTexts, "config", "$PATH", path, "$TRIAL", name, "$MODEL", j.Model)
	files["config.json"] = string(config)
	files["result.json"] = string(text.Filled(harborTexts, "trial", "$ID", text.UUID(j.ID+"/"+name), "$TASK", t.Task, "$TRIAL", name,
		"$URI", "inspan:"+t.Session, "$PATH", path, "$SUITE", j.Suite, "$DIGEST", j.Digest, "$CONFIG", config, "$VERSION", j.Version,
		"$NAME", j.name, "$PROVIDER", j.provider, "$INPUT", input, "$CACHE", cache, "$OUTPUT", output, "$COST", price,
		"$SESSION", t.Session, "$TURNS", t.Turns, "$PINNED", j.Pinned, "$REWARDS", rewards, "$EXCEPTION", exception,
		"$BEGAN", began, "$ENDED", ended))
	return writeFiles(filepath.Join(j.dir, name), files)
}

// writeFiles writes the texts that are not empty.
func writeFiles(dir string, files map[string]string) error {
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if text == "" {
			continue
		}
		if err := os.WriteFile(at, []byte(strings.TrimSuffix(text, "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}
