package shell

import (
	"slices"
	"strings"
)

// find judges a whole find command: starting points, then an expression of known tests and actions.
func (c *call) find() {
	c.prefix, c.v.noRule = nil, true
	args := c.args
	for len(args) > 0 && args[0].known && slices.Contains([]string{"-H", "-L", "-P"}, args[0].text) {
		args = args[1:]
	}
	var starts []word
	for len(args) > 0 {
		w := args[0]
		if w.known && (len(w.text) > 1 && w.text[0] == '-' || slices.Contains([]string{"(", ")", "!", ","}, w.text)) {
			break // the expression begins
		}
		if !w.known && !w.operand() {
			c.v.full("a word that can't be known could be an action of find")
		}
		starts, args = append(starts, w), args[1:]
	}
	if len(starts) == 0 {
		starts = []word{literal(".")}
	}
	c.reads(starts)
	for len(args) > 0 {
		args = c.primary(args, starts)
	}
}

// primary judges one test or action and returns the rest.
func (c *call) primary(args, starts []word) []word {
	w, args := args[0], args[1:]
	if !w.known {
		c.v.full("a word that can't be known could be an action of find")
		return args
	}
	switch w.text {
	case "(", ")", "!", ",", "-a", "-and", "-o", "-or", "-not", "-print", "-print0", "-ls", "-prune", "-quit", "-depth", "-d", "-mount",
		"-xdev",
		"-daystart", "-follow", "-empty", "-executable", "-readable", "-writable", "-true", "-false", "-nouser", "-nogroup", "-noleaf", "-warn", "-nowarn":
		return args
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-regextype", "-lname", "-ilname", "-type",
		"-xtype", "-size",
		"-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-maxdepth", "-mindepth", "-perm", "-user", "-group", "-uid", "-gid", "-links", "-inum", "-fstype", "-used", "-printf":
		_, args = c.take(row{}, w.text, args)
		return args
	case "-newer", "-anewer", "-cnewer", "-samefile", "-newermt", "-newerat", "-newerct":
		value, rest := c.take(row{}, w.text, args)
		if !strings.HasSuffix(w.text, "t") {
			c.j.read(value, c.s, c.v)
		}
		return rest
	case "-exec", "-execdir", "-ok", "-okdir":
		return c.findExec(w.text, args, starts)
	case "-delete":
		c.v.full("find -delete removes whatever it finds")
		for _, s := range starts {
			c.j.write(s, c.s, c.v, "find")
		}
		return args
	case "-fprint", "-fprint0", "-fls", "-fprintf":
		if len(args) > 0 {
			c.j.write(args[0], c.s, c.v, "find "+w.text)
		}
		c.v.full("find " + w.text + " writes a file")
		return args
	}
	c.v.full("find " + w.text + " is not known to be harmless")
	return args
}

// findExec judges the command that find runs for its results.
func (c *call) findExec(action string, args, starts []word) []word {
	end := slices.IndexFunc(args, func(w word) bool { return w.known && w.text == ";" })
	plus := 0
	for i := 1; i < len(args); i++ {
		if args[i].known && args[i].text == "+" && args[i-1].known && args[i-1].text == "{}" && (end < 0 || i < end) {
			end, plus = i, 1
			break
		}
	}
	if end < 0 {
		c.v.full("the command of find " + action + " has no end")
		return nil
	}
	if action == "-ok" || action == "-okdir" {
		c.v.full("find " + action + " asks at the terminal")
	}
	found := merge(starts)
	found.known, found.one = false, plus == 0
	inner := *c
	inner.v = &verdict{}
	if strings.HasSuffix(action, "dir") {
		inner.s.cwds, found = nil, word{text: "./", one: plus == 0}
	}
	var words []word
	for _, w := range args[:end] {
		words = append(words, hole(w, "{}", found))
	}
	inner.under(words)
	return args[end+1:]
}
