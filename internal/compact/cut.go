package compact

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inspan/inspan/llm"
)

// gap is the line that stands where text was cut out.
const gap = `\n\[(\d{1,12}) bytes are left out here; the history tool finds them\]\n`

// cut returns a message of at most limit tokens, as far as its texts can be
// cut. Images stay.
func (s Source) cut(m llm.Message, limit int) llm.Message {
	m.Parts = slices.Clone(m.Parts)
	for range m.Parts {
		longest, at := "", 0
		for i, part := range m.Parts {
			if t, ok := part.(llm.Text); ok && len(t.Text) > len(longest) {
				longest, at = t.Text, i
			}
		}
		over := s.Count(m) - limit
		if over <= 0 || longest == "" {
			break
		}
		m.Parts[at] = llm.Text{Text: s.clip(longest, s.tokens(longest)-over)}
	}
	return m
}

// clip returns the head and the tail of a text with a line between them that
// says how much is missing, together at most limit tokens if they can be. A
// gap that falls into the missing part is counted with it.
func (s Source) clip(text string, limit int) string {
	size := s.tokens(text)
	if size <= limit {
		return text
	}
	for n := len(text) * max(limit, 0) / size; ; n = n * 7 / 8 {
		head, tail := ends(text, n)
		middle := text[len(head) : len(text)-len(tail)]
		short := head + fmt.Sprintf("\n[%d bytes are left out here; the history tool finds them]\n", missing(middle)) + tail
		switch {
		case len(short) < len(text) && s.tokens(short) <= limit:
			return short
		case n >= 16:
		case len(short) < len(text):
			return short
		default:
			return text
		}
	}
}

// missing counts the bytes of a text, with those that were cut out of it.
func missing(text string) int {
	if !strings.Contains(text, " bytes are left out here;") {
		return len(text)
	}
	found := regexp.MustCompile(gap)
	n := len(found.ReplaceAllString(text, ""))
	for _, m := range found.FindAllStringSubmatch(text, -1) {
		if more, err := strconv.Atoi(m[1]); err == nil {
			n += more
		}
	}
	return n
}

// ends returns the first and the last n/2 bytes of a text, in whole characters.
func ends(text string, n int) (head, tail string) {
	a, b := n/2, len(text)-n/2
	for a > 0 && !utf8.RuneStart(text[a]) {
		a--
	}
	for b < len(text) && !utf8.RuneStart(text[b]) {
		b++
	}
	return text[:a], text[b:]
}

// line makes one line of a text, of at most limit bytes, with an ellipsis for
// what is left out.
func line(text string, limit int) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	if len(text) <= limit {
		return text
	}
	end := max(limit-len("…"), 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// distinct returns the texts, each once, where it comes last.
func distinct(texts []string) []string {
	seen := map[string]bool{"": true}
	var out []string
	for _, t := range slices.Backward(texts) {
		if !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	slices.Reverse(out)
	return out
}

// newest returns as many of the last texts as have at most limit by a measure.
func newest(texts []string, limit int, size func(string) int) []string {
	from := len(texts)
	for from > 0 {
		limit -= size(texts[from-1])
		if limit < 0 {
			break
		}
		from--
	}
	return texts[from:]
}
