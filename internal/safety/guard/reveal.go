package guard

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
)

// Rarely needed patterns, compiled on first use.
const (
	// The sequences that a terminal hides: CSI, those with a string such as OSC, and short ones. A string must
	// end on its line, so that nothing can hide the rest of a text.
	escapes = `(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]` +
		`|(?:\x1b[\]PX^_]|[\x{90}\x{98}\x{9d}-\x{9f}])[^\x07\x1b\x{9c}\n]*(?:\x07|\x1b\\|\x{9c})` +
		`|\x1b[ -/]+[0-~]|\x1b[0-Z\\` + "`" + `-~]`
	// The escape sequence for concealed text.
	concealed = `(?:\x1b\[|\x{9b})(?:\d*;)*8m`
)

// hasHidden reports whether the text may contain a character that people don't see.
func hasHidden(said string) bool {
	return strings.ContainsFunc(said, text.Covert.Has)
}

// reveal converts text so that a model gets what people see: hidden characters are spelled out in brackets or
// removed. Plain text is unchanged, byte for byte: letters of all scripts, joiners within words, emoji.
// smuggled says that it contained hidden characters that can't be accidental.
//
// The result contains no hidden characters, so applying it twice changes nothing more.
func reveal(said string) (out string, smuggled bool) {
	if !hasHidden(said) {
		return said, false
	}
	said = strings.TrimPrefix(said, "\ufeff") // the byte order mark
	v := revealer{rest: said}
	if strings.ContainsAny(said, "\x1b\u0090\u0098\u009b\u009d\u009e\u009f") {
		v.rest = regexp.MustCompile(escapes).ReplaceAllString(said, "")
		v.smuggled = regexp.MustCompile(concealed).MatchString(said)
	}
	v.b.Grow(len(said))
	for v.rest != "" {
		v.step()
	}
	return v.b.String(), v.smuggled
}

// revealer processes a text run by run.
type revealer struct {
	b        strings.Builder
	rest     string
	before   rune // the last character written
	smuggled bool
}

// step processes the next character, or the next run of hidden ones of one kind.
func (v *revealer) step() {
	r, n := utf8.DecodeRuneInString(v.rest)
	if !text.Covert.Has(r) {
		v.b.WriteString(v.rest[:n])
		v.before, v.rest = r, v.rest[n:]
		return
	}
	switch class := text.Of(r); {
	case class == text.Separator: // people see a line end, or nothing
		v.b.WriteByte('\n')
		v.before, v.rest = '\n', v.rest[n:]
	case r <= 0x7f:
		v.b.WriteString("^" + string(r^0x40))
		v.rest = v.rest[n:]
	case class == text.Tag:
		v.tags(v.take(text.Tag))
	case class == text.Selector:
		v.selectors(v.take(text.Selector))
	case class == text.Bidi || class == text.Override:
		fmt.Fprintf(&v.b, "[U+%04X]", r)
		v.rest, v.smuggled = v.rest[n:], v.smuggled || class == text.Override
	case class == text.Private:
		v.privates(v.take(text.Private))
	default:
		v.invisible(v.take(text.Covert &^ (text.Separator | text.Tag | text.Selector | text.Bidi | text.Override | text.Private)))
	}
}

// take removes the leading run of characters of some classes from the rest. ASCII characters end a run.
func (v *revealer) take(c text.Class) []rune {
	end := strings.IndexFunc(v.rest, func(r rune) bool { return r <= 0x7f || !c.Has(r) })
	if end < 0 {
		end = len(v.rest)
	}
	run := []rune(v.rest[:end])
	v.rest = v.rest[end:]
	return run
}

// tags spells out invisible copies of ASCII characters. After a black flag they may form the flag of a region,
// their intended use.
func (v *revealer) tags(run []rune) {
	var b strings.Builder
	for _, r := range run {
		if r = text.Mirrored(r); r != 0 {
			b.WriteRune(r)
		}
	}
	said := b.String()
	if flag := v.before == 0x1f3f4 && run[len(run)-1] == text.TagEnd; flag && (said == "gbeng" || said == "gbsct" || said == "gbwls") {
		v.b.WriteString(string(run))
		return
	}
	v.say("tag", len(run), said)
}

// selectors preserves one variation selector at a valid place, and spells out runs, which can carry a byte
// each.
func (v *revealer) selectors(run []rune) {
	if len(run) == 1 {
		if r := run[0]; text.Selected(r) < 16 && v.before > ' ' || unicode.Is(unicode.Han, v.before) {
			v.b.WriteRune(r)
		}
		return
	}
	raw := make([]byte, len(run))
	for i, r := range run {
		raw[i] = text.Selected(r)
	}
	v.say("variation selector", len(run), string(raw))
}

// say writes the text of hidden characters, if it is text.
func (v *revealer) say(what string, n int, said string) {
	v.smuggled = true
	readable := strings.TrimSpace(said) != "" && utf8.ValidString(said)
	for _, r := range said {
		readable = readable && unicode.IsPrint(r)
	}
	if !readable {
		fmt.Fprintf(&v.b, "[%d hidden %s characters]", n, what)
		return
	}
	fmt.Fprintf(&v.b, "[%d hidden %s characters say: %s]", n, what, said)
}

func (v *revealer) privates(run []rune) {
	if len(run) > 3 {
		fmt.Fprintf(&v.b, "[%d private-use characters]", len(run))
		return
	}
	for _, r := range run {
		fmt.Fprintf(&v.b, "[U+%04X]", r)
	}
}

// invisible preserves a single joiner, break or mark between characters of a script that uses them, and removes
// others. Long runs can only be there to carry data.
func (v *revealer) invisible(run []rune) {
	next, _ := utf8.DecodeRuneInString(v.rest)
	switch {
	case len(run) == 1 && joins.Has(run[0]) && v.before >= 0x80 && next >= 0x80,
		len(run) == 1 && text.Mark.Has(run[0]) && (v.before >= 0x80 || next >= 0x80):
		v.b.WriteRune(run[0])
	case len(run) >= 8:
		v.smuggled = true
		fmt.Fprintf(&v.b, "[%d invisible characters]", len(run))
	}
}

// joins are the classes of characters that can belong between two letters.
const joins = text.Joiner | text.ZeroWidth | text.Filler
