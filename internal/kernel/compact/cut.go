package compact

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
)

// gapPattern matches the line that replaces text that was cut out.
const gapPattern = `\n\[(\d{1,12}) bytes are left out here(?:; the history tool finds them|: history at \d{1,20})?\]\n`

// gapNote returns the line that replaces so many bytes.
func (s Source) gapNote(bytes int) string {
	where := ""
	switch {
	case s.History && s.event > 0:
		where = fmt.Sprintf(": history at %d", s.event)
	case s.History:
		where = "; the history tool finds them"
	}
	return fmt.Sprintf("\n[%d bytes are left out here%s]\n", bytes, where)
}

// imageNote replaces an image.
const imageNote = "[an image was here]"

// cutMessage cuts a message to at most limit tokens, if that is possible by cutting its texts, including those of
// results, and by leaving out its first images. Texts get at least half of the limit, so images don't displace words.
func (s Source) cutMessage(m llm.Message, limit int) llm.Message {
	m = s.withoutImages(m, func(m llm.Message) bool {
		shown := s.Count(onlyImages(m))
		return shown+min(s.Count(m)-shown, limit/2) <= limit
	})
	m = s.cutTexts(m, limit)
	m = s.withoutImages(m, func(m llm.Message) bool { return s.Count(m) <= limit })
	said := !slices.ContainsFunc(m.Parts, func(part llm.Part) bool { _, is := part.(llm.Text); return !is })
	if said && s.Count(m) > limit { // there are so many texts that the notes alone are too long
		m.Parts = llm.Say(s.clip(m.Parts.Text(), limit))
	}
	return m
}

// cutTexts cuts the longest texts of a message.
func (s Source) cutTexts(m llm.Message, limit int) llm.Message {
	var sizes []int
	all := 0
	mapParts(m.Parts, func(part llm.Part) llm.Part {
		if t, ok := part.(llm.Text); ok {
			sizes = append(sizes, s.tokens(t.Text))
			all += sizes[len(sizes)-1]
		}
		return part
	})
	over := s.Count(m) - limit
	if over <= 0 {
		return m
	}
	most := fairShare(sizes, max(all-over, 0))
	m.Parts = mapParts(m.Parts, func(part llm.Part) llm.Part {
		if t, ok := part.(llm.Text); ok {
			part = llm.Text{Text: s.clip(t.Text, most)}
		}
		return part
	})
	return m
}

// withoutImages replaces images by notes, the first ones first, until enough returns true.
func (s Source) withoutImages(m llm.Message, enough func(llm.Message) bool) llm.Message {
	for m.Parts.Images() > 0 && !enough(m) {
		left := 1
		m.Parts = mapParts(m.Parts, func(part llm.Part) llm.Part {
			if _, ok := part.(llm.Image); ok && left > 0 {
				left--
				return llm.Text{Text: imageNote}
			}
			return part
		})
	}
	return m
}

// onlyImages returns a message with only the images of m.
func onlyImages(m llm.Message) llm.Message {
	out := llm.Message{Role: m.Role}
	mapParts(m.Parts, func(part llm.Part) llm.Part {
		if _, ok := part.(llm.Image); ok {
			out.Parts = append(out.Parts, part)
		}
		return part
	})
	return out
}

// mapParts returns the parts with f applied to each, including the parts of results.
func mapParts(parts llm.Parts, f func(llm.Part) llm.Part) llm.Parts {
	out := make(llm.Parts, len(parts))
	for i, part := range parts {
		if r, ok := part.(llm.Result); ok {
			r.Parts = mapParts(r.Parts, f)
			out[i] = r
			continue
		}
		out[i] = f(part)
	}
	return out
}

// clip cuts a text in the middle to at most limit tokens, if possible. A line between head and tail says how much is
// missing, including the text that earlier cuts of the missing part took out.
func (s Source) clip(said string, limit int) string {
	size := s.tokens(said)
	if size <= limit {
		return said
	}
	for n := len(said) * max(limit, 0) / size; ; n = n * 7 / 8 {
		head, tail := text.Head(said, n/2), text.Tail(said, n/2)
		middle := said[len(head) : len(said)-len(tail)]
		short := head + s.gapNote(missingBytes(middle)) + tail
		switch {
		case len(short) < len(said) && s.tokens(short) <= limit:
			return short
		case n >= 16:
		case len(short) < len(said):
			return short
		default:
			return said
		}
	}
}

// missingBytes counts the bytes of a text, including those that were cut out of it earlier.
func missingBytes(text string) int {
	if !strings.Contains(text, " bytes are left out here") {
		return len(text)
	}
	found := regexp.MustCompile(gapPattern)
	n := len(found.ReplaceAllString(text, ""))
	for _, m := range found.FindAllStringSubmatch(text, -1) {
		if more, err := strconv.Atoi(m[1]); err == nil {
			n += more
		}
	}
	return n
}

// oneLine returns a text as one line without invisible characters, of at most limit bytes.
func oneLine(s string, limit int) string { return text.Short(text.Clean(s), limit) }

// distinct returns each text once, at its last position.
func distinct(texts []string) []string {
	return distinctBy(texts, func(t string) string { return t })
}

// distinctBy returns the last text of each non-empty key.
func distinctBy(texts []string, key func(string) string) []string {
	seen := map[string]bool{"": true}
	var out []string
	for _, t := range slices.Backward(texts) {
		if k := key(t); !seen[k] {
			seen[k] = true
			out = append(out, t)
		}
	}
	slices.Reverse(out)
	return out
}

// lastFitting returns as many of the last texts as fit into limit, as measured by size.
func lastFitting(texts []string, limit int, size func(string) int) []string {
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
