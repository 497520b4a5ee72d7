package shell

import (
	"regexp"
	"slices"
	"strings"
)

// check applies checks that a row can't express.
func (c *call) check(name string, p parsed) {
	const chmodMode = `^([ugoa]*[-+=][rwxX]+(,[ugoa]*[-+=][rwxX]+)*|0?[0-7]{3})$`
	switch name {
	case "sed":
		c.sed(p)
	case "awk":
		c.awk(p)
	case "cp":
		c.copies(p)
	case "rm": // and rmdir, of single paths
		c.need(p, 1)
		for _, w := range p.operands {
			for _, path := range c.j.places(w, c.s) {
				if path == c.j.at.Root || slices.Contains(c.j.at.Also, path) {
					c.v.full("it would remove the workspace")
				}
			}
		}
	case "chmod":
		c.need(p, 2)
		if len(p.operands) > 0 {
			if mode := p.operands[0]; !mode.known || !regexp.MustCompile(chmodMode).MatchString(mode.text) {
				c.v.full("this mode is not judged")
			}
			c.writes(p.operands[1:])
		}
	case "dd":
		c.dd()
	case "date":
		for _, w := range p.operands {
			if !w.one || !strings.HasPrefix(w.text, "+") { // it is not a format
				c.v.full("date with a time sets the clock")
			}
		}
	case "tar": // it accepts options without a dash in the first word
		c.prefix, c.v.noRule = nil, true
		if !p.has("-t", "--list") {
			c.v.full("only listing by tar is judged")
		}
		for _, o := range p.options {
			if strings.HasSuffix(o.kind, "path") && (!o.value.known || strings.Contains(o.value.text, ":")) {
				c.v.full("tar connects to other machines for names with a colon")
			}
		}
		if !p.has("-f", "--file") {
			c.v.full("tar without a file may use a device")
		}
	case "ip":
		c.ip()
	case "grep":
		if len(p.operands) < 2 && p.has("-r", "-R", "-d", "--recursive", "--dereference-recursive", "--directories") {
			c.j.read(literal("."), c.s, c.v)
		}
	case "jq":
		for _, w := range p.operands[:min(1, len(p.operands))] {
			if !w.known || strings.Contains(w.text, "import") || strings.Contains(w.text, "include") {
				c.j.read(word{}, c.s, c.v) // a module
			}
		}
	case "tac":
		c.need(p, 1)
		for _, w := range p.operands {
			if w.text == "-" || !w.known && !w.operand() || strings.HasPrefix(w.text, "/dev/") {
				c.v.full("tac writes what it reads from a pipe to a temporary file")
			}
		}
	case "lsof": // it looks up names by default, and those after an @ always
		c.option("need:-n", p)
		c.without(p, "@")
		for _, o := range p.options {
			if strings.Contains(o.value.text, "@") {
				c.v.full("lsof looks up the host after @")
			}
		}
	case "noat": // the program would read more options from @file
		for _, w := range p.operands {
			if strings.HasPrefix(w.text, "@") || !w.known && w.text == "" {
				c.v.full(c.name + " takes options from files named with @")
			}
		}
	case "gofmt":
		if p.has("-w") {
			c.need(p, 1)
			c.writes(p.operands)
		}
	case "getent":
		c.allowFirst(p, "passwd", "group", "services", "protocols", "shells")
	case "tput":
		c.allowFirst(p, "cols", "lines", "colors")
	case "sysctl":
		c.without(p, "=")
	case "yq":
		c.without(p, "system", "load")
	default:
		c.option(name, p)
	}
}

// option requires one of the listed options, as in need:-n,--version.
func (c *call) option(name string, p parsed) {
	list, ok := strings.CutPrefix(name, "need:")
	if !ok {
		c.v.full("what " + c.name + " does is not known to be harmless")
		return
	}
	if !p.has(strings.Split(list, ",")...) {
		c.v.full(c.name + " does more than print without one of " + list)
	}
}

func (c *call) need(p parsed, n int) {
	if len(p.operands) < n {
		c.v.full(c.name + " lacks its operands")
	}
}

// allowFirst requires that the first operand, if any, is one of a few.
func (c *call) allowFirst(p parsed, words ...string) {
	if len(p.operands) == 0 || !p.operands[0].known || !slices.Contains(words, p.operands[0].text) {
		c.v.full(c.name + " is judged for " + strings.Join(words, ", ") + " only")
	}
}

// without rejects operands that contain, or could contain, one of the texts.
func (c *call) without(p parsed, texts ...string) {
	for _, w := range p.operands {
		for _, text := range texts {
			if !w.known || strings.Contains(w.text, text) {
				c.v.full(c.name + " with these operands can do more than print")
			}
		}
	}
}

// copies judges cp, mv and similar programs: the last operand is written.
func (c *call) copies(p parsed) {
	n := len(p.operands)
	if n < 2 {
		c.v.full(c.name + " lacks its operands")
		return
	}
	from, to := p.operands[:n-1], p.operands[n-1]
	c.j.write(to, c.s, c.v, c.name)
	deep := c.name == "mv" || p.has("-r", "-R", "-a", "--recursive", "--archive")
	for _, w := range from {
		base := strings.TrimRight(w.text, "/")
		base = base[strings.LastIndexByte(base, '/')+1:]
		switch {
		case !w.known && (w.paths == nil || slices.Contains(w.paths, "/") || strings.HasPrefix(base, ".")):
			c.v.full("what " + c.name + " takes can't be known")
		case deep && (!w.known || base == "" || base == "." || base == ".." || strings.HasSuffix(w.text, "/")), strings.EqualFold(base, ".git"):
			c.v.full(c.name + " could write inside .git, which can name programs to run")
		case c.name == "mv":
			c.j.write(w, c.s, c.v, "mv")
		default:
			c.j.read(w, c.s, c.v)
		}
	}
}

// dd judges words like if=FILE.
func (c *call) dd() {
	for _, w := range c.args {
		key, value, _ := strings.Cut(w.text, "=")
		switch {
		case w.known && key == "if":
			c.j.read(literal(value), c.s, c.v)
		case w.known && slices.Contains([]string{"bs", "ibs", "obs", "count", "skip", "status", "iflag"}, key):
		case w.known && key == "of":
			c.j.write(literal(value), c.s, c.v, "dd")
			c.v.full("dd of= overwrites a file")
		default:
			c.v.full("dd " + w.text + " is not known to be harmless")
		}
	}
}

// ip judges the few forms that only print. Its options can be abbreviated.
func (c *call) ip() {
	objects := []string{"a", "addr", "address", "link", "l", "route", "r", "neigh", "n", "rule"}
	shown := 0
	for _, w := range c.args {
		switch {
		case w.known && shown == 0 && slices.Contains([]string{"-4", "-6", "-br", "-brief", "-s", "-d", "-o", "-j", "-json"}, w.text):
			continue
		case w.known && shown == 0 && slices.Contains(objects, w.text):
		case w.known && shown == 1 && slices.Contains([]string{"show", "list", "ls"}, w.text):
		default:
			c.v.full("ip can change the network")
		}
		shown++
	}
	if shown == 0 {
		c.v.full("ip lacks its operands")
	}
}
