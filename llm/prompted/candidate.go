package prompted

import (
	"bytes"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

// A candidate is a text that may be a call, or several calls in one form. Offsets are into the scanner's buffer,
// which begins with the opening of the form.
type candidate struct {
	form  form
	calls []written // the complete ones
	end   int       // end of the last of them
	body            // the one being read
}

// written is a complete call.
type written struct {
	call  llm.Call
	shown bool // while it was being written
}

// A body is one object, list or set of parameters.
type body struct {
	start int    // -1: not found yet
	name  string // of the tool, if known
	args  int    // start of the arguments; 0 means unknown
	ready bool   // no more can be learned from the head
	done  bool   // it is in calls
	scan  balance
	shown int // arguments were shown up to here
	seen  int // the end of the parameters was searched up to here
}

func newCandidate(f form) *candidate { return &candidate{form: f, body: body{start: -1}} }

// inCall continues with a candidate.
func (s *scanner) inCall() bool {
	c := s.call
	switch {
	case c.start < 0:
		return s.start()
	case c.done:
		return s.behind()
	case c.form.block != nil:
		return s.inBlock()
	case c.form.named && s.buf[c.start] == '<':
		return s.parameters()
	}
	return s.object()
}

// start finds the first body of a form.
func (s *scanner) start() bool {
	c := s.call
	at := len(c.form.open)
	if c.form.block != nil {
		c.body = body{start: at, seen: at}
		return true
	}
	if c.form.open == "{" || c.form.open == "[" {
		at = 0
	}
	if c.form.named {
		n := bytes.IndexByte(s.buf[at:], '>')
		if n < 0 && !s.final && len(s.buf) < at+maxName {
			return false
		}
		offered := false
		if n >= 0 {
			c.name, offered = s.tool(string(s.buf[at : at+n]))
		}
		if !offered {
			return s.reject()
		}
		at += n + 1
	}
	at = skip(s.buf, at, space)
	if at == len(s.buf) {
		return s.final && s.reject()
	}
	switch first := s.buf[at]; {
	case c.form.named && (first == '{' || first == '<'):
		c.body = body{start: at, name: c.name, args: at, shown: at, seen: at, ready: true, scan: balance{pos: at}}
		s.delta("")
		return true
	case c.form.open == "[" && pythonic().Match(s.buf):
		c.form.closers, c.form.block = []string{"]"}, pythonBlock
		c.body = body{start: at, seen: at}
		return true
	case c.form.open == "[" && !s.final && perhapsPythonic().Match(s.buf):
		return false
	case !c.form.named && (first == '{' || first == '['):
		c.body = body{start: at, scan: balance{pos: at}}
		return true
	case first != '<' && strings.HasSuffix(c.form.open, "<tool_call>"):
		c.form.closers, c.form.block = []string{"</tool_call>"}, glmBlock
		c.body = body{start: at, seen: at}
		return true
	case first != '<' && c.form.open == "[TOOL_CALLS]":
		c.form.block = mistralBlock
		c.body = body{start: at, seen: at}
		return true
	case first == '<' && (strings.HasSuffix(c.form.open, "<tool_call>") || strings.HasSuffix(c.form.open, seedMark)):
		return s.nested(at)
	case first == '<' && c.form.fence > 0:
		return s.tagged(at)
	}
	return s.reject()
}

// tagged looks for a form in tags within a code block.
func (s *scanner) tagged(at int) bool {
	fence := s.call.form
	rest := string(s.buf[at:])
	for _, f := range s.forms {
		switch {
		case f.whole || f.open[0] != '<':
		case strings.HasPrefix(rest, f.open):
			f.open = string(s.buf[:at]) + f.open
			f.closers, f.fence = slices.Concat(f.closers, fence.closers), fence.fence
			s.call.form = f
			return true
		case !s.final && strings.HasPrefix(f.open, rest):
			return false
		}
	}
	return s.reject()
}

// nested looks for a call by name within the tags of an object.
func (s *scanner) nested(at int) bool {
	rest := string(s.buf[at:])
	if !s.final && len(rest) < len(functionMark) && strings.HasPrefix(functionMark, rest) {
		return false
	}
	if !strings.HasPrefix(rest, functionMark) {
		return s.reject()
	}
	for _, f := range s.forms {
		if f.named {
			f.open = string(s.buf[:at]) + f.open
			s.call.form = f
		}
	}
	return true
}

// object reads a body of JSON.
func (s *scanner) object() bool {
	c := s.call
	if !c.ready {
		switch s.head() {
		case unknown:
			if !s.final {
				return false
			}
		case foreign:
			return s.none()
		}
		c.ready = true
		if c.args > 0 && c.form.sure() {
			s.delta("")
		}
	}
	within := c.args
	if c.form.named {
		within = 0 // the body itself is the arguments
	}
	done := c.scan.feed(s.buf, within)
	s.show()
	switch {
	case done:
		return s.finish(c.scan.pos, false)
	case s.final:
		return s.broken()
	}
	return false
}

// none gives up the body being read; bodies before it may still count.
func (s *scanner) none() bool {
	c := s.call
	if len(c.calls) > 0 && c.form.sure() {
		return s.accept(c.end)
	}
	return s.reject()
}

// show displays the arguments while they are being written.
func (s *scanner) show() {
	c := s.call
	if c.args == 0 || !c.form.sure() || s.buf[c.args] != '{' {
		return
	}
	end := c.scan.pos
	if c.scan.inner > 0 {
		end = c.scan.inner
	}
	if end > c.shown {
		s.delta(string(s.buf[c.shown:end]))
		c.shown = end
	}
}

func (s *scanner) delta(args string) {
	s.put(event{delta: &llm.CallDelta{Name: s.call.name, Args: args}})
}

// finish accepts a body that ends before end.
func (s *scanner) finish(end int, cut bool) bool {
	c := s.call
	text := string(s.buf[c.start:end])
	calls, ok := s.read(text, cut)
	if !ok && len(c.form.closers) > 0 {
		// A closer of the form inside the body was the real end if it has no other meaning there.
		if n := strings.Index(text, c.form.closers[0]); n >= 0 {
			text, end = text[:n], c.start+n
		}
	}
	if !ok {
		calls, ok = c.salvage(text, cut)
	}
	return s.add(calls, ok, end)
}

// add appends calls that end before end; ok is false if the body held none.
func (s *scanner) add(calls []llm.Call, ok bool, end int) bool {
	c := s.call
	if !ok {
		return s.none()
	}
	for _, call := range calls {
		c.calls = append(c.calls, written{call, c.shown > c.args})
	}
	c.end, c.done = end, true
	return true
}

// broken accepts a body that never ends: it extends to the closer of the form, or to the end of the text.
func (s *scanner) broken() bool {
	c := s.call
	if len(c.form.closers) > 0 {
		if n := bytes.Index(s.buf[c.start:], []byte(c.form.closers[0])); n >= 0 {
			return s.finish(c.start+n, false)
		}
	}
	return s.finish(len(s.buf), s.cut)
}

// parameters reads a body of tagged parameters.
func (s *scanner) parameters() bool {
	c, closer := s.call, []byte(functionEnd)
	for {
		n := bytes.Index(s.buf[c.seen:], closer)
		if n < 0 {
			break
		}
		end := c.seen + n
		text := strings.TrimSpace(string(s.buf[c.start:end]))
		if text == "" || strings.HasSuffix(text, parameterEnd) {
			return s.add(c.parameters(text, false), true, end)
		}
		c.seen = end + 1
	}
	if !s.final {
		c.seen = max(c.seen, len(s.buf)-len(closer))
		return false
	}
	if n := bytes.Index(s.buf[c.start:], closer); n >= 0 {
		return s.add(c.parameters(string(s.buf[c.start:c.start+n]), false), true, c.start+n)
	}
	return s.add(c.parameters(string(s.buf[c.start:]), s.cut), true, len(s.buf))
}

// after reads the text after a body: another body, or the closer of the form.
func (s *scanner) behind() bool {
	c := s.call
	between := space + ",;"
	if c.form.sure() {
		between += "}]" // surplus brackets are a common slip
	}
	at := skip(s.buf, c.end, between)
	rest := string(s.buf[at:])
	for i, closer := range c.form.closers {
		switch {
		case strings.HasPrefix(rest, closer):
			c.end, c.form.closers = at+len(closer), c.form.closers[i+1:]
			return true
		case !s.final && strings.HasPrefix(closer, rest):
			return false
		}
	}
	mark, more := s.template(rest)
	switch {
	case c.form.whole && mark != "":
		c.end = at + len(mark)
		return true
	case c.form.whole && more && rest != "":
		return false
	case rest == "" && s.final:
		return s.accept(at)
	case !c.form.whole && len(c.form.closers) == 0:
		return s.accept(c.end)
	case rest == "":
		return false
	case rest[0] == '{' && !c.form.named:
		c.body = body{start: at, scan: balance{pos: at}}
		return true
	}
	return s.none()
}
