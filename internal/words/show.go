package words

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/llm"
)

// Hidden reports whether a person could not see r, or would see something else
// because of it: control characters, newlines and tabs among them, what changes
// the direction of text, and what has no width or shows nothing. Joiners and
// variation selectors are not hidden, as scripts and emoji are written with them.
func Hidden(r rune) bool {
	switch {
	case r < 0xad:
		return unicode.IsControl(r)
	case r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0x061c: // bidirectional and invisible controls
		return true
	case r == 0x200b, r == 0x200e, r == 0x200f, r == 0xfeff, r == 0x2028, r == 0x2029, r == 0x180e: // zero width, marks, separators
		return true
	case r == 0xad, r == 0x034f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0: // soft hyphen, fillers
		return true
	case r >= 0xe0000 && r <= 0xe0fff, r >= 0xfff9 && r <= 0xfffb, r >= 0x1d173 && r <= 0x1d17a: // tags, annotations, beams
		return true
	}
	return false
}

// Spelled writes a character so that it can be seen whatever it is: \x1b,
// \u202e, \U000e0041.
func Spelled(r rune) string {
	switch {
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// Clean takes out of text whatever could drive the terminal, and leaves the rest
// as it is: what it returns holds no hidden character but newlines and tabs. What
// is no UTF-8 becomes U+FFFD. For what is read, not for what is decided on.
func Clean(text string) string {
	return rewrite(text, "\n\t", func(b *strings.Builder, _ rune, bad string) {
		if bad != "" {
			b.WriteRune(utf8.RuneError)
		}
	})
}

// Visible spells out what a person could not see, newlines too: what it returns
// is one line without hidden characters. A tab becomes four spaces, and a byte
// that is no UTF-8 \xff. For what is decided on: what is shown is what runs.
func Visible(text string) string { return rewrite(text, "", spell) }

// VisibleLines is Visible for text of several lines: newlines stay.
func VisibleLines(text string) string { return rewrite(text, "\n", spell) }

// Line is prose as one line without hidden characters: white space of any kind
// becomes one space, the rest is as in Visible.
func Line(text string) string { return Visible(strings.Join(strings.Fields(text), " ")) }

// OneLine is Line in at most limit cells of a terminal; "…" stands for what is
// left out. It is empty if the limit is less than one.
func OneLine(text string, limit int) string {
	if limit < 1 {
		return ""
	}
	text = strings.TrimSpace(text)
	more := ""
	if n := 8*limit + 64; len(text) > n { // what can't be shown need not be looked at
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text, more = text[:n], "…"
	}
	return ansi.Truncate(Line(text)+more, limit, "…")
}

func spell(b *strings.Builder, r rune, bad string) {
	switch {
	case bad != "":
		fmt.Fprintf(b, `\x%02x`, bad[0])
	case r == '\t':
		b.WriteString("    ")
	default:
		b.WriteString(Spelled(r))
	}
}

// rewrite calls put for each hidden character but those in stay, and for each
// byte that is no UTF-8, which is bad then.
func rewrite(text, stay string, put func(b *strings.Builder, r rune, bad string)) string {
	hides := func(r rune) bool { return Hidden(r) && !strings.ContainsRune(stay, r) }
	first := strings.IndexFunc(text, func(r rune) bool { return r == utf8.RuneError || hides(r) })
	if first < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	b.WriteString(text[:first])
	for i := first; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch part := text[i : i+size]; {
		case r == utf8.RuneError && size == 1:
			put(&b, r, part)
		case hides(r):
			put(&b, r, "")
		default:
			b.WriteString(part)
		}
		i += size
	}
	return b.String()
}

// Image names an image of a conversation in a line: its type, its size where its bytes
// are at hand, and the file in the folder of the session that holds them.
func Image(i llm.Image) string {
	text := "[image: " + strings.ToUpper(strings.TrimPrefix(OneLine(i.MediaType, 40), "image/"))
	if len(i.Data) > 0 {
		text += ", " + Thousands(len(i.Data)) + " bytes"
	}
	if i.Digest != "" {
		text += ", blobs/" + OneLine(i.Digest, 80) + " of the session"
	}
	return text + "]"
}
