package workflow

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// field describes a field of a mapping.
type field struct {
	name  string
	shape shape
	of    []field // of a mapping, or of each mapping of a list
	kinds []Kind  // of steps that have it; nil means all
	need  bool
}

// shape is the form of a field's value.
type shape string

const (
	isText     shape = "a text"
	isWord     shape = "a text on one line"
	isNumber   shape = "a number"
	isInteger  shape = "a whole number"
	isCount    shape = "a whole number, or the reference of one"
	isBool     shape = "true or false"
	isTime     shape = "a time such as 90s or 2h"
	isTexts    shape = "a list of texts"
	isMap      shape = "a mapping"
	isWhen     shape = "a mapping, or one of all_done, any_failed, any_ok"
	isVars     shape = "a mapping of variables"
	isTextMap  shape = "a mapping of texts"
	isFields   shape = "a mapping with known fields"
	isNamed    shape = "a mapping by name"
	isSteps    shape = "a list of steps"
	isSchema   shape = "a JSON schema"
	isSchemas  shape = "a mapping of JSON schemas"
	isAnything shape = "a value"
)

// misfit returns the node that does not have the shape, n or an item of it; nil means there is none.
func (s shape) misfit(n *yaml.Node) *yaml.Node {
	kind := n.Kind
	switch s {
	case isTexts:
		kind = yaml.SequenceNode
	case isWhen:
		if n.Kind == yaml.ScalarNode && slices.Contains(joins(), Join(n.Value)) {
			return nil
		}
		kind = yaml.MappingNode
	case isMap, isVars, isTextMap, isSchema, isSchemas:
		kind = yaml.MappingNode
	}
	if n.Kind != kind || !s.fits(n) {
		return n
	}
	if s == isTexts || s == isTextMap {
		for _, c := range n.Content {
			if !isString(c) {
				return c
			}
		}
	}
	return nil
}

// fits reports whether a single value has the shape.
func (s shape) fits(n *yaml.Node) bool {
	switch s {
	case isText:
		return isString(n)
	case isWord:
		return isString(n) && n.Value != "" && !strings.ContainsAny(n.Value, "\n\r")
	case isBool:
		return isScalar(n, "!!bool")
	case isInteger:
		return isScalar(n, "!!int")
	case isCount:
		return isScalar(n, "!!int") || isString(n) && whole(n.Value) != ""
	case isNumber:
		return isScalar(n, "!!int", "!!float")
	case isTime:
		d, err := time.ParseDuration(n.Value)
		return n.Kind == yaml.ScalarNode && err == nil && d >= 0
	}
	return true
}

// remedy says how to correct a node that does not have the shape, or contains one.
func (s shape) remedy(n, bad *yaml.Node) string {
	if slices.Contains([]shape{isText, isWord, isTexts, isTextMap}, s) && isScalar(bad, "!!bool", "!!int", "!!float") {
		return "quote it, so that it is a text"
	}
	if s == isTextMap && bad != n {
		return "give each name a text"
	}
	return "give it " + string(s)
}

// meant returns the likely meaning of a node with the wrong shape, so that the rest is checked as its author
// intends; nil means unknown.
func (s shape) meant(n *yaml.Node) any {
	switch {
	case s == isTexts && isString(n):
		return []any{n.Value}
	case s == isSchema:
		return map[string]any{}
	}
	return nil
}

// fixed reports whether the value of a field is known before anything runs.
func (s shape) fixed() bool { return s == isWord || s == isTexts || s == isTextMap }

func names(fields []field) (out []string) {
	for _, f := range fields {
		out = append(out, f.name)
	}
	return out
}

func topFields() []field {
	return []field{
		{name: "name", shape: isWord, need: true},
		{name: "description", shape: isText},
		{name: "inputs", shape: isSchemas},
		{name: "returns", shape: isNamed, of: []field{{name: "from", shape: isText, need: true}, {name: "description", shape: isText}}},
		{name: "limits", shape: isFields, of: []field{
			{name: "cost", shape: isNumber},
			{name: "tokens", shape: isInteger},
			{name: "time", shape: isTime},
			{name: "turns", shape: isInteger},
			{name: "concurrency", shape: isInteger},
		}},
		{name: "steps", shape: isSteps, need: true},
		{name: "finally", shape: isSteps},
	}
}

func stepFields() []field {
	agent, commands, asks := []Kind{KindAgent}, []Kind{KindRun, KindCheck}, []Kind{KindApproval}
	loop, each := []Kind{KindLoop}, []Kind{KindEach}
	return []field{
		{name: "id", shape: isWord, need: true},
		{name: "kind", shape: isWord, need: true},
		{name: "title", shape: isWord},
		{name: "needs", shape: isTexts},
		{name: "when", shape: isWhen},
		{name: "on_failure", shape: isWord},
		{name: "retry", shape: isFields, kinds: []Kind{KindAgent, KindRun, KindCheck, KindTool}, of: []field{
			{name: "times", shape: isInteger, need: true}, {name: "wait", shape: isTime},
		}},
		{name: "output", shape: isSchema, kinds: []Kind{KindAgent, KindRun, KindTool, KindWait}},
		{name: "gate", shape: isWord, kinds: []Kind{KindCheck}},
		{name: "evidence", shape: isTexts, kinds: []Kind{KindAgent, KindApproval}},
		{name: "prompt", shape: isText, kinds: []Kind{KindAgent, KindApproval}, need: true},
		{name: "agent", shape: isWord, kinds: agent},
		{name: "context", shape: isWord, kinds: agent},
		{name: "model", shape: isWord, kinds: agent},
		{name: "mode", shape: isWord, kinds: agent},
		{name: "tools", shape: isTexts, kinds: agent},
		{name: "budget", shape: isFields, kinds: agent, of: []field{
			{name: "cost", shape: isNumber}, {name: "turns", shape: isInteger}, {name: "time", shape: isTime},
		}},
		{name: "safe_outputs", shape: isNamed, kinds: agent, of: []field{
			{name: "kind", shape: isWord, need: true},
			{name: "from", shape: isWord, need: true},
			{name: "to", shape: isText},
			{name: "after", shape: isWord},
		}},
		{name: "run", shape: isText, kinds: commands, need: true},
		{name: "env", shape: isVars, kinds: commands},
		{name: "dir", shape: isWord, kinds: commands},
		{name: "network", shape: isTexts, kinds: commands},
		{name: "timeout", shape: isTime, kinds: commands},
		{name: "again", shape: isBool, kinds: []Kind{KindRun}},
		{name: "failures", shape: isText, kinds: []Kind{KindCheck}},
		{name: "artefacts", shape: isTextMap, kinds: []Kind{KindAgent, KindRun, KindCheck}},
		{name: "choices", shape: isTexts, kinds: asks},
		{name: "show", shape: isText, kinds: asks},
		{name: "steps", shape: isSteps, kinds: []Kind{KindLoop, KindEach}, need: true},
		{name: "until", shape: isMap, kinds: loop, need: true},
		{name: "max", shape: isCount, kinds: loop, need: true},
		{name: "patience", shape: isCount, kinds: loop},
		{name: "over", shape: isAnything, kinds: each, need: true},
		{name: "concurrency", shape: isInteger, kinds: each},
		{name: "use", shape: isWord, kinds: []Kind{KindWorkflow}, need: true},
		{name: "with", shape: isMap, kinds: []Kind{KindWorkflow, KindTool}},
		{name: "tool", shape: isWord, kinds: []Kind{KindTool}, need: true},
		{name: "for", shape: isTime, kinds: []Kind{KindWait}},
		{name: "file", shape: isWord, kinds: []Kind{KindWait}},
		{name: "webhook", shape: isWord, kinds: []Kind{KindWait}},
	}
}
