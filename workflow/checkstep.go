package workflow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/tool"
)

// step checks one step.
func (c *checker) step(s Step, at string, sc *scope, beside []Step) {
	c.conditions(join(at, "when"), s.When, sc)
	switch {
	case s.Join != "" && !slices.Contains(joins(), s.Join):
		c.add(join(at, "when"), fmt.Sprintf("there is no %q", s.Join), "use conditions, or one of "+list(joins()))
	case s.Join != "" && s.When != nil:
		c.add(join(at, "when"), "it has conditions and a word", "keep one of them")
	case s.Join != "" && len(needed(beside, slices.IndexFunc(beside, func(o Step) bool { return o.ID == s.ID }))) == 0:
		c.add(join(at, "when"), "the step needs no other that could end", "name some in needs")
	}
	if !slices.Contains([]string{"", "skip", "continue", "stop"}, s.OnFailure) {
		c.add(join(at, "on_failure"), fmt.Sprintf("there is no %q", s.OnFailure), remedyFor(s.OnFailure, []string{"skip", "continue", "stop"}))
	}
	c.amount(join(at, "retry.times"), float64(s.Retry.Times), mostRetries)
	c.span(join(at, "retry.wait"), s.Retry.Wait, mostTimeout)
	for _, name := range sortedKeys(s.Artefacts) {
		c.named(join(at, "artefacts."+name), name)
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
		c.add(join(at, "kind"), fmt.Sprintf("there is no kind %q", s.Kind), remedyFor(string(s.Kind), strings.Split(list(kinds()), ", ")))
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
		c.add(path, fmt.Sprintf("%q is not a path below the workspace", file), "use one such as docs/plan.md")
	}
}

func (c *checker) evidence(s Step, at string, sc *scope, beside []Step) {
	for _, id := range s.Evidence {
		switch of := stepOf(beside, id); {
		case of.Kind != KindCheck:
			c.add(join(at, "evidence"), fmt.Sprintf("%q is not a check beside it", id), "name steps of kind check")
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
	if s.Mode.Check() != nil {
		var modes []string
		for _, mode := range tool.Modes() {
			modes = append(modes, string(mode))
		}
		c.add(join(at, "mode"), fmt.Sprintf("there is no mode %q", s.Mode), remedyFor(string(s.Mode), modes))
	}
	if s.Tools != nil && len(s.Tools) == 0 {
		c.add(join(at, "tools"), "it is an empty list", "name tools, or leave it out for those of the agent's kind")
	}
	c.amount(join(at, "budget.cost"), s.Budget.Cost, 0)
	c.amount(join(at, "budget.turns"), float64(s.Budget.Turns), 0)
	c.span(join(at, "budget.time"), s.Budget.Time, 0)
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
	case of == s.ID:
		c.add(join(at, "context"), "it is the fork of itself", "name an agent before it")
	case stepOf(beside, of).Kind != KindAgent:
		c.add(join(at, "context"), fmt.Sprintf("%q is not an agent beside it", of), "name a step of kind agent")
	case sc.types[of] == nil:
		c.add(join(at, "context"), "it does not need "+of, fmt.Sprintf("add %s to its needs", of))
	}
}

// outlets are the kinds of safe outputs.
func outlets() []string { return []string{"file", "comment", "message", "pull_request", "status"} }

func (c *checker) safeOutput(at string, s Step, o SafeOutput, sc *scope, beside []Step) {
	c.named(at, at[strings.LastIndexByte(at, '.')+1:])
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
		c.open(at, o)
		return
	}
	gate := slices.IndexFunc(beside, func(s Step) bool { return s.ID == o.After })
	switch {
	case gate < 0 || beside[gate].Kind != KindApproval && beside[gate].Kind != KindCheck:
		c.add(join(at, "after"), fmt.Sprintf("%q is not an approval or check beside it", o.After), "name one that comes after the agent")
	case beside[gate].Kind != KindApproval && o.open():
		c.open(at, o)
	case !slices.Contains((&checker{w: c.w}).needs(beside, gate, ""), s.ID):
		c.add(join(at, "after"), fmt.Sprintf("%s does not need %s, so it decides on nothing", o.After, s.ID),
			fmt.Sprintf("add %s to the needs of %s", s.ID, o.After))
	}
}

// open reports whether a value decides which file is written.
func (o SafeOutput) open() bool { return o.Kind == "file" && strings.Contains(o.To, "${") }

// open refuses an output if no person sees its destination before it is written.
func (c *checker) open(at string, o SafeOutput) {
	if o.open() {
		c.add(join(at, "to"), "a value says which file is written, and no person sees it", "name the file, or an approval in after")
	}
}

func (c *checker) command(s Step, at string, sc *scope) {
	if strings.TrimSpace(s.Run) == "" {
		c.add(join(at, "run"), "it is empty", "give it a command line")
	}
	if ref := c.inserted(s, sc); ref != "" {
		c.add(join(at, "run"), ref+" would put a value into a command line",
			fmt.Sprintf("set it as a variable, env: {VALUE: %q}, and write \"$VALUE\"", ref))
	}
	for _, name := range sortedKeys(s.Env) {
		if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name) {
			c.add(join(at, "env."+name), fmt.Sprintf("%q is not the name of a variable", name), "use letters, digits and _")
		}
		steers := shell.Steers(name) || slices.Contains([]string{"PATH", "HOME", "LD_LIBRARY_PATH", "NODE_OPTIONS"}, name)
		if steers && len(refsOf(s.Env[name])) > 0 {
			c.add(join(at, "env."+name), "a value would decide which programs run", "use a variable of your own")
		}
	}
	c.values(join(at, "env"), s.Env, sc)
	if s.Dir != "" {
		c.local(join(at, "dir"), s.Dir)
	}
	for _, host := range s.Network {
		if !regexp.MustCompile(`^(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?$`).MatchString(host) {
			c.add(join(at, "network"), fmt.Sprintf("%q is not a host", host), "use names such as example.com or *.example.com")
		}
	}
	c.span(join(at, "timeout"), s.Timeout, mostTimeout)
	if _, err := regexp.Compile(s.Failures); err != nil {
		c.add(join(at, "failures"), "it is not a regular expression: "+err.Error(), "see pkg.go.dev/regexp/syntax")
	}
	if s.Gate != "" && s.Gate != "regression_only" {
		c.add(join(at, "gate"), fmt.Sprintf("there is no gate %q", s.Gate),
			"use regression_only, or leave it out: then the exit code must be 0")
	}
	if s.Gate != "" && len(s.Env) > 0 {
		if refs := refsOf(s.Env); slices.ContainsFunc(refs, func(r string) bool { return !strings.HasPrefix(r, "inputs.") }) {
			c.add(join(at, "gate"), "what the command did before the run can't be told, as its variables come from steps",
				"use inputs only, or leave the gate out")
		}
	}
	c.output(join(at, "output"), s.Output)
	if s.Output != nil && s.Output.Type != "object" && len(s.Artefacts) > 0 {
		c.add(join(at, "artefacts"), "the output is not an object, which they would be a part of", "give output type: object, or leave it out")
	}
}

// inserted returns a reference in the command line of a step; empty means there is none. A name without a field is
// a shell variable, unless only references have such a name.
func (c *checker) inserted(s Step, sc *scope) string {
	for _, m := range regexp.MustCompile(`\$\{\s*([A-Za-z_][A-Za-z0-9_-]*)(\.[^}]*)?\}`).FindAllStringSubmatch(s.Run, -1) {
		_, variable := s.Env[m[1]]
		if m[2] != "" || !variable && slices.Contains(reserved(), m[1]) && sc.find(m[1]) != nil {
			return m[0]
		}
	}
	return ""
}

func (c *checker) approval(s Step, at string, sc *scope) {
	c.text(join(at, "prompt"), s.Prompt, sc)
	c.text(join(at, "show"), s.Show, sc)
	seen := map[string]bool{}
	for _, choice := range s.Choices {
		_, err := strconv.Atoi(choice)
		if err == nil || strings.TrimSpace(choice) == "" || strings.ContainsAny(choice, "\n:") || seen[strings.ToLower(choice)] {
			c.add(join(at, "choices"), fmt.Sprintf("%q is empty, a number, has lines or a colon, or stands there twice", choice),
				"give each a word of its own")
		}
		seen[strings.ToLower(choice)] = true
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
		c.amount(join(at, "concurrency"), float64(s.Concurrency), mostConcurrency)
	} else {
		inner.types["round"], inner.types["history"] = &Schema{Type: "integer"}, &Schema{Type: "string"}
		inner.types["before"] = object(c.types.outputs(s.Steps))
	}
	if len(s.Steps) == 0 {
		c.add(join(at, "steps"), "there are none", "add a step with id: and kind:")
		return
	}
	c.level(s.Steps, join(at, "steps"), inner)
	if s.Kind == KindEach {
		return
	}
	own := &scope{up: sc, types: c.types.outputs(s.Steps), steps: s.Steps}
	if len(s.Until) == 0 {
		c.add(join(at, "until"), "it is empty", "say which value of its steps ends it, such as tests.passed: true")
	}
	c.conditions(join(at, "until"), s.Until, own)
	for ref := range s.Until {
		if id, _, _ := strings.Cut(ref, "."); stepOf(s.Steps, id).ID == "" && own.find(ref) != nil {
			c.add(join(at, "until"), ref+" is not a value of its own steps, so no round changes it", remedyFor(id, ids(s.Steps)))
		}
	}
	c.count(join(at, "max"), s.Max, sc)
	if s.Patience != nil {
		c.count(join(at, "patience"), s.Patience, sc)
	}
	if s.Patience != nil && !slices.ContainsFunc(s.Steps, func(s Step) bool { return s.Kind == KindCheck }) {
		c.add(join(at, "patience"), "it has no check that could get better", "add a step of kind check, or remove patience")
	}
}

// count checks a number of rounds.
func (c *checker) count(path string, v any, sc *scope) {
	if ref := whole(v); ref != "" {
		if t := c.ref(path, ref, sc); known(t) && t.Type != "integer" {
			c.add(path, fmt.Sprintf("%s is of type %s", ref, t.Type), "refer to an integer")
		}
		return
	}
	if n, ok := asNumber(v); !ok || n != float64(int(n)) || n < 1 || n > mostRounds {
		c.add(path, fmt.Sprintf("it is %s", shown(v)), fmt.Sprintf("use 1 to %d", mostRounds))
	}
}

// items returns the type of an each's items.
func (c *checker) items(s Step, at string, sc *scope) *Schema {
	if literal, ok := s.Over.([]any); ok {
		c.values(join(at, "over"), map[string]any{"": literal}, sc)
		return cmp.Or(typeOf(literal).Items, &Schema{})
	}
	ref := whole(s.Over)
	if ref == "" {
		c.add(join(at, "over"), "it is not a list", "give it a list, or the reference of one such as ${plan.files}")
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

// typeOf returns the type of a value in a file. The items of a list have a type only if they all have the same
// one.
func typeOf(v any) *Schema {
	switch v := v.(type) {
	case string:
		return &Schema{Type: "string"}
	case bool:
		return &Schema{Type: "boolean"}
	case float64, int:
		return &Schema{Type: "number"}
	case []any:
		s := &Schema{Type: "array"}
		for i, one := range v {
			if t := typeOf(one); i == 0 {
				s.Items = t
			} else if s.Items.Type != t.Type {
				s.Items = &Schema{}
			} else {
				maps.Copy(s.Items.Properties, t.Properties)
			}
		}
		return s
	case map[string]any:
		s := object(nil)
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
				c.add(join(at, "with."+name), fmt.Sprintf("%s is of type %s, and the input of type %s", ref, have.Type, want.Type),
					"refer to another value")
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
	for _, one := range []bool{s.For != 0 || c.w.lines[join(at, "for")] > 0, s.File != "", s.Webhook != ""} {
		if one {
			ways++
		}
	}
	if ways != 1 {
		c.add(at, fmt.Sprintf("it waits for %d things", ways), "give it one of for, file and webhook")
	}
	c.span(join(at, "for"), s.For, mostWait)
	if s.File != "" {
		c.local(join(at, "file"), s.File)
	}
	if s.Webhook != "" {
		c.plain(join(at, "webhook"), s.Webhook)
	}
	c.output(join(at, "output"), s.Output)
	if s.Output != nil && s.Webhook == "" {
		c.add(join(at, "output"), "only a webhook brings a value of its own", "remove it")
	}
}
