package words

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/llm"
)

// OneLine is [text.Line] in at most limit cells of a terminal; "…" replaces what is left out. It is empty if
// the limit is less than one. It is in this package because measuring cells needs a terminal library, which
// programs that embed an agent don't link.
func OneLine(s string, limit int) string {
	if limit < 1 {
		return ""
	}
	s = strings.TrimSpace(s)
	more := ""
	if n := 8*limit + 64; len(s) > n { // text that can't be shown need not be measured
		s, more = text.Head(s, n), text.More
	}
	return ansi.Truncate(text.Line(s)+more, limit, text.More)
}

// Window describes a context window of so many tokens, which may be assumed.
func Window(tokens int, assumed bool) string {
	switch {
	case tokens == 0:
		return "a window of unknown size"
	case assumed:
		return "a window of " + text.Thousands(tokens) + " (assumed)"
	}
	return "a window of " + text.Thousands(tokens)
}

// Image describes an image of a conversation in a line: its type, its size if its bytes are at hand, and its
// file in the session's folder.
func Image(i llm.Image) string {
	s := "[image: " + strings.ToUpper(strings.TrimPrefix(OneLine(i.MediaType, 40), "image/"))
	if len(i.Data) > 0 {
		s += ", " + text.Count(len(i.Data), "byte")
	}
	if i.Digest != "" {
		s += ", blobs/" + OneLine(i.Digest, 80) + " of the session"
	}
	return s + "]"
}

// Hidden returns one of our messages without secrets, since it may repeat what was typed. Call it before
// cutting the message, because a part of a secret is not recognised.
func Hidden(message string) string { return new(secret.Finder).Hidden(message, "***") }
