package guard

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Patterns that few texts need are compiled when one does.
const (
	// The sequences that a terminal swallows: CSI, those with a string such as
	// OSC, and short ones. A string that does not end on its line is none, so that
	// nothing can swallow the rest of a text.
	escapes = `(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]` +
		`|(?:\x1b[\]PX^_]|[\x{90}\x{98}\x{9d}-\x{9f}])[^\x07\x1b\x{9c}\n]*(?:\x07|\x1b\\|\x{9c})` +
		`|\x1b[ -/]+[0-~]|\x1b[0-Z\\` + "`" + `-~]`
	// The escape sequence for text that is not to be seen.
	concealed = `(?:\x1b\[|\x{9b})(?:\d*;)*8m`
)

// hasHidden reports whether a character of the text may be hidden from people.
// It passes over plain text fast.
func hasHidden(text string) bool {
	for i := 0; i < len(text); {
		if b := text[i]; b < utf8.RuneSelf {
			if b < ' ' && b != '\n' && b != '\t' && b != '\r' && b != '\f' || b == 0x7f {
				return true
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if hidden(r) {
			return true
		}
		i += n
	}
	return false
}

// hidden reports whether people see nothing of a character, or something else
// than it says, at least where it does not belong.
func hidden(r rune) bool {
	switch {
	case r < ' ':
		return r != '\n' && r != '\t' && r != '\r' && r != '\f'
	case r < 0x7f:
		return false
	case r <= 0x9f, r == 0xad, r == 0x34f, r == 0x61c, r == 0x180e:
		return true
	case r < 0x200b:
		return r == 0x115f || r == 0x1160
	case r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r < 0xe000:
		return r == 0x3164
	}
	return r <= 0xf8ff || isSelector(r) || r == 0xfeff || r == 0xffa0 ||
		r >= 0xfff0 && r <= 0xfffb || r >= 0xe0000 && r <= 0xe0fff || r >= 0xf0000 || r&0xfffe == 0xfffe
}

func isTag(r rune) bool      { return r >= 0xe0000 && r <= 0xe007f }
func isSelector(r rune) bool { return r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef }
func isBidi(r rune) bool     { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

func isPrivate(r rune) bool {
	return r >= 0xe000 && r <= 0xf8ff || r >= 0xf0000 && r <= 0x10fffd
}

// reveal writes text so that a model gets what people see: what is hidden is
// spelled out in brackets or left out. Plain text stays as it is, byte for
// byte: letters of all scripts, joiners within words, emoji. smuggled says
// that something was hidden which is never an accident.
//
// What is spelled out holds no hidden character, so doing it twice changes
// nothing more.
func reveal(text string) (out string, smuggled bool) {
	if !hasHidden(text) {
		return text, false
	}
	text = strings.TrimPrefix(text, "\ufeff") // the mark of an encoding
	v := revealer{rest: text}
	if strings.ContainsAny(text, "\x1b\u0090\u0098\u009b\u009d\u009e\u009f") {
		v.rest = regexp.MustCompile(escapes).ReplaceAllString(text, "")
		v.smuggled = regexp.MustCompile(concealed).MatchString(text)
	}
	v.b.Grow(len(text))
	for v.rest != "" {
		v.step()
	}
	return v.b.String(), v.smuggled
}

// revealer walks through a text run by run.
type revealer struct {
	b        strings.Builder
	rest     string
	before   rune // the last character written
	smuggled bool
}

// step writes the next character, or the next run of hidden ones of one kind.
func (v *revealer) step() {
	r, n := utf8.DecodeRuneInString(v.rest)
	if !hidden(r) {
		v.b.WriteString(v.rest[:n])
		v.before, v.rest = r, v.rest[n:]
		return
	}
	switch {
	case r < 0x20 || r == 0x7f:
		v.b.WriteString("^" + string(r^0x40))
		v.rest = v.rest[n:]
	case isTag(r):
		v.tags(v.take(isTag))
	case isSelector(r):
		v.selectors(v.take(isSelector))
	case isBidi(r):
		fmt.Fprintf(&v.b, "[U+%04X]", r)
		v.rest, v.smuggled = v.rest[n:], v.smuggled || r == 0x202d || r == 0x202e
	case isPrivate(r):
		v.privates(v.take(isPrivate))
	default:
		v.invisible(v.take(func(r rune) bool {
			return hidden(r) && r >= 0x80 && !isTag(r) && !isSelector(r) && !isBidi(r) && !isPrivate(r)
		}))
	}
}

// take removes the run of characters of a kind from the rest.
func (v *revealer) take(kind func(rune) bool) []rune {
	end := strings.IndexFunc(v.rest, func(r rune) bool { return !kind(r) })
	if end < 0 {
		end = len(v.rest)
	}
	run := []rune(v.rest[:end])
	v.rest = v.rest[end:]
	return run
}

// tags spells out characters that mirror ASCII unseen. Those behind a black
// flag that make the flag of a country are what they are made for.
func (v *revealer) tags(run []rune) {
	var b strings.Builder
	for _, r := range run {
		if r >= 0xe0020 && r < 0xe007f {
			b.WriteRune(r - 0xe0000)
		}
	}
	said := b.String()
	if flag := v.before == 0x1f3f4 && run[len(run)-1] == 0xe007f; flag && (said == "gbeng" || said == "gbsct" || said == "gbwls") {
		v.b.WriteString(string(run))
		return
	}
	v.say("tag", len(run), said)
}

// selectors keeps one variation selector where it can select something, and
// spells out runs, which can carry a byte each.
func (v *revealer) selectors(run []rune) {
	if len(run) == 1 {
		if r := run[0]; r <= 0xfe0f && v.before > ' ' || unicode.Is(unicode.Han, v.before) {
			v.b.WriteRune(r)
		}
		return
	}
	raw := make([]byte, len(run))
	for i, r := range run {
		if raw[i] = byte(r - 0xfe00); r > 0xfe0f {
			raw[i] = byte(r - 0xe0100 + 16)
		}
	}
	v.say("variation selector", len(run), string(raw))
}

// say writes what hidden characters say, if it is text.
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

// invisible keeps a single joiner, break or mark between characters of a script
// that uses them, and drops others. Long runs can only be there to carry
// something.
func (v *revealer) invisible(run []rune) {
	next, _ := utf8.DecodeRuneInString(v.rest)
	switch {
	case len(run) == 1 && joins(run[0]) && v.before >= 0x80 && next >= 0x80,
		len(run) == 1 && (run[0] == 0x200e || run[0] == 0x200f || run[0] == 0x61c) && (v.before >= 0x80 || next >= 0x80):
		v.b.WriteRune(run[0])
	case len(run) >= 8:
		v.smuggled = true
		fmt.Fprintf(&v.b, "[%d invisible characters]", len(run))
	}
}

func joins(r rune) bool {
	return r >= 0x200b && r <= 0x200d || r == 0x2060 || r == 0x180e || r == 0x34f || r == 0x115f || r == 0x1160
}
