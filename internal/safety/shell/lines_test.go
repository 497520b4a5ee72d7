package shell_test

import (
	"math/rand/v2"
	"strings"
)

// lines makes up command lines from the grammar of bash. Effects are planted
// in all places where bash evaluates text; see evaluated.go. Most effects are
// the program canary, which leaves a mark.
type lines struct {
	*rand.Rand
	corpus []string // lines to begin with, now and then
}

func (l lines) pick(all ...string) string { return all[l.IntN(len(all))] }

// line makes up a line. One that began in the corpus can name any program, so
// it must only run if it is predicted to do no harm.
func (l lines) line() (line string, tame bool) {
	tame = l.IntN(4) > 0
	if tame {
		line = l.list(2)
	} else {
		line = l.mutated(l.pick(l.corpus...))
	}
	for l.IntN(3) == 0 {
		line = l.mutated(line)
	}
	return line, tame
}

// mutated inserts, repeats or removes characters that have a meaning.
func (l lines) mutated(line string) string {
	at := l.IntN(len(line) + 1)
	switch l.IntN(4) {
	case 0:
		end := min(len(line), at+1+l.IntN(2))
		return line[:at] + line[end:]
	case 1:
		end := min(len(line), at+1+l.IntN(8))
		return line[:end] + line[at:]
	}
	return line[:at] + l.pick("'", `"`, `\`, "$", "{", "}", "(", ")", "`", "<", ">", "#", " ", "\n", ";", "&", "|", "=", "[", "]", "!", "~",
		"$'", `$"`, "${", "$(", "<(", "\\\n", "a[", "canary", " canary ", "{x}", "2", "*", ",") + line[at:]
}

func (l lines) list(depth int) string {
	out := l.command(depth)
	for l.IntN(4) == 0 {
		out += l.pick("; ", "\n", " && ", " || ", " | ", " & ") + l.command(depth)
	}
	return out
}

// effect is a command that does something.
func (l lines) effect() string {
	return l.pick("canary", "canary", "canary", "canary", "canary 1", ">mark", ": >mark", "echo x >mark", "</dev/tcp/127.0.0.1/7777", "\\canary",
		"can'a'ry", "eval canary", "command canary", "exec canary", "env canary", "y=canary; $y", "cat <f", "echo x", "ls", ":")
}

// evaluated is text that runs an effect if bash evaluates it.
func (l lines) evaluated(depth int) string {
	e := l.effect()
	if depth > 0 && l.IntN(4) == 0 {
		e = l.command(depth - 1)
	}
	switch l.IntN(14) {
	case 0:
		return "`" + e + "`"
	case 1:
		return "<(" + e + ")"
	case 2:
		return ">(" + e + ")"
	case 3:
		return "a[$(" + e + ")]"
	case 4:
		return "$((a[$(" + e + ")]))"
	case 5:
		return "$[a[$(" + e + ")]]"
	case 6:
		return `\$(` + e + ")"
	case 7:
		return `\x24(` + e + ")"
	case 8:
		return l.pick("v", "w", "$v", "$w", "canary", "~", "*", "a[v]", "$((v))", "${a[v]}", "${w@P}", "${!v}", "@(a|$w)", "e", "$e", "${!e}")
	}
	return "$(" + e + ")"
}

// quoted puts text in quotes.
func (l lines) quoted(text string) string {
	switch l.IntN(9) {
	case 0, 1:
		return "'" + text + "'"
	case 2, 3:
		return `"` + text + `"`
	case 4:
		return "$'" + text + "'"
	case 5:
		return `$"` + text + `"`
	case 6:
		return `\` + text
	}
	return text
}

// expansion is a parameter expansion that holds the text.
func (l lines) expansion(text string) string {
	name := l.pick("x", "x", "x", "PATH", "HOME", "y", "1", "@", "*", "#", "a[0]", "a[@]", "!x", "v", "e", "-", "?")
	operator := l.pick(":-", "-", ":-", "-", ":+", "+", ":?", "?", ":=", "=", "#", "##", "%", "%%", "/", "//", "/#", "/%", "^", "^^", ",", ",,", ":",
		":0:", "@", "[", "/x/", "//b/", "#*", ":-a", ":- ", ":-}")
	before := l.pick("", "", "", "", "", "", "", "$", "$", "?") // $$ and ${ share their $ for the one who looks for a quote
	return before + "${" + name + operator + text + l.pick("", "", "", "b", " b", "/b", "]") + "}"
}

// word is one word, with something planted in it.
func (l lines) word(depth int) string {
	text := l.evaluated(depth)
	for l.IntN(3) > 0 {
		switch l.IntN(5) {
		case 0, 1:
			text = l.quoted(text)
		case 2, 3:
			text = l.expansion(text)
		default:
			text = l.pick("a", "{a,", "b=", "/", "f", "$x", "${x}", "~", "$'a'", `"b"`, "'c'") + text + l.pick("", "}", "*", "a", "$y", `""`)
		}
	}
	switch l.IntN(6) {
	case 0, 1: // most of what is proven is text that only looks like an effect
		return "'" + strings.ReplaceAll(text, "'", l.pick("", "", `'\''`)) + "'"
	case 2:
		return `"` + strings.NewReplacer("$", `\$`, "`", "\\`", `"`, `\"`).Replace(text) + `"`
	case 3:
		return l.pick("a", "f", "-n", "$x", `"$x"`, "${x:-a}", `"${x##*/}"`, "$(ls)", "1", "b*", "{a,b}")
	}
	return text
}

func (l lines) command(depth int) string {
	w := func() string { return l.word(depth) }
	if l.IntN(3) == 0 {
		return l.builtin(w)
	}
	switch l.IntN(31) {
	case 30:
		return "[[ x =~ " + l.pick("(", "^(", "[", `\(`, `\$(`, "(a ") + w() + l.pick(")", "|b)", "]", `\)`, ")$") + " ]]"
	case 0:
		return "cat <<X\n" + w() + "\nX"
	case 1:
		return "cat <<-'X'\n\t" + w() + "\n\tX\n" + w()
	case 2:
		return "cat <<X\n\"" + w() + "\n" + w() + "\"\nX\n"
	case 3:
		return l.pick("cat", "read y", ":") + " <<< " + w()
	case 4:
		return l.pick("x", "y", "a", "a[0]", "a[1+1]", "v", "IFS", "PS4", "RANDOM", "OPTIND", "BASH_ENV", "PAGER") + l.pick("=", "=", "+=") + w() +
			l.pick("", "; echo $y", " ls", " bash -c :", " read y", "; set -x; ls")
	case 5:
		return "a[" + w() + "]=1" + l.pick("", " ls")
	case 6:
		return "y=(" + w() + " " + l.pick("b", "[0]=c", "["+w()+"]=c") + ")"
	case 7:
		return "for " + l.pick("y", "y", "a", "RANDOM") + " in " + w() + "; do " + l.list(0) + "; done"
	case 8:
		return "for ((y=" + w() + "; y<1; y++)); do :; done"
	case 9:
		return "case " + w() + " in " + l.pick("", "(") + w() + l.pick("", "|b") + ") " + l.list(0) + l.pick(";;", ";&", ";;&", "") + " esac"
	case 10:
		return "[[ " + w() + l.pick(" == ", " = ", " != ", " =~ ", " < ", " -eq ", " -lt ", " -nt ", " && ", " || ") + w() + " ]]"
	case 11:
		return "[[ " + l.pick("-v", "-n", "-z", "-e", "-R", "-t", "-o", "!") + " " + w() + " ]]"
	case 12:
		return "((" + w() + "))"
	case 13:
		return "if " + l.list(0) + "; then " + l.list(0) + l.pick("", "; else "+l.list(0)) + "; fi"
	case 14:
		return "while " + l.list(0) + "; do break; done"
	case 15:
		return "{ " + l.list(0) + "; }" + l.pick("", " >"+w(), " 2>&1")
	case 16:
		return "(" + l.list(0) + ")" + l.pick("", " <"+w())
	case 17:
		return l.pick("y", "ls", "cat", "echo") + "() { " + l.list(0) + "; }; " + l.pick("y", "ls", "cat", "echo x")
	case 18:
		return "select y in " + w() + "; do " + l.list(0) + "; done"
	case 19:
		return "coproc " + l.pick("", "y ") + "{ " + l.list(0) + "; }"
	case 20:
		return l.pick("! ", "time ", "time -p ", "command ", "builtin ", "exec ", "env ", "nice ", "timeout 1 ", "nohup ") + l.command(0)
	case 21:
		return l.pick("ls", "echo", "exec", ":") + " " + l.pick("{y}", "{a["+w()+"]}", "2", "", "&", "{"+w()+"}") + l.pick(">", "<", ">>", ">&", "<&", ">|") + w()
	case 22:
		return "echo $((" + w() + l.pick("", "+1", ",v") + "))"
	case 23:
		return "echo $[" + w() + "]"
	case 24:
		return "echo {" + w() + "," + w() + "}"
	case 25:
		return w() + " " + w()
	}
	return l.pick("echo", "echo", "ls", "cat", ":", "true") + " " + w() + l.pick("", " b", " "+w())
}

// builtin is a builtin, or a program, that may evaluate its words.
func (l lines) builtin(w func() string) string {
	name := l.pick("", "", "", `\`, "builtin ", "command ")
	switch l.IntN(24) {
	case 0:
		return name + l.pick("test ", "[ ") + l.pick("-v ", "-R ", "-n ", "-t ", "! -v ", "x -a -v ", "$y ") + w() + l.pick("", " ]", " -eq 1", " -eq 1 ]")
	case 1:
		return name + "printf " + l.pick("-v ", "-v", "%d ", "%s ", "%*d ", "") + w() + " x"
	case 2:
		return name + "read " + l.pick("", "-r ", "-a ", "-t ", "-p ", "-n1 ") + w() + " <<< " + l.pick("v", "x", "1", "'a[$(canary)]'")
	case 3, 4:
		return name + l.pick("declare", "typeset", "local", "export", "readonly", "declare -i", "declare -n", "declare -a", "declare -A", "export -n") + " " +
			l.pick("", "y=", "a=", "RANDOM=", "BASH_ENV=") + w() + l.pick("", "=1", "; y=v; y=$e", "; echo $y", "; bash -c :")
	case 5:
		return name + "unset " + l.pick("", "-v ", "-f ", "-n ") + w()
	case 6:
		return name + "let " + l.pick("", "y=") + w()
	case 7:
		return "true & wait " + l.pick("-n -p ", "-p", "-n ", "") + w()
	case 8:
		return name + "getopts " + l.pick("a ", "ab: ") + w() + " -a"
	case 9:
		return name + l.pick("mapfile", "readarray") + " " + l.pick("", "-t ", "-C ", "-c1 -C ", "-O ") + w() + " <<< " + l.pick("x", "'x; canary'")
	case 10:
		return name + "eval " + w() + l.pick("", " "+w())
	case 11:
		return name + "trap " + l.pick("", "-- ") + w() + l.pick(" EXIT", " 0", " DEBUG; ls", " ERR; false", " RETURN")
	case 12:
		return l.pick("", "shopt -s expand_aliases; ") + name + "alias " + l.pick("ls", "y") + "=" + w() + l.pick("\nls", "\neval ls", "\ny f")
	case 13:
		return name + l.pick("compgen -W ", "compgen -C ", "complete -W ", "complete -C ", "jobs -x ", "fc -e ", "history -s ", "bind -x ", "enable -f ", "hash -p ",
			"jobs ", "type ", "hash ") + w()
	case 14:
		return name + l.pick("set -x; ", "set -k; ls ", "set -o posix; ", "set +B; ", "shopt -u interactive_comments\n# ") + w()
	case 15:
		return l.pick("bash -c ", "sh -c ", "bash -xc ", "bash -O expand_aliases -c ", "/bin/bash -c ", "/usr/bin/../bin/bash -c ", "bash --posix -c ") + w() +
			l.pick("", " "+w(), " canary x")
	case 16:
		return l.pick("bash", "sh", "bash -s", ".", "source") + l.pick(" <<< ", " < ", " ", " /dev/stdin <<< ") + w()
	case 17:
		return l.pick("env ", "env -i ", "") + l.pick("BASH_ENV", "ENV", "PS4", "PROMPT_COMMAND", "PAGER", "SHELLOPTS=xtrace PS4", "'BASH_FUNC_ls%%'") + "=" +
			l.pick(w(), "'$(canary)'", "'() { canary; }'", "/dev/stdin") + l.pick(" bash -c :", " bash -c ls", " sh -c :", " bash -ic :", " bash -xc ls") +
			l.pick("", " <<< canary")
	case 18:
		return "env -S " + w() + l.pick("", " x")
	case 19:
		return "echo " + l.pick("canary", "x", "f") + " | " + l.pick("xargs ", "xargs -I{} ", "/bin/xargs ", "/usr/bin/../bin/xargs ", "xargs sh -c ", "xargs -n1 ") + w()
	case 20:
		return l.pick("find . -exec ", "find . -ok ", "find f -execdir ", "/usr/bin/../bin/find . -exec ") + l.pick("canary", "sh -c "+w(), w()) + l.pick(` \;`, " +", " {} +")
	case 21:
		return l.pick("exit ", "shift ", "break ", "return ", "ulimit -n ", "umask ", "cd ", "pushd ", "dirs ", "caller ", "kill -0 ", "sleep 0 ", "times ", "suspend ") + w()
	case 22:
		return l.pick("grep x ", "head -n 1 ", "sed -n ", "awk ", "sort ", "tr a ", "cut -c 1 ", "wc ", "seq ", "basename ", "tee ", "cp f ", "rm ", "mv f ", "mkdir -p ") + w()
	}
	return strings.TrimSpace(name + l.pick("echo ", "pwd ", "type ", "cd ", "hash ", ": ", "true ", "command -v ") + w())
}
