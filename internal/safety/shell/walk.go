package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/inspan/inspan/tool"
)

// flow is the possible working folders of the shell after a command, on success and on failure. Nil means any.
type flow struct{ yes, no []string }

func same(cwds []string) flow { return flow{cwds, cwds} }

func union(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	out := slices.Clone(a)
	for _, cwd := range b {
		if !slices.Contains(out, cwd) {
			out = append(out, cwd)
		}
	}
	if len(out) > 8 {
		return nil
	}
	return out
}

func (j *judge) list(stmts []*syntax.Stmt, s scope) flow {
	out := same(s.cwds)
	for _, st := range stmts {
		s.cwds = union(out.yes, out.no)
		out = j.stmt(st, s)
	}
	return out
}

// inner judges statements in a subshell.
func (j *judge) inner(stmts []*syntax.Stmt, s scope) flow {
	j.list(stmts, s)
	return same(s.cwds)
}

func (j *judge) stmt(st *syntax.Stmt, s scope) flow {
	if st.Coprocess || st.Disown {
		j.unproven(s, s.text(st), "a coprocess is not understood")
	}
	call, simple := st.Cmd.(*syntax.CallExpr)
	var out flow
	switch {
	case simple:
		out = j.simple(st, call, s)
	case st.Cmd == nil:
		j.redirected(st, s)
		out = same(s.cwds)
	default:
		j.redirected(st, s)
		out = j.compound(st.Cmd, s)
	}
	if st.Background {
		return same(s.cwds)
	}
	if st.Negated {
		out.yes, out.no = out.no, out.yes
	}
	return out
}

// redirected adds a segment for the redirects of a compound command.
func (j *judge) redirected(st *syntax.Stmt, s scope) {
	if len(st.Redirs) == 0 {
		return
	}
	text := s.slice(st.Redirs[0].Pos(), redirEnd(st.Redirs[len(st.Redirs)-1]))
	at := j.add(Segment{Text: text, Class: Read, Depth: s.depth})
	v := j.redirects(st.Redirs, s)
	j.settle(at, v, nil)
}

func (j *judge) compound(cmd syntax.Command, s scope) flow {
	switch c := cmd.(type) {
	case *syntax.BinaryCmd:
		return j.binary(c, s)
	case *syntax.Block:
		return j.list(c.Stmts, s)
	case *syntax.Subshell:
		return j.inner(c.Stmts, s)
	case *syntax.TimeClause:
		if c.Stmt == nil {
			return same(s.cwds)
		}
		if text := s.text(c.Stmt); strings.HasPrefix(text, "-") {
			j.unproven(s, text, "options of time are not judged")
		}
		return j.stmt(c.Stmt, s)
	case *syntax.IfClause:
		return same(j.branches(c, s))
	case *syntax.WhileClause:
		return j.loop(s, s.text(c), func() flow {
			s.cwds = union2(j.list(c.Cond, s))
			return j.list(c.Do, s)
		})
	case *syntax.ForClause:
		return j.forClause(c, s)
	case *syntax.CaseClause:
		return j.caseClause(c, s)
	case *syntax.TestClause: // numeric operators evaluate their operands, which can run commands
		at := j.add(Segment{Text: s.text(c), Class: Read, Depth: s.depth})
		v := verdict{}
		j.testExpr(c.X, s, &v)
		j.settle(at, v, nil)
		return same(s.cwds)
	}
	return j.opaque(cmd, s)
}

func union2(f flow) []string { return union(f.yes, f.no) }

// opaque judges grammar that is not understood. Its content is judged anyway, for rules.
func (j *judge) opaque(n syntax.Node, s scope) flow {
	j.unproven(s, s.text(n), "this part of the shell's language is not judged")
	s = s.deeper()
	s.cwds = nil
	syntax.Walk(n, func(n syntax.Node) bool {
		if st, ok := n.(*syntax.Stmt); ok {
			j.stmt(st, s)
			return false
		}
		return true
	})
	return flow{}
}

func (j *judge) binary(c *syntax.BinaryCmd, s scope) flow {
	// Long chains are left-deep: walk down and up without recursion.
	chain := []*syntax.BinaryCmd{c}
	for len(c.X.Redirs) == 0 && !c.X.Negated && !c.X.Background {
		x, ok := c.X.Cmd.(*syntax.BinaryCmd)
		if !ok {
			break
		}
		chain, c = append(chain, x), x
	}
	start := s.cwds
	out := j.stmt(c.X, s)
	for _, c := range slices.Backward(chain) {
		switch c.Op {
		case syntax.AndStmt:
			s.cwds = out.yes
			y := j.stmt(c.Y, s)
			out = flow{y.yes, union(out.no, y.no)}
		case syntax.OrStmt:
			s.cwds = out.no
			y := j.stmt(c.Y, s)
			out = flow{union(out.yes, y.yes), y.no}
		default: // each side of a pipe is a subshell
			s.cwds = start
			j.stmt(c.Y, s)
			out = same(start)
		}
	}
	return out
}

func (j *judge) branches(c *syntax.IfClause, s scope) []string {
	cond := flow{s.cwds, s.cwds}
	if len(c.Cond) > 0 {
		cond = j.list(c.Cond, s)
	}
	s.cwds = cond.yes
	out := union2(j.list(c.Then, s))
	if c.Else == nil {
		return union(out, cond.no)
	}
	s.cwds = cond.no
	return union(out, j.branches(c.Else, s))
}

// loop judges a body that runs any number of times. A body that changes the folder would have to be judged
// again from there.
func (j *judge) loop(s scope, text string, body func() flow) flow {
	out := union2(body())
	if !slices.Equal(out, s.cwds) {
		j.unproven(s, text, "the loop changes the current folder")
		return flow{}
	}
	return same(s.cwds)
}

func (j *judge) forClause(c *syntax.ForClause, s scope) flow {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok || c.Select {
		return j.opaque(c, s)
	}
	if !shellName(iter.Name.Value) {
		j.unproven(s, s.text(iter), "setting "+iter.Name.Value+" can change what programs do")
	}
	items := j.expand(iter.Items, s)
	value := word{one: true, loose: true}
	if !assigns(c.Do, iter.Name.Value) && iter.InPos.IsValid() {
		value = merge(items)
	}
	s.vars = &variable{iter.Name.Value, value, s.vars}
	return j.loop(s, s.text(c), func() flow { return j.list(c.Do, s) })
}

// assigns reports whether statements may set the variable, apart from the surrounding loop.
func assigns(stmts []*syntax.Stmt, name string) bool {
	found := false
	for _, st := range stmts {
		syntax.Walk(st, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Assign:
				found = found || n.Name == nil || n.Name.Value == name
			case *syntax.WordIter:
				found = found || n.Name.Value == name
			case *syntax.CallExpr:
				for i, w := range n.Args {
					text, literal := bare(w)
					found = found || i == 0 && (!literal || text == "command" || text == "builtin" || text == "exec" || text == "read")
				}
			}
			return !found
		})
	}
	return found
}

// bare returns the text of a word without its quotes, and whether the word is completely literal.
func bare(w *syntax.Word) (text string, literal bool) {
	var out strings.Builder
	literal = true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil, *syntax.Word:
		case *syntax.Lit:
			out.WriteString(strings.ReplaceAll(n.Value, `\`, ""))
		case *syntax.SglQuoted:
			out.WriteString(n.Value)
			literal = literal && !n.Dollar
		case *syntax.DblQuoted:
			literal = literal && !n.Dollar
		default:
			literal = false
		}
		return literal
	})
	return out.String(), literal
}

func (j *judge) caseClause(c *syntax.CaseClause, s scope) flow {
	j.resolveWord(c.Word, s)
	out := s.cwds
	for _, item := range c.Items {
		for _, w := range item.Patterns {
			j.resolveWord(w, s)
		}
		if item.Op != syntax.Break {
			j.unproven(s, s.text(c), "falling through cases is not judged")
		}
		out = union(out, union2(j.list(item.Stmts, s)))
	}
	return same(out)
}

func (j *judge) testExpr(x syntax.TestExpr, s scope, v *verdict) {
	switch x := x.(type) {
	case *syntax.ParenTest:
		j.testExpr(x.X, s, v)
	case *syntax.Word:
		j.resolveWord(x, s)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			v.full("-v and -R evaluate subscripts")
		}
		j.testExpr(x.X, s, v)
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			if !number(x.X) || !number(x.Y) {
				v.full("comparing numbers in [[ ]] evaluates what the words hold; use [ ] instead")
			}
		}
		if x.Op == syntax.TsReMatch {
			j.regularExpression(x.Y, s, v)
		}
		j.testExpr(x.X, s, v)
		j.testExpr(x.Y, s, v)
	default:
		v.full("this test is not understood")
	}
}

func number(x syntax.TestExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && digits(w.Lit())
}

// effect is shorthand for an effect on a path.
func effect(kind tool.EffectKind, path string) tool.Effect {
	return tool.Effect{Kind: kind, Path: path}
}
