package custom

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/internal/world/changed"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const maxPrinted = 8 << 20 // bytes kept of the beginning of a result

// setUp reads assignments from standard input up to a line that is the first argument, and then becomes the
// program with the rest of standard input. So no list of processes shows secrets. Read takes single bytes from
// a pipe.
const setUp = `s=; while IFS= read -r l && [ "$l" != "$1" ]; do s="$s$l
"; done; shift; eval "$s"; unset s l; exec "$@" 1>&3 3>&-`

// caller runs a program for the model.
type caller struct {
	set         *Set
	program     program
	declaration declaration
}

func (c caller) tool() tool.Tool {
	return tool.Tool{
		Name: c.declaration.name, Doc: c.declaration.description, Schema: slices.Clone(c.declaration.schema),
		Effects: c.effects, Run: c.run, CodeDigest: c.program.digest,
	}
}

// effects returns the declared effects. A program without a box could do more, and an effect says so.
func (c caller) effects(_ context.Context, call *tool.Call) ([]tool.Effect, error) {
	var out []tool.Effect
	e := c.declaration.effects
	if e.read {
		out = append(out, tool.Effect{Kind: tool.Read, Path: call.Env.Root})
	}
	if e.write {
		out = append(out, tool.Effect{Kind: tool.Write, Path: call.Env.Root})
	}
	for _, host := range e.network {
		out = append(out, tool.Effect{Kind: tool.Network, Text: host})
	}
	if e.external != "" {
		out = append(out, tool.Effect{Kind: tool.External, Text: e.external})
	}
	if e.silent() {
		out = append(out, tool.Effect{Kind: tool.External, Text: "run " + c.declaration.name + ", which does not say what it does"})
	}
	if c.box(call.Env.Walls).Level == tool.BoxNone {
		out = append(out, tool.Effect{Kind: tool.External, Text: "run " + c.declaration.name +
			" without a sandbox that holds it to what it declares"})
	}
	return out, nil
}

// box returns the box around the program: as wide as its declaration, or none if it can't be built.
func (c caller) box(walls tool.Walls) tool.Box {
	e := c.declaration.effects
	b := tool.Box{Level: tool.BoxWorkspace, Program: c.program.folder.Dir, Hosts: slices.Clone(e.network)}
	has := walls.Workspace && (len(e.network) == 0 || walls.Hosts)
	if e.onlyReads() {
		b.Level, has = tool.BoxRead, walls.Read
	}
	if !has {
		return tool.Box{Level: tool.BoxNone}
	}
	return b
}

func (c caller) run(ctx context.Context, call *tool.Call) (tool.Result, error) {
	name := c.declaration.name
	if call.Env.Procs == nil {
		return tool.Result{}, errors.New("this host can't start processes")
	}
	input, end, err := c.input(call)
	if err != nil {
		return tool.Result{}, err
	}
	if now, err := c.program.current(); err != nil || now != c.program.digest {
		return tool.Result{}, fmt.Errorf("the program of %s has changed since inspan read it, so it was not run; inspan reads it again at "+
			"the next turn", name)
	}
	var before changed.Files
	if c.declaration.effects.write && call.Env.Files != nil {
		before = changed.Look(ctx, call.Env.Files, call.Env.Root)
	}
	limited, cancel := context.WithTimeout(ctx, c.declaration.timeout)
	defer cancel()
	out, errs := output{most: maxPrinted}, lines{tell: call.Progress}
	p, err := call.Env.Procs.Start(limited, tool.Command{
		Args: []string{"sh", "-c", setUp, "sh", end, c.program.file}, Dir: call.Cwd,
		Stdin: strings.NewReader(input), Output: &errs, Report: &out, Box: c.box(call.Env.Walls),
	})
	if err != nil {
		return tool.Result{}, fmt.Errorf("%s was not run: %w", name, err)
	}
	code, err := p.Wait()
	p.Kill() // what it may have left behind
	r := understand(&out)
	r.files = before.Since(context.WithoutCancel(ctx), call.Env.Files, call.Env.Root)
	switch {
	case ctx.Err() != nil:
		return r.result(nil), fmt.Errorf("%s was interrupted and ended: %w", name, ctx.Err())
	case limited.Err() != nil:
		err = fmt.Errorf("%s did not finish within %v and was ended%s", name, c.declaration.timeout, after(errs.text()))
		return r.result(nil), err
	case err != nil:
		return r.result(nil), fmt.Errorf("the outcome of %s is unknown: %w", name, err)
	}
	return r.result(&code), r.failure(code, errs.text(), refused(p))
}

// input returns the program's input: its environment up to the line end, then the arguments.
func (c caller) input(call *tool.Call) (all, end string, err error) {
	vars := [][2]string{
		{"INSPAN_SESSION", call.Session},
		{"INSPAN_ROOT", call.Env.Root},
		{"INSPAN_MODE", string(call.Mode)},
		{"INSPAN_KEY", call.Key},
	}
	var missing []string
	for _, name := range c.declaration.secrets {
		value, granted := c.secret(name)
		switch {
		case !granted:
			missing = append(missing, name)
		case value == "":
			return "", "", fmt.Errorf("%s was not run: its secret %s is granted but empty; the person must set it where inspan is started",
				c.declaration.name, name)
		}
		vars = append(vars, [2]string{name, value})
	}
	if missing != nil {
		return "", "", c.ungranted(missing)
	}
	var b strings.Builder
	for _, v := range vars {
		if strings.ContainsRune(v[1], 0) {
			return "", "", fmt.Errorf("%s was not run: %s contains a NUL byte", c.declaration.name, v[0])
		}
		fmt.Fprintf(&b, "export %s=%s\n", v[0], text.ShellQuote(v[1]))
	}
	end = "#"
	for strings.Contains("\n"+b.String(), "\n"+end+"\n") {
		end += "#"
	}
	args, err := sorted(call.Args)
	return b.String() + end + "\n" + string(args) + "\n", end, err
}

// sorted returns an object with its fields in order, at every depth, so that a program without a JSON parser
// can rely on it.
func sorted(args json.RawMessage) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(out.Bytes()), err
}

func (c caller) secret(name string) (value string, granted bool) {
	if c.set.Secret == nil {
		return "", false
	}
	return c.set.Secret(Want{Source: c.program.folder.Source, Tool: c.declaration.name, Name: name})
}

// ungranted tells the model, and so the person, which line of the settings is missing.
func (c caller) ungranted(missing []string) error {
	quoted := make([]string, len(c.declaration.secrets))
	for i, name := range c.declaration.secrets {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return fmt.Errorf("%s was not run: it needs %s, which only the person can grant, by this in the settings of inspan:\n[tool_secrets.%s]\n"+
		"%s = [%s]",
		c.declaration.name, strings.Join(missing, " and "), c.program.folder.Source, c.declaration.name, strings.Join(quoted, ", "))
}

// after continues a sentence with a program's words.
func after(text string) string {
	if text == "" {
		return ""
	}
	return ":\n" + text
}

func refused(p tool.Process) []string {
	if r, is := p.(ability.Refuser); is {
		return r.Refused()
	}
	return nil
}

// result returns the reply for the model.
func (r reply) result(code *int) tool.Result {
	out := tool.Result{Exit: code, Files: r.files}
	if r.text != "" {
		out.Parts = append(out.Parts, llm.Text{Text: r.text})
	}
	for _, image := range r.images {
		out.Parts = append(out.Parts, image)
	}
	return out
}

// failure returns the error of a call, nil if it succeeded.
func (r reply) failure(code int, said string, refused []string) error {
	text := r.err
	if code != 0 {
		if text == "" {
			text = said
		}
		if text = fmt.Sprintf("exit code %d%s", code, after(text)); code == 126 || code == 127 {
			text += "\nThe program may be for another system, or the interpreter in its first line is missing."
		}
	}
	if text == "" {
		return nil
	}
	for _, what := range refused {
		text += "\nThe sandbox: " + what
	}
	return errors.New(text)
}
