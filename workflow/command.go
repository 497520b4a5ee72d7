package workflow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/text"
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

// commandInput is what the log shows of a command.
type commandInput struct {
	Run     string   `json:"run"`
	Dir     string   `json:"dir,omitempty"`
	Env     []string `json:"env,omitempty"`
	Network []string `json:"network,omitempty"`
}

// commandInput is the command of the step with its values.
func (p piecework) commandInput() commandInput {
	in := commandInput{Run: p.Run, Dir: p.Dir, Network: p.Network}
	for _, name := range sortedKeys(p.Env) {
		in.Env = append(in.Env, name+"="+strings.ReplaceAll(asText(p.frame.filled(p.Env[name])), "\x00", ""))
	}
	return in
}

// command is a step of kind run.
func (p piecework) command(ctx context.Context) (any, end) {
	in := p.commandInput()
	again := p.Again || p.Retry.Times > 0
	if _, known, lost := p.steps.Begun(p.id); lost && known == nil && !again {
		var e end
		if again, e = p.onceMore(ctx, in); e.outcome != "" || !again {
			return nil, e
		}
	}
	return p.work(ctx, in, again, func(ctx context.Context) (event.StepEnded, error) {
		return p.tries(ctx, func(ctx context.Context) (event.StepEnded, error) {
			ran, err := p.start(ctx, in)
			if err != nil {
				return event.StepEnded{}, err
			}
			e, err := p.brought(ctx, ran)
			e.Untrusted = len(in.Network) > 0
			return e, err
		})
	})
}

// onceMore asks a person whether a command is to run again that ran when the program died. No means
// that its outcome stays unknown.
func (p piecework) onceMore(ctx context.Context, in commandInput) (again bool, e end) {
	const yes, no = "run it again", "leave it"
	d, err := p.steps.Ask(ctx, p.id, question(
		"inspan ended while this command ran, so its outcome is not known. Run it again?\n\n"+in.Run, []string{yes, no}, ""))
	if err != nil {
		p.leave(err)
		return false, end{}
	}
	if chosen(d, []string{yes, no}) == yes {
		return true, end{}
	}
	_, e = p.record(ctx, in, false, nil) // ends as unknown
	return false, e
}

// tries does the work of a step, and again if it fails as often as the step says.
func (p piecework) tries(ctx context.Context, do func(context.Context) (event.StepEnded, error)) (end event.StepEnded, err error) {
	for n := 0; ; n++ {
		end, err = do(ctx)
		failed := err != nil || end.Outcome == event.OutcomeFailed
		if !failed || n >= p.Retry.Times || ctx.Err() != nil || isOpen(err) {
			return end, err
		}
		p.steps.Progress(fmt.Sprintf("%s failed, and is tried again: %s", p.id, cmp.Or(end.Error, fmt.Sprint(err))))
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
}

// start runs a command to its end.
func (p piecework) start(ctx context.Context, in commandInput) (ran, error) {
	env := p.o.Env
	if env.Procs == nil {
		return ran{}, errors.New("no commands can be run here")
	}
	wait := cmp.Or(time.Duration(p.Timeout), usualTimeout)
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tail, whole, report := keep.Tail{Limit: mostOutput}, keep.Head{Limit: mostStored}, keep.Head{Limit: mostPrinted + 1}
	line := in.Run
	c := tool.Command{
		Dir: filepath.Join(env.Root, in.Dir), Vars: in.Env, Output: io.MultiWriter(&tail, &whole),
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
	out := ran{code: code, output: text.Printed(strings.ToValidUTF8(tail.Text(), "\ufffd")), late: limited.Err() != nil}
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

// why says why a command did not end well; empty: it did.
func (r ran) why(timeout time.Duration) string {
	switch {
	case r.late:
		return fmt.Sprintf("it took longer than %v and was ended", cmp.Or(timeout, usualTimeout))
	case r.code != 0:
		return fmt.Sprintf("exit code %d", r.code)
	}
	return ""
}

// brought is what a command brings as a step of kind run.
func (p piecework) brought(ctx context.Context, r ran) (event.StepEnded, error) {
	why := r.why(time.Duration(p.Timeout))
	value := map[string]any{"exit": r.code, "output": r.output}
	if p.Output != nil && why == "" {
		var v any
		err := json.Unmarshal(r.printed, &v)
		if err == nil {
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

// with adds the blob of the output.
func (r ran) with(e event.StepEnded) event.StepEnded {
	if r.blob.Digest != "" {
		e.Blobs = append(e.Blobs, r.blob)
	}
	return e
}

// kept is the end of a step that keeps its artefacts if it has ended well.
func (p piecework) kept(ctx context.Context, r ran, value map[string]any, why string) (event.StepEnded, error) {
	blobs, missing, err := p.artefacts(ctx, value, why == "")
	if err != nil {
		return event.StepEnded{}, err
	}
	e := r.with(ended(value, cmp.Or(why, missing)))
	e.Blobs = append(e.Blobs, blobs...)
	return e, nil
}

// artefacts keeps files of the workspace, and puts their text into the value.
func (p piecework) artefacts(ctx context.Context, value map[string]any, well bool) (blobs []event.StepBlob, missing string, err error) {
	if !well || len(p.Artefacts) == 0 {
		return nil, "", nil
	}
	texts := map[string]any{}
	for _, name := range sortedKeys(p.Artefacts) {
		f, err := p.o.Env.Files.Open(ctx, filepath.Join(p.o.Env.Root, p.Artefacts[name]))
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

// last is the last line of an output that says something.
func last(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return text.Short(lines[len(lines)-1], 300)
}

// check is a step of kind check.
func (p piecework) check(ctx context.Context) (any, end) {
	in := p.commandInput()
	return p.work(ctx, in, true, func(ctx context.Context) (event.StepEnded, error) {
		return p.tries(ctx, func(ctx context.Context) (event.StepEnded, error) {
			r, err := p.start(ctx, in)
			if err != nil {
				return event.StepEnded{}, err
			}
			failed, err := failing(r.output, p.Failures)
			if err != nil {
				return event.StepEnded{}, err
			}
			why := r.why(time.Duration(p.Timeout))
			if p.Gate != "" && why != "" && !r.late {
				why = p.regressed(r, failed)
			}
			value := map[string]any{"passed": why == "", "exit": r.code, "output": r.output, "failures": failed}
			e, err := p.kept(ctx, r, value, why)
			e.Untrusted = len(in.Network) > 0
			return e, err
		})
	})
}

// failing are the names of what fails, by the lines that say so, each once.
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

// usualFailures is how test runners name what fails: Go, pytest, TAP, cargo, jest and mocha, JUnit
// consoles, and compilers.
const usualFailures = `^--- FAIL: (\S+)|^FAILED (\S+)|^not ok \d+ -? ?(.+)|^test (\S+) \.\.\. FAILED|` +
	`^[✕✗✖] (.+?)(?: \(\d+ ?ms\))?$|^FAIL:? (\S+)|` +
	`^(\S+:\d+(?::\d+)?: (?:error: )?.+)$`

// regressed says what fails now and did not before the run; empty: nothing.
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
