package skill

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
)

// Limits of the standard, in characters and lines.
const (
	mostName          = 64
	mostCompatibility = 500
	mostLines         = 500
)

// parse reads the front matter of a SKILL.md and the text below it, which may be the beginning only.
func parse(name string, matter []byte, str string, whole bool) Skill {
	var head map[string]any
	failed := DecodeMatter(matter, &head)
	s := Skill{
		Name: name, License: line(head["license"]), Compatibility: line(head["compatibility"]), Hint: line(head["argument-hint"]),
	}
	s.Manual, _ = Bool(head["disable-model-invocation"])
	if yes, ok := Bool(head["user-invocable"]); ok {
		s.Hidden = !yes
	}
	when := strings.TrimSpace(line(head["description"]) + " " + line(head["when_to_use"]))
	s.Description = text.Clip(described(when, str), mostDescription)
	s.Tools = lines(head["allowed-tools"])
	if meta, ok := head["metadata"].(map[string]any); ok && len(meta) > 0 {
		s.Metadata = map[string]string{}
		for key, v := range meta {
			s.Metadata[line(key)] = line(v)
		}
	}
	if matter == nil {
		s.Problems = append(s.Problems, "it has no front matter")
	}
	if failed != nil {
		s.Problems = append(s.Problems, text.Line(failed.Error()))
	}
	s.Problems = append(s.Problems, problems(name, head)...)
	if n := strings.Count(str, "\n"); whole && n > mostLines {
		s.Problems = append(s.Problems, tooLong(n))
	}
	return s
}

func tooLong(lines int) string {
	return fmt.Sprintf("its text has %d lines, more than the recommended %d; move details to files of their own",
		lines, mostLines)
}

// problems returns the violations of the standard in front matter. The keys of Claude Code that inspan uses are
// accepted, although the standard does not list them.
func problems(folder string, head map[string]any) (out []string) {
	say := func(format string, args ...any) { out = append(out, text.Line(fmt.Sprintf(format, args...))) }
	var others []string
	for key := range head {
		switch key {
		case "name", "description", "license", "compatibility", "metadata", "allowed-tools":
		case "argument-hint", "disable-model-invocation", "user-invocable", "when_to_use": // from Claude Code, and widely used
		default:
			others = append(others, key)
		}
	}
	slices.Sort(others)
	for _, key := range others {
		say("inspan does not know the key %s, so it has no effect", text.Clip(key, mostName))
	}
	for _, key := range []string{"name", "description", "license", "compatibility"} {
		if text, ok := head[key].(string); ok && strings.ContainsFunc(strings.TrimRight(text, "\n"), unseen) {
			say("%s has invisible characters", key)
		} else if v, is := head[key]; is && v != nil && !ok {
			say("%s is not a text", key)
		}
	}
	for _, p := range named(Line(head["name"]), folder) {
		say("%s", p)
	}
	switch n := length(head["description"]); {
	case n == 0:
		say("it has no description")
	case n > mostDescription:
		say("its description has %d characters, more than %d", n, mostDescription)
	}
	if v, is := head["compatibility"]; is && (length(v) == 0 || length(v) > mostCompatibility) {
		say("its compatibility has %d characters, not 1 to %d", length(v), mostCompatibility)
	}
	if v, is := head["metadata"]; is && !texts(v) {
		say("its metadata is not a list of keys and texts")
	}
	if v, is := head["allowed-tools"]; is && !toolNames(v) {
		say("its allowed-tools are not a text or a list of texts")
	}
	return out
}

func unseen(r rune) bool { return r != '\n' && r != '\t' && text.Hidden.Has(r) || r == utf8.RuneError }

// length returns how many characters a value has.
func length(v any) int {
	text, _ := v.(string)
	return utf8.RuneCountInString(strings.TrimSpace(text))
}

// named returns the violations of the standard in a name.
func named(name, folder string) (out []string) {
	if name == "" {
		return []string{"it has no name"}
	}
	if n := utf8.RuneCountInString(name); n > mostName {
		out = append(out, fmt.Sprintf("its name has %d characters, more than %d", n, mostName))
	}
	name = text.Clip(name, mostName)
	if strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-", r) }) {
		out = append(out, fmt.Sprintf("its name %q has characters other than a-z, 0-9 and -", name))
	}
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") || strings.Contains(name, "--") {
		out = append(out, fmt.Sprintf("its name %q begins or ends with -, or has two in a row", name))
	}
	if name != text.Clip(folder, mostName) {
		out = append(out, fmt.Sprintf("its name is %q, but its folder is %q", name, folder))
	}
	return out
}

func texts(v any) bool {
	m, ok := v.(map[string]any)
	for _, v := range m {
		if _, text := v.(string); !text {
			return false
		}
	}
	return ok
}

func toolNames(v any) bool {
	list, ok := v.([]any)
	for _, v := range list {
		if _, text := v.(string); !text {
			return false
		}
	}
	_, text := v.(string)
	return ok || text
}
