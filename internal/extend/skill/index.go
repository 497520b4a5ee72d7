package skill

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
)

// leastShown is the length in bytes below which the rest of a description is useless.
const leastShown = 20

// Index lists skills for the prompt, one a line: "- name: description". It leaves out manual skills, and
// built-in ones, which a person types or another skill names. It has at most maxBytes, unless that is zero:
// then the longest descriptions are cut first, and after that skills at the end are left out; a last line says
// so. It is empty if there are no skills, or no room for any.
func Index(skills []Skill, maxBytes int) string {
	skills = slices.DeleteFunc(slices.Clone(skills), func(s Skill) bool { return s.Manual || s.Source == builtIn })
	whole := entries(skills, -1)
	if maxBytes <= 0 || len(whole) <= maxBytes {
		return whole
	}
	names := 0
	var lengths []int
	for _, s := range skills {
		names += len("- : \n") + len(s.Name)
		lengths = append(lengths, len(s.Description))
	}
	most := fair(lengths, maxBytes-names-len(cutNote(len(skills))))
	if most >= leastShown {
		n := 0
		for _, l := range lengths {
			if l > most {
				n++
			}
		}
		return entries(skills, most) + cutNote(n)
	}
	for n := len(skills); n > 0; n-- {
		if text := entries(skills[:n], 0) + leftNote(len(skills)-n); len(text) <= maxBytes {
			return text
		}
	}
	return ""
}

func cutNote(n int) string {
	return fmt.Sprintf("(%s cut short here.)\n", text.Counted(n, "description is", "descriptions are"))
}

func leftNote(n int) string {
	if n == 0 {
		return "(All descriptions are left out here.)\n"
	}
	return fmt.Sprintf("(All descriptions are left out here, and %s.)\n", text.Counted(n, "skill", "skills"))
}

// entries returns the lines, with at most so many bytes of each description; with all if most is negative.
func entries(skills []Skill, most int) string {
	var b strings.Builder
	for _, s := range skills {
		b.WriteString("- " + s.Name)
		d := s.Description
		if most >= 0 {
			d = text.Cut(d, most)
		}
		if d != "" {
			b.WriteString(": " + d)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// fair divides what there is among needs, so that those who need less leave the rest to the others.
func fair(needs []int, there int) int {
	needs = slices.Sorted(slices.Values(needs))
	for i, need := range needs {
		share := there / (len(needs) - i)
		if need > share {
			return share
		}
		there -= need
	}
	return there
}

// Size is the length of a text.
type Size struct {
	Bytes  int
	Tokens int // by our estimate, see [llm.Request.Tokens]
}

func sizeOf(text string) Size {
	return Size{Bytes: len(text), Tokens: llm.Message{Parts: llm.Say(text)}.Tokens()}
}

// Levels is the cost of a skill.
type Levels struct {
	Index Size // its line in the prompt, in every request; zero if it is manual
	Text  Size // its instructions, when it is invoked
	Files Size // its other text files, if all were read
	Count int  // number of those files
}

// Cost measures the levels of a skill.
func (l *Library) Cost(name string) (Levels, error) {
	text, s, err := l.Invoke(name, "")
	if err != nil {
		return Levels{}, err
	}
	levels := Levels{Index: sizeOf(Index([]Skill{s}, 0)), Text: sizeOf(text)}
	f, err := l.get(name)
	if err != nil {
		return Levels{}, err
	}
	files, end, err := f.open()
	if err != nil {
		return Levels{}, err
	}
	defer end()
	for _, other := range f.others(files) {
		data, _, err := readAll(files, other.path, MaxSize)
		if err != nil || !IsText(data) {
			continue // File does not show it either
		}
		size := sizeOf(string(data))
		levels.Files.Bytes += size.Bytes
		levels.Files.Tokens += size.Tokens
		levels.Count++
	}
	return levels, nil
}

// IsText reports whether data can be shown to a model as text.
func IsText(data []byte) bool { return utf8.Valid(data) && !slices.Contains(data, 0) }
