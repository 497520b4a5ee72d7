package prompted

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

// An event is what the scanner made of a piece of text. One field is set.
type event struct {
	text  string
	delta *llm.CallDelta
	call  *llm.Call
}

// A scanner tells calls from text while both come in. It decides nothing that
// the text to come could change, so what comes out does not depend on how the
// text is cut into pieces. White space around calls is dropped.
type scanner struct {
	forms []form
	tools []string // names of those that are offered
	buf   []byte   // what is not decided yet; it begins with a call if there is one
	final bool     // no more text comes
	cut   bool     // though there would be more
	said  []byte   // text that is passed on, not yet in out
	out   []event

	held  string // white space that may stand before a call
	after bool   // a call came last
	over  bool   // what comes is made up

	call   *candidate // nil outside of what may be a call
	begun  bool       // more than white space was read
	inLine bool       // more than white space was read in this line
	inCode bool       // code within the line
	fence  int        // backticks around the code block; 0: none
	thinks string     // what closes the thoughts that the reply begins with; empty: it is not in them
}

func newScanner(tools []llm.ToolSpec) *scanner {
	s := &scanner{}
	for _, t := range tools {
		s.tools = append(s.tools, t.Name)
	}
	if len(tools) > 0 {
		s.forms = forms()
	}
	return s
}

// write takes the next piece of text.
func (s *scanner) write(text string) []event {
	s.buf = append(s.buf, text...)
	return s.run()
}

// end tells that the text is over. cut says that it was cut off.
func (s *scanner) end(cut bool) []event {
	s.final, s.cut = true, cut
	out := s.run()
	if s.held != "" && !s.after {
		out = append(out, event{text: s.held})
	}
	return out
}

// run decides all that can be decided.
func (s *scanner) run() []event {
	for len(s.buf) > 0 && s.step() {
	}
	return s.take()
}

func (s *scanner) take() []event {
	s.flush()
	out := s.out
	s.out = nil
	return out
}

// put adds an event behind the text so far.
func (s *scanner) put(e event) {
	s.flush()
	s.out = append(s.out, e)
}

func (s *scanner) flush() {
	if len(s.said) > 0 {
		s.out = append(s.out, event{text: string(s.said)})
		s.said = s.said[:0]
	}
}

// step goes a little further; it reports false if it needs more text.
func (s *scanner) step() bool {
	switch {
	case s.over:
		s.buf = nil
		return false
	case s.call != nil:
		return s.inCall()
	case s.fence > 0:
		return s.inFence()
	case s.thinks != "":
		return s.inThoughts()
	}
	return s.inText()
}

// inText passes text on up to what may open a call or a code block.
func (s *scanner) inText() bool {
	switch i := bytes.IndexAny(s.buf, "`<[{"); {
	case i < 0:
		s.say(len(s.buf))
		return false
	case i > 0:
		s.say(i)
		return true
	case s.buf[0] == '`':
		return s.backticks()
	}
	return s.mark()
}

// mark looks at what may be the mark of a form.
func (s *scanner) mark() bool {
	if s.inCode || len(s.tools) == 0 {
		s.say(1)
		return true
	}
	if s.after && bytes.HasPrefix(s.buf, []byte(madeUp)) {
		s.over = true
		return true
	}
	more := s.after && s.begins(madeUp)
	for _, name := range thoughts() {
		open := "<" + name + ">"
		switch {
		case s.begun || s.after:
		case bytes.HasPrefix(s.buf, []byte(open)):
			s.say(len(open))
			s.thinks = "</" + name + ">"
			return true
		default:
			more = more || s.begins(open)
		}
	}
	for _, f := range s.forms {
		switch {
		case f.whole && s.begun:
		case bytes.HasPrefix(s.buf, []byte(f.open)) && !more:
			s.call = newCandidate(f)
			return true
		default:
			more = more || s.begins(f.open)
		}
	}
	if more {
		return false
	}
	s.say(1)
	return true
}

// inThoughts passes on what a model thinks aloud: a call in it is one that it thinks of.
// What comes behind is read like a reply of its own.
func (s *scanner) inThoughts() bool {
	end := bytes.Index(s.buf, []byte(s.thinks))
	if end < 0 {
		most := len(s.buf) // but what may be the beginning of the end
		for i := max(0, most-len(s.thinks)+1); i < most && !s.final; i++ {
			if strings.HasPrefix(s.thinks, string(s.buf[i:])) {
				most = i
			}
		}
		s.say(most)
		return false
	}
	s.say(end + len(s.thinks))
	s.thinks, s.begun, s.inLine, s.inCode = "", false, false, false
	return true
}

// begins reports whether all there is may be the beginning of mark.
func (s *scanner) begins(mark string) bool {
	return !s.final && strings.HasPrefix(mark, string(s.buf[:min(len(s.buf), len(mark))])) && len(s.buf) < len(mark)
}

// backticks looks at what may be code in the line or open a block of it.
func (s *scanner) backticks() bool {
	n := len(s.buf) - len(bytes.TrimLeft(s.buf, "`"))
	if n == len(s.buf) && !s.final {
		return false
	}
	if n < 3 || s.inLine {
		s.say(n)
		s.inCode = !s.inCode
		return true
	}
	end := bytes.IndexByte(s.buf, '\n')
	if end < 0 && !s.final {
		return false
	}
	language := strings.TrimSpace(string(s.buf[n:max(end, n)]))
	switch {
	case end < 0 || strings.Contains(language, "`"):
		s.say(n)
	case len(s.tools) > 0 && fenced(language):
		s.call = newCandidate(form{open: string(s.buf[:end+1]), closers: []string{string(s.buf[:n])}, fence: n})
	default:
		s.say(end + 1)
		s.fence = n
	}
	return true
}

// inFence passes a block of code on, line by line.
func (s *scanner) inFence() bool {
	end := bytes.IndexByte(s.buf, '\n') + 1
	if end == 0 {
		end = len(s.buf)
	}
	line := strings.Trim(string(s.buf[:end]), space)
	ticks := strings.Trim(line, "`") == "" && !s.inLine
	if ticks && end == len(s.buf) && s.buf[end-1] != '\n' && !s.final {
		return false
	}
	if ticks && len(line) >= s.fence {
		s.fence = 0
	}
	s.say(end)
	return true
}

// say passes the next n bytes on as text.
func (s *scanner) say(n int) {
	text := s.buf[:n]
	s.buf = s.buf[n:]
	for _, c := range text {
		s.track(c)
	}
	all := s.held + string(text)
	if s.after {
		all = strings.TrimLeft(all, space)
	}
	said := strings.TrimRight(all, space)
	s.held = all[len(said):]
	if said != "" {
		s.said = append(s.said, said...)
		s.after = false
	}
}

// track notes where in a line the text is, behind c.
func (s *scanner) track(c byte) {
	switch c {
	case '\n':
		s.inLine, s.inCode = false, false
	case ' ', '\t', '\r':
	default:
		s.inLine, s.begun = true, true
	}
}

// reject makes text of what opened a call that is none.
func (s *scanner) reject() bool {
	f := s.call.form
	s.call = nil
	s.say(max(len(f.open), 1))
	s.fence = f.fence
	return true
}

// accept takes the calls out of the text, which they end n bytes on.
func (s *scanner) accept(n int) bool {
	for _, w := range s.call.calls {
		if !w.shown {
			s.put(event{delta: &llm.CallDelta{Name: w.call.Name, Args: cmp.Or(w.call.Invalid, string(w.call.Args))}})
		}
		s.put(event{call: &w.call})
	}
	s.call = nil
	s.buf = s.buf[n:]
	s.held, s.after, s.begun, s.inLine, s.inCode = "", true, true, false, false
	return true
}

// offered reports whether there is a tool of this name.
func (s *scanner) offered(name string) bool { return slices.Contains(s.tools, name) }
