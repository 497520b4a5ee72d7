package oauth

import (
	"maps"
	"strings"
)

// maxChallenge bounds a WWW-Authenticate header, in bytes.
const maxChallenge = 16 << 10

// challenge is the content of a 401 or 403 response.
type challenge struct {
	// params are the parameters of its Bearer challenge, by their names in lower case, and those that only its
	// DPoP challenge has.
	params map[string]string
	// bearer and dpop say which kinds of tokens the server accepts.
	bearer, dpop bool
}

func (ch challenge) stepUp() bool { return ch.params["error"] == "insufficient_scope" }

// parseChallenge reads the first Bearer and the first DPoP challenge of a WWW-Authenticate header (RFC 9110,
// section 11.6.1). It skips unreadable parts: discovery can still guess after a broken header.
func parseChallenge(header string) challenge {
	found := map[string]map[string]string{} // by scheme
	s, current := scanner{text: header[:min(len(header), maxChallenge)]}, map[string]string(nil)
	for {
		s.text = strings.TrimLeft(s.text, " \t,")
		if s.text == "" {
			out := challenge{params: map[string]string{}}
			if dpop := found["dpop"]; dpop != nil {
				out.dpop = takesProofs(dpop)
				maps.Copy(out.params, dpop)
			}
			if bearer := found["bearer"]; bearer != nil {
				out.bearer = true
				maps.Copy(out.params, bearer)
			}
			return out
		}
		name := strings.ToLower(s.token())
		if name == "" {
			s.junk()
			continue
		}
		value, isParam := s.value()
		switch {
		case !isParam:
			current = map[string]string{}
			if found[name] == nil {
				found[name] = current
			}
		case current != nil && current[name] == "":
			current[name] = value
		}
	}
}

// scanner reads a header from its start.
type scanner struct{ text string }

// take cuts off the first n bytes.
func (s *scanner) take(n int) string {
	out := s.text[:n]
	s.text = s.text[n:]
	return out
}

func (s *scanner) token() string {
	n := strings.IndexFunc(s.text, func(r rune) bool { return !tokenRune(r) })
	if n < 0 {
		n = len(s.text)
	}
	return s.take(n)
}

func tokenRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r < 128 && r != 0 && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// value reads the value of a parameter. Without an equals sign, the name was that of a scheme.
func (s *scanner) value() (value string, isParam bool) {
	rest := strings.TrimLeft(s.text, " \t")
	if !strings.HasPrefix(rest, "=") {
		return "", false
	}
	s.text = strings.TrimLeft(rest[1:], " \t")
	if strings.HasPrefix(s.text, `"`) {
		return s.quoted(), true
	}
	return s.token(), true
}

// quoted reads a quoted string, up to the end of the header if it is unterminated.
func (s *scanner) quoted() string {
	var b strings.Builder
	for i := 1; i < len(s.text); i++ {
		switch ch := s.text[i]; {
		case ch == '"':
			s.text = s.text[i+1:]
			return b.String()
		case ch == '\\' && i+1 < len(s.text):
			i++
			b.WriteByte(s.text[i])
		default:
			b.WriteByte(ch)
		}
	}
	s.text = ""
	return ""
}

// junk skips invalid text, up to the next comma or space.
func (s *scanner) junk() {
	n := strings.IndexAny(s.text, ", \t")
	if n < 0 {
		n = len(s.text)
	}
	s.take(n)
}
