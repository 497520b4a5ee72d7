package shell

import (
	"slices"
	"strings"
)

// insideGit lists the commands that git is given to run.
func (c *call) insideGit(args []word) {
	var configs []word
	for len(args) > 0 && args[0].known && strings.HasPrefix(args[0].text, "-") {
		n := 1
		if gitTakesWord(args[0].text) {
			n = min(2, len(args))
		}
		if args[0].text == "-c" && n == 2 {
			configs = append(configs, args[1])
		}
		args = args[n:]
	}
	for _, w := range configs {
		c.insideSetting(w, args)
	}
	for _, w := range args {
		if _, program, ok := strings.Cut(w.text, "ext::"); ok && w.known {
			c.text(literal(program)) // an address of gitremote-helpers(7)
		}
	}
	if len(args) > 0 && args[0].known {
		c.insideSubcommand(args[0].text, args[1:])
	}
}

// gitTakesWord reports whether an option of git before the subcommand takes the next word.
func gitTakesWord(option string) bool {
	return slices.Contains([]string{
		"-C", "-c", "--git-dir", "--work-tree", "--namespace",
		"--config-env", "--attr-source", "--super-prefix", "--shallow-file",
	}, option)
}

// insideSetting examines git -c KEY=VALUE, for keys that name programs and for an alias of the subcommand.
func (c *call) insideSetting(w word, args []word) {
	key, value, ok := strings.Cut(w.text, "=")
	if !w.known || !ok {
		return
	}
	key = strings.ToLower(key)
	if strings.HasPrefix(key, "alias.") {
		if script, shell := strings.CutPrefix(value, "!"); shell {
			c.text(literal(script))
			c.text(literal(script + ` "$@"`))
			return
		}
		words := []word{literal("git")}
		for field := range strings.FieldsSeq(value) {
			words = append(words, literal(strings.Trim(field, `"'`)))
		}
		c.under(append(words, args[min(1, len(args)):]...))
		return
	}
	if gitProgram(key) {
		c.text(literal(strings.TrimPrefix(value, "!")))
	}
}

// insideSubcommand examines what git subcommands run.
func (c *call) insideSubcommand(name string, args []word) {
	switch name {
	case "rebase":
		c.texts(values(args, "-x", "--exec"))
	case "difftool":
		c.texts(values(args, "-x", "--extcmd"))
	case "grep":
		c.texts(values(args, "-O", "--open-files-in-pager"))
	case "clone":
		c.texts(values(args, "-u", "--upload-pack"))
		for _, w := range values(args, "-c", "--config") {
			c.insideSetting(w, nil)
		}
	case "config":
		if args = skipOptions(args, " -f --file --blob "); len(args) > 2 && slices.Contains([]string{"set", "add"}, args[0].text) {
			args = skipOptions(args[1:], " -f --file --blob ")
		}
		if len(args) > 1 && args[0].known && args[1].known {
			c.insideSetting(literal(args[0].text+"="+args[1].text), nil)
		}
	case "fetch", "pull", "push", "ls-remote", "archive", "send-pack", "fetch-pack":
		c.texts(values(args, "--upload-pack", "--receive-pack", "--exec"))
	case "filter-branch":
		c.texts(values(args, "--setup", "--env-filter", "--tree-filter", "--index-filter",
			"--parent-filter", "--msg-filter", "--commit-filter", "--tag-name-filter"))
	case "bisect":
		if len(args) > 1 && args[0].text == "run" {
			c.joined(args[1:])
			c.under(args[1:])
		}
	case "submodule":
		if args = skipOptions(args, " "); len(args) > 1 && args[0].text == "foreach" {
			args = skipOptions(args[1:], " ")
			c.joined(args)
		}
	case "subtree":
		if args = skipOptions(args, " -P --prefix "); len(args) > 0 && args[0].text == "push" {
			c.under(append([]word{literal("git")}, args...))
		}
	case "for-each-repo":
		if args = skipOptions(args, " --config "); len(args) > 0 {
			c.under(append([]word{literal("git")}, args...))
		}
	}
}
