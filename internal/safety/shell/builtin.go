package shell

import (
	"path/filepath"
	"slices"
	"strings"
)

// builtin judges bash's builtins. It reports whether the name is one.
func (c *call) builtin() bool {
	switch c.name {
	case ":", "true", "false", "times":
		return true
	case "pwd", "type", "jobs", "wait", "exit", "return", "break", "continue":
		c.quietly()
	case "cd":
		c.cd()
	case "command", "builtin":
		c.command()
	case "exec":
		c.v.noRule = true
		if len(c.args) > 0 && c.args[0].known && strings.HasPrefix(c.args[0].text, "-") {
			c.v.full("exec with options is not judged")
		}
		c.out = c.under(c.args)
	case "test", "[":
		c.test()
	case "printf":
		c.printf()
	case "set":
		c.set()
	case "read":
		c.readLine()
	case "umask", "ulimit":
		shows := len(c.args) == 1 && slices.Contains([]string{"-a", "-S", "-n"}, c.args[0].text)
		if len(c.args) > 0 && !shows {
			c.v.full(c.name + " changes limits")
		}
	case ".", "source", "eval", "trap", "alias", "unalias", "unset", "shopt", "enable", "hash", "bind", "complete", "compgen", "compopt",
		"let", "mapfile", "readarray", "getopts", "pushd", "popd", "dirs", "history", "fc", "caller", "disown", "suspend", "shift", "logout",
		"bg", "fg", "coproc",
		"declare", "typeset", "local", "export", "readonly":
		c.v.noRule = true
		c.v.full(c.name + " can change what the shell does, or run anything")
		c.out = flow{}
	default:
		return false
	}
	return true
}

// quietly accepts builtins that are harmless with plain words.
func (c *call) quietly() {
	options := map[string]string{"pwd": " -P -L ", "type": " -a -t -p -P -f ", "jobs": " -l -p -r -s "}[c.name]
	for _, w := range c.args {
		switch {
		case !w.known || strings.ContainsAny(w.text, "[$`"):
			c.v.full(c.name + " with words that can't be known is not judged")
		case strings.HasPrefix(w.text, "-") && !strings.Contains(options, " "+w.text+" "):
			c.v.full(c.name + " " + w.text + " is not known to be harmless")
		}
	}
}

func (c *call) cd() {
	args := c.args
	if len(args) > 0 && args[0].known && (args[0].text == "--" || args[0].text == "-P" || args[0].text == "-L") {
		args = args[1:]
	}
	var to []string
	switch {
	case len(args) == 0 && c.j.at.Home != "" && !c.s.bare:
		to = []string{c.j.at.Home}
	case len(args) == 1 && args[0].known && args[0].text != "" && args[0].text[0] != '-':
		to = resolve(c.s.cwds, args[0].text)
	case len(args) == 1 && args[0].known && args[0].text == "-":
	case len(args) == 1 && (args[0].operand() || !args[0].known): // anywhere, or nowhere
	case len(args) == 1 && c.s.cwds == nil:
	default:
		c.v.full("where cd leads can't be known")
	}
	c.out = flow{yes: to, no: c.s.cwds}
}

func (c *call) command() {
	args := c.args
	if len(args) > 0 && args[0].known && (args[0].text == "-v" || args[0].text == "-V") && c.name == "command" {
		c.args = args[1:]
		c.quietly()
		return
	}
	c.v.noRule = true
	if len(args) > 0 && args[0].known && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) > 0 && args[0].known && strings.HasPrefix(args[0].text, "-") {
		c.v.full(c.name + " with options is not judged")
	}
	c.out = c.under(args)
}

// test judges [ ]. Its -v and -R evaluate subscripts, so an operator must be where one is expected.
func (c *call) test() {
	args := c.args
	if c.name == "[" && len(args) > 0 {
		args = args[:len(args)-1]
	}
	if slices.ContainsFunc(args, func(w word) bool { return !w.one }) {
		c.v.full("words that can't be known could be operators of test")
		return
	}
	allKnown := !slices.ContainsFunc(args, func(w word) bool { return !w.known })
	if allKnown {
		for _, w := range args {
			if w.text == "-v" || w.text == "-R" {
				c.v.full("-v and -R evaluate subscripts")
			}
		}
		return
	}
	for len(args) > 1 && args[0].known && args[0].text == "!" {
		args = args[1:]
	}
	switch {
	case len(args) == 1:
	case len(args) == 2 && args[0].known && slices.Contains(strings.Fields("-e -f -d -c -b -p -S -L -h -k -g -u -G -O -N -r -w -x -s -t -z -n"), args[0].text):
	case len(args) == 3 && args[1].known && slices.Contains(strings.Fields("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef"), args[1].text):
	default:
		c.v.full("words that can't be known could be operators of test")
	}
}

// printf judges the format: -v and %n set variables.
func (c *call) printf() {
	c.prefix = nil
	args := c.args
	if len(args) > 0 && args[0].known && args[0].text == "--" {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
	case !args[0].known, strings.HasPrefix(args[0].text, "-"):
		c.v.full("the format of printf could set a variable")
	case strings.Contains(strings.ReplaceAll(args[0].text, "%%", ""), "%") && badFormat(args[0].text):
		c.v.full("this format of printf is not understood")
	}
}

func badFormat(format string) bool {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		for i++; i < len(format) && strings.IndexByte("#-+ 0123456789.*'", format[i]) >= 0; i++ {
		}
		if i == len(format) || strings.IndexByte("%diouxXeEfFgGaAcsbq", format[i]) < 0 {
			return true
		}
	}
	return false
}

// set judges the options that make scripts stop early.
func (c *call) set() {
	args := c.args
	for len(args) > 0 {
		w := args[0]
		args = args[1:]
		switch {
		case w.known && slices.Contains([]string{"-e", "-u", "-eu", "-ue", "+e", "+u"}, w.text):
		case w.known && slices.Contains([]string{"-o", "+o", "-eo", "-euo", "-ueo", "-uo"}, w.text) && len(args) > 0 && args[0].known &&
			slices.Contains([]string{"pipefail", "errexit", "nounset"}, args[0].text):
			args = args[1:]
		default:
			c.v.full("set can change what the shell does")
			return
		}
	}
}

// readLine judges read. The names it sets could hold subscripts.
func (c *call) readLine() {
	for _, w := range c.args {
		if !w.known || w.text != "-r" && !harmlessName(w.text) {
			c.v.full("read sets variables that can change what programs do")
		}
	}
	if len(c.args) == 0 || c.args[len(c.args)-1].text == "-r" {
		c.v.full("read without names is not judged")
	}
}

// rooted reports whether the command certainly runs in the root, or below it if that suffices.
func (c *call) rooted() bool {
	if c.j.at.Held && c.j.at.Root != "" && len(c.s.cwds) > 0 {
		return !slices.ContainsFunc(c.s.cwds, func(dir string) bool { return !c.j.at.inside(dir) })
	}
	return len(c.s.cwds) == 1 && c.s.cwds[0] == filepath.Clean(c.j.at.Root) && c.j.at.Root != ""
}
