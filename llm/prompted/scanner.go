package prompted

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// An event is the scanner's result for a piece of text. One field is set.
type event struct {
	text    string
	thought string // a piece of a thought
	ended   bool   // all text so far was a thought with a mark only at its end
	delta   *llm.CallDelta
	call    *llm.Call
	fenced  bool // the call was in a code block
}

// A scanner separates calls from text as both arrive. It decides nothing that later text could change, so its
// results do not depend on how the text is split. White space around calls is dropped.
type scanner struct {
	forms    []form
	thoughts [][2]string
	marks    []string // of templates
	tools    []string // names of the offered ones
	part     []byte   // the start of a character that is not complete yet
	buf      []byte   // undecided text; it begins with the call if there is one
	final    bool     // no more text will come
	cut      bool     // the text was cut off
	said     []byte   // text to forward that is not in out yet
	out      []event

	held  string // white space before a possible call, and marks of templates that may end the text
	after bool   // the last event was a call
	fresh bool   // leading white space is dropped
	lone  bool   // a thought has ended of which only the end was marked
	doubt bool   // a text began like a call and was none
	tried int    // the number of such texts
	over  bool   // the rest is invented by the model

	call   *candidate // nil outside of a possible call
	begun  bool       // more than white space was read
	inLine bool       // more than white space was read in this line
	inCode bool       // inside inline code
	fence  int        // backticks around the code block; 0 means none
	thinks []string   // the closers of the thoughts being read; empty means none
}

func newScanner(tools []llm.ToolSpec) *scanner {
	s := &scanner{thoughts: thoughts(), marks: templateMarks()}
	for _, t := range tools {
		s.tools = append(s.tools, t.Name)
	}
	if len(tools) > 0 {
		s.forms = forms()
	}
	return s
}

// write processes the next piece of text.
func (s *scanner) write(text string) []event {
	all := slices.Concat(s.part, []byte(text))
	n := len(all)
	for i := max(0, n-utf8.UTFMax+1); i < n; i++ {
		if !utf8.FullRune(all[i:]) {
			n = i
			break
		}
	}
	s.buf = append(s.buf, all[:n]...)
	s.part = append([]byte(nil), all[n:]...)
	return s.run()
}

// end says that the text is complete, or was cut off.
func (s *scanner) end(cut bool) []event {
	s.final, s.cut = true, cut
	s.buf = append(s.buf, s.part...)
	out := s.run()
	if wire.Visible(s.held) { // it has marks
		s.held = ""
	}
	if s.held != "" && !s.after && !s.fresh {
		out = append(out, event{text: s.held})
	}
	return out
}

// run decides everything that can be decided.
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

// put adds an event after the text so far.
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

// step advances a little; it reports false if it needs more text.
func (s *scanner) step() bool {
	switch {
	case s.over:
		s.buf = nil
		return false
	case s.call != nil:
		return s.inCall()
	case s.fence > 0:
		return s.inFence()
	case len(s.thinks) > 0:
		return s.inThoughts()
	}
	return s.inText()
}

// inText forwards text up to a possible opening of a call or a code block.
func (s *scanner) inText() bool {
	switch i := bytes.IndexAny(s.buf, "`<[{◁"); {
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

// mark examines a possible mark of a form.
func (s *scanner) mark() bool {
	if s.inCode || s.tried > mostTried {
		s.say(1)
		return true
	}
	if s.after && bytes.HasPrefix(s.buf, []byte(madeUp)) {
		s.over = true
		return true
	}
	more := s.after && s.begins(madeUp)
	for _, tag := range s.thoughts {
		switch {
		case !s.begun && bytes.HasPrefix(s.buf, []byte(tag[0])):
			s.buf = s.buf[len(tag[0]):]
			s.thinks, s.held = []string{tag[1]}, ""
			return true
		case !s.lone && bytes.HasPrefix(s.buf, []byte(tag[1])):
			s.buf = s.buf[len(tag[1]):]
			s.put(event{ended: true})
			s.lone, s.fresh, s.held = true, true, ""
			s.begun, s.inLine, s.inCode = false, false, false
			return true
		}
		more = more || !s.begun && s.begins(tag[0]) || !s.lone && s.begins(tag[1])
	}
	found, wait := s.harmony()
	if found {
		return true
	}
	more = more || wait
	mark, wait := s.template(string(s.buf[:min(len(s.buf), maxName)]))
	for _, f := range s.forms {
		switch {
		case f.whole && s.begun:
		case f.open == "[" && (mark != "" || wait):
			more = more || wait
		case bytes.HasPrefix(s.buf, []byte(f.open)) && !more:
			s.call = newCandidate(f)
			return true
		default:
			more = more || s.begins(f.open)
		}
	}
	if more || wait {
		return false
	}
	if mark != "" {
		if s.buf = s.buf[len(mark):]; s.begun {
			s.held += mark
		} else {
			s.fresh = true
		}
		return true
	}
	_, n := utf8.DecodeRune(s.buf)
	s.say(n)
	return true
}

// template returns the mark of a template that the text begins with, and whether more text must come to tell. The
// mark of a call is none.
func (s *scanner) template(text string) (mark string, more bool) {
	for _, m := range s.marks {
		if strings.HasPrefix(text, m) {
			return m, false
		}
		more = more || !s.final && strings.HasPrefix(m, text)
	}
	mark = anyMark().FindString(text)
	if mark != "" && bare(mark) {
		mark = ""
	}
	return mark, more || !s.final && unfinished().MatchString(text)
}

// mostTried is the maximum number of texts that begin like a call and are none; everything after them is text.
const mostTried = 64

// inThoughts forwards a model's thoughts: a call in them is not meant to be made. The text after them is read like
// a reply of its own.
func (s *scanner) inThoughts() bool {
	end, closer := len(s.buf), ""
	for _, c := range s.thinks {
		if n := bytes.Index(s.buf[:min(len(s.buf), end+len(c))], []byte(c)); n >= 0 && n < end {
			end, closer = n, c
		}
	}
	for i := max(0, end-longestCloser); i < end && closer == "" && !s.final; i++ { // possible starts of the closer
		for _, c := range s.thinks {
			if len(c) > end-i && strings.HasPrefix(c, string(s.buf[i:end])) {
				end = i
			}
		}
	}
	if end > 0 {
		s.put(event{thought: string(s.buf[:end])})
		s.buf = s.buf[end:]
	}
	if closer == "" {
		return false
	}
	if !slices.Contains(heads(), closer) {
		s.buf = s.buf[len(closer):]
	}
	s.thinks, s.begun, s.inLine, s.inCode, s.fresh = nil, false, false, false, true
	return true
}

const longestCloser = 24 // bytes of the longest closer of thoughts

// begins reports whether the remaining text may be the beginning of mark.
func (s *scanner) begins(mark string) bool {
	return !s.final && strings.HasPrefix(mark, string(s.buf[:min(len(s.buf), len(mark))])) && len(s.buf) < len(mark)
}

// backticks examines possible inline code or the opening of a code block.
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

// inFence forwards a code block line by line.
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

// say forwards the next n bytes as text.
func (s *scanner) say(n int) {
	text := s.buf[:n]
	s.buf = s.buf[n:]
	for _, c := range text {
		s.track(c)
	}
	said := strings.TrimRight(string(text), space)
	tail := string(text[len(said):])
	if said == "" {
		s.held += tail
		return
	}
	if said = s.held + said; s.after || s.fresh {
		said = strings.TrimLeft(said, space)
	}
	s.said, s.held = append(s.said, said...), tail
	s.after, s.fresh = false, false
}

// track notes the position in the line, after c.
func (s *scanner) track(c byte) {
	switch c {
	case '\n':
		s.inLine, s.inCode = false, false
	case ' ', '\t', '\r':
	default:
		s.inLine, s.begun = true, true
	}
}

// reject turns the opening of a supposed call into text.
func (s *scanner) reject() bool {
	f := s.call.form
	s.call = nil
	s.tried++
	s.doubt = s.doubt || f.sure() && len(f.open) > 1
	s.say(max(len(f.open), 1))
	s.fence = f.fence
	return true
}

// accept takes the calls out of the text; they end n bytes on.
func (s *scanner) accept(n int) bool {
	for _, w := range s.call.calls {
		if !w.shown {
			s.put(event{delta: &llm.CallDelta{Name: w.call.Name, Args: cmp.Or(w.call.Invalid, string(w.call.Args))}})
		}
		s.put(event{call: &w.call, fenced: s.call.form.fence > 0})
	}
	s.call = nil
	s.buf = s.buf[n:]
	s.held, s.after, s.begun, s.inLine, s.inCode = "", true, true, false, false
	return true
}

// tool returns the offered tool that a name stands for. Templates leave marks on names, such as functions.bash,
// bash<|channel|>commentary, functions.bash:0 and bash</arg_value>.
func (s *scanner) tool(name string) (string, bool) { return toolOf(s.tools, name) }

func toolOf(tools []string, name string) (string, bool) {
	for _, clean := range []func(string) string{
		func(n string) string { return n },
		unmarked,
		func(n string) string { return strings.TrimRight(strings.TrimRight(n, "0123456789"), ":_") },
		func(n string) string { return n[strings.LastIndexAny(n, "./:")+1:] },
		func(n string) string { return strings.Trim(n, "\"'` >") },
		func(n string) string {
			return strings.TrimPrefix(strings.TrimPrefix(n, "mcp__functions__"), "functions_")
		},
	} {
		if name = clean(name); slices.Contains(tools, name) {
			return name, true
		}
	}
	same := slices.IndexFunc(tools, func(t string) bool { return strings.EqualFold(t, name) })
	if name == "" || same < 0 {
		return "", false
	}
	return tools[same], true
}

// unmarked returns a name without the marks of a template around it.
func unmarked(name string) string {
	if to := recipient().FindStringSubmatch(name); to != nil {
		name = to[1]
	}
	name = strings.TrimPrefix(strings.TrimSpace(name), functionMark)
	for strings.HasPrefix(name, "<") && strings.Contains(name, ">") {
		_, name, _ = strings.Cut(name, ">")
	}
	return strings.TrimSpace(name[:strings.IndexAny(name+"<", "<[({\n")])
}
