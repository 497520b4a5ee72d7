package workflow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/tool"
)

// Bounds of what a file may ask for.
const (
	mostRounds      = 1000
	mostConcurrency = 64
	mostRetries     = 10
	mostWait        = 30 * 24 * time.Hour
	mostTimeout     = 24 * time.Hour
	mostIncluded    = 5 // workflows within workflows
)

// Check returns all that is wrong with the workflow, as [Problems]; nil: it can run.
func (w *Workflow) Check() error {
	c := &checker{w: w}
	if !isName(w.Name) {
		c.add("name", fmt.Sprintf("%q is no name", w.Name), "use lower case letters, digits and dashes")
	}
	c.limits()
	inputs := c.inputs()
	if len(w.Steps) == 0 {
		c.add("steps", "there are none", "add a step with id: and kind:")
	}
	top := &scope{types: map[string]*Schema{"inputs": inputs}}
	c.level(w.Steps, "steps", top)
	c.returns(top)
	if len(c.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return c.problems
}

func isName(s string) bool {
	return len(s) <= 64 && regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`).MatchString(s)
}

func isID(s string) bool {
	return len(s) <= 64 && regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`).MatchString(s)
}

// reserved are names that references have for something else.
func reserved() []string { return []string{"inputs", "item", "round", "before", "history", "returns"} }

type checker struct {
	w        *Workflow
	problems Problems
}

// add tells of a problem of the field at a path, in the line of that or of what it stands in.
func (c *checker) add(path, what, remedy string) {
	p := Problem{File: c.w.file, Field: path, What: what, Remedy: remedy}
	for at := path; at != ""; at = at[:max(0, strings.LastIndexByte(at, '.'))] {
		if p.Line = c.w.lines[at]; p.Line > 0 {
			break
		}
	}
	if p.Line == 0 && p.File != "" {
		p.Line = 1
	}
	c.problems = append(c.problems, p)
}

// scope is the types of what the steps of one list can refer to.
type scope struct {
	up    *scope
	types map[string]*Schema
	steps []Step // of the list, for advice
}

func (c *checker) limits() {
	l := c.w.Limits
	if l.Cost < 0 || l.Tokens < 0 || l.Turns < 0 {
		c.add("limits", "a limit is negative", "use a number above 0, or leave it out for no limit")
	}
	if l.Concurrency < 0 || l.Concurrency > mostConcurrency {
		c.add("limits.concurrency", fmt.Sprintf("it is %d", l.Concurrency), fmt.Sprintf("use 1 to %d", mostConcurrency))
	}
}

// inputs is the type of all inputs.
func (c *checker) inputs() *Schema {
	all := &Schema{Type: "object", Properties: map[string]*Schema{}}
	for _, name := range sortedKeys(c.w.Inputs) {
		at, s := "inputs."+name, c.w.Inputs[name]
		if !isID(name) {
			c.add(at, fmt.Sprintf("%q is no name", name), "use letters, digits, - and _")
		}
		if !c.schema(at, s) {
			continue
		}
		all.Properties[name] = s
		if s.Type == "" {
			c.add(at, "it has no type", "add type: string, or another one")
		}
		if s.Default != nil {
			if err := valid(s, s.Default); err != nil {
				c.add(at, "its default does not fit its schema: "+err.Error(), "change one of them")
			}
		}
	}
	return all
}

// schema reports whether a schema can be used.
func (c *checker) schema(path string, s *Schema) bool {
	if s == nil {
		c.add(path, "it is empty", "give it a JSON schema")
		return false
	}
	raw, err := json.Marshal(s)
	if err == nil {
		err = tool.Tool{Name: "value", Schema: wrapped(raw)}.CheckSchema()
	}
	if err != nil {
		c.add(path, "it is no JSON schema: "+err.Error(), "see json-schema.org")
		return false
	}
	return true
}

// wrapped is a schema of objects that have a value of another one.
func wrapped(schema []byte) json.RawMessage {
	return fmt.Appendf(nil, `{"type":"object","properties":{"value":%s}}`, schema)
}

// valid returns why JSON does not fit a schema.
func valid(s *Schema, raw json.RawMessage) error {
	r, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	return r.Validate(v)
}

func (c *checker) returns(top *scope) {
	s := &scope{up: top, types: map[string]*Schema{}, steps: c.w.Steps}
	for _, step := range c.w.Steps {
		s.types[step.ID] = c.w.output(step)
	}
	for _, name := range sortedKeys(c.w.Returns) {
		at := "returns." + name
		if !isID(name) {
			c.add(at, fmt.Sprintf("%q is no name", name), "use letters, digits, - and _")
		}
		c.ref(at+".from", c.w.Returns[name].From, s)
	}
}

// level checks the steps of one list.
func (c *checker) level(steps []Step, path string, up *scope) {
	seen := map[string]bool{}
	for _, s := range steps {
		at := join(path, s.ID)
		switch {
		case !isID(s.ID):
			c.add(join(at, "id"), fmt.Sprintf("%q is no id", s.ID), "use letters, digits, - and _, a letter first")
		case slices.Contains(reserved(), s.ID):
			c.add(join(at, "id"), fmt.Sprintf("%q means something else in references", s.ID), "call it something else")
		case seen[s.ID]:
			c.add(join(at, "id"), "another step here has this id", "call it something else")
		}
		seen[s.ID] = true
	}
	for i, s := range steps {
		at := join(path, s.ID)
		sc := &scope{up: up, types: map[string]*Schema{}, steps: steps}
		for _, id := range c.needs(steps, i, at) {
			sc.types[id] = c.w.output(stepOf(steps, id))
		}
		c.step(s, at, sc, steps)
	}
}

func stepOf(steps []Step, id string) Step {
	for _, s := range steps {
		if s.ID == id {
			return s
		}
	}
	return Step{}
}

// needed are the steps that a step needs itself: those it names, or the one above.
func needed(steps []Step, i int) []string {
	if steps[i].Needs != nil || i == 0 {
		return steps[i].Needs
	}
	return []string{steps[i-1].ID}
}

// needs are all that a step needs, directly or not.
func (c *checker) needs(steps []Step, i int, path string) (all []string) {
	seen := map[string]bool{}
	var visit func(n int)
	visit = func(n int) {
		for _, id := range needed(steps, n) {
			at := slices.IndexFunc(steps, func(s Step) bool { return s.ID == id })
			switch {
			case at < 0 && n == i:
				c.add(join(path, "needs"), fmt.Sprintf("there is no step %q beside it", id), remedyFor(id, ids(steps)))
			case at == i:
				c.add(join(path, "needs"), "the step needs itself", "remove the need that leads back to it")
				seen[id] = true
				return
			case at >= 0 && !seen[id]:
				seen[id] = true
				all = append(all, id)
				visit(at)
			}
		}
	}
	visit(i)
	return all
}

func ids(steps []Step) (out []string) {
	for _, s := range steps {
		out = append(out, s.ID)
	}
	return out
}

// step checks one step.
func (c *checker) step(s Step, at string, sc *scope, beside []Step) {
	c.conditions(join(at, "when"), s.When, sc)
	if !slices.Contains([]string{"", "skip", "continue", "stop"}, s.OnFailure) {
		c.add(join(at, "on_failure"), fmt.Sprintf("there is no %q", s.OnFailure), remedyFor(s.OnFailure, []string{"skip", "continue", "stop"}))
	}
	if s.Retry.Times < 0 || s.Retry.Times > mostRetries {
		c.add(join(at, "retry.times"), fmt.Sprintf("it is %d", s.Retry.Times), fmt.Sprintf("use 1 to %d", mostRetries))
	}
	for _, name := range sortedKeys(s.Artefacts) {
		c.local(join(at, "artefacts."+name), s.Artefacts[name])
	}
	c.evidence(s, at, sc, beside)
	switch s.Kind {
	case KindAgent:
		c.agent(s, at, sc, beside)
	case KindRun, KindCheck:
		c.command(s, at, sc)
	case KindApproval:
		c.approval(s, at, sc)
	case KindLoop, KindEach:
		c.group(s, at, sc)
	case KindWorkflow:
		c.use(s, at, sc)
	case KindTool:
		c.values(join(at, "with"), s.With, sc)
		c.output(join(at, "output"), s.Output)
	case KindWait:
		c.wait(s, at)
	default:
		c.add(join(at, "kind"), fmt.Sprintf("there is no kind %q", s.Kind), remedyFor(string(s.Kind), strings.Split(list(Kinds()), ", ")))
	}
}

func (c *checker) output(path string, s *Schema) {
	if s != nil {
		c.schema(path, s)
	}
}

// local checks a path below the workspace.
func (c *checker) local(path, file string) {
	if !filepath.IsLocal(file) || file == "." {
		c.add(path, fmt.Sprintf("%q is no path below the workspace", file), "use one such as docs/plan.md")
	}
}

func (c *checker) evidence(s Step, at string, sc *scope, beside []Step) {
	for _, id := range s.Evidence {
		switch of := stepOf(beside, id); {
		case of.Kind != KindCheck:
			c.add(join(at, "evidence"), fmt.Sprintf("%q is no check beside it", id), "name steps of kind check")
		case sc.types[id] == nil:
			c.add(join(at, "evidence"), fmt.Sprintf("it does not need %s", id), fmt.Sprintf("add %s to its needs", id))
		}
	}
	if s.Kind != KindAgent || len(s.Evidence) == 0 {
		return
	}
	if s.Output == nil || s.Output.Properties["passed"] == nil || s.Output.Properties["passed"].Type != "boolean" {
		c.add(join(at, "evidence"), "nothing in the agent's output rests on it", "give it output: with a property passed of type boolean")
	}
}

func (c *checker) agent(s Step, at string, sc *scope, beside []Step) {
	c.text(join(at, "prompt"), s.Prompt, sc)
	if strings.TrimSpace(s.Prompt) == "" {
		c.add(join(at, "prompt"), "it is empty", "say what the agent is to do")
	}
	if s.Output != nil && c.schema(join(at, "output"), s.Output) && s.Output.Type != "object" {
		c.add(join(at, "output"), "an agent's result is an object", "give it type: object and properties")
	}
	if err := s.Mode.Check(); err != nil {
		c.add(join(at, "mode"), err.Error(), "use plan, ask, edit, auto or yolo")
	}
	if s.Budget.Cost < 0 || s.Budget.Turns < 0 {
		c.add(join(at, "budget"), "a limit is negative", "use a number above 0")
	}
	c.context(s, at, sc, beside)
	if len(s.SafeOutputs) > 0 && s.Mode != "" && s.Mode != tool.ModePlan {
		c.add(join(at, "mode"), "an agent with safe outputs only reads", "remove mode, or the safe outputs")
	}
	for _, name := range sortedKeys(s.SafeOutputs) {
		c.safeOutput(join(at, "safe_outputs."+name), s, s.SafeOutputs[name], sc, beside)
	}
}

func (c *checker) context(s Step, at string, sc *scope, beside []Step) {
	if s.Context == "" || s.Context == "fresh" {
		return
	}
	of, forks := strings.CutPrefix(s.Context, "fork(")
	of, closed := strings.CutSuffix(of, ")")
	switch {
	case !forks || !closed:
		c.add(join(at, "context"), fmt.Sprintf("there is no context %q", s.Context), "use fresh, or fork(STEP)")
	case stepOf(beside, of).Kind != KindAgent:
		c.add(join(at, "context"), fmt.Sprintf("%q is no agent beside it", of), "name a step of kind agent")
	case sc.types[of] == nil:
		c.add(join(at, "context"), "it does not need "+of, fmt.Sprintf("add %s to its needs", of))
	}
}

// outlets are the kinds of safe outputs.
func outlets() []string { return []string{"file", "comment", "message", "pull_request"} }

func (c *checker) safeOutput(at string, s Step, o SafeOutput, sc *scope, beside []Step) {
	if !slices.Contains(outlets(), o.Kind) {
		c.add(join(at, "kind"), fmt.Sprintf("there is no kind of output %q", o.Kind), remedyFor(o.Kind, outlets()))
	}
	if s.Output == nil || s.Output.Properties[o.From] == nil {
		c.add(join(at, "from"), fmt.Sprintf("the agent's output has no field %q", o.From), "name one of its properties")
	}
	c.text(join(at, "to"), o.To, sc)
	switch {
	case o.Kind == "file" && !strings.Contains(o.To, "${"):
		c.local(join(at, "to"), o.To)
	case o.To == "":
		c.add(join(at, "to"), "it is missing", "say where it goes")
	}
	if o.After == "" {
		return
	}
	gate := slices.IndexFunc(beside, func(s Step) bool { return s.ID == o.After })
	switch {
	case gate < 0 || beside[gate].Kind != KindApproval && beside[gate].Kind != KindCheck:
		c.add(join(at, "after"), fmt.Sprintf("%q is no approval or check beside it", o.After), "name one that comes after the agent")
	case !slices.Contains((&checker{w: c.w}).needs(beside, gate, ""), s.ID):
		c.add(join(at, "after"), fmt.Sprintf("%s does not need %s, so it decides on nothing", o.After, s.ID), fmt.Sprintf("add %s to the needs of %s", s.ID, o.After))
	}
}

func (c *checker) command(s Step, at string, sc *scope) {
	if strings.TrimSpace(s.Run) == "" {
		c.add(join(at, "run"), "it is empty", "give it a command line")
	}
	if ref := regexp.MustCompile(`\$\{\s*[A-Za-z_][A-Za-z0-9_-]*\.[^}]*\}`).FindString(s.Run); ref != "" {
		c.add(join(at, "run"), ref+" would put a value into a command line", fmt.Sprintf("set it as a variable, env: {VALUE: %q}, and write \"$VALUE\"", ref))
	}
	for _, name := range sortedKeys(s.Env) {
		if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name) {
			c.add(join(at, "env."+name), fmt.Sprintf("%q is no name of a variable", name), "use letters, digits and _")
		}
	}
	c.values(join(at, "env"), s.Env, sc)
	if s.Dir != "" {
		c.local(join(at, "dir"), s.Dir)
	}
	for _, host := range s.Network {
		if !regexp.MustCompile(`^(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?$`).MatchString(host) {
			c.add(join(at, "network"), fmt.Sprintf("%q is no host", host), "use names such as example.com or *.example.com")
		}
	}
	if time.Duration(s.Timeout) > mostTimeout {
		c.add(join(at, "timeout"), "it is longer than a day", "use at most 24h")
	}
	if _, err := regexp.Compile(s.Failures); err != nil {
		c.add(join(at, "failures"), "it is no regular expression: "+err.Error(), "see pkg.go.dev/regexp/syntax")
	}
	if s.Gate != "" && s.Gate != "regression_only" {
		c.add(join(at, "gate"), fmt.Sprintf("there is no gate %q", s.Gate), "use regression_only, or leave it out: then the exit code must be 0")
	}
	if s.Gate != "" && len(s.Env) > 0 {
		if refs := refsOf(s.Env); slices.ContainsFunc(refs, func(r string) bool { return !strings.HasPrefix(r, "inputs.") }) {
			c.add(join(at, "gate"), "what the command did before the run can't be told, as its variables come from steps", "use inputs only, or leave the gate out")
		}
	}
	c.output(join(at, "output"), s.Output)
}

func (c *checker) approval(s Step, at string, sc *scope) {
	c.text(join(at, "prompt"), s.Prompt, sc)
	c.text(join(at, "show"), s.Show, sc)
	seen := map[string]bool{}
	for _, choice := range s.Choices {
		if strings.TrimSpace(choice) == "" || strings.Contains(choice, "\n") || seen[choice] {
			c.add(join(at, "choices"), fmt.Sprintf("%q is empty, has lines, or stands there twice", choice), "give each a word of its own")
		}
		seen[choice] = true
	}
	if len(s.Choices) == 1 {
		c.add(join(at, "choices"), "there is only one", "add another one, or leave them out for approve and reject")
	}
}

// group checks a loop or an each.
func (c *checker) group(s Step, at string, sc *scope) {
	inner := &scope{up: sc, types: map[string]*Schema{}}
	if s.Kind == KindEach {
		inner.types["item"] = c.items(s, at, sc)
		if s.Concurrency < 0 || s.Concurrency > mostConcurrency {
			c.add(join(at, "concurrency"), fmt.Sprintf("it is %d", s.Concurrency), fmt.Sprintf("use 1 to %d", mostConcurrency))
		}
	} else {
		inner.types["round"], inner.types["history"] = &Schema{Type: "integer"}, &Schema{Type: "string"}
		inner.types["before"] = c.w.outputs(s.Steps)
	}
	if len(s.Steps) == 0 {
		c.add(join(at, "steps"), "there are none", "add a step with id: and kind:")
		return
	}
	c.level(s.Steps, join(at, "steps"), inner)
	if s.Kind == KindEach {
		return
	}
	own := &scope{up: sc, types: c.w.outputs(s.Steps).Properties, steps: s.Steps}
	if len(s.Until) == 0 {
		c.add(join(at, "until"), "it is empty", "say which value of its steps ends it, such as tests.passed: true")
	}
	c.conditions(join(at, "until"), s.Until, own)
	for ref := range s.Until {
		if id, _, _ := strings.Cut(ref, "."); stepOf(s.Steps, id).ID == "" {
			c.add(join(at, "until"), ref+" is no value of its own steps, so no round changes it", remedyFor(id, ids(s.Steps)))
		}
	}
	if s.Max < 1 || s.Max > mostRounds {
		c.add(join(at, "max"), fmt.Sprintf("it is %d", s.Max), fmt.Sprintf("use 1 to %d", mostRounds))
	}
	if s.Patience > 0 && !slices.ContainsFunc(s.Steps, func(s Step) bool { return s.Kind == KindCheck }) {
		c.add(join(at, "patience"), "it has no check that could get better", "add a step of kind check, or remove patience")
	}
}

// items is the type of what an each goes over.
func (c *checker) items(s Step, at string, sc *scope) *Schema {
	if literal, ok := s.Over.([]any); ok {
		c.values(join(at, "over"), map[string]any{"": literal}, sc)
		if len(literal) == 0 {
			return &Schema{}
		}
		return typeOf(literal[0])
	}
	ref := whole(s.Over)
	if ref == "" {
		c.add(join(at, "over"), "it is no list", "give it a list, or the reference of one such as ${plan.files}")
		return &Schema{}
	}
	t := c.ref(join(at, "over"), ref, sc)
	switch {
	case t == nil:
	case t.Type != "array" && known(t):
		c.add(join(at, "over"), fmt.Sprintf("%s is of type %s", ref, t.Type), "refer to an array")
	case t.Items != nil:
		return t.Items
	}
	return &Schema{}
}

// typeOf is the type of a value in a file.
func typeOf(v any) *Schema {
	switch v := v.(type) {
	case string:
		return &Schema{Type: "string"}
	case bool:
		return &Schema{Type: "boolean"}
	case float64, int:
		return &Schema{Type: "number"}
	case map[string]any:
		s := &Schema{Type: "object", Properties: map[string]*Schema{}}
		for name, one := range v {
			s.Properties[name] = typeOf(one)
		}
		return s
	}
	return &Schema{}
}

func (c *checker) use(s Step, at string, sc *scope) {
	w := c.w.Included[s.Use]
	if w == nil {
		c.add(join(at, "use"), fmt.Sprintf("there is no workflow %q", s.Use), "see 'inspan workflow list'")
		return
	}
	c.values(join(at, "with"), s.With, sc)
	for _, name := range sortedKeys(s.With) {
		want := w.Inputs[name]
		if want == nil {
			c.add(join(at, "with."+name), fmt.Sprintf("%s has no such input", s.Use), remedyFor(name, sortedKeys(w.Inputs)))
			continue
		}
		if ref := whole(s.With[name]); ref != "" {
			if have := sc.find(ref); have != nil && !fits(have, want) {
				c.add(join(at, "with."+name), fmt.Sprintf("%s is of type %s, and the input of type %s", ref, have.Type, want.Type), "refer to another value")
			}
		} else if raw, err := json.Marshal(s.With[name]); err == nil && len(refsOf(s.With[name])) == 0 && valid(want, raw) != nil {
			c.add(join(at, "with."+name), "it does not fit the input: "+valid(want, raw).Error(), "give it type "+want.Type)
		}
	}
	for _, name := range sortedKeys(w.Inputs) {
		if _, given := s.With[name]; !given && w.Inputs[name].Default == nil {
			c.add(join(at, "with"), fmt.Sprintf("%s needs the input %s", s.Use, name), "add it")
		}
	}
}

func (c *checker) wait(s Step, at string) {
	ways := 0
	for _, one := range []bool{s.For > 0, s.File != "", s.Webhook != ""} {
		if one {
			ways++
		}
	}
	if ways != 1 {
		c.add(at, fmt.Sprintf("it waits for %d things", ways), "give it one of for, file and webhook")
	}
	if s.File != "" {
		c.local(join(at, "file"), s.File)
	}
	if time.Duration(s.For) > mostWait {
		c.add(join(at, "for"), "it is longer than 30 days", "use a schedule")
	}
	if s.Webhook != "" && !isName(s.Webhook) {
		c.add(join(at, "webhook"), fmt.Sprintf("%q is no name", s.Webhook), "use lower case letters, digits and dashes")
	}
	c.output(join(at, "output"), s.Output)
}

// text checks the references in a text.
func (c *checker) text(path, text string, sc *scope) {
	parts, err := pieces(text)
	if err != nil {
		c.add(path, err.Error(), "close it with }, or write $${ for ${ itself")
	}
	for _, p := range parts {
		if p.ref != "" {
			c.ref(path, p.ref, sc)
		}
	}
}

// values checks the references in values.
func (c *checker) values(path string, v map[string]any, sc *scope) {
	for _, name := range sortedKeys(v) {
		at := strings.TrimSuffix(join(path, name), ".")
		for _, ref := range refsOf(v[name]) {
			c.ref(at, ref, sc)
		}
		if s, ok := v[name].(string); ok && whole(s) == "" && strings.Contains(s, "${") && !strings.Contains(s, "$${") {
			c.add(at, "it has a reference within a text", "make the reference all of it; only prompts mix words and values")
		}
	}
}

// ref checks a reference, and returns the type of what it names; nil: it names nothing.
func (c *checker) ref(path, ref string, sc *scope) *Schema {
	if !isPath(ref) {
		c.add(path, fmt.Sprintf("%q is no reference", ref), "write STEP.FIELD or inputs.NAME; for ${ itself write $${")
		return nil
	}
	t, what, remedy := sc.look(ref)
	if what != "" {
		c.add(path, what, remedy)
	}
	return t
}

// find is the type of what a reference names; nil: it names nothing.
func (s *scope) find(ref string) *Schema {
	t, _, _ := s.look(ref)
	return t
}

// look looks a reference up.
func (s *scope) look(ref string) (t *Schema, what, remedy string) {
	name, path, deep := strings.Cut(ref, ".")
	for at := s; at != nil; at = at.up {
		if t := at.types[name]; t != nil {
			if !deep {
				return t, "", ""
			}
			return part(t, ref, path)
		}
	}
	for at := s; at != nil; at = at.up {
		if stepOf(at.steps, name).ID != "" {
			return nil, fmt.Sprintf("%s is a value of a step that need not have ended", ref), fmt.Sprintf("add %s to needs", name)
		}
	}
	var all []string
	for at := s; at != nil; at = at.up {
		all = append(all, slices.Sorted(maps.Keys(at.types))...)
	}
	return nil, fmt.Sprintf("%s is no value: there is no %q here", ref, name), remedyFor(name, all)
}

// part is the type of a part of a value. Of a value whose type is open any part can be.
func part(t *Schema, ref, path string) (of *Schema, what, remedy string) {
	for name := range strings.SplitSeq(path, ".") {
		switch {
		case !known(t):
			return &Schema{}, "", ""
		case t.Type == "array" && strings.Trim(name, "0123456789") == "":
			t = cmp.Or(t.Items, &Schema{})
		case t.Type == "object" && t.Properties[name] != nil:
			t = t.Properties[name]
		case t.Type == "object" && len(t.Properties) == 0:
			return &Schema{}, "", ""
		case t.Type == "object":
			return nil, fmt.Sprintf("%s: there is no field %q", ref, name), remedyFor(name, sortedKeys(t.Properties))
		default:
			return nil, fmt.Sprintf("%s: a value of type %s has no fields", ref, t.Type), "refer to the value itself"
		}
	}
	return t, "", ""
}

// known reports whether a type says what a value is.
func known(t *Schema) bool { return t != nil && t.Type != "" }

// fits reports whether a value of one type can stand for another.
func fits(have, want *Schema) bool {
	return !known(have) || !known(want) || have.Type == want.Type || have.Type == "integer" && want.Type == "number"
}

// conditions checks what a step or a loop waits for.
func (c *checker) conditions(path string, when map[string]any, sc *scope) {
	for _, ref := range sortedKeys(when) {
		at := join(path, ref)
		t := c.ref(at, ref, sc)
		ops, some := when[ref].(map[string]any)
		if !some {
			ops = map[string]any{"is": when[ref]}
		}
		if len(ops) == 0 {
			c.add(at, "it compares with nothing", "give it a value, or one of "+strings.Join(operators(), ", "))
		}
		for _, op := range sortedKeys(ops) {
			c.comparison(at, op, ops[op], t)
		}
	}
}

func (c *checker) comparison(at, op string, with any, t *Schema) {
	list, isList := with.([]any)
	_, number := asNumber(with)
	switch {
	case !slices.Contains(operators(), op):
		c.add(at, fmt.Sprintf("there is no comparison %q", op), remedyFor(op, operators()))
		return
	case op == "in" && !isList:
		c.add(at, "in compares with a list", "write in: [one, two]")
		return
	case (op == "less" || op == "more") && !number:
		c.add(at, op+" compares with a number", "give it one")
		return
	case (op == "less" || op == "more") && known(t) && t.Type != "number" && t.Type != "integer":
		c.add(at, fmt.Sprintf("%s can't compare a value of type %s", op, t.Type), "use is, not or in")
		return
	}
	if op != "in" {
		list = []any{with}
	}
	for _, one := range list {
		c.comparable(at, one, t)
	}
}

// comparable checks whether a value could ever be what it is compared with.
func (c *checker) comparable(at string, with any, t *Schema) {
	if !known(t) || with == nil {
		return
	}
	if have := typeOf(with); known(have) && !fits(have, t) && !(have.Type == "number" && t.Type == "integer") {
		c.add(at, fmt.Sprintf("it is of type %s, and %s never is", t.Type, shown(with)), "compare it with a value of its type")
	} else if len(t.Enum) > 0 && !slices.ContainsFunc(t.Enum, func(e any) bool { return same(e, with) }) {
		c.add(at, fmt.Sprintf("it is never %s", shown(with)), "it is one of "+asText(t.Enum))
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
