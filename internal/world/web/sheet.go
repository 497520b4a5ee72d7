package web

import (
	"maps"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

const maxBucket = 16 // selectors tried for one class, id or tag

// A sheet determines which elements the style sheets in a page hide. It supports selectors of one element
// (tag.class#id, even after html or body). Others, which depend on surrounding elements, are ignored, as scripts
// usually switch them.
type sheet map[string][]selector

// A selector names elements by all of its parts.
type selector struct {
	tag, id string
	classes []string
}

// readSheet reads a style sheet.
func readSheet(css string) sheet {
	rules := map[string]style{}
	collect(uncommented(css), rules, 0)
	out := sheet{}
	for _, text := range slices.Sorted(maps.Keys(rules)) {
		if !rules[text].hide() {
			continue
		}
		sel, key := parseSelector(text)
		if key != "" && len(out[key]) < maxBucket {
			out[key] = append(out[key], sel)
		}
	}
	return out
}

// collect merges the declarations of each selector.
func collect(css string, rules map[string]style, depth int) {
	for css != "" {
		prelude, rest, found := strings.Cut(css, "{")
		if !found {
			return
		}
		if i := strings.LastIndexByte(prelude, ';'); i >= 0 {
			prelude = prelude[i+1:] // after @import and the like
		}
		prelude = strings.ToLower(strings.TrimSpace(prelude))
		body, after := blockOf(rest)
		css = after
		if at, ok := strings.CutPrefix(prelude, "@"); ok {
			if depth < 4 && shown(at) {
				collect(body, rules, depth+1)
			}
			continue
		}
		d := declarations(body)
		for sel := range strings.SplitSeq(prelude, ",") {
			sel = strings.TrimSpace(sel)
			if rules[sel] == nil {
				rules[sel] = style{}
			}
			maps.Copy(rules[sel], d)
		}
	}
}

// shown reports whether the rules in an at-rule apply to a screen.
func shown(at string) bool {
	name, what, _ := strings.Cut(at, " ")
	switch name {
	case "layer", "supports":
		return true
	case "media":
		return !strings.Contains(what, "print") && !strings.Contains(what, "max-width")
	}
	return false
}

// blockOf cuts a block at the brace that ends it.
func blockOf(css string) (body, after string) {
	depth := 0
	for i := range len(css) {
		switch css[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return css[:i], css[i+1:]
			}
			depth--
		}
	}
	return css, ""
}

// parseSelector returns a selector and the part to find it by; none if it is unsupported.
func parseSelector(text string) (sel selector, key string) {
	for _, all := range []string{":root ", "html ", "body ", "html>", "body>"} {
		text = strings.TrimSpace(strings.TrimPrefix(text, all))
	}
	if text == "" || strings.ContainsAny(text, " >+~:[*\t\n") {
		return selector{}, ""
	}
	end := strings.IndexAny(text, ".#")
	if end < 0 {
		return selector{tag: text}, text
	}
	sel.tag = text[:end]
	for text = text[end:]; text != ""; {
		next := strings.IndexAny(text[1:], ".#") + 1
		if next == 0 {
			next = len(text)
		}
		part := unescaped(text[:next])
		if part[0] == '#' {
			sel.id = part[1:]
		} else {
			sel.classes = append(sel.classes, part[1:])
		}
		key, text = part, text[next:]
	}
	return sel, key
}

// hides reports whether the sheet hides an element.
func (s sheet) hides(n *node) bool {
	if len(s) == 0 {
		return false
	}
	var classes []string
	if class := n.attr["class"]; class != "" {
		classes = strings.Fields(strings.ToLower(text.Head(class, maxStyle)))
	}
	id := strings.ToLower(n.attr["id"])
	match := func(sel selector) bool {
		return (sel.tag == "" || sel.tag == n.name) && (sel.id == "" || sel.id == id) &&
			!slices.ContainsFunc(sel.classes, func(c string) bool { return !slices.Contains(classes, c) })
	}
	if slices.ContainsFunc(s[n.name], match) || id != "" && slices.ContainsFunc(s["#"+id], match) {
		return true
	}
	for _, c := range classes[:min(len(classes), 32)] {
		if slices.ContainsFunc(s["."+c], match) {
			return true
		}
	}
	return false
}
