package tool

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// refuseRings returns an error if checking one value could apply the same schema to the same value twice, and
// so never end, or could apply more than mostApplied schemas: schemas come from untrusted servers. References
// it can't follow, such as anchors and other documents, are errors too, and so are those below an $id of their
// own, which would change their base.
func refuseRings(text json.RawMessage) error {
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		return err
	}
	r := ringFinder{root: root, applied: map[string]int{}}
	return r.visit("", root, false)
}

// mostApplied bounds how many schemas one value is checked against. Two references each, forty levels deep,
// would take years.
const mostApplied = 10_000

type ringFinder struct {
	root any
	// applied is how many schemas apply to a value together with the one at a pointer, as far as known; walking
	// marks those being counted.
	applied map[string]int
}

const walking = -1

// visit walks everything below a place in the schema. Own says that it is below an $id other than the root's.
func (r *ringFinder) visit(at string, v any, own bool) error {
	switch v := v.(type) {
	case map[string]any:
		own = own || hasID(at, v)
		if _, err := r.enter(at, v, own); err != nil {
			return err
		}
		for name, sub := range v {
			if err := r.visit(at+"/"+escapePointer(name), sub, own); err != nil {
				return err
			}
		}
	case []any:
		for i, sub := range v {
			if err := r.visit(at+"/"+strconv.Itoa(i), sub, own); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasID reports whether an $id in a schema changes the base of its references.
func hasID(at string, m map[string]any) bool {
	_, ok := m["$id"].(string)
	return ok && at != ""
}

// enter follows the keywords that apply another schema to the same value, and counts the applied schemas.
func (r *ringFinder) enter(at string, m map[string]any, own bool) (n int, err error) {
	if n := r.applied[at]; n == walking {
		return 0, fmt.Errorf("schema refers to itself at %q", "#"+at)
	} else if n > 0 {
		return n, nil
	}
	r.applied[at] = walking
	if _, ok := m["$dynamicRef"].(string); ok {
		return 0, fmt.Errorf("schema has a $dynamicRef at %q", "#"+at)
	}
	n = 1
	if ref, ok := m["$ref"].(string); ok {
		if own {
			return 0, fmt.Errorf("schema has a reference below an $id at %q", "#"+at)
		}
		more, err := r.follow(ref)
		if err != nil {
			return 0, err
		}
		n += more
	}
	more, err := r.enterSubs(at, m, own)
	if n += more; err == nil && n > mostApplied {
		err = fmt.Errorf("schema applies more than %d others at %q", mostApplied, "#"+at)
	}
	r.applied[at] = n
	return n, err
}

func (r *ringFinder) enterSubs(at string, m map[string]any, own bool) (n int, err error) {
	enter := func(path string, v any) {
		if err == nil {
			var more int
			more, err = r.enterSub(at+path, v, own)
			n += more
		}
	}
	for _, name := range []string{"not", "if", "then", "else"} {
		enter("/"+name, m[name])
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := m[name].([]any)
		for i, sub := range list {
			enter("/"+name+"/"+strconv.Itoa(i), sub)
		}
	}
	for _, name := range []string{"dependentSchemas", "dependencies"} {
		deps, _ := m[name].(map[string]any)
		for key, sub := range deps {
			enter("/"+name+"/"+escapePointer(key), sub)
		}
	}
	return n, err
}

func (r *ringFinder) enterSub(at string, v any, own bool) (n int, err error) {
	if m, ok := v.(map[string]any); ok {
		return r.enter(at, m, own || hasID(at, m))
	}
	return 0, nil
}

// follow enters the target of a reference of the form #/a/b.
func (r *ringFinder) follow(ref string) (n int, err error) {
	pointer, ok := strings.CutPrefix(ref, "#")
	pointer, err = url.PathUnescape(pointer)
	if !ok || err != nil || pointer != "" && pointer[0] != '/' {
		return 0, fmt.Errorf("schema has the reference %q; only #/… is supported", ref)
	}
	v, at, own := r.root, "", false
	for _, token := range strings.Split(pointer, "/")[1:] {
		name := strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch x := v.(type) {
		case map[string]any:
			own = own || hasID(at, x)
			if v, ok = x[name]; !ok {
				return 0, fmt.Errorf("schema has the reference %q to nothing", ref)
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(x) {
				return 0, fmt.Errorf("schema has the reference %q to nothing", ref)
			}
			v = x[i]
		default:
			return 0, fmt.Errorf("schema has the reference %q to nothing", ref)
		}
		at += "/" + escapePointer(name)
	}
	return r.enterSub(at, v, own)
}

func escapePointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
