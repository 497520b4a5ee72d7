package shell

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed programs.txt
var programTable string

//go:embed git.txt
var gitTable string

// row is one line of a table: the known behaviour of a program.
type row struct {
	any     bool   // none of its options does more than read and print
	role    string // role of its operands
	check   string // a further check, see [call.check]
	options string // allowed options, each after a space
}

func programs(name string) (row, bool) { return find(programTable, name) }

// find looks a name up in a table. Each of its lines is
//
//	NAME[*] ROLE CHECK OPTION...
//
// with * if no option of the program does more than read and print, and with options in these forms:
//
//	-abc    letters without an argument; -# is any number
//	-n:KIND a letter with an argument; -n?KIND with one that must be attached
//	--name --name=KIND --name?KIND  the same for long ones
//	--name:2KIND                    two arguments follow, the last is of KIND
//
// KIND is empty or path, write, script, scriptpath; the last two replace the first operand.
func find(table, name string) (row, bool) {
	r := row{}
	if !plain(name) {
		return r, false
	}
	key := "\n" + name
	at := strings.Index(table, key)
	for at >= 0 && table[at+len(key)] != ' ' && table[at+len(key)] != '*' {
		next := strings.Index(table[at+1:], key)
		if next < 0 {
			return r, false
		}
		at += 1 + next
	}
	if at < 0 {
		return r, false
	}
	line, _, _ := strings.Cut(table[at+1:], "\n")
	head, line, _ := strings.Cut(line, " ")
	r.any = strings.HasSuffix(head, "*")
	r.role, line, _ = strings.Cut(line, " ")
	r.check, r.options, _ = strings.Cut(line, " ")
	r.options = " " + r.options + " "
	return r, true
}

// long returns the form of a long option: the text after its name in the table.
func (r row) long(name string) (form string, ok bool) {
	for at := 0; ; {
		i := strings.Index(r.options[at:], " "+name)
		if i < 0 {
			return "", false
		}
		at += i + 1 + len(name)
		end := at + strings.IndexByte(r.options[at:], ' ')
		if form = r.options[at:end]; form == "" || strings.ContainsAny(form[:1], "=?:") {
			return form, true
		}
	}
}

// short returns the form of a one-letter option.
func (r row) short(letter byte) (form string, ok bool) {
	for token := range strings.FieldsSeq(r.options) {
		switch {
		case strings.HasPrefix(token, "--"):
		case len(token) > 2 && (token[2] == ':' || token[2] == '?'):
			if token[1] == letter {
				return token[2:], true
			}
		case strings.IndexByte(token[1:], letter) >= 0:
			return "", true
		case token == "-#" && letter >= '0' && letter <= '9':
			return "", true
		}
	}
	return "", false
}

// option is an option as given.
type option struct {
	name  string // with its dashes
	kind  string
	value word
}

// parsed is a command line after getopt.
type parsed struct {
	options  []option
	operands []word
	dashed   int // operands[dashed:] came after --
}

func (p parsed) has(names ...string) bool {
	for _, o := range p.options {
		for _, n := range names {
			if o.name == n {
				return true
			}
		}
	}
	return false
}

// scripted reports whether an option replaces the first operand.
func (p parsed) scripted() bool {
	for _, o := range p.options {
		if strings.HasPrefix(o.kind, "script") || o.name == "--files" || o.name == "--type-list" {
			return true
		}
	}
	return false
}

// parse splits the arguments as getopt does, and rejects options that are not in the row, including abbreviated
// ones.
func (c *call) parse(r row) parsed {
	p := parsed{dashed: -1}
	for args := c.args; len(args) > 0; {
		w := args[0]
		args = args[1:]
		switch {
		case p.dashed >= 0:
			p.operands = append(p.operands, w)
		case w.known && w.text == "--":
			p.dashed = len(p.operands)
		case w.known && (len(w.text) < 2 || w.text[0] != '-'), !w.known && w.operand():
			p.operands = append(p.operands, w)
		case strings.HasPrefix(w.text, "--") && (w.known || w.one && strings.Contains(w.text, "=")):
			args = c.longOption(r, w, args, &p)
		case w.known:
			args = c.shortOptions(r, w.text, args, &p)
		default:
			if !r.any {
				c.v.full("a word that can't be known could be an option of " + c.name)
			} else if r.role != "text" {
				c.j.read(word{}, c.s, c.v) // the option could name a file
			}
			p.operands = append(p.operands, w)
		}
	}
	if p.dashed < 0 {
		p.dashed = len(p.operands)
	}
	return p
}

func (c *call) longOption(r row, w word, args []word, p *parsed) []word {
	name, text, attached := strings.Cut(w.text, "=")
	form, ok := r.long(name)
	if !ok || attached && (form == "" || form[0] == ':') {
		c.refuse(name)
		return args
	}
	o := option{name: name}
	switch {
	case attached:
		o.kind, o.value = form[1:], word{text: text, known: w.known, one: true}
		if w.known {
			o.value = literal(text)
		}
	case strings.HasPrefix(form, "="):
		o.kind = form[1:]
		o.value, args = c.take(r, name, args)
	case strings.HasPrefix(form, ":2"):
		o.kind = form[2:]
		_, args = c.take(r, name, args)
		o.value, args = c.take(r, name, args)
	}
	p.options = append(p.options, o)
	return args
}

func (c *call) shortOptions(r row, text string, args []word, p *parsed) []word {
	for i := 1; i < len(text); i++ {
		name, rest := "-"+text[i:i+1], text[i+1:]
		form, ok := r.short(text[i])
		if !ok {
			c.refuse(name)
			return args
		}
		if form == "" {
			p.options = append(p.options, option{name: name})
			continue
		}
		o := option{name: name, kind: form[1:]}
		switch {
		case form[0] == '?' && rest == "": // nothing attached
		case rest != "":
			o.value = literal(rest)
		default:
			o.value, args = c.take(r, name, args)
		}
		p.options = append(p.options, o)
		return args
	}
	return args
}

func (c *call) refuse(option string) {
	c.v.full(c.name + " " + option + " is not known to be harmless")
}

// take returns the argument of an option from the next word.
func (c *call) take(r row, option string, args []word) (word, []word) {
	if len(args) == 0 {
		c.v.full(c.name + " " + option + " lacks its argument")
		return literal(""), nil
	}
	if !args[0].one && !r.any {
		c.v.full("it can't be known what belongs to " + option)
	}
	return args[0], args[1:]
}

// judge applies a row.
func (c *call) judge(r row) {
	if r.role == "free" { // it takes no options, or a few that only print
		if r.check != "-" {
			c.check(r.check, parsed{})
		}
		return
	}
	if c.name == "tar" {
		c.oldStyle(r)
	}
	p := c.parse(r)
	c.apply(r, p)
	if r.check != "-" {
		c.check(r.check, p)
	}
}

// apply judges the arguments of options, and the operands.
func (c *call) apply(r row, p parsed) {
	for _, o := range p.options {
		switch {
		case strings.HasSuffix(o.kind, "path"):
			c.j.read(o.value, c.s, c.v)
		case o.kind == "write":
			c.j.write(o.value, c.s, c.v, c.name+" "+o.name)
		}
	}
	c.roles(r.role, p)
}

// oldStyle converts options without a dash to the usual form: their arguments follow in the order of the
// letters.
func (c *call) oldStyle(r row) {
	if len(c.args) == 0 || !c.args[0].known || strings.HasPrefix(c.args[0].text, "-") {
		return
	}
	var out []word
	rest := c.args[1:]
	for i := range len(c.args[0].text) {
		letter := c.args[0].text[i]
		out = append(out, literal("-"+string(letter)))
		if form, _ := r.short(letter); strings.HasPrefix(form, ":") && len(rest) > 0 {
			out, rest = append(out, rest[0]), rest[1:]
		}
	}
	c.args = slices.Concat(out, rest)
}

// roles judges the operands.
func (c *call) roles(role string, p parsed) {
	rest := p.operands
	if first, ok := strings.CutPrefix(role, "text+"); ok {
		role = first
		if !p.scripted() && len(rest) > 0 {
			if !rest[0].one {
				c.reads(rest[:1]) // more than the text may be read
			}
			rest = rest[1:]
		}
	}
	switch role {
	case "none":
		if len(rest) > 0 {
			c.v.full(c.name + " with operands is not known to be harmless")
		}
	case "dir":
		if len(rest) == 0 {
			rest = []word{literal(".")}
		}
		c.reads(rest)
	case "path":
		c.reads(rest)
	case "write":
		c.writes(rest)
	case "inout":
		for _, w := range rest {
			if !w.one {
				c.v.full("it can't be known which file " + c.name + " writes")
			}
		}
		c.reads(rest[:min(1, len(rest))])
		c.writes(rest[min(1, len(rest)):])
	case "text":
	default:
		c.v.full("what the operands of " + c.name + " are is not known")
	}
}

func (c *call) reads(words []word) {
	for _, w := range words {
		if !w.known || w.text != "-" {
			c.j.read(w, c.s, c.v)
		}
	}
}

func (c *call) writes(words []word) {
	for _, w := range words {
		c.j.write(w, c.s, c.v, c.name)
	}
}
