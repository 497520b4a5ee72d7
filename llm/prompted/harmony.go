package prompted

import (
	"bytes"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// Messages of gpt-oss have a head, which names a channel and perhaps a tool
// (https://cookbook.openai.com/articles/openai-harmony). Servers that do not parse it pass it on:
//	<|channel|>analysis<|message|>…<|end|>                       a thought
//	<|start|>assistant<|channel|>final<|message|>…<|return|>     the answer
//	<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>
//
// The tool may also come before the channel, and on the channel of thoughts.

const (
	messageMark = "<|message|>"
	mostHead    = 256 // bytes
)

var recipient = text.Pattern(`\bto=([^\s<]+)`)

// heads are the marks that a head begins with.
func heads() []string { return []string{"<|start|>", "<|channel|>"} }

// harmony reads the head of a message. It reports whether there is one, and whether it needs more text to decide.
func (s *scanner) harmony() (found, more bool) {
	opened := false
	for _, mark := range heads() {
		opened = opened || bytes.HasPrefix(s.buf, []byte(mark))
		more = more || s.begins(mark)
	}
	if !opened {
		return false, more
	}
	n := bytes.Index(s.buf[:min(len(s.buf), mostHead)], []byte(messageMark))
	if n < 0 {
		return false, !s.final && len(s.buf) < mostHead
	}
	head, open := string(s.buf[:n]), n+len(messageMark)
	if to := recipient().FindStringSubmatch(head); to != nil && len(s.tools) > 0 {
		name, offered := s.tool(to[1])
		if offered {
			one := func(body string) []raw { return []raw{{name, body}} }
			s.call = newCandidate(form{open: string(s.buf[:open]), closers: []string{"<|call|>", "<|end|>"}, block: one})
			return true, false
		}
		s.doubt = true
	}
	s.buf = s.buf[open:]
	s.fresh = true
	if strings.Contains(head, "analysis") {
		s.thinks = append([]string{"<|end|>"}, heads()...)
	}
	return true, false
}
