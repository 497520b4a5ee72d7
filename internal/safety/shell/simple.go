package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call is one command with resolved words.
type call struct {
	j      *judge
	s      scope
	name   string // of the program, without its folder
	args   []word
	v      *verdict
	prefix []string // see [Segment.Prefix]
	out    flow
}

func (j *judge) simple(st *syntax.Stmt, cmd *syntax.CallExpr, s scope) flow {
	end := cmd.End()
	for _, r := range st.Redirs {
		if e := redirEnd(r); e.After(end) {
			end = e
		}
	}
	begin := cmd.Pos()
	if len(st.Redirs) > 0 && begin.After(st.Redirs[0].Pos()) {
		begin = st.Redirs[0].Pos()
	}
	at := j.add(Segment{Text: s.slice(begin, end), Depth: s.depth})
	v := j.redirects(st.Redirs, s)
	j.variableRedirect(cmd.Args, st.Redirs, s, &v)
	v.noRule, v.opens = v.class == Full, v.class == Workspace
	// Changes of read's separators end with it.
	reads := false
	if len(cmd.Args) > 0 {
		text, literal := bare(cmd.Args[0])
		reads = literal && text == "read"
	}
	j.assignments(cmd.Assigns, s, &v, reads, len(cmd.Args) == 0)
	words := j.expand(cmd.Args, s)
	out := j.run(at, words, s, v)
	if len(words) > 0 && words[0].known {
		j.fed(words[0].text, st.Redirs, s)
	}
	return out
}

// fed examines the input of a shell, so that rules can see it. The shell itself is not proven.
func (j *judge) fed(name string, redirs []*syntax.Redirect, s scope) {
	if name, _ = program(name); !slices.Contains([]string{
		"sh", "dash", "bash", "zsh", "ksh",
		"mksh", "ash", "fish", "source", ".", "sudo", "doas", "su", "at", "batch",
	}, name) {
		return
	}
	for _, r := range redirs {
		text := r.Hdoc
		if r.Op == syntax.WordHdoc {
			text = r.Word
		}
		if text == nil {
			continue
		}
		if w := j.resolveWord(text, s); w.known {
			j.script(w.text, s.deeper(), dialects{bash: true})
		}
	}
}

// run judges resolved words as a command and writes its segment.
func (j *judge) run(at int, words []word, s scope, v verdict) flow {
	if !slices.ContainsFunc(words, func(w word) bool { return !w.known }) {
		for _, w := range words {
			j.segments[at].Argv = append(j.segments[at].Argv, w.text)
		}
	}
	c := &call{j: j, s: s, v: &v, out: same(s.cwds)}
	if len(words) > 0 {
		c.dispatch(words)
	}
	if v.class == Full && len(words) > 0 {
		(&call{j: j, s: s, v: &verdict{}}).inside(words)
	}
	j.settle(at, v, c.prefix)
	return c.out
}

// under judges words as a command that this one runs.
func (c *call) under(words []word) flow {
	if len(words) == 0 {
		return same(c.s.cwds)
	}
	s := c.s.deeper()
	if s.depth > maxNest {
		c.v.full("commands are nested too deep")
		return flow{}
	}
	at := c.j.add(Segment{Text: spell(words), Depth: s.depth})
	return c.j.run(at, words, s, verdict{})
}

// spell formats words as a command line, for people.
func spell(words []word) string {
	var text []string
	for i, w := range words {
		if i == 100 {
			text = append(text, "…")
			break
		}
		if w.known {
			text = append(text, quote(w.text))
		} else {
			text = append(text, w.text+"…")
		}
	}
	return strings.Join(text, " ")
}

func quote(text string) string {
	if q, err := syntax.Quote(text, syntax.LangBash); err == nil {
		return q
	}
	return text
}

// dispatch determines the program.
func (c *call) dispatch(words []word) {
	first := words[0]
	c.args = words[1:]
	if !first.known {
		c.v.noRule = true
		c.v.full("which program runs can't be known")
		return
	}
	name, folder := program(first.text)
	c.name = name
	switch {
	case name == "":
		if !carriesCommand(path.Base(first.text)) {
			c.prefix = []string{first.text}
		}
		c.v.full(first.text + " is no program of the system")
	case folder || !c.builtin():
		c.external()
	}
	if c.prefix != nil && folder {
		c.prefix = nil // a rule for the bare name would not match these words
	}
}

// carriesCommand reports whether a program of that name, in any folder, runs the command in its words. Git's own
// words determine its effects.
func carriesCommand(name string) bool {
	return name != "git" && (&call{j: &judge{}, v: &verdict{}, name: name}).wrapper()
}

// program returns the name of a program for the tables: a bare one, or one in a system folder.
func program(text string) (name string, folder bool) {
	for _, dir := range []string{"/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/"} {
		if rest, ok := strings.CutPrefix(text, dir); ok {
			text, folder = rest, true
			break
		}
	}
	if text == "[" || text == "." || text == ":" || plain(text) {
		return text, folder
	}
	return "", false
}

// external judges a program by its row in the table.
func (c *call) external() {
	c.prefix = prefixOf(c.name, c.args)
	if c.wrapper() {
		return
	}
	r, ok := programs(c.name)
	if !ok {
		c.unknown()
		return
	}
	c.judge(r)
	if c.v.class == Full && subcommands(c.name) == 0 {
		c.prefix = nil // a rule for the name would allow the program's worst effect
	}
}

// unknown judges programs without a row.
func (c *call) unknown() {
	if c.dials() {
		return
	}
	for _, host := range c.registry() {
		c.v.network(host)
	}
	c.v.full("what " + c.name + " does is not known to be harmless")
}

// assignments judges variables that are set for a command or, with alone, for the rest of the text.
func (j *judge) assignments(assigns []*syntax.Assign, s scope, v *verdict, reads, alone bool) {
	for _, a := range assigns {
		value := literal("")
		if a.Value != nil {
			value = j.resolveWord(a.Value, s)
		}
		if a.Array != nil || a.Index != nil || a.Append || a.Naked || a.Name == nil {
			v.noRule = true
			v.full("this assignment is not understood")
			if a.Array != nil {
				j.opaque(a.Array, s)
			}
			if a.Index != nil && !subscript(a.Index) {
				j.unproven(s, s.text(a), "subscripts are evaluated")
				j.nested(a.Index, s)
			}
			if a.Name != nil {
				j.insideVariable(a.Name.Value, word{}, s)
			}
			continue
		}
		if !harmlessAssign(a.Name.Value, value) && (!reads || a.Name.Value != "IFS") && (!alone || !shellName(a.Name.Value)) {
			v.noRule = true
			v.full("setting " + a.Name.Value + " can change what programs do")
			j.insideVariable(a.Name.Value, value, s)
		}
	}
}

// harmlessName reports whether a variable of that name can have any value: it has no meaning for shells and
// programs.
func harmlessName(name string) bool {
	return spelled(name, lows, lows+numbers, 16) && name != "histchars"
}

// shellName reports whether a variable of that name can have any value in the shell only, which doesn't export
// it. Makefiles give some of them a meaning.
func shellName(name string) bool {
	return harmlessName(name) || name == "MSG" || len(name) == 1 && name != "_"
}

func harmlessAssign(name string, value word) bool {
	if harmlessName(name) {
		return true
	}
	switch name {
	case "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL":
		return true // text of a commit
	}
	if !value.known || strings.ContainsAny(value.text, "%\n") {
		return false
	}
	fixed := map[string]string{
		"GIT_PAGER": "cat", "PAGER": "cat", "MANPAGER": "cat", "SYSTEMD_PAGER": "cat", "GH_PAGER": "cat",
		"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "GIT_SEQUENCE_EDITOR": "true",
	}
	if want, ok := fixed[name]; ok {
		return value.text == want
	}
	if name == "TZ" {
		return !hasAnyPrefix(value.text, "/", ":") && !strings.Contains(value.text, "..")
	}
	return harmlessEnv(name) && !strings.Contains(value.text, "/")
}

// harmlessEnv lists variables that only change how output looks.
func harmlessEnv(name string) bool {
	switch name {
	case "LANG", "LANGUAGE", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "COLUMNS", "LINES", "TZ":
		return true
	case "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_NUMERIC", "LC_TIME", "LC_MESSAGES":
		return true
	}
	return false
}
