package workflow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

// Limits of a file, so that reading one stays quick, whatever it contains.
const (
	mostBytes  = 256 << 10
	mostNodes  = 50_000
	mostNested = 50 // mappings and lists within each other
	mostDigits = 15 // of a whole number: more are not kept by all that reads it
)

// document returns the mapping in a file; nil means the file has none.
func (r *reader) document(data []byte) *yaml.Node {
	at := &yaml.Node{Line: 1}
	if len(data) > mostBytes {
		r.add(at, "", fmt.Sprintf("the file has %d bytes", len(data)),
			fmt.Sprintf("keep it under %d; move steps into a workflow that it uses", mostBytes))
		return nil
	}
	if r.hidden(data); len(r.problems) > 0 {
		return nil
	}
	doc, more, err := decoded(data)
	switch {
	case errors.Is(err, io.EOF):
		r.add(at, "", "the file is empty", "begin with name: and steps:")
	case err != nil:
		r.add(&yaml.Node{Line: lineOf(data, complaint(err))}, "", "it is not YAML: "+complaint(err),
			"indent with spaces, and quote texts that hold :, #, ? or ${")
	case more != nil:
		r.add(more, "", "the file holds a second document", "remove the line --- and what follows it")
	case doc.Content[0].Kind != yaml.MappingNode:
		r.add(doc.Content[0], "", "it is "+shapeOf(doc.Content[0]), "begin with name: and steps:")
	default:
		if r.plainly(doc.Content[0], "", 0); !r.lost {
			return doc.Content[0]
		}
	}
	return nil
}

// hidden reports the first invisible character, so that a file means what it shows.
func (r *reader) hidden(data []byte) {
	s := strings.TrimPrefix(string(data), "\ufeff")
	if !utf8.ValidString(s) {
		r.add(&yaml.Node{Line: 1}, "", "the file is not UTF-8", "save it as UTF-8")
		return
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if at := strings.IndexFunc(s, text.Unread.Has); at >= 0 {
		c, _ := utf8.DecodeRuneInString(s[at:])
		r.add(&yaml.Node{Line: 1 + strings.Count(s[:at], "\n")}, "", "it holds the hidden character "+text.Spelled(c), "remove it")
	}
}

// decoded returns the document of a file, and the next one; nil means there is none.
func decoded(data []byte) (doc, more *yaml.Node, err error) {
	doc, more = new(yaml.Node), new(yaml.Node)
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(doc); err != nil {
		return nil, nil, err
	}
	if err = dec.Decode(more); errors.Is(err, io.EOF) {
		return doc, nil, nil
	}
	return doc, more, err
}

// complaint returns the YAML reader's message without its line, which is where the reader was by then.
func complaint(err error) string {
	if err == nil {
		return ""
	}
	return regexp.MustCompile(`^yaml: (line \d+: )?`).ReplaceAllString(err.Error(), "")
}

// lineOf returns the first line where reading fails with the same message as for the whole file.
func lineOf(data []byte, what string) int {
	lines := bytes.SplitAfter(data, []byte("\n"))
	return 1 + sort.Search(len(lines)-1, func(n int) bool {
		_, _, err := decoded(bytes.Join(lines[:n+1], nil))
		return complaint(err) == what
	})
}

// plainly reports everything that YAML readers understand differently, or that this one does not support.
func (r *reader) plainly(n *yaml.Node, path string, deep int) {
	switch r.nodes++; {
	case r.problems.full() || r.nodes > mostNodes:
		r.lost = true
		return
	case r.nodes == mostNodes:
		r.lost = true
		r.add(n, path, "the file holds too many values", "make it smaller")
	case deep > mostNested:
		r.lost = true
		r.add(n, path, "there is too much within each other", fmt.Sprintf("keep to %d levels", mostNested))
		return
	case n.Kind == yaml.AliasNode:
		r.lost = true
		r.add(n, path, fmt.Sprintf("*%s is an alias", n.Value), "write out what it stands for")
	case n.Style&yaml.TaggedStyle != 0:
		r.add(n, path, fmt.Sprintf("it has the tag %s", n.Tag), "remove the tag, and quote the value if it is a text")
	case n.Kind == yaml.ScalarNode:
		r.single(n, path)
	}
	for i, c := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			r.plainly(c, join(path, cmp.Or(idOf(c), fmt.Sprint(i+1))), deep+1)
		case i%2 == 1:
			r.plainly(c, join(path, n.Content[i-1].Value), deep+1)
		}
	}
	if n.Kind == yaml.MappingNode {
		r.keys(n, path)
	}
}

// keys reports keys that are not names.
func (r *reader) keys(n *yaml.Node, path string) {
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode || key.Value == "":
			r.lost = true
			r.add(key, path, "a key is "+shapeOf(key), "give each value a name")
		case key.ShortTag() == "!!merge":
			r.lost = true
			r.add(key, join(path, key.Value), "it merges mappings", "write out what they hold")
		case seen[key.Value]:
			r.add(key, join(path, key.Value), "it stands here twice", "remove one of them")
		}
		seen[key.Value] = true
	}
}

// single reports values that are not what they seem.
func (r *reader) single(n *yaml.Node, path string) {
	switch n.ShortTag() {
	case "!!int", "!!float":
		switch {
		case !json.Valid([]byte(n.Value)) || strings.ContainsAny(n.Value, "eE"):
			r.add(n, path, n.Value+" is not a plain decimal number", "write it with digits alone, or quote it if it is a text")
		case !strings.Contains(n.Value, ".") && len(n.Value) > mostDigits:
			r.add(n, path, n.Value+" has more digits than a number keeps", "quote it, so that it is a text")
		}
	default:
		at := strings.IndexFunc(n.Value, text.Control.Has)
		if at >= 0 {
			c, _ := utf8.DecodeRuneInString(n.Value[at:])
			r.add(n, path, "it holds the control character "+text.Spelled(c), "remove it")
		}
	}
}

// idOf returns the id in a mapping; empty means there is none.
func idOf(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode {
		return ""
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "id" {
			return n.Content[i+1].Value
		}
	}
	return ""
}

func isScalar(n *yaml.Node, tags ...string) bool {
	return n.Kind == yaml.ScalarNode && slices.Contains(tags, n.ShortTag())
}

// isString reports whether a node is a text. Dates are, too, as JSON has none.
func isString(n *yaml.Node) bool { return isScalar(n, "!!str", "!!timestamp") }

// jsonOf converts a node to JSON.
func jsonOf(n *yaml.Node) any {
	switch {
	case n.Kind == yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			out[n.Content[i].Value] = jsonOf(n.Content[i+1])
		}
		return out
	case n.Kind == yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			out = append(out, jsonOf(c))
		}
		return out
	case isString(n):
		return n.Value
	}
	var v any
	_ = n.Decode(&v) // it is null, a truth value, or a number that plainly let pass
	return v
}

// shapeOf describes a node's form.
func shapeOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		if len(n.Content) == 0 {
			return "an empty list"
		}
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!bool":
		return n.Value
	case "!!int", "!!float":
		return "the number " + n.Value
	}
	return fmt.Sprintf("the text %q", words.OneLine(n.Value, 40))
}
