package skill

// Front matter is the settings at the top of a markdown file: YAML between two lines of ---, followed by the
// text, which may have placeholders for arguments. People write such files by hand and for several programs, so
// reading is lenient: invalid YAML is read line by line. Reading an untrusted file is safe: nothing in it runs,
// and time and memory are bounded.

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/inspan/inspan/internal/base/text"
)

// Bounds of front matter, so that reading it is always quick.
const (
	MaxMatter = 32 << 10 // bytes
	maxKeys   = 200      // of one mapping
	maxKey    = 100      // bytes of a key that is read without YAML
	maxNested = 20       // nested lists and mappings
)

// SplitMatter separates front matter from the text below it. Without front matter, matter is nil and text is
// all of data. A byte order mark is removed, line ends become \n, and the last line may be incomplete. Matter
// may share memory with data. It returns an error if the front matter has no end.
func SplitMatter(data []byte) (matter []byte, text string, err error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if bytes.Contains(data, []byte("\r\n")) {
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	}
	first, rest, more := bytes.Cut(data, []byte("\n"))
	if !more || !fence(first) {
		return nil, string(data), nil
	}
	for at := 0; at < len(rest); {
		line, _, _ := bytes.Cut(rest[at:], []byte("\n"))
		if fence(line) {
			return rest[:at], string(rest[min(at+len(line)+1, len(rest)):]), nil
		}
		at += len(line) + 1
	}
	return nil, "", errors.New("its front matter has no end")
}

// fence reports whether a line separates front matter from text.
func fence(line []byte) bool { return string(bytes.TrimRight(line, " \t")) == "---" }

// DecodeMatter reads front matter into v, a pointer to a struct with yaml tags or a *map[string]any. In the map
// each scalar is its text as written, whatever type YAML would give it; null is nil, lists are []any, and
// mappings are map[string]any.
//
// An error describes the fault of the front matter. Even then v holds the part that could be read line by line, so
// a lenient caller can ignore the error. If there is more than [MaxMatter], v is unchanged.
func DecodeMatter(matter []byte, v any) error {
	if len(matter) > MaxMatter {
		return fmt.Errorf("the front matter has %d bytes, more than %d", len(matter), MaxMatter)
	}
	if m, ok := v.(*map[string]any); ok {
		if simple, err := plain(matter); simple != nil {
			*m = simple
			return err
		}
	}
	matter = bytes.ToValidUTF8(matter, []byte("\ufffd"))
	node, err := parseMatter(matter)
	if err != nil {
		var again error
		if node, again = parseMatter(quoted(matter)); again != nil {
			node = looseLines(matter)
		}
	}
	if node == nil {
		return err
	}
	return errors.Join(err, fill(node, v))
}

// fill decodes a mapping into v.
func fill(node *yaml.Node, v any) error {
	if m, ok := v.(*map[string]any); ok {
		*m = value(node).(map[string]any)
		return nil
	}
	return node.Decode(v)
}

// value returns a node as texts.
func value(node *yaml.Node) any {
	switch node.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			out[node.Content[i].Value] = value(node.Content[i+1])
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, n := range node.Content {
			out = append(out, value(n))
		}
		return out
	}
	if node.ShortTag() == "!!null" {
		return nil
	}
	return node.Value
}

// parseMatter returns the mapping in front matter; nil if it is empty.
func parseMatter(matter []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(matter, &doc); err != nil {
		return nil, fmt.Errorf("the front matter is not YAML: %w", err)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	node := doc.Content[0]
	if node.Kind != yaml.MappingNode {
		return nil, errors.New("the front matter is not a list of keys and values")
	}
	return node, check(node, 0)
}

// check returns an error for input that would take long to read, or grow.
func check(node *yaml.Node, depth int) error {
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		return errors.New("the front matter has anchors, which are not supported")
	case depth > maxNested:
		return fmt.Errorf("the front matter is nested more than %d deep", maxNested)
	case node.Kind == yaml.MappingNode && len(node.Content) > 2*maxKeys:
		return fmt.Errorf("the front matter has more than %d keys", maxKeys)
	}
	seen := map[string]bool{}
	for i, n := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			if n.Kind != yaml.ScalarNode || seen[n.Value] {
				return fmt.Errorf("the front matter has the key %.40q twice, or a key that is not text", n.Value)
			}
			seen[n.Value] = true
		}
		if err := check(n, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// plain reads front matter that only has lines with a key and a plain or quoted value, which most has, many
// times faster than a YAML parser. It returns nil for anything else. The error means that the front matter is
// not valid YAML because a value contains a colon.
func plain(matter []byte) (out map[string]any, err error) {
	whole := string(matter)
	if text.Holds(whole, text.Unclear&^text.Newline) || strings.ContainsRune(whole, utf8.RuneError) {
		return nil, nil
	}
	out = map[string]any{}
	for line := range strings.SplitSeq(whole, "\n") {
		line = strings.TrimRight(line, " ")
		if line == "" || line[0] == '#' {
			continue
		}
		key, rest, found := strings.Cut(line, ":")
		said := strings.TrimLeft(rest, " ")
		value, ok := scalar(said)
		if !ok && colon(said) {
			value, ok, err = said, true, fmt.Errorf("the front matter is not YAML: the value of %s has a colon, so it needs quotes", key)
		}
		_, twice := out[key]
		if !found || !ok || twice || !isKey(key) || rest != "" && rest[0] != ' ' || len(out) == maxKeys {
			return nil, nil
		}
		out[key] = value
	}
	return out, err
}

// colon reports whether a value would be valid without its colon.
func colon(text string) bool {
	return isLetter(text[0]) && !strings.Contains(text, " #") && (strings.Contains(text, ": ") || strings.HasSuffix(text, ":"))
}

// scalar reads the value of a line if its meaning is certain.
func scalar(text string) (value any, ok bool) {
	if text == "" {
		return nil, true
	}
	switch c := text[0]; {
	case c == '"' || c == '\'':
		inner := text[1:]
		end := strings.IndexByte(inner, c)
		return inner[:max(end, 0)], end >= 0 && end == len(inner)-1 && !strings.Contains(inner, `\`)
	case text == "null" || text == "Null" || text == "NULL":
		return nil, true
	case !isLetter(c) && (c < '0' || c > '9'):
		return nil, false
	}
	return text, !strings.Contains(text, ": ") && !strings.Contains(text, " #") && !strings.HasSuffix(text, ":")
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// isKey reports whether text has the form of a key.
func isKey(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isLetter(c) && (i == 0 || (c < '0' || c > '9') && c != '-' && c != '_') {
			return false
		}
	}
	return text != "" && len(text) <= maxKey
}

// quoted puts quotes around values that are not valid YAML by themselves, such as "[file] [depth]" or a
// sentence with a colon.
func quoted(matter []byte) []byte {
	if bytes.Count(matter, []byte("\n")) > 2*maxKeys {
		return matter
	}
	var out []byte
	for line := range bytes.Lines(matter) {
		key, rest, found := strings.Cut(strings.TrimRight(string(line), " \n"), ": ")
		rest = strings.TrimSpace(rest)
		if found && isKey(key) && broken(rest) {
			line = fmt.Appendf(nil, "%s: %s\n", key, strconv.Quote(rest))
		}
		out = append(out, line...)
	}
	return out
}

// broken reports whether the value of a line is not valid YAML by itself.
func broken(text string) bool {
	switch _, ok := scalar(text); {
	case ok:
		return false
	case colon(text):
		return true
	}
	return yaml.Unmarshal([]byte("k: "+text), &yaml.Node{}) != nil
}

// looseLines reads text that is not YAML at all: each line is a key and its text, and an indented line or one
// without a key continues the previous text.
func looseLines(matter []byte) *yaml.Node {
	texts := map[string][]string{}
	last := ""
	for line := range bytes.Lines(matter) {
		key, text, found := strings.Cut(string(line), ":")
		if found = found && isKey(key); found {
			last = key
			texts[key] = nil
		} else {
			text = strings.TrimPrefix(strings.TrimSpace(string(line)), "- ")
		}
		if text = strings.TrimSpace(text); text != "" && last != "" && (!found || text != "|" && text != ">") {
			texts[last] = append(texts[last], text)
		}
	}
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		text := strings.Trim(strings.Join(texts[key], " "), `"'`)
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &yaml.Node{Kind: yaml.ScalarNode, Value: text})
	}
	return node
}
