// Package text defines the rules for untrusted text: which characters are invisible, and how to clean, join,
// cut and count text. It knows nothing of sessions, models or terminals.
//
// [Of] contains the only table of characters. Code that shows, strips or rejects characters uses a policy
// below, which is a set of classes, and has no list of its own.
package text

import "unicode"

// A Class is a set of classes of characters. A plain, visible character has none; every other one has exactly
// one.
type Class uint32

// The classes.
const (
	Newline    Class = 1 << iota // U+000A
	Tab                          // U+0009
	Return                       // carriage return and form feed, which end lines for some programs
	Control                      // all other control characters, escape among them
	Separator                    // of lines and paragraphs: some programs break the line, others show nothing
	Bidi                         // embeds or isolates text of another direction
	Override                     // turns the direction of letters, so that text reads backwards
	Mark                         // of direction, invisible, as right-to-left scripts need it
	Joiner                       // joins or parts letters and emoji, or selects a Mongolian letter form
	ByteOrder                    // the mark of an encoding, a space without width elsewhere
	ZeroWidth                    // spaces and joiners without width that hardly any text needs
	Operator                     // invisible signs of mathematics, and deprecated controls of format
	SoftHyphen                   // U+00AD
	Filler                       // stands for a letter that a Korean syllable lacks
	Empty                        // other letters that show nothing
	Blank                        // the empty pattern of Braille, which looks like a space and is none
	Selector                     // chooses how the character before it looks
	Tag                          // mirrors ASCII unseen; only flags of regions need it
	Ignorable                    // unassigned, and to be ignored where it is not known
	Annotation                   // hides text next to other text
	Musical                      // beams and slurs of music, and joins of shorthand, as controls
	Private                      // means what a font makes of it
	Nonchar                      // will never be a character
	Space                        // any space but that of ASCII
	Format                       // other characters of format, mostly with a visible sign
	Unassigned                   // without a meaning, as far as is known here
)

// Policies: what counts as hidden for whom.
const (
	// Hidden is the characters that are spelled out for a person who decides, since the text would otherwise look
	// like another. It excludes joiners and selectors, which scripts and emoji need, and private characters, which
	// show at least a box.
	Hidden = Newline | Tab | Return | Control | Separator | Bidi | Override | Mark | ByteOrder | ZeroWidth | Operator | SoftHyphen |
		Filler | Empty | Blank | Tag | Ignorable | Annotation | Musical | Nonchar

	// Unread is the characters that are removed from text that is only read: a page, a result, a log. Newlines
	// and tabs are preserved.
	Unread = Hidden &^ (Newline | Tab)

	// Unseen is the characters that a word can contain without looking different. Known secrets are found as if
	// they weren't there. It excludes the blank, which shows a gap.
	Unseen = Unread&^Blank | Joiner | Selector

	// Covert is the characters that a model must be told about, because it reads characters that people don't see,
	// including those that scripts need if they are misplaced. It excludes the blank: drawings consist of it, and
	// it carries no meaning for a model.
	Covert = Unread&^(Return|Blank) | Joiner | Selector | Private

	// Unshown is the characters that must not be in content that a person approves byte for byte.
	Unshown = Covert | Return

	// Unproven is the characters that must not be in a command that is proven harmless: shells, terminals and
	// people read them differently, and a shell takes other spaces for letters. It excludes selectors, which
	// emoji in messages have.
	Unproven = Unread | Joiner | Space | Format

	// Ignored is the characters that some file systems ignore when they compare names.
	Ignored = Bidi | Override | Mark | Joiner | ByteOrder | ZeroWidth | Operator

	// Unclear is all characters that are not plain: text that a person is asked to trust is spelled out if it
	// contains any, and front matter with any is left to a full parser.
	Unclear = ^Class(0)
)

// Of returns the class of a character, 0 if it is plain.
func Of(r rune) Class {
	if c := listed(r); c != 0 {
		return c
	}
	return other(r)
}

// Has reports whether a character is in one of the classes. Use it as a function of a rune.
func (c Class) Has(r rune) bool {
	return c&listed(r) != 0 || c&(Space|Format|Unassigned) != 0 && listed(r) == 0 && c&other(r) != 0
}

// listed returns the class of a character according to the table. The cases are ordered for speed: the most
// common characters come first.
func listed(r rune) Class {
	switch {
	case r < 0x7f:
		return ascii(r)
	case r <= 0x9f:
		return Control
	case r < 0x2000:
		return low(r)
	case r < 0x2070:
		return punctuation(r)
	case r < 0xe000:
		return middle(r)
	}
	return high(r)
}

func ascii(r rune) Class {
	switch {
	case r >= ' ' || r < 0:
		return 0
	case r == '\n':
		return Newline
	case r == '\t':
		return Tab
	case r == '\r' || r == '\f':
		return Return
	}
	return Control
}

func low(r rune) Class {
	switch r {
	case 0xad:
		return SoftHyphen
	case 0x61c:
		return Mark
	case 0x34f, 0x180e:
		return ZeroWidth
	case 0x115f, 0x1160:
		return Filler
	case 0x17b4, 0x17b5:
		return Empty
	case 0x180b, 0x180c, 0x180d, 0x180f:
		return Joiner
	}
	return 0
}

// punctuation covers U+2000 to U+206F.
func punctuation(r rune) Class {
	switch {
	case r == 0x200b || r == 0x2060:
		return ZeroWidth
	case r == 0x200c || r == 0x200d:
		return Joiner
	case r == 0x200e || r == 0x200f:
		return Mark
	case r == 0x2028 || r == 0x2029:
		return Separator
	case r == 0x202d || r == 0x202e:
		return Override
	case r >= 0x202a && r <= 0x202c, r >= 0x2066 && r <= 0x2069:
		return Bidi
	case r > 0x2060:
		return Operator
	}
	return 0
}

func middle(r rune) Class {
	switch r {
	case 0x2800:
		return Blank
	case 0x3164:
		return Empty
	}
	return 0
}

func high(r rune) Class {
	switch {
	case r <= 0xf8ff, r >= 0xf0000 && r&0xfffe != 0xfffe && r <= unicode.MaxRune:
		return Private
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef:
		return Selector
	case r == 0xfeff:
		return ByteOrder
	case r == 0xffa0:
		return Empty
	case r >= 0xfff0 && r <= 0xfff8:
		return Ignorable
	case r >= 0xfff9 && r <= 0xfffb:
		return Annotation
	case r >= 0xfdd0 && r <= 0xfdef, r&0xfffe == 0xfffe:
		return Nonchar
	case r >= 0x1bca0 && r <= 0x1bca3, r >= 0x1d173 && r <= 0x1d17a:
		return Musical
	case r >= 0xe0000 && r <= 0xe007f:
		return Tag
	case r >= 0xe0080 && r <= 0xe0fff:
		return Ignorable
	}
	return 0
}

// other covers the classes that Unicode itself lists.
func other(r rune) Class {
	switch {
	case r >= ' ' && r < 0x7f, unicode.IsPrint(r):
		return 0
	case unicode.IsSpace(r), unicode.Is(unicode.Zs, r):
		return Space
	case unicode.Is(unicode.Cf, r):
		return Format
	}
	return Unassigned
}

// Mirrored returns the printable ASCII character that a tag mirrors, 0 if none.
func Mirrored(r rune) rune {
	if r >= 0xe0020 && r < 0xe007f {
		return r - 0xe0000
	}
	return 0
}

// TagEnd ends a run of tags, such as that of a flag.
const TagEnd rune = 0xe007f

// Selected returns the number of a selector, from 0 to 255. Selectors from 16 on are only for Chinese
// characters.
func Selected(r rune) byte {
	if r <= 0xfe0f {
		return byte(r - 0xfe00)
	}
	return byte(r - 0xe0100 + 16)
}
