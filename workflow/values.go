package workflow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// text checks the references in a text.
func (c *checker) text(path, text string, sc *scope) {
	parts, err := pieces(text)
	if err != nil {
		c.add(path, err.Error(), "write ${STEP.FIELD}, or $${ for ${ itself")
	}
	for _, p := range parts {
		if p.ref != "" && !c.problems.full() {
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
		if mixes(v[name]) {
			c.add(at, "it has a reference within a text", "make the reference all of it; only prompt, show and to mix words and values")
		}
	}
}

// mixes reports whether a text in a value has words next to a reference.
func mixes(v any) bool {
	switch v := v.(type) {
	case string:
		parts, err := pieces(v)
		return whole(v) == "" && (err != nil || slices.ContainsFunc(parts, func(p piece) bool { return p.ref != "" }))
	case []any:
		return slices.ContainsFunc(v, mixes)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), mixes)
	}
	return false
}

// ref checks a reference, and returns the type of its value; nil means it is invalid.
func (c *checker) ref(path, ref string, sc *scope) *Schema {
	switch bare := whole(ref); {
	case bare != "":
		c.add(path, ref+" has ${ and }, and the name of a value stands here without", "write "+bare)
		return nil
	case !isPath(ref):
		c.add(path, fmt.Sprintf("%q is not a reference", ref), "write STEP.FIELD or inputs.NAME; for ${ itself write $${")
		return nil
	}
	t, what, remedy := sc.look(ref)
	if what != "" {
		c.add(path, what, remedy)
	}
	return t
}

// find returns the type of a reference's value; nil means it is invalid.
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
			what, remedy := at.early(ref, name)
			return nil, what, remedy
		}
	}
	var all []string
	for at := s; at != nil; at = at.up {
		all = append(all, slices.Sorted(maps.Keys(at.types))...)
		for _, group := range at.steps {
			if stepOf(group.Steps, name).ID != "" && group.Kind == KindLoop {
				return nil, fmt.Sprintf("%s is a value within %s", ref, group.ID), fmt.Sprintf("write %s.last.%s", group.ID, ref)
			}
		}
	}
	return nil, fmt.Sprintf("%s is not a value: there is no %q here", ref, name), remedyFor(name, all)
}

// early gives the reason why a step of the list has no value yet when the referring step begins.
func (s *scope) early(ref, name string) (what, remedy string) {
	of := stepOf(s.steps, name).ID
	switch {
	case of == s.self:
		return fmt.Sprintf("%s is a value of the step itself, which has none before it ends", ref), "refer to a step before it"
	case slices.Contains((&checker{}).needs(s.steps, indexOf(s.steps)[of], ""), s.self):
		return fmt.Sprintf("%s is a value of a later step", ref), "refer to a step before it"
	}
	return fmt.Sprintf("%s is a value of a step that need not have ended", ref), fmt.Sprintf("add %s to the needs of %s", name, s.self)
}

// part returns the type of a part of a value. A value of open type can have any part.
func part(t *Schema, ref, path string) (of *Schema, what, remedy string) {
	for name := range strings.SplitSeq(path, ".") {
		switch {
		case !known(t):
			return &Schema{}, "", ""
		case t.Type == "array" && strings.Trim(name, "0123456789") == "":
			t = cmp.Or(t.Items, &Schema{})
		case t.Type == "object" && t.Properties[name] != nil:
			t = t.Properties[name]
		case t.Type == "object" && len(t.Properties) == 0 && !closed(t):
			return &Schema{}, "", ""
		case t.Type == "object" && t.AdditionalProperties != nil && !closed(t):
			t = t.AdditionalProperties
		case t.Type == "object":
			return nil, fmt.Sprintf("%s: there is no field %q", ref, name), remedyFor(name, sortedKeys(t.Properties))
		default:
			return nil, fmt.Sprintf("%s: a value of type %s has no fields", ref, t.Type), "refer to the value itself"
		}
	}
	return t, "", ""
}

// closed reports whether objects of a type have no other properties than those that it names.
func closed(t *Schema) bool {
	return t.AdditionalProperties != nil && t.AdditionalProperties.Not != nil
}

// known reports whether a type restricts its values.
func known(t *Schema) bool { return t != nil && t.Type != "" }

// fits reports whether a value of one type can be used as another.
func fits(have, want *Schema) bool {
	return !known(have) || !known(want) || have.Type == want.Type || have.Type == "integer" && want.Type == "number"
}

// could reports whether a value can have a type.
func could(v any, t *Schema) bool {
	have := typeOf(v)
	return fits(have, t) || have.Type == "number" && t.Type == "integer"
}

// conditions checks the conditions of a step or a loop.
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
	case op == "in" && (!isList || len(list) == 0):
		c.add(at, "in compares with a list of values", "write in: [one, two]")
		return
	case mixes(with) || len(refsOf(with)) > 0:
		c.add(at, "it compares with a reference", "compare with a value")
		return
	case (op == "less" || op == "more") && !number:
		c.add(at, op+" compares with a number", "give it one")
		return
	case (op == "less" || op == "more") && known(t) && t.Type != "number" && t.Type != "integer":
		c.add(at, fmt.Sprintf("%s can't compare a value of type %s", op, t.Type), "use is, not or in")
		return
	}
	switch op {
	case "is", "not":
		c.comparable(at, with, t)
	case "in":
		for _, one := range list {
			c.comparable(at, one, t)
		}
	}
}

// comparable checks whether a value could ever equal the one it is compared with.
func (c *checker) comparable(at string, with any, t *Schema) {
	if !known(t) || with == nil {
		return
	}
	if !could(with, t) {
		c.add(at, fmt.Sprintf("it is of type %s, and %s never is", t.Type, shown(with)), "compare it with a value of its type")
	} else if len(t.Enum) > 0 && !slices.ContainsFunc(t.Enum, func(e any) bool { return same(e, with) }) {
		c.add(at, fmt.Sprintf("it is never %s", shown(with)), "it is one of "+asText(t.Enum))
	}
}
