package workflow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const (
	usualTimeout = 10 * time.Minute
	mostOutput   = 32 << 10   // bytes of output that a step brings, the last ones
	mostStored   = 16 << 20   // that are kept as a blob
	mostPrinted  = mostResult // of JSON
	mostFailures = 200
	mostArtefact = 64 << 10 // bytes of an artefact that can be referred to
)

// commandInput is a command as the log shows it.
type commandInput struct {
	Run     string   `json:"run"`
	Dir     string   `json:"dir,omitempty"`
	Env     []string `json:"env,omitempty"`
	Network []string `json:"network,omitempty"`
}

// commandInput returns the step's command with its values.
func (p piecework) commandInput() commandInput {
	in := commandInput{Run: p.Run, Dir: p.Dir, Network: p.Network}
	for _, name := range sortedKeys(p.Env) {
		in.Env = append(in.Env, name+"="+strings.ReplaceAll(asText(p.frame.filled(p.Env[name])), "\x00", ""))
	}
	return in
}

// command performs a step of kind run.
func (p piecework) command(ctx context.Context) (any, end) {
	in := p.commandInput()
	again := p.Again || p.Retry.Times > 0
	if was := p.steps.Step(p.id); was.Lost && was.Ended == nil && !again {
		yes, err := p.onceMore(ctx, "command", in.Run, fmt.Sprint(was.Seq))
		if err != nil {
			p.leave(err)
			return nil, end{}
		}
		if again = yes; !again {
			return p.record(ctx, in, false, nil) // ends as unknown
		}
	}
	return p.work(ctx, in, again, func(ctx context.Context) (event.StepEnded, error) {
		return p.tries(ctx, func(ctx context.Context, _ int) (event.StepEnded, error) {
			ran, why, err := p.start(ctx, in)
			if err != nil || why != "" {
				return ended(nil, why), err
			}
			return p.brought(ctx, ran)
		})
	})
}

// onceMore asks a person whether to repeat something whose outcome is unknown. Start identifies the start that
// was cut off: the answer applies to that one only.
func (p piecework) onceMore(ctx context.Context, what, shown, start string) (yes bool, err error) {
	choices := []string{"run it again", "leave it"}
	asks := fmt.Sprintf("This %s was running when inspan ended or was interrupted, so what it did is not known. Run it again?\n\n%s",
		what, quoted(shown))
	q := question(asks, choices, "")
	q.ID = p.questionID() + "~again" + start
	choice, _, err := p.choose(ctx, q, choices)
	return choice == choices[0], err
}

// judged gives the reason why a command may not run; empty means it may. It is judged like a call of the tool bash,
// but the steps of a workflow speak for the person who runs it.
func (p piecework) judged(ctx context.Context, in commandInput) (why string, err error) {
	args, err := json.Marshal(map[string]string{"command": in.Run})
	if err != nil {
		return "", err
	}
	v := p.steps.Judge(ctx, llm.Call{ID: p.id, Name: "bash", Args: args}, in.Network)
	said := strings.TrimPrefix(v.By+": "+v.Reason, ": ")
	switch v.Action {
	case tool.Allow:
		return "", nil
	case tool.Ask:
		choices := []string{"run it", "don't"}
		q := question("Run this command? It asks because of "+said+"\n\n"+quoted(in.Run), choices, "")
		q.ID = p.questionID() + "~run"
		choice, _, err := p.choose(ctx, q, choices)
		if err != nil || choice == choices[0] {
			return "", err
		}
		return "it was not approved", nil
	}
	return "denied by " + said, nil
}

// tries performs a step, and repeats it after failures as often as the step says. Each try is logged as a step
// of its own, so a program that dies does not start counting again. A try that was cut off counts, unless an
// agent continues it.
func (p piecework) tries(ctx context.Context,
	do func(ctx context.Context, try int) (event.StepEnded, error),
) (end event.StepEnded, err error) {
	if p.Retry.Times == 0 {
		return do(ctx, 1)
	}
	again := p.Kind == KindAgent || p.Kind == KindTool
	for n := 1; ; n++ {
		step := event.StepStarted{Step: fmt.Sprintf("%s@%d", p.id, n), Does: "try", Parent: p.id, Again: again}
		end, err = p.steps.Do(ctx, step, func(ctx context.Context) (event.StepEnded, error) { return do(ctx, n) })
		if err != nil {
			return end, err
		}
		failed := end.Outcome == event.OutcomeFailed || end.Outcome == event.OutcomeUnknown
		if !failed || n > p.Retry.Times || ctx.Err() != nil {
			end.Step = ""
			return end, err
		}
		p.steps.Progress(fmt.Sprintf("%s failed, and is tried again: %s", p.id, end.Error))
		if err := keep.Sleep(ctx, time.Duration(p.Retry.Wait)); err != nil {
			return end, err
		}
	}
}

// ran is a command that has ended.
type ran struct {
	code    int
	output  string // the end of what it printed
	printed []byte // to standard output, if that is to be JSON
	blob    event.StepBlob
	late    bool
	reached bool // hosts could be
}

// start runs a command to its end, or gives the reason why it may not run.
func (p piecework) start(ctx context.Context, in commandInput) (r ran, why string, err error) {
	if p.o.Env.Procs == nil {
		return ran{}, "", errors.New("no commands can be run here")
	}
	if why, err = p.judged(ctx, in); why == "" && err == nil {
		r, err = p.execute(ctx, in)
	}
	if ctx.Err() != nil { // it was interrupted: a person says what is to come of it
		err = fmt.Errorf("%w: %w", inspan.ErrOpenStep, context.Cause(ctx))
	}
	return r, why, err
}

// execute runs a command to its end.
func (p piecework) execute(ctx context.Context, in commandInput) (ran, error) {
	env := p.o.Env
	wait := cmp.Or(time.Duration(p.Timeout), usualTimeout)
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tail, whole, report := keep.Tail{Limit: mostOutput}, keep.Head{Limit: mostStored}, keep.Head{Limit: mostPrinted + 1}
	line := in.Run
	dir, err := p.within(in.Dir)
	if err != nil {
		return ran{}, err
	}
	c := tool.Command{
		Dir: dir, Vars: in.Env, Output: io.MultiWriter(&tail, &whole),
		Box: tool.Box{Level: tool.BoxWorkspace, Hosts: in.Network, Git: true, Init: true},
	}
	if p.Output != nil {
		line, c.Report = "{ "+in.Run+"\n} >&3", &report
	}
	c.Args = []string{"bash", "-eo", "pipefail", "-c", line}
	proc, err := env.Procs.Start(limited, c)
	if errors.Is(err, tool.ErrNoBox) && p.o.Unboxed {
		c.Box = tool.Box{Level: tool.BoxNone}
		proc, err = env.Procs.Start(limited, c)
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return ran{late: true}, nil // its time was over before it began
	}
	if err != nil {
		return ran{}, err
	}
	code, err := proc.Wait()
	proc.Kill() // what it left behind
	if ctx.Err() != nil {
		return ran{}, context.Cause(ctx)
	}
	if err != nil {
		return ran{}, err
	}
	out := ran{code: code, output: text.Printed(strings.ToValidUTF8(tail.Text(), "\ufffd"))}
	out.late, out.reached = limited.Err() != nil, len(in.Network) > 0
	out.printed, _ = report.Bytes()
	data, more := whole.Bytes()
	if len(data) > mostOutput {
		out.blob, err = p.store(ctx, "output", "text/plain", data)
		if more {
			out.output = fmt.Sprintf("[only the first %d bytes of the output are kept]\n%s", mostStored, out.output)
		}
	}
	return out, err
}

func (p piecework) store(ctx context.Context, name, kind string, data []byte) (event.StepBlob, error) {
	b := event.StepBlob{Name: name, Size: int64(len(data)), Type: kind}
	if p.o.Env.Blobs == nil {
		return b, nil
	}
	var err error
	b.Digest, err = p.o.Env.Blobs.Put(ctx, bytes.NewReader(data))
	return b, err
}

// why gives the reason why a command failed; empty means it succeeded.
func (r ran) why(timeout time.Duration) string {
	switch {
	case r.late:
		return fmt.Sprintf("it took longer than %v and was ended", cmp.Or(timeout, usualTimeout))
	case r.code != 0:
		return fmt.Sprintf("exit code %d", r.code)
	}
	return ""
}

// brought returns the result of a command in a step of kind run.
func (p piecework) brought(ctx context.Context, r ran) (event.StepEnded, error) {
	why := r.why(time.Duration(p.Timeout))
	value := map[string]any{"exit": r.code, "output": r.output}
	if p.Output != nil && why == "" {
		var v any
		err := error(nil)
		if len(r.printed) > mostPrinted {
			err = fmt.Errorf("it is longer than %d bytes; keep it as an artefact", mostPrinted)
		} else if err = json.Unmarshal(r.printed, &v); err == nil {
			err = valid(p.Output, r.printed)
		}
		if err != nil {
			why = "what it printed is not what output says: " + err.Error()
		} else if fields, ok := v.(map[string]any); ok {
			value = fields
		} else {
			end := ended(v, "")
			return r.with(end), nil
		}
	}
	if why != "" && last(r.output) != "" {
		why += ": " + last(r.output)
	}
	return p.kept(ctx, r, value, why)
}

// with adds the blob of the output, and marks the result as untrusted if it may contain text of others.
func (r ran) with(e event.StepEnded) event.StepEnded {
	e.Untrusted = r.reached
	if r.blob.Digest != "" {
		e.Blobs = append(e.Blobs, r.blob)
	}
	return e
}

// kept ends a step, and keeps its artefacts if it succeeded.
func (p piecework) kept(ctx context.Context, r ran, value map[string]any, why string) (event.StepEnded, error) {
	blobs, missing, err := p.artefacts(ctx, value, why == "")
	if err != nil {
		return event.StepEnded{}, err
	}
	e := r.with(ended(value, cmp.Or(why, missing)))
	e.Blobs = append(e.Blobs, blobs...)
	return e, nil
}

// artefacts stores files of the workspace, and adds their text to the value.
func (p piecework) artefacts(ctx context.Context, value map[string]any, well bool) (blobs []event.StepBlob, missing string, err error) {
	if !well || len(p.Artefacts) == 0 {
		return nil, "", nil
	}
	texts := map[string]any{}
	for _, name := range sortedKeys(p.Artefacts) {
		var f fs.File
		path, err := p.within(p.Artefacts[name])
		if err == nil {
			f, err = p.o.Env.Files.Open(ctx, path)
		}
		if err != nil {
			return blobs, fmt.Sprintf("the artefact %s is not there: %v", name, err), nil
		}
		data, err := io.ReadAll(io.LimitReader(f, mostStored+1))
		_ = f.Close()
		switch {
		case err != nil:
			return blobs, fmt.Sprintf("the artefact %s can't be read: %v", name, err), nil
		case len(data) > mostStored:
			return blobs, fmt.Sprintf("the artefact %s has more than %d bytes", name, mostStored), nil
		}
		b, err := p.store(ctx, name, "", data)
		if err != nil {
			return blobs, "", err
		}
		blobs = append(blobs, b)
		texts[name] = text.Cut(strings.ToValidUTF8(string(data), "\ufffd"), mostArtefact)
	}
	value["artefacts"] = texts
	return blobs, "", nil
}

// within returns a path below the workspace with its links resolved. No link may lead out.
func (p piecework) within(path string) (string, error) {
	root, err := filepath.EvalSymlinks(p.o.Env.Root)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(filepath.Join(root, path))
	if err != nil {
		return "", err
	}
	if !text.Inside(root, real) {
		return "", fmt.Errorf("%s leads out of the workspace", path)
	}
	return real, nil
}

// last returns the last non-empty line of an output.
func last(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return text.Short(lines[len(lines)-1], 300)
}

// check performs a step of kind check.
func (p piecework) check(ctx context.Context) (any, end) {
	in := p.commandInput()
	return p.work(ctx, in, true, func(ctx context.Context) (event.StepEnded, error) {
		return p.tries(ctx, func(ctx context.Context, _ int) (event.StepEnded, error) {
			r, why, err := p.start(ctx, in)
			if err != nil || why != "" {
				return ended(nil, why), err
			}
			failed, err := failing(r.output, p.Failures)
			if err != nil {
				return event.StepEnded{}, err
			}
			why = r.why(time.Duration(p.Timeout))
			if p.Gate != "" && why != "" && !r.late {
				why = p.regressed(r, failed)
			}
			value := map[string]any{"passed": why == "", "exit": r.code, "output": r.output, "failures": failed}
			return p.kept(ctx, r, value, why)
		})
	})
}

// failing returns the names of failures, by the lines that report them, each once.
func failing(output, pattern string) ([]string, error) {
	form, err := regexp.Compile(cmp.Or(pattern, usualFailures))
	if err != nil {
		return nil, err
	}
	out := []string{}
	for line := range strings.SplitSeq(output, "\n") {
		m := form.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || len(out) == mostFailures {
			continue
		}
		name := m[0]
		for _, group := range m[1:] {
			name = cmp.Or(group, name)
			if group != "" {
				break
			}
		}
		if name = text.Short(name, 200); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, nil
}

// usualFailures matches how test runners name failures: Go, pytest, TAP, cargo, jest and mocha, JUnit consoles,
// and compilers.
const usualFailures = `^--- FAIL: (\S+)|^FAILED (\S+)|^not ok \d+ -? ?(.+)|^test (\S+) \.\.\. FAILED|` +
	`^[✕✗✖] (.+?)(?: \(\d+ ?ms\))?$|^FAIL:? (\S+)|` +
	`^(\S+:\d+(?::\d+)?: (?:error: )?.+)$`

// regressed says which failures are new since the run began; empty means none.
func (p piecework) regressed(now ran, failed []string) string {
	p.mu.Lock()
	base, _ := p.befores[p.at.base+p.ID].(map[string]any)
	p.mu.Unlock()
	switch {
	case base == nil:
		return "what it did before the run is not known"
	case base["passed"] == true:
		return fmt.Sprintf("exit code %d, and it passed before the run", now.code)
	}
	before, _ := base["failures"].([]any)
	if code, _ := asNumber(base["exit"]); int(code) != now.code {
		return fmt.Sprintf("exit code %d, and %d before the run, so which failures are new can't be told", now.code, int(code))
	}
	if len(before) == 0 || len(failed) == 0 {
		if same(base["output"], now.output) {
			return ""
		}
		return "it failed before the run too, and which failures are new can't be told; set failures to a pattern of the lines that name them"
	}
	var news []string
	for _, name := range failed {
		if !slices.ContainsFunc(before, func(old any) bool { return old == name }) {
			news = append(news, name)
		}
	}
	if len(news) > 0 {
		return "new failures: " + strings.Join(news, ", ")
	}
	return ""
}
