package markdown

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// bareLinks recognizes bare addresses in text: of the web, with a scheme or www., and of mail.
type bareLinks struct{}

// beforeLink are the characters that may precede an address, in addition to those that the parser treats as
// marks.
const beforeLink = " ~("

// Trigger returns the characters that may precede an address; the blank also stands for the beginning of a
// line.
func (bareLinks) Trigger() []byte { return []byte(beforeLink) }

// Parse reads an address and the character before it, which stays text.
func (bareLinks) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if pc.IsInLinkLabel() {
		return nil
	}
	l, at := block.PeekLine()
	start := at
	if strings.IndexByte(beforeLink, l[0]) >= 0 {
		l, start = l[1:], at.WithStart(at.Start+1)
	}
	kind, n := ast.AutoLinkURL, webAddress(l)
	if n == 0 {
		kind, n = ast.AutoLinkEmail, mailAddress(l)
	}
	if n == 0 {
		return nil
	}
	if start != at {
		ast.MergeOrAppendTextSegment(parent, at.WithStop(start.Start))
	}
	block.Advance(start.Start - at.Start + n)
	return ast.NewAutoLink(kind, ast.NewTextSegment(text.NewSegment(start.Start, start.Start+n)))
}

// mailAddress returns the length of the address that l begins with, or 0.
func mailAddress(l []byte) int {
	if len(l) == 0 || util.IsPunct(l[0]) {
		return 0
	}
	n := util.FindEmailIndex(l)
	if n < 0 {
		return 0
	}
	_, domain, _ := bytes.Cut(l[:n], []byte("@"))
	if !bytes.Contains(domain, []byte(".")) || n < len(l) && (l[n] == '-' || l[n] == '_') {
		return 0
	}
	return n
}

// webAddress returns the length of the address that l begins with, or 0: a scheme or www., a host with a dot,
// and an optional port and path.
func webAddress(l []byte) int {
	n := 0
	for _, begin := range []string{"http://", "https://", "ftp://", "www."} {
		if bytes.HasPrefix(l, []byte(begin)) {
			n = len(begin)
		}
	}
	if n == 0 {
		return 0
	}
	host := hostLength(l[n:])
	if host == 0 {
		return 0
	}
	n += host
	if port, ok := bytes.CutPrefix(l[n:], []byte(":")); ok && len(port) > 0 && util.IsNumeric(port[0]) {
		n = len(l) - len(bytes.TrimLeft(port, "0123456789"))
	}
	if n < len(l) && strings.IndexByte("/#?", l[n]) >= 0 {
		for n < len(l) && (isName(l[n]) || strings.IndexByte("@:%+.~#$!?&/=();,'\">^{}[]`", l[n]) >= 0) {
			n++
		}
	}
	return withoutEnd(l[:n])
}

// maxHost is how many bytes of a host are read before its last dot.
const maxHost = 256

// hostLength returns the length of the host that l begins with: it ends with the
// small letters after its last dot. It is 0 if there is none.
func hostLength(l []byte) int {
	n := 0
	for i := 0; i+1 < len(l) && i <= maxHost; i++ {
		if i > 0 && l[i] == '.' && isSmall(l[i+1]) {
			n = i + 1
		}
		if !isName(l[i]) && strings.IndexByte("@:%.+~#=", l[i]) < 0 {
			break
		}
	}
	for n > 0 && n < len(l) && isSmall(l[n]) {
		n++
	}
	return n
}

func isSmall(b byte) bool { return b >= 'a' && b <= 'z' }

// isName reports whether a byte can be part of a name.
func isName(b byte) bool { return util.IsAlphaNumeric(b) || b == '-' || b == '_' }

// withoutEnd returns the length of an address without the surrounding text: punctuation, brackets that were not
// opened in it, and entities.
func withoutEnd(l []byte) int {
	n := len(l)
	open := bytes.Count(l, []byte("(")) - bytes.Count(l, []byte(")"))
	for n > 0 {
		switch c := l[n-1]; {
		case strings.IndexByte("?!.,:*_~", c) >= 0:
			n--
		case c == ')' && open < 0:
			n--
			open++
		case c == ';':
			name := bytes.TrimRightFunc(l[:n-1], func(r rune) bool { return r < 0x80 && util.IsAlphaNumeric(byte(r)) })
			if len(name) == n-1 || !bytes.HasSuffix(name, []byte("&")) {
				return n
			}
			n = len(name) - 1
		default:
			return n
		}
	}
	return n
}
