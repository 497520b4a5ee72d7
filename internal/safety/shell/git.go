package shell

import (
	"slices"
	"strings"
)

// git judges a git command. Its proof depends on the configuration of the repository, see [Plan.Git].
func (c *call) git() {
	for len(c.args) > 0 && c.args[0].known && strings.HasPrefix(c.args[0].text, "-") {
		flag := c.args[0].text
		c.args = c.args[1:]
		switch flag {
		case "--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs":
		case "--version", "-v":
			if len(c.args) > 0 {
				c.v.full("this form of git is not judged")
			}
			return
		case "-C":
			if len(c.args) == 0 || !c.args[0].known {
				c.s.cwds = nil
			} else {
				c.s.cwds = resolve(c.s.cwds, c.args[0].text)
			}
			c.args = c.args[min(1, len(c.args)):]
		case "-c":
			if len(c.args) == 0 || !c.args[0].known || !GitOption(c.args[0].text) {
				c.gitOdd(flag)
				return
			}
			c.args = c.args[1:]
		default:
			c.gitOdd(flag)
			return
		}
	}
	if len(c.args) == 0 || !c.args[0].known {
		c.v.noRule = true
		c.v.full("which git command runs can't be known")
		return
	}
	name := c.args[0].text
	c.args = c.args[1:]
	c.subcommand(name)
}

// gitOdd judges options before the command that change what git runs.
func (c *call) gitOdd(flag string) {
	c.v.noRule = true
	c.v.full("git " + flag + " can name programs to run or another repository")
}

func (c *call) subcommand(name string) {
	r, ok := find(gitTable, name)
	if !ok {
		c.gitUnknown(name)
		return
	}
	c.name = "git " + name
	c.j.git = true
	if !c.rooted() {
		c.v.full("in another folder than the root git may meet another repository, which can name programs to run")
	}
	if c.s.bare && !c.j.at.Held {
		c.v.full("without its environment git may run what the repository names")
	}
	c.j.read(literal("."), c.s, c.v)
	p := c.parse(r)
	c.apply(r, p)
	for _, o := range p.options {
		// A format may verify signatures, which runs a program.
		if v := o.value; (o.name == "--format" || o.name == "--pretty") && v.one &&
			(!v.known || strings.Contains(v.text, "%G") || strings.Contains(v.text, "signature")) {
			c.v.full("this format can run a program")
		}
	}
	for _, w := range p.operands { // git diff also reads files outside the repository
		if !w.known || strings.HasPrefix(w.text, "/") || slices.Contains(strings.Split(w.text, "/"), "..") {
			c.j.read(w, c.s, c.v)
		}
	}
	c.gitCheck(r.check, p)
}

// gitCheck applies checks that a row can't express.
func (c *call) gitCheck(check string, p parsed) {
	n := len(p.operands)
	switch check {
	case "-":
	case "list": // branch and tag create one if a name is given without a listing option
		lists := p.has("-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at")
		if c.name == "git branch" && p.has("-l") && !p.has("--list") {
			lists = false
		}
		if n > 0 && !lists {
			c.v.full(c.name + " with a name makes or changes one")
		}
	case "config":
		for _, w := range p.operands {
			if slices.Contains([]string{"edit", "set", "unset", "get", "list", "rename-section", "remove-section"}, w.text) {
				c.v.full("git config " + w.text + " can change the configuration")
			}
		}
		single := n == 1 && p.operands[0].known && strings.Contains(p.operands[0].text, ".")
		if !p.has("-l", "--list", "--get", "--get-all", "--get-regexp", "--get-urlmatch") && !single {
			c.v.full("this form of git config can change the configuration")
		}
	case "symbolic":
		if n != 1 {
			c.v.full("git symbolic-ref with a value changes a reference")
		}
	case "remote":
		c.gitVerb(p, "get-url")
	case "stash", "worktree":
		verbs := []string{"list", "show"}
		c.gitVerb(p, verbs[:1+strings.Count(check, "stash")]...)
		if n == 0 || c.args[0].text != p.operands[0].text { // after options the verb is a path to git
			c.v.full(c.name + " changes the repository")
		}
	case "reflog":
		c.gitVerb(p, "show", "HEAD")
	case "apply":
		if !p.has("--stat", "--numstat", "--summary", "--check") {
			c.v.full("git apply changes files")
		}
	case "add":
		c.v.join(verdict{class: Workspace, why: "git add writes the index"})
	default:
		c.v.full("this form of git is not judged")
	}
}

// gitVerb requires that the first operand, if any, is one of a few.
func (c *call) gitVerb(p parsed, verbs ...string) {
	if len(p.operands) > 0 && (!p.operands[0].known || !slices.Contains(verbs, p.operands[0].text)) {
		c.v.full(c.name + " with these words can change the repository")
	}
}

// gitUnknown judges commands that are not in the table.
func (c *call) gitUnknown(name string) {
	if source, ok := c.cloned(); ok && name == "clone" {
		c.j.read(source, c.s, c.v)
		c.v.full("git clone makes a repository, whose settings and hooks git follows")
		return
	}
	switch name {
	case "push", "pull", "fetch", "clone", "ls-remote":
		host := "*"
		for _, w := range c.args {
			if h := hostOf(w.text); w.known && h != "" {
				host = h
				break
			}
		}
		c.v.network(host)
		c.v.full("git " + name + " talks to another machine")
	case "commit", "merge", "rebase", "checkout", "switch", "cherry-pick", "revert", "am":
		c.v.full("git " + name + " changes the repository and can run its hooks")
	default:
		c.v.full("git " + name + " is not known to be harmless")
	}
}

// cloned returns the local folder that git clone copies, if known.
func (c *call) cloned() (source word, ok bool) {
	var words []string
	for _, w := range c.args {
		if !w.known {
			return word{}, false
		}
		words = append(words, w.text)
	}
	text, ok := Cloned(words)
	return literal(text), ok
}

// Cloned returns the local folder that git clone copies, and whether the words after clone say only that.
func Cloned(words []string) (source string, ok bool) {
	flags := []string{
		"-q", "--quiet", "-v", "--verbose", "--progress", "--bare", "-l", "--local", "--no-local", "--no-hardlinks", "-n",
		"--no-checkout", "--single-branch", "--no-tags",
	}
	var folders []string
	for _, w := range words {
		switch {
		case w == "", strings.HasPrefix(w, "-") && !slices.Contains(flags, w):
			return "", false
		case !strings.HasPrefix(w, "-"):
			folders = append(folders, w)
		}
	}
	// Git treats a name with a colon as an address.
	if len(folders) == 0 || len(folders) > 2 || strings.ContainsRune(folders[0], ':') {
		return "", false
	}
	return folders[0], true
}
