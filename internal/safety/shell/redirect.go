package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirEnd returns the end of a redirect on its line; its here-document is below.
func redirEnd(r *syntax.Redirect) syntax.Pos { return r.Word.End() }

// redirects judges what redirects open.
func (j *judge) redirects(redirs []*syntax.Redirect, s scope) verdict {
	v := verdict{}
	for _, r := range redirs {
		j.redirect(r, s, &v)
	}
	return v
}

func (j *judge) redirect(r *syntax.Redirect, s scope, v *verdict) {
	if r.N != nil && !digits(r.N.Value) {
		v.full("a redirect that sets a variable")
		if !shellName(strings.Trim(r.N.Value, "{}")) {
			j.unproven(s, s.slice(r.Pos(), redirEnd(r)), "a redirect that sets a variable")
		}
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc != nil {
			j.resolveWord(r.Hdoc, s)
		}
		return
	case syntax.WordHdoc:
		j.resolveWord(r.Word, s)
		return
	}
	words := j.expand([]*syntax.Word{r.Word}, s)
	if r.Op == syntax.DplOut || r.Op == syntax.DplIn {
		j.duplicated(r, words, s, v)
	}
	if len(words) != 1 || words[0].values() == nil {
		if len(words) == 1 && r.Op == syntax.RdrIn && words[0].paths != nil && strings.HasPrefix(words[0].text, "/dev/fd/") {
			return // <(...), judged with the substitution
		}
		v.full("where a redirect leads can't be known")
		return
	}
	for _, path := range words[0].values() {
		j.open(r, literal(path), s, v)
	}
}

// duplicated judges the word after >&. If it names a file, bash expands the result again.
func (j *judge) duplicated(r *syntax.Redirect, words []word, s scope, v *verdict) {
	plain := func(text string) bool { return strings.Trim(text, letters+numbers+"_./+,:@%-") == "" }
	for _, w := range words {
		if values := w.values(); values != nil && !slices.ContainsFunc(values, func(text string) bool { return !plain(text) }) {
			continue
		}
		v.full("bash expands the word after >& twice")
		j.unproven(s, s.slice(r.Pos(), redirEnd(r)), "bash expands the word after >& twice")
		if w.known {
			j.script("echo "+w.text, s.deeper(), dialects{bash: true})
		}
	}
}

func (j *judge) open(r *syntax.Redirect, w word, s scope, v *verdict) {
	if hasAnyPrefix(w.text, "/dev/tcp/", "/dev/udp/") {
		v.network(strings.Split(w.text, "/")[3])
		v.full("bash opens a connection for this redirect")
		return
	}
	switch r.Op {
	case syntax.DplIn, syntax.DplOut:
		if w.text == "-" || digits(strings.TrimSuffix(w.text, "-")) {
			return
		}
		if r.Op == syntax.DplIn || r.N != nil {
			v.full("this redirect is not understood")
			return
		}
		j.write(w, s, v, "a redirect")
	case syntax.RdrIn:
		j.read(w, s, v)
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrInOut:
		j.write(w, s, v, "a redirect")
	default:
		v.full("this redirect is not understood")
	}
}

// quiet reports devices that can be written without effect.
func quiet(path string) bool {
	return slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2"}, path)
}
