package policy

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// command is a pattern for commands: words, and perhaps * at the end for any further words. Within a word, *
// matches any part. Single quotes make * and spaces literal.
//
// In an allow rule, the words must equal the first words of the command, and the words up to there must determine
// its effects. Without a * at the end they must equal all words. A * within a word matches no "..".
//
// In a deny or ask rule, the program may be in any folder, options between the words are skipped, and more words may
// follow after a *. Options may come in any order and place. The rule also matches if the pattern, with * for any text, matches the command as written. If the
// pattern names its program by a path, it also matches commands that run the same file by another path or as the script
// of a shell; see [Rule.mayRunFile].
type command struct {
	text  string
	words []word
	open  bool // ends with *
}

type word struct {
	text string
	glob bool // * matches anything
}

// parseCommand splits a pattern into words.
func parseCommand(text string) (command, error) {
	c := command{text: text}
	var b strings.Builder
	glob, inWord, quoted, quotes := false, false, false, false
	several := false
	flush := func() {
		if inWord {
			several = several || !quotes && separates(b.String(), len(c.words) == 0)
			c.words = append(c.words, word{b.String(), glob})
		}
		b.Reset()
		glob, inWord, quotes = false, false, false
	}
	for _, r := range text {
		switch {
		case r == '\'':
			quoted, inWord, quotes = !quoted, true, true
		case !quoted && (r == ' ' || r == '\t'):
			flush()
		default:
			glob, inWord = glob || r == '*' && !quoted, true
			b.WriteRune(r)
		}
	}
	if quoted {
		return command{}, errors.New("a quote is not closed")
	}
	flush()
	if several {
		return command{}, errors.New("it is about more than one command; inspan decides about each by itself, so write a rule for each")
	}
	if n := len(c.words); n > 0 && c.words[n-1] == (word{"*", true}) {
		c.words, c.open = c.words[:n-1], true
	}
	return c, nil
}

// separates reports whether a word of a pattern separates commands. A program's name has no operator at all.
func separates(text string, program bool) bool {
	ends := len(text) > 1 && strings.HasSuffix(text, ";") && text != `\;`
	return strings.Trim(text, "|&") == "" || ends || program && strings.ContainsAny(text, "|&;")
}

func (w word) matches(said string) bool {
	if w.glob {
		return text.Wild(w.text, said)
	}
	return w.text == said
}

// covers reports whether the pattern allows a command.
func (c command) covers(e tool.Effect) bool {
	if len(c.words) == 0 {
		return true
	}
	if e.Words == nil { // a tool that does not know shells
		return simple(e.Text) && text.Wild(c.text, e.Text)
	}
	argv := e.Words.Argv
	if len(argv) < len(c.words) || c.words[0].glob {
		return false
	}
	for i, w := range c.words {
		if !w.matches(argv[i]) || w.glob && climbs(argv[i]) && !climbs(w.text) {
			return false
		}
	}
	if !c.open {
		return e.Words.Exact && len(argv) == len(c.words)
	}
	return e.Words.Prefix != nil
}

// climbs reports whether a path leaves a folder that it names: build/../x.
func climbs(text string) bool { return slices.Contains(strings.Split(text, "/"), "..") }

// simple reports whether a command line has no character that could join or nest commands.
func simple(text string) bool { return !strings.ContainsAny(text, ";&|<>`$()\n\\") }

// mayMatch reports whether the pattern matches a command, as far as its words are known.
func (c command) mayMatch(e tool.Effect) match {
	if text.Wild(c.text, e.Text) {
		return yes
	}
	if e.Words == nil {
		return no
	}
	if e.Words.Argv == nil {
		return c.mayMatchUnknown(e)
	}
	argv := e.Words.Argv
	if c.beginsWith(argv) || text.Wild(c.text, strings.Join(argv, " ")) {
		return yes
	}
	for _, usual := range [][]string{usualGit(argv), usualName(argv)} {
		if usual != nil && c.beginsWith(usual) {
			return yes
		}
	}
	if how := c.sameOptions(argv); how != no {
		return how
	}
	if e.Class == tool.Unproven && unseen(argv) || c.renames(argv) {
		return perhaps
	}
	return no
}

// renames reports whether a command gives the program of the pattern another name, so that no rule would find it.
func (c command) renames(argv []string) bool {
	if len(c.words) == 0 || c.words[0].glob || !slices.Contains([]string{"cp", "ln", "mv", "install", "link"}, path.Base(argv[0])) {
		return false
	}
	return slices.ContainsFunc(argv[1:], func(w string) bool {
		folder := path.Base(path.Dir(path.Clean(w)))
		return (folder == "bin" || folder == "sbin") && path.Base(w) == path.Base(c.words[0].text)
	})
}

// mayMatchUnknown is mayMatch for a command whose words are not all known. The answer is no if the command is proven to
// only read and does not contain the program's name, or if its known first words are of another program.
func (c command) mayMatchUnknown(e tool.Effect) match {
	if len(c.words) == 0 || c.words[0].glob {
		return perhaps
	}
	if e.Class == tool.ProvenRead && !strings.Contains(e.Text, c.words[0].text) {
		return no
	}
	p, name := e.Words.Prefix, c.words[0].text
	if len(p) > 0 && strings.Contains(p[0], "/") {
		name = path.Base(name)
	}
	if len(p) > 0 && path.Base(p[0]) != name && !strings.HasPrefix(path.Base(p[0]), name+"-") {
		return no
	}
	return perhaps
}

// beginsWith reports whether the words are those of argv in order, skipping options.
func (c command) beginsWith(argv []string) bool {
	if len(c.words) == 0 {
		return true
	}
	program := c.words[0]
	if slices.Contains([]string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"}, path.Dir(program.text)) {
		program.text = path.Base(program.text) // where PATH finds it
	}
	if len(argv) == 0 || !c.words[0].matches(argv[0]) && !program.matches(path.Base(argv[0])) {
		return false
	}
	name, argv := path.Base(argv[0]), argv[1:]
	for _, w := range c.words[1:] {
		for len(argv) > 0 && !w.matches(argv[0]) && strings.HasPrefix(argv[0], "-") {
			argv = argv[min(len(argv), optionWords(name, argv[0])):]
		}
		if len(argv) == 0 || !w.matches(argv[0]) {
			return false
		}
		argv = argv[1:]
	}
	return c.open || len(argv) == 0
}

// sameOptions reports whether a command has all options of the pattern, in any order and place, and the same other
// words. A short option and a long one with the same first letter are perhaps the same.
func (c command) sameOptions(argv []string) match {
	if len(c.words) < 2 || len(argv) == 0 || !c.words[0].matches(path.Base(argv[0])) {
		return no
	}
	var given, wanted []string
	others := command{words: c.words[:1:1], open: c.open}
	for _, w := range c.words[1:] {
		if strings.HasPrefix(w.text, "-") && !w.glob {
			wanted = append(wanted, options(argv[0], w.text)...)
		} else {
			others.words = append(others.words, w)
		}
	}
	rest := argv[:1:1]
	for i, w := range argv[1:] {
		if w == "--" {
			rest = append(rest, argv[i+2:]...)
			break
		}
		if strings.HasPrefix(w, "-") {
			given = append(given, options(argv[0], w)...)
		} else {
			rest = append(rest, w)
		}
	}
	if len(wanted) == 0 || !others.beginsWith(rest) {
		return no
	}
	out := yes
	for _, option := range wanted {
		switch {
		case slices.Contains(given, option):
		case slices.ContainsFunc(given, func(other string) bool { return abbreviates(option, other) || abbreviates(other, option) }):
			out = perhaps
		default:
			return no
		}
	}
	return out
}

// options splits a word with options: -rf is -r and -f for programs that read it so. Values are left out.
func options(program, word string) []string {
	name, _, _ := strings.Cut(word, "=")
	if strings.HasPrefix(name, "--") || !slices.Contains([]string{
		"rm", "rmdir", "cp", "mv", "ln", "mkdir", "chmod", "chown", "chgrp", "git", "sed", "curl", "wget", "kill", "pkill", "apt", "apt-get",
	}, path.Base(program)) {
		return []string{name}
	}
	var out []string
	for _, letter := range name[1:] {
		out = append(out, "-"+string(letter))
	}
	return out
}

// abbreviates reports whether a short option may be that long one.
func abbreviates(short, long string) bool {
	return len(short) == 2 && len(long) > 2 && strings.HasPrefix(long, "--") && strings.EqualFold(short[1:], long[2:3])
}

// optionWords returns how many words a global option takes, including itself.
func optionWords(program, option string) int {
	var takes []string
	switch program {
	case "git":
		takes = []string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source", "--super-prefix", "--shallow-file"}
	case "npm":
		takes = []string{"--prefix", "-C", "--loglevel", "-w", "--workspace"}
	case "pnpm":
		takes = []string{"-C", "--dir", "--filter", "-F"}
	case "yarn":
		takes = []string{"--cwd"}
	case "docker":
		takes = []string{"-H", "--host", "-c", "--context", "--config", "-l", "--log-level"}
	case "kubectl":
		takes = []string{"-n", "--namespace", "--context", "--cluster", "--kubeconfig", "-s", "--server", "--user"}
	case "make":
		takes = []string{"-C", "-f", "--directory", "--file", "-I", "-j"}
	case "go":
		takes = []string{"-C"}
	case "aws":
		takes = []string{"--profile", "--region", "--output"}
	case "cargo":
		takes = []string{"--config", "-Z", "-C", "--color"}
	}
	if slices.Contains(takes, option) {
		return 2
	}
	return 1
}
