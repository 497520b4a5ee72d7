package web

import (
	"strconv"
	"strings"

	"golang.org/x/net/html/atom"

	"github.com/inspan/inspan/internal/base/text"
)

// hiddenByAttr reports whether the attributes of an element alone make it invisible.
func hiddenByAttr(n *node) bool {
	if _, ok := n.attr["hidden"]; ok || strings.EqualFold(strings.TrimSpace(n.attr["aria-hidden"]), "true") {
		return true
	}
	if _, ok := n.attr["open"]; n.tag == atom.Dialog && !ok {
		return true
	}
	for class := range strings.FieldsSeq(n.attr["class"]) {
		switch strings.ToLower(class) {
		case "sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text", "screen-reader-only", "a11y-hidden":
			return true
		}
	}
	style := n.attr["style"]
	return style != "" && declarations(style).hide()
}

// style is the result of a list of declarations: the value of each property, in lower case.
type style map[string]string

const maxStyle = 4 << 10 // bytes of a style attribute that are read

// declarations parses "name: value; name: value". The later of two for one property counts, unless only the
// first is important.
func declarations(s string) style {
	out := style{}
	important := map[string]bool{}
	for part := range strings.SplitSeq(uncommented(text.Head(s, maxStyle)), ";") {
		name, value, found := strings.Cut(part, ":")
		if !found {
			continue
		}
		name = strings.ToLower(strings.TrimSpace(unescaped(name)))
		value = strings.ToLower(strings.TrimSpace(unescaped(value)))
		value, forced := strings.CutSuffix(value, "!important")
		if important[name] && !forced {
			continue
		}
		important[name] = forced
		out[name] = strings.Join(strings.Fields(value), " ")
	}
	return out
}

// hide reports whether an element with this style is invisible.
func (s style) hide() bool {
	switch {
	case s["display"] == "none", s["visibility"] == "hidden", s["visibility"] == "collapse", s["content-visibility"] == "hidden":
		return true
	case s.below("opacity", 0.05), s.below("font-size", 2), s.below("zoom", 0.05),
		strings.HasPrefix(s["font"], "0 "), strings.HasPrefix(s["font"], "0px"):
		return true
	case s.invisible():
		return true
	case strings.HasPrefix(s["clip"], "rect(0"), strings.HasPrefix(s["clip"], "rect(1px"), s["clip-path"] == "inset(50%)",
		s["clip-path"] == "inset(100%)", strings.HasPrefix(s["clip-path"], "circle(0"):
		return true
	case strings.HasPrefix(s["transform"], "scale(0)"), strings.HasPrefix(s["transform"], "scale(0,"),
		strings.HasPrefix(s["transform"], "translate") && strings.Contains(s["transform"], "-999"):
		return true
	case s.far("text-indent"):
		return true
	}
	return s.away() || s.shut()
}

// invisible reports text in no colour, or in that of its background.
func (s style) invisible() bool {
	color := colorOf(s["color"])
	if color == "" {
		return false
	}
	if color == "transparent" || strings.HasPrefix(color, "rgba(") && strings.HasSuffix(strings.ReplaceAll(color, " ", ""), ",0)") {
		return true
	}
	return color == colorOf(s["background-color"]) || color == colorOf(s["background"])
}

// colorOf normalizes the colours that are used to hide text.
func colorOf(value string) string {
	switch value = strings.ReplaceAll(value, " ", ""); value {
	case "#fff", "#ffffff", "rgb(255,255,255)":
		return "white"
	case "#000", "#000000", "rgb(0,0,0)":
		return "black"
	case "#0000", "#00000000", "#ffffff00", "#fff0":
		return "transparent"
	}
	return value
}

// away reports an element that is positioned out of sight.
func (s style) away() bool {
	if s["position"] == "absolute" || s["position"] == "fixed" {
		for _, side := range []string{"left", "right", "top", "bottom", "inset"} {
			if s.far(side) {
				return true
			}
		}
	}
	return s.far("margin-left") || s.far("margin-top")
}

// shut reports an element without room for its content.
func (s style) shut() bool {
	if s["overflow"] != "hidden" && s["overflow"] != "clip" {
		return false
	}
	return s.below("width", 2) || s.below("height", 2) || s.below("max-width", 2) || s.below("max-height", 2)
}

// below reports a number under limit; pixels, or no unit, or a zero of any.
func (s style) below(property string, limit float64) bool {
	value, given := s[property]
	n, unit, ok := number(value)
	if !given || !ok || n < 0 {
		return false
	}
	return n == 0 || n < limit && (unit == "" || unit == "px" || unit == "pt" || unit == "%" && property == "opacity")
}

// far reports a length far to the left or above.
func (s style) far(property string) bool {
	n, unit, ok := number(s[property])
	switch unit {
	case "em", "rem", "vw", "vh", "%":
		return ok && n <= -90
	}
	return ok && n <= -500
}

func number(value string) (n float64, unit string, ok bool) {
	end := 0
	for end < len(value) && strings.IndexByte("+-.0123456789", value[end]) >= 0 {
		end++
	}
	n, err := strconv.ParseFloat(value[:end], 64)
	unit, _, _ = strings.Cut(value[end:], " ")
	return n, unit, err == nil
}

// uncommented replaces each /* comment */ with a space.
func uncommented(css string) string {
	if !strings.Contains(css, "/*") {
		return css
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(css, "/*")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteByte(' ')
		_, css, _ = strings.Cut(rest, "*/")
	}
}

// unescaped decodes the escapes of style sheets: d\69 splay is display.
func unescaped(css string) string {
	if !strings.Contains(css, `\`) {
		return css
	}
	var b strings.Builder
	for css != "" {
		before, rest, found := strings.Cut(css, `\`)
		b.WriteString(before)
		if !found {
			break
		}
		end := 0
		for end < len(rest) && end < 6 && strings.IndexByte("0123456789abcdefABCDEF", rest[end]) >= 0 {
			end++
		}
		if code, err := strconv.ParseUint(rest[:end], 16, 32); err == nil {
			b.WriteRune(rune(code))
			rest = rest[end:]
			if rest != "" && (rest[0] == ' ' || rest[0] == '\n' || rest[0] == '\t') {
				rest = rest[1:]
			}
		}
		css = rest
	}
	return b.String()
}
