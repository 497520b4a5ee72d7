package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// dynamic adds a part whose value is computed when the command runs.
func (b *building) dynamic(p syntax.WordPart, quoted bool) {
	switch p := p.(type) {
	case *syntax.ParamExp:
		b.param(p, quoted)
	case *syntax.CmdSubst:
		b.substitute(p)
		b.unknown(quoted)
	case *syntax.ArithmExp:
		if p.Unsigned || !constant(p.X) {
			b.j.unproven(b.s, b.s.text(p), "arithmetic with names evaluates what they hold")
		}
		b.j.nested(p.X, b.s)
		b.unknown(quoted)
	case *syntax.ProcSubst:
		b.process(p)
	default:
		b.j.opaque(p, b.s)
		b.unknown(false)
	}
}

func (b *building) substitute(p *syntax.CmdSubst) {
	s := b.s.deeper()
	switch {
	case p.TempFile || p.ReplyVar:
		b.j.unproven(s, s.text(p), "this kind of substitution is not judged")
	case p.Backquotes && strings.Count(s.text(p), "`") != 2:
		// Bash ends at the next one, also within quotes.
		b.j.unproven(s, s.text(p), "a backquote in quotes within backquotes is read differently by shells")
	case p.Backquotes && strings.Contains(s.text(p), `\`):
		b.j.unproven(s, s.text(p), "backslashes within backquotes are read differently by shells")
	}
	b.j.inner(p.Stmts, s)
}

// process adds the path of a pipe for <(...).
func (b *building) process(p *syntax.ProcSubst) {
	s := b.s.deeper()
	if p.Op != syntax.CmdIn {
		b.j.unproven(s, s.text(p), "writing into a process is not judged")
	}
	b.j.inner(p.Stmts, s)
	alone := b.text.Len() == 0 && !b.cut
	b.literal("/dev/fd/")
	b.known, b.cut, b.wild, b.each = false, true, true, nil
	if alone {
		b.paths = []string{} // it reads no file of its own
	}
}

// param adds a parameter expansion.
func (b *building) param(p *syntax.ParamExp, quoted bool) {
	text := b.s.text(p)
	if why := oddParam(p); why != "" {
		b.j.unproven(b.s, text, why)
	} else if !plainExpansion(text) {
		b.j.unproven(b.s, text, "more than plain text in an expansion is not judged")
	}
	b.paramWords(p)
	quoted = quoted && !strings.ContainsAny(text, `'"`) // shells disagree about quotes within quotes
	bare := p.Param != nil && p.Exp == nil && p.Repl == nil && p.Slice == nil && p.Index == nil && !p.Excl && p.Names == 0
	switch {
	case p.Length || bare && (p.Param.Value == "#" || p.Param.Value == "?" || p.Param.Value == "$"):
		first := !b.cut && b.text.Len() == 0
		b.unknown(true)
		if first {
			b.loose, b.safe = false, true // a number
		}
	case p.Param != nil && (p.Param.Value == "@" || p.Param.Value == "*"), p.Index != nil:
		b.unknown(false) // any number of words, even in quotes
	case bare:
		b.variable(p.Param.Value, quoted)
	default:
		b.unknown(quoted)
	}
}

func oddParam(p *syntax.ParamExp) string {
	switch {
	case p.Param == nil || p.NestedParam != nil || p.Flags != nil || p.Width || p.IsSet || len(p.Modifiers) > 0:
		return "this expansion is not understood"
	case p.Excl || p.Names != 0:
		return "what the name of a variable is can't be known"
	case p.Index != nil && !subscript(p.Index):
		return "subscripts are evaluated"
	case p.Slice != nil && (!constant(p.Slice.Offset) || !constant(p.Slice.Length)):
		return "the bounds of a slice are evaluated"
	case p.Exp != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull):
		return "it sets a variable"
	case p.Exp != nil && p.Exp.Op == syntax.OtherParamOps:
		return "@ operators can run what a variable holds"
	}
	return ""
}

// paramWords judges the words inside of an expansion.
func (b *building) paramWords(p *syntax.ParamExp) {
	var words []*syntax.Word
	if p.Exp != nil {
		words = append(words, p.Exp.Word)
	}
	if p.Repl != nil {
		words = append(words, p.Repl.Orig, p.Repl.With)
	}
	for _, w := range words {
		if w != nil {
			b.j.resolveWord(w, b.s)
		}
	}
	if p.Slice != nil {
		b.j.nested(p.Slice.Offset, b.s)
		b.j.nested(p.Slice.Length, b.s)
	}
	b.j.nested(p.Index, b.s)
}

// nested judges the substitutions within arithmetic.
func (j *judge) nested(x syntax.ArithmExpr, s scope) {
	if x == nil {
		return
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		if st, ok := n.(*syntax.Stmt); ok {
			j.stmt(st, s.deeper())
			return false
		}
		return true
	})
}

// variable adds the value of a known variable, such as HOME.
func (b *building) variable(name string, quoted bool) {
	value, known := b.s.variable(name)
	switch {
	case known:
	case name == "HOME" && b.j.at.Home != "" && !b.s.bare:
		value = literal(b.j.at.Home)
	case name == "PWD" && len(b.s.cwds) == 1 && !b.s.bare:
		value = literal(b.s.cwds[0])
	default:
		b.unknown(quoted)
		return
	}
	if value.known && (quoted || !strings.ContainsAny(value.text, " \t\n*?[\\")) && (value.text != "" || quoted) {
		b.literal(value.text)
		return
	}
	each := b.followed(value, quoted)
	first := !b.cut && b.text.Len() == 0
	if first && quoted && !value.loose {
		b.literal(value.text)
	}
	b.unknown(quoted)
	b.each = each
	if first && quoted {
		b.loose, b.safe, b.paths = value.loose, value.safe, value.paths
	}
}

// constant reports whether arithmetic contains only numbers and operators without side effects.
func constant(x syntax.ArithmExpr) bool {
	switch x := x.(type) {
	case nil:
		return true
	case *syntax.Word:
		return digits(x.Lit())
	case *syntax.ParenArithm:
		return constant(x.X)
	case *syntax.UnaryArithm:
		return (x.Op == syntax.Minus || x.Op == syntax.Plus || x.Op == syntax.Not) && constant(x.X)
	case *syntax.BinaryArithm:
		switch x.Op {
		case syntax.Add, syntax.Sub, syntax.Mul, syntax.Quo, syntax.Rem, syntax.Pow,
			syntax.Gtr, syntax.Lss, syntax.Eql, syntax.Neq, syntax.Geq, syntax.Leq:
			return constant(x.X) && constant(x.Y)
		}
	}
	return false
}

func subscript(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*") || constant(x)
}

// ansi decodes the inside of $'...'. It rejects sequences that shells disagree about.
func ansi(text string) (string, bool) {
	var out []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		if i++; i == len(text) {
			return "", false
		}
		if at := strings.IndexByte(`abefnrtv\'"?E`, text[i]); at >= 0 {
			out = append(out, "\a\b\x1b\f\n\r\t\v\\'\"?\x1b"[at])
			continue
		}
		n, size := ansiNumber(text[i:])
		if size == 0 || n == 0 {
			return "", false // a NUL ends the text early
		}
		out = append(out, byte(n))
		i += size - 1
	}
	return string(out), true
}

// ansiNumber reads an octal or hexadecimal byte. Size 0: none.
func ansiNumber(text string) (n uint64, size int) {
	base, from, longest := 8, 0, 3
	if text[0] == 'x' {
		base, from, longest = 16, 1, 2
	}
	for end := min(len(text), from+longest); end > from; end-- {
		if n, err := strconv.ParseUint(text[from:end], base, 8); err == nil {
			return n, end
		}
	}
	return 0, 0
}
