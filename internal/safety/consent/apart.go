package consent

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/secret"
)

// findings are the effects that a settings file would have.
type findings struct {
	lines []string // for people
	words []word   // that could name files of the workspace
	quiet bool     // values being visited are already shown with a command
}

// takeApart lists what a settings file would run, whatever keys it uses: each value with the name of a command,
// and each address.
func takeApart(ext string, data []byte) findings {
	top, err := parse(ext, data)
	if err != nil {
		return findings{lines: []string{"is not understood, so what it runs is not known: " + text.Quoted(err.Error())}}
	}
	var f findings
	if keys := top.keys(); len(keys) > 0 {
		f.lines = append(f.lines, "sets "+strings.Join(keys, ", "))
	}
	f.visit(top, "", maxNesting)
	return f
}

func (n node) keys() []string {
	var keys []string
	for _, kid := range n.kids {
		if !n.list && !slices.Contains(keys, text.Quoted(kid.key)) {
			keys = append(keys, text.Quoted(kid.key))
		}
	}
	return keys
}

// visit looks for commands and addresses in a value.
func (f *findings) visit(n node, label string, left int) {
	if left == 0 {
		return
	}
	for _, kid := range n.kids {
		at := label
		if !n.list {
			at = strings.TrimPrefix(label+"."+text.Quoted(kid.key), ".")
		}
		switch {
		case n.list:
		case runs(kid.key) && len(kid.words()) > 0:
			f.command(n, kid, label, at)
		case runs(kid.key):
			for _, variant := range kid.kids { // for example one for each system
				if variant.scalar != "" {
					f.command(n, variant, at, at+"."+text.Quoted(variant.key))
				}
			}
		case leads(kid.key) && kid.scalar != "":
			f.lines = append(f.lines, at+": connects to "+text.Quoted(kid.scalar)+around(n))
		case !f.quiet && !n.shownWhole(kid.key) && !private(kid.key):
			if values := kid.values(); len(values) > 0 {
				f.lines = append(f.lines, at+" = "+strings.Join(values, ", "))
			}
		}
		quiet := f.quiet
		f.quiet = quiet || n.shownWhole(kid.key)
		f.visit(kid, at, left-1)
		f.quiet = quiet
	}
}

// command adds a command of an object.
func (f *findings) command(object, command node, label, at string) {
	if key := strings.ToLower(command.key); label == "" || key != "command" && key != "cmd" {
		label = at
	}
	line, dir := text.Quoted(command.scalar), object.text("cwd", "dir", "directory", "workdir", "working_directory")
	args, has := object.texts("args", "arguments")
	argv := append(command.words(), args...)
	if command.list || has {
		line = quoted(argv)
	}
	f.lines = append(f.lines, label+": "+line+around(object))
	for _, arg := range argv {
		for _, text := range split(arg) {
			f.words = append(f.words, word{text: text, dir: dir})
		}
	}
}

// around describes the folder, the environment and the privileges that an object sets.
func around(object node) string {
	var out []string
	for _, kid := range object.kids {
		switch strings.ToLower(kid.key) {
		case "cwd", "dir", "directory", "workdir", "working_directory":
			if kid.scalar != "" {
				out = append(out, "in "+text.Quoted(kid.scalar))
			}
		case "env", "environment":
			out = append(out, "environment "+strings.Join(kid.named(), ", "))
		case "headers":
			out = append(out, "headers "+strings.Join(kid.named(), ", "))
		case "hosts":
			out = append(out, "may reach "+text.Quoted(strings.Join(kid.words(), ", ")))
		case "read":
			out = append(out, "may read "+text.Quoted(strings.Join(kid.words(), ", ")))
		case "write":
			out = append(out, "may change "+text.Quoted(strings.Join(kid.words(), ", ")))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, "; ") + ")"
}

// names lists the names of variables: keys of an object, or the text before = in a list.
func (n node) names() []string {
	var out []string
	for _, kid := range n.kids {
		name := kid.key
		if n.list {
			name, _, _ = strings.Cut(kid.scalar, "=")
		}
		out = append(out, text.Quoted(name))
	}
	return out
}

// named lists names with their values. The values of likely secrets that refer to nothing else are left out.
func (n node) named() []string {
	out := n.names()
	for i, kid := range n.kids {
		name, value, ok := kid.key, kid.scalar, kid.scalar != ""
		if n.list {
			name, value, ok = strings.Cut(kid.scalar, "=")
		}
		if ok && (!private(name) || strings.Contains(value, "$")) {
			out[i] += "=" + shown(value)
		}
	}
	return out
}

// private reports whether the value of a name may be a secret.
func private(name string) bool { return secret.Named(name) || strings.EqualFold(name, "authorization") }

// values returns the values of a scalar or a list of scalars; none for an object.
func (n node) values() []string {
	if !n.list {
		if n.scalar == "" {
			return nil
		}
		return []string{shown(n.scalar)}
	}
	var out []string
	for _, kid := range n.kids {
		if len(kid.kids) == 0 {
			out = append(out, shown(kid.scalar))
		}
	}
	return out
}

// shownWhole reports whether the value of a key is shown with its command or address.
func (n node) shownWhole(key string) bool {
	if !slices.ContainsFunc(n.kids, func(kid node) bool { return runs(kid.key) || leads(kid.key) }) {
		return false
	}
	return slices.Contains([]string{
		"cwd", "dir", "directory", "workdir", "working_directory", "env", "environment", "headers", "hosts", "read", "write", "args", "arguments",
	}, strings.ToLower(key))
}

// mostShown bounds the bytes of a value that people see.
const mostShown = 300

// shown returns a value as people see it.
func shown(value string) string {
	if cut := text.Cut(value, mostShown); cut != value {
		return text.Quoted(cut) + fmt.Sprintf(" ... (%d bytes)", len(value))
	}
	return text.Quoted(value)
}

// words returns a text, or the texts of a list and of nested lists.
func (n node) words() []string {
	if len(n.kids) == 0 && n.scalar != "" {
		return []string{n.scalar}
	}
	var out []string
	for _, kid := range n.kids {
		switch {
		case n.list && (kid.list || len(kid.kids) > 0):
			out = append(out, kid.words()...)
		case n.list:
			out = append(out, kid.scalar)
		}
	}
	return out
}

// text returns the text at the first existing key of an object.
func (n node) text(keys ...string) string {
	for _, kid := range n.kids {
		if slices.Contains(keys, strings.ToLower(kid.key)) && !n.list {
			return kid.scalar
		}
	}
	return ""
}

// texts returns the texts at the keys of an object, each one text or a list.
func (n node) texts(keys ...string) (out []string, has bool) {
	for _, kid := range n.kids {
		if slices.Contains(keys, strings.ToLower(kid.key)) && !n.list {
			out, has = append(out, kid.words()...), true
		}
	}
	return out, has
}

// runs reports whether a key names a command. Too many do no harm: they are only shown.
func runs(key string) bool {
	key = strings.ToLower(key)
	for _, end := range []string{
		"command", "commands", "cmd", "helper", "script",
		"exec", "executable", "program", "authrefresh", "credentialexport",
	} {
		if strings.HasSuffix(key, end) {
			return true
		}
	}
	return key == "run" || key == "shell" || key == "entrypoint"
}

// leads reports whether a key names an address.
func leads(key string) bool {
	key = strings.ToLower(key)
	return strings.HasSuffix(key, "url") || strings.HasSuffix(key, "endpoint") || key == "address"
}

// onlyTightens reports whether a project's settings file only adds rules that ask or deny.
func onlyTightens(data []byte) bool {
	top, err := parse(".toml", data)
	return err == nil && !slices.ContainsFunc(top.kids, func(n node) bool {
		return n.key != "ask" && n.key != "deny" && (n.key != "rule" || !n.list || slices.ContainsFunc(n.kids, loosens))
	})
}

// loosens reports whether a rule with a reason may do other than ask or deny.
func loosens(rule node) bool {
	actions, has := rule.texts("action")
	return !has || slices.ContainsFunc(actions, func(a string) bool { return a != "ask" && a != "deny" })
}

// split returns the possible file names in a text that may be a command line: its words without quotes, quoted
// parts, and the whole text. It is approximate; a name without a file does no harm.
func split(text string) []string {
	plain := strings.NewReplacer(`"`, "", "'", "").Replace(text)
	out := strings.FieldsFunc(plain, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("`;|&()<>=", r) })
	if parts := strings.FieldsFunc(text, func(r rune) bool { return r == '"' || r == '\'' }); len(parts) > 1 {
		out = append(out, parts...)
	}
	return append(out, text)
}

// places returns the paths below the root that a word may refer to: from its folder, from the root, and after a
// variable for the root. A root has several names if links lead to it.
func (w word) places(roots []string) []string {
	text := filepath.ToSlash(w.text)
	if strings.HasPrefix(text, "$") || strings.HasPrefix(text, "%") {
		if _, after, found := strings.Cut(text, "/"); found {
			text = after
		}
	}
	tries := []string{path.Join(filepath.ToSlash(w.dir), text), text}
	for _, root := range roots {
		for _, try := range tries {
			if rel, err := filepath.Rel(root, filepath.FromSlash(try)); err == nil && filepath.IsAbs(filepath.FromSlash(try)) {
				tries = append(tries, filepath.ToSlash(rel))
			}
		}
	}
	var out []string
	for _, try := range tries {
		at := path.Clean(try)
		if at != "." && filepath.IsLocal(filepath.FromSlash(at)) && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out
}

// program reports whether a name is that of a script or program.
func program(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".sh", ".bash", ".zsh", ".fish", ".py", ".rb", ".pl", ".php", ".lua", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jar", ".wasm", ".exe", ".bat", ".cmd", ".ps1":
		return true
	}
	return false
}

// quoted returns a command line; a single word is unchanged.
func quoted(argv []string) string {
	out := make([]string, len(argv))
	for i, arg := range argv {
		out[i] = text.Quoted(arg)
		if arg == "" || out[i] == arg && strings.ContainsFunc(arg, special) {
			out[i] = strconv.Quote(arg)
		}
	}
	return strings.Join(out, " ")
}

// special reports whether a character is special to a shell.
func special(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`\\$;|&()<>*?[]{}#~!", r)
}
