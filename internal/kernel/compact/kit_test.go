package compact_test

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/kernel/compact"
	"github.com/inspan/inspan/llm"
)

// size estimates tokens as the package does by itself.
func size(messages []llm.Message) int {
	n := 0
	for _, m := range messages {
		n += m.Tokens()
	}
	return n
}

// written is all text of a conversation.
func written(messages []llm.Message) string {
	var b strings.Builder
	var write func(parts llm.Parts)
	write = func(parts llm.Parts) {
		for _, part := range parts {
			switch v := part.(type) {
			case llm.Text:
				b.WriteString(v.Text + "\n")
			case llm.Call:
				b.WriteString(string(v.Args) + "\n")
			case llm.Result:
				write(v.Parts)
			}
		}
	}
	for _, m := range messages {
		write(m.Parts)
	}
	return b.String()
}

// valid returns what a vendor would refuse in a conversation.
func valid(messages []llm.Message) error {
	if len(messages) == 0 || messages[0].Role != llm.User {
		return errors.New("it does not begin with a user message")
	}
	open := map[string]int{}
	for i, m := range messages {
		if len(m.Parts) == 0 {
			return fmt.Errorf("message %d is empty", i)
		}
		if m.Role == llm.Assistant && len(open) > 0 {
			return fmt.Errorf("message %d: %d calls before it have no result", i, len(open))
		}
		for _, part := range m.Parts {
			switch v := part.(type) {
			case llm.Call:
				if m.Role != llm.Assistant {
					return fmt.Errorf("message %d: a call of the user", i)
				}
				open[v.ID] = i
			case llm.Result:
				if _, ok := open[v.CallID]; !ok {
					return fmt.Errorf("message %d: result of %s without its call", i, v.CallID)
				}
				delete(open, v.CallID)
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%d calls have no result", len(open))
	}
	return nil
}

// heard reports which words of the person are lost: all stand in their order, but for so many that are left out
// after the first, and for those whose very words come again. A message may be cut and lose images, if it says so.
func heard(src compact.Source, messages []llm.Message, person []int, left int) error {
	was, is := spoken(src.Messages, src.Person), spoken(messages, person)
	again := map[string]bool{}
	for i, m := range slices.Backward(was) {
		words := strings.Join(strings.Fields(m.Parts.Text()), " ")
		if again[words] && images(m.Parts) == 0 {
			was = slices.Delete(was, i, i+1)
		}
		again[words] = true
	}
	if len(was)-len(is) != left {
		return fmt.Errorf("%d messages of the person became %d, and %d are counted as left out", len(was), len(is), left)
	}
	for n, got := range is {
		w := was[n]
		if n > 0 {
			w = was[n+left]
		}
		notes := strings.Count(got.Parts.Text(), pictureNote)
		if images(got.Parts)+notes != images(w.Parts) {
			return fmt.Errorf("message %d of the person lost images", n)
		}
		if got, was := strings.ReplaceAll(got.Parts.Text(), pictureNote, ""), w.Parts.Text(); !same(got, was) && !shortened(got, was) {
			return fmt.Errorf("message %d of the person is not what was said", n)
		}
	}
	return nil
}

const pictureNote = "[an image was here]"

// spoken returns the messages of the person that say or show something.
func spoken(messages []llm.Message, person []int) []llm.Message {
	var out []llm.Message
	for _, i := range person {
		if parts := messages[i].Parts; strings.TrimSpace(parts.Text()) != "" || images(parts) > 0 {
			out = append(out, messages[i])
		}
	}
	return out
}

// same compares texts; parts of white space alone may be gone.
func same(got, was string) bool {
	return got == was || strings.Join(strings.Fields(got), " ") == strings.Join(strings.Fields(was), " ")
}

var gapNote = regexp.MustCompile(`\n\[\d+ bytes are left out here[^\]\n]*\]\n`)

// shortened reports whether a text is another with notes for parts of it.
func shortened(got, was string) bool {
	parts := gapNote.Split(got, -1)
	for _, part := range parts[:len(parts)-1] {
		_, rest, ok := strings.Cut(was, part)
		if !ok {
			return false
		}
		was = rest
	}
	return len(parts) > 1 && strings.HasSuffix(was, parts[len(parts)-1])
}

func images(parts llm.Parts) int {
	n := 0
	for _, part := range parts {
		if _, ok := part.(llm.Image); ok {
			n++
		}
	}
	return n
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }
