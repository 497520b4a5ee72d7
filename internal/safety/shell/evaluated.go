package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bash evaluates more text than its grammar shows as commands. This file lists
// where, by the sections of bash(1) of version 5.2, and states the law for it:
//
//	An expansion is proven only if everything in it is plain text or a plain
//	parameter. Text that bash evaluates a second time is never proven. Both
//	are listed as a segment whose words can't be known, so that every deny
//	rule for commands may mean it.
//
//	section of bash(1)        what is evaluated              judged by
//	QUOTING                   $'...', $"..."                 building.single, building.double
//	                          lines that continue            joinedToken
//	                          "$${...", "$$(..."             odd
//	PARAMETERS, Arrays        subscripts; NAME[SUBSCRIPT]=   oddParam, assignments
//	Shell Variables           RANDOM and its like, which     evaluatedVariable
//	                          are integers; BASH_ENV, ENV,
//	                          PS0 to PS4, PROMPT_COMMAND
//	Brace Expansion           each of the words              judge.braces
//	Parameter Expansion       the words after :- = ? + # %   plainExpansion
//	                          / ^ , and quotes within them
//	                          offset and length              oddParam
//	                          ${!name}, ${name@P}            oddParam
//	Command Substitution      $(...), `...`                  building.substitute
//	Arithmetic Expansion      $((...)), $[...]               constant
//	Process Substitution      <(...), >(...)                 building.process
//	REDIRECTION               the word; here-documents       judge.redirect
//	                          the word of >&, once more      judge.duplicated
//	                          {NAME[SUBSCRIPT]}>             variableRedirect
//	Compound Commands         ((...)), for ((...)), select,  judge.opaque
//	                          coproc, functions
//	                          [[ -v ]], [[ -eq ]]            judge.testExpr
//	                          [[ =~ (<(...)) ]]              regularExpression
//	                          case patterns                  judge.caseClause
//	ALIASES                   values                         evaluatesWords
//	SIMPLE COMMAND EXPANSION  assignments before the words   assignments
//	ENVIRONMENT               BASH_FUNC_NAME%%=              evaluatedVariable
//	SHELL BUILTIN COMMANDS    names, scripts and arithmetic  evaluatesWords, insideShell
//	                          in the words of builtins

// plainExpansion reports whether the text of an expansion, as written, contains only plain text and plain
// parameters.
//
// Whether a quote within ${...} quotes depends on the context of the braces, and shells and parsers disagree.
// So the text must be harmless either way: nothing in it may begin an expansion even if its quotes are plain
// characters, and it may contain quotes of one kind only, in pairs, so that the expansion ends at the same
// brace.
func plainExpansion(text string) bool {
	inner, ok := strings.CutPrefix(text, "$")
	if !ok {
		return false
	}
	if inner, ok = strings.CutPrefix(inner, "{"); ok {
		inner, ok = strings.CutSuffix(inner, "}")
		return ok && plainText(inner)
	}
	return plainParameter(text) == len(text)
}

const unplain = "`$<>(){}"

func plainText(text string) bool {
	single, double := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'':
			single++
		case c == '"':
			double++
		case c == '\\':
			if i++; i == len(text) || strings.IndexByte(unplain+"'\"\\\n", text[i]) >= 0 {
				return false
			}
		case c == '$':
			n := plainParameter(text[i:])
			if n == 0 {
				return false
			}
			i += n - 1
		case strings.IndexByte(unplain, c) >= 0:
			return false
		}
	}
	return single%2 == 0 && double%2 == 0 && (single == 0 || double == 0)
}

// plainParameter returns the length of the $name or ${name} at the beginning of a text, or 0.
func plainParameter(text string) int {
	rest, braced := strings.CutPrefix(text[1:], "{")
	name := len(rest) - len(strings.TrimLeft(rest, letters+numbers+"_"))
	switch {
	case name == 0 && rest != "" && strings.IndexByte("@*#?$!-", rest[0]) >= 0:
		name = 1
	case name == 0:
		return 0
	case !braced && rest[0] >= '0' && rest[0] <= '9':
		name = 1 // the rest is text
	}
	if !braced {
		return 1 + name
	}
	if !strings.HasPrefix(rest[name:], "}") {
		return 0
	}
	return len("${}") + name
}

// regularExpression judges the right side of =~. The parser treats a group as text, but bash evaluates its
// content.
func (j *judge) regularExpression(x syntax.TestExpr, s scope, v *verdict) {
	w, ok := x.(*syntax.Word)
	if !ok {
		return
	}
	for _, p := range w.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			continue
		}
		for i := 0; i < len(lit.Value); i++ {
			next := lit.Value[min(i+1, len(lit.Value)):]
			switch lit.Value[i] {
			case '\\':
				i++
				continue
			case '`':
			case '<', '>', '$':
				if !strings.HasPrefix(next, "(") {
					continue
				}
			default:
				continue
			}
			v.full("bash evaluates a part of the regular expression")
			j.unproven(s, s.text(w), "bash evaluates a part of the regular expression")
			return
		}
	}
}

// variableRedirect judges a {NAME[SUBSCRIPT]} directly before a redirect, which the parser treats as a word and
// bash as a variable.
func (j *judge) variableRedirect(args []*syntax.Word, redirs []*syntax.Redirect, s scope, v *verdict) {
	for _, w := range args {
		if text := s.text(w); !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}") {
			continue
		}
		if slices.ContainsFunc(redirs, func(r *syntax.Redirect) bool { return r.Pos() == w.End() }) {
			v.full("a redirect that sets a variable")
			j.unproven(s, s.text(w), "bash evaluates the subscript of a variable before a redirect")
		}
	}
}

// evaluatedVariable reports whether bash runs, expands or calculates the value of a variable, or parses
// commands differently because of it.
func evaluatedVariable(name string) bool {
	return strings.HasPrefix(name, "BASH") || slices.Contains([]string{
		"ENV", "PS0", "PS1", "PS2", "PS3", "PS4", "PROMPT_COMMAND", "MAILPATH", "SHELLOPTS", "POSIXLY_CORRECT",
		"RANDOM", "SRANDOM", "SECONDS", "OPTIND", "OPTERR", "HISTCMD", "LINENO", "EPOCHSECONDS", "DIRSTACK",
	}, name)
}

// inertValue reports whether bash only stores a value.
func inertValue(name string, value word) bool {
	if !value.known || strings.HasPrefix(name, "BASH") || name == "SHELLOPTS" || name == "POSIXLY_CORRECT" {
		return false
	}
	prompt := strings.HasPrefix(name, "PS") && !strings.ContainsAny(value.text, "$`\\")
	return value.text == "" || digits(value.text) || prompt
}

// insideVariable examines the values of variables that shells and programs run.
func (j *judge) insideVariable(name string, value word, s scope) {
	evaluated := evaluatedVariable(name)
	settings := strings.HasPrefix(name, "GIT_CONFIG_") && name != "GIT_CONFIG_NOSYSTEM" && value.text != "/dev/null" // aliases, programs
	if !evaluated && !settings && !slices.Contains([]string{
		"EDITOR", "VISUAL", "PAGER", "MANPAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF",
		"GIT_ASKPASS", "GIT_SSH", "GIT_PROXY_COMMAND", "SSH_ASKPASS", "SUDO_ASKPASS", "LESSOPEN", "LESSCLOSE", "RSYNC_RSH",
		"BROWSER", "SHELL", "FCEDIT", "CC", "CXX", "LD", "RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER",
	}, name) {
		return
	}
	if settings || evaluated && !inertValue(name, value) || !evaluated && !value.known {
		j.unproven(s.deeper(), name+"="+value.text, "what "+name+" makes run can't be known")
	}
	c := &call{j: j, s: s, v: &verdict{}}
	c.text(value)
}

// evaluatesWords reports whether a builtin evaluates, or may evaluate, text within known words: names with
// subscripts, arithmetic, scripts, or options that change how bash parses later text.
func evaluatesWords(name string, args []word) bool {
	holds := func(chars string) bool {
		return slices.ContainsFunc(args, func(w word) bool { return strings.ContainsAny(w.text, chars) })
	}
	option := func(letters string) bool {
		return slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "-") && strings.ContainsAny(w.text, letters) })
	}
	setsEvaluated := slices.ContainsFunc(args, func(w word) bool { return evaluatedVariable(w.text) })
	switch name {
	case "let", "fc", "bind", "complete", "compgen", "compopt", "history":
		return true
	case "declare", "typeset", "local", "export", "readonly":
		return holds("[$`(") || option("in")
	case "read", "mapfile", "readarray", "getopts", "unset":
		return holds("[$`") || setsEvaluated || option("C")
	case "printf":
		args = args[:min(2, len(args))] // -v and the name
		return option("v") && (setsEvaluated || holds("[$`"))
	case "test", "[":
		if name == "[" && len(args) > 0 {
			args = args[:len(args)-1]
		}
		return holds("[$`")
	case "wait":
		return holds("[$`") || setsEvaluated
	case "jobs":
		return option("x")
	case "alias":
		return slices.ContainsFunc(args, func(w word) bool { return strings.Trim(w.text, letters+numbers+" _./=,:@%+-") != "" })
	case "set":
		if at := slices.IndexFunc(args, func(w word) bool { return w.text == "--" }); at >= 0 {
			args = args[:at]
		}
		return slices.ContainsFunc(args, changesReading)
	case "shopt":
		return slices.ContainsFunc(args, changesReading)
	}
	return false
}

// changesReading reports whether a word of set or shopt may be an option that changes how bash parses or runs
// later lines.
func changesReading(w word) bool {
	if letters, ok := strings.CutPrefix(w.text, "+"); ok || strings.HasPrefix(w.text, "-") {
		return strings.Trim(strings.TrimPrefix(letters, "-"), "abefhmnouvxCETsqp") != ""
	}
	return !slices.Contains([]string{
		"allexport", "errexit", "errtrace", "functrace", "hashall", "monitor", "noclobber", "noexec", "noglob", "nounset", "pipefail",
		"verbose", "xtrace", "nullglob", "globstar", "dotglob", "nocaseglob", "failglob", "extglob", "lastpipe", "nocasematch", "inherit_errexit",
		"globasciiranges",
	}, w.text)
}
