package markdown

import (
	"strconv"

	"github.com/alecthomas/chroma/v2"
)

// role is the role of a piece of text; each has a colour.
type role int

const (
	heading role = iota
	inlineCode
	link
	marker
	added
	removed
	keyword
	typeName
	function
	literal
	number
	comment
	special
)

// String returns the name of the role, of which HTML makes a class.
func (r role) String() string {
	return [...]string{"heading", "inline-code", "link", "marker", "added", "removed", "keyword", "type", "function", "literal", "number", "comment", "special"}[r]
}

// pick returns the SGR parameters of a role: a readable colour of the 256 on the background.
func (s Style) pick(r role) string {
	if s.classes {
		return r.String()
	}
	dark, light := "", ""
	switch r {
	case heading, keyword:
		dark, light = "38;5;75", "38;5;25"
	case inlineCode, literal:
		dark, light = "38;5;150", "38;5;28"
	case link, function:
		dark, light = "38;5;80", "38;5;30"
	case marker, typeName:
		dark, light = "38;5;179", "38;5;94"
	case number, special:
		dark, light = "38;5;176", "38;5;90"
	case comment:
		dark, light = "38;5;245", "38;5;242"
	case added:
		dark, light = "38;5;114", "38;5;28"
	case removed:
		dark, light = "38;5;210", "38;5;124"
	}
	if s.Light {
		return light
	}
	return dark
}

// tint returns the SGR parameters of the background of changed words.
func (s Style) tint(r role) string {
	switch {
	case r == added && s.Light:
		return "48;5;157"
	case r == added:
		return "48;5;22"
	case s.Light:
		return "48;5;217"
	}
	return "48;5;52"
}

// token returns the look of a piece of code. Errors look like any other text:
// code in a conversation is often cut.
func (s Style) token(t chroma.TokenType) look {
	colored := func(r role) look { return look{color: s.pick(r)} }
	switch {
	case t.InCategory(chroma.Comment):
		if t == chroma.CommentPreproc {
			return colored(special)
		}
		return colored(comment)
	case t == chroma.KeywordType, t == chroma.NameClass, t == chroma.NameNamespace:
		return colored(typeName)
	case t.InCategory(chroma.Keyword), t == chroma.NameTag, t == chroma.OperatorWord:
		return colored(keyword)
	case t == chroma.NameFunction, t == chroma.NameBuiltin, t == chroma.NameFunctionMagic:
		return colored(function)
	case t == chroma.NameAttribute, t == chroma.NameDecorator, t == chroma.NameConstant, t == chroma.NameVariable:
		return colored(special)
	case t.InSubCategory(chroma.LiteralNumber):
		return colored(number)
	case t.InCategory(chroma.Literal):
		return colored(literal)
	case t.InCategory(chroma.Generic):
		return s.generic(t)
	}
	return look{}
}

// generic returns the look of a token of languages for text and diffs.
func (s Style) generic(t chroma.TokenType) look {
	switch t {
	case chroma.GenericInserted:
		return look{color: s.pick(added)}
	case chroma.GenericDeleted, chroma.GenericError:
		return look{color: s.pick(removed)}
	case chroma.GenericHeading, chroma.GenericSubheading:
		return look{color: s.pick(heading), bold: true}
	case chroma.GenericStrong:
		return look{bold: true}
	case chroma.GenericEmph:
		return look{italic: true}
	}
	return look{}
}

// nearest returns the number of the most similar of the 256 colours to a premultiplied one; empty means it is
// mostly transparent.
func nearest(r, g, b, a uint32) string {
	if a < 0x8000 {
		return ""
	}
	c := [3]int{int(r * 255 / a), int(g * 255 / a), int(b * 255 / a)}
	levels := [6]int{0, 95, 135, 175, 215, 255}
	cube, far := 16, 0
	for i, v := range c {
		best := 0
		for j, l := range levels {
			if square(v-l) < square(v-levels[best]) {
				best = j
			}
		}
		cube += best * [3]int{36, 6, 1}[i]
		far += square(v - levels[best])
	}
	step := max(0, min(23, ((c[0]+c[1]+c[2])/3-3)/10))
	level := 8 + 10*step
	if square(c[0]-level)+square(c[1]-level)+square(c[2]-level) < far {
		return strconv.Itoa(232 + step)
	}
	return strconv.Itoa(cube)
}

func square(n int) int { return n * n }
