package shell

import "strings"

// sed judges the script and the files edited in place.
func (c *call) sed(p parsed) {
	c.prefix, c.v.noRule = nil, true
	var scripts []string
	files, inPlace, suffix := p.operands, false, ""
	for _, o := range p.options {
		switch o.name {
		case "-e", "--expression":
			if !o.value.known {
				c.v.full("the script of sed can't be known")
			}
			scripts = append(scripts, o.value.text)
		case "-i", "--in-place":
			inPlace, suffix = true, o.value.text
			if strings.ContainsAny(suffix, "/*") || o.value.one && !o.value.known {
				c.v.full("sed keeps a copy elsewhere")
			}
		}
	}
	if len(scripts) == 0 {
		if len(files) == 0 || !files[0].known || files[0].text == "" {
			c.v.full("the script of sed can't be known")
			return
		}
		scripts, files = []string{files[0].text}, files[1:]
	}
	for s := (sedReader{text: strings.Join(scripts, "\n")}); !s.end(); {
		if why := s.command(); why != "" {
			c.v.full(why)
			break
		}
	}
	if inPlace {
		c.writes(files)
		for _, w := range files {
			if suffix != "" && w.known {
				c.j.write(literal(w.text+suffix), c.s, c.v, "sed -i")
			}
		}
	}
	c.reads(files)
}

type sedReader struct {
	text string
	at   int
}

func (s *sedReader) end() bool { return s.at >= len(s.text) }

func (s *sedReader) peek() byte {
	if s.end() {
		return 0
	}
	return s.text[s.at]
}

func (s *sedReader) skip(chars string) {
	for !s.end() && strings.IndexByte(chars, s.text[s.at]) >= 0 {
		s.at++
	}
}

const sedOdd = "the script of sed is not understood"

func (s *sedReader) command() string {
	s.skip(" \t\n;")
	if s.end() {
		return ""
	}
	if !s.address() {
		return sedOdd
	}
	s.skip(" \t")
	for s.peek() == '!' {
		s.at++
		s.skip(" \t")
	}
	c := s.peek()
	s.at++
	switch c {
	case '{', '}':
		return ""
	case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
		return s.finish("")
	case 'q', 'Q', 'l', 'L':
		return s.finish("0123456789")
	case 's':
		return s.substitute()
	case 'y':
		if !s.delimited(s.delimiter(), 2) {
			return sedOdd
		}
		return s.finish("")
	case '#':
		for !s.end() && s.peek() != '\n' {
			s.at++
		}
		return ""
	case 'b', 't', 'T', ':':
		return s.finish("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
	case 'a', 'i', 'c':
		return s.appended()
	case 'w', 'W':
		return "w writes a file"
	case 'r', 'R':
		return "r reads a file"
	case 'e':
		return "e runs a command"
	}
	return sedOdd
}

// finish reads an argument of the given characters and the end of a command.
func (s *sedReader) finish(argument string) string {
	s.skip(" \t")
	s.skip(argument)
	s.skip(" \t")
	switch s.peek() {
	case ';', '\n', '}', 0:
		return ""
	}
	return sedOdd
}

// appended reads the text of a, i and c: the rest of the line. With a backslash it continues on the next line,
// which is not judged.
func (s *sedReader) appended() string {
	for ; !s.end() && s.peek() != '\n'; s.at++ {
		if s.peek() == '\\' {
			return sedOdd
		}
	}
	return ""
}

func (s *sedReader) substitute() string {
	if !s.delimited(s.delimiter(), 2) {
		return sedOdd
	}
	for ; ; s.at++ {
		switch c := s.peek(); {
		case c == 'w':
			return "s///w writes a file"
		case c == 'e':
			return "s///e runs a command"
		case c == 'g', c == 'p', c == 'i', c == 'I', c == 'm', c == 'M', c >= '0' && c <= '9':
			continue
		}
		return s.finish("")
	}
}

func (s *sedReader) delimiter() byte {
	c := s.peek()
	s.at++
	return c
}

// delimited skips n parts that end with the delimiter.
func (s *sedReader) delimited(delimiter byte, n int) bool {
	if delimiter == 0 || delimiter == '\\' || delimiter == '\n' || delimiter >= 0x80 || strings.IndexByte("[]0123456789 \t;", delimiter) >= 0 {
		return false
	}
	for ; n > 0; n-- {
		if !s.part(delimiter) {
			return false
		}
	}
	return true
}

// part skips to the delimiter. Within brackets implementations disagree on whether it counts, so there it is
// rejected.
func (s *sedReader) part(delimiter byte) bool {
	bracket := false
	for ; !s.end(); s.at++ {
		switch c := s.peek(); {
		case c == '\\':
			s.at++
		case c == '\n':
			return false
		case c == '[':
			bracket = true
		case c == ']':
			bracket = false
		case c == delimiter && bracket:
			return false
		case c == delimiter:
			s.at++
			return true
		}
	}
	return false
}

// address reads at most two addresses.
func (s *sedReader) address() bool {
	if !s.oneAddress() {
		return false
	}
	s.skip(" \t")
	if s.peek() != ',' {
		return true
	}
	s.at++
	s.skip(" \t")
	if c := s.peek(); c == '+' || c == '~' {
		s.at++
	}
	return s.oneAddress()
}

func (s *sedReader) oneAddress() bool {
	switch c := s.peek(); {
	case c >= '0' && c <= '9':
		s.skip("0123456789")
		s.skip("~")
		s.skip("0123456789")
	case c == '$':
		s.at++
	case c == '/':
		s.at++
		if !s.part('/') {
			return false
		}
		s.skip("IM")
	case c == '\\':
		s.at++
		if d := s.delimiter(); !s.delimited(d, 1) {
			return false
		}
		s.skip("IM")
	}
	return true
}
