package shell

import (
	"slices"
	"strings"
)

// wrapper judges programs that run another. It reports whether the name is one. No rule may allow a wrapper by its
// name.
func (c *call) wrapper() bool {
	switch c.name {
	case "env":
		c.env()
	case "xargs":
		c.xargs()
	case "timeout":
		_, args := c.split(row{options: " -k: -s: -v --kill-after= --signal= --preserve-status --foreground --verbose "})
		if len(args) < 2 || !args[0].known || !duration(args[0].text) {
			c.v.full("this form of timeout is not judged")
		} else {
			c.under(args[1:])
		}
	case "find":
		c.find()
	case "git":
		c.git()
		return true
	case "sh", "dash", "bash":
		c.shell()
	case "nice":
		c.wrap(" -n: --adjustment= -# ")
	case "ionice":
		c.wrap(" -c: -n: -t --class= --classdata= ")
	case "stdbuf":
		c.wrap(" -i: -o: -e: --input= --output= --error= ")
	case "setsid":
		c.wrap(" -w --wait ")
	case "time":
		c.wrap(" -p -v --verbose --portability ")
	case "nohup":
		c.j.write(literal("nohup.out"), c.s, c.v, "nohup")
		c.wrap(" ")
	case "sudo", "doas", "su", "runuser", "pkexec", "chroot", "unshare", "nsenter", "setpriv", "firejail", "bwrap", "strace", "ltrace", "gdb",
		"perf", "watch",
		"parallel", "busybox", "toybox", "script", "expect", "flock", "chrt", "taskset", "prlimit", "systemd-run", "at", "batch", "entr", "rlwrap", "unbuffer", "caffeinate", "daemonize", "start-stop-daemon", "ssh-agent", "dbus-run-session", "xvfb-run", "catchsegv", "eatmydata", "fakeroot", "proot", "choom", "cgexec", "numactl", "trickle", "torsocks", "proxychains", "proxychains4", "direnv", "mise", "asdf",
		"setarch", "linux32", "linux64", "i386", "x86_64", "uname26", "dumb-init", "tini", "gosu", "su-exec", "chpst", "chronic", "cpulimit",
		"systemd-inhibit", "systemd-cat", "faketime", "hyperfine", "dbus-launch", "runcon", "valgrind", "screen", "dtach", "watchexec",
		"envdir", "s6-envdir", "s6-setuidgid", "setuidgid", "setlock", "softlimit", "rr", "heaptrack", "winpty", "wsl":
		c.v.full(c.name + " runs other programs, in its own way")
		c.guess()
	case "eval", "source", "csh", "tcsh", "zsh", "fish", "ksh", "mksh", "ash", "rbash", "pwsh":
		c.v.full(c.name + " runs whatever it is told")
		c.guess()
	default:
		return false
	}
	c.prefix, c.v.noRule = nil, true
	return true
}

// guess looks for the command inside an unproven wrapper, so that rules can see it.
func (c *call) guess() {
	takes := map[string]string{
		"sudo": "-u -g -h -p -C -T -r -t -U -D -R", "doas": "-u -C", "runuser": "-u -g", "strace": "-o -e -p -s -u",
		"flock": "-w -E", "chrt": "-T -P -D", "watch": "-n", "choom": "-n -p", "cgexec": "-g", "cpulimit": "-l -p -e -P",
		"perf": "-o -e -F -c -p -t -C --call-graph", "screen": "-S -dmS -DmS -c -t -T -s -L -p -h -e", "dtach": "-n -c -A -N -a -r -e",
		"watchexec": "-e -w -i -d -s --exts --watch --ignore", "faketime": "-f -p", "gdb": "-ex -iex -x -ix -c -p -d -cd",
		"bwrap": "--dev --proc --tmpfs --dir --chdir --unsetenv --uid --gid --hostname --mqueue --remount-ro --perms --size --cap-add --cap-drop",
	}
	before := map[string]int{ // operands
		"perf": 1, "gosu": 1, "su-exec": 1, "faketime": 1, "envdir": 1, "s6-envdir": 1, "s6-setuidgid": 1, "setuidgid": 1, "setlock": 1,
	}[c.name]
	pairs := "--bind --ro-bind --dev-bind --bind-try --ro-bind-try --dev-bind-try --symlink --setenv --bind-data --ro-bind-data --chmod"
	for i := 0; i < len(c.args); i++ {
		w := c.args[i]
		if w.known && strings.HasPrefix(w.text, "-") && slices.Contains(strings.Fields(takes[c.name]), w.text) {
			i++ // with its value
			continue
		}
		if w.known && c.name == "bwrap" && slices.Contains(strings.Fields(pairs), w.text) {
			i += 2
			continue
		}
		if w.known && !strings.HasPrefix(w.text, "-") && before > 0 {
			before--
			continue
		}
		if w.known && !strings.HasPrefix(w.text, "-") && !strings.Contains(w.text, "=") {
			c.under(c.args[i:])
			return
		}
	}
}

// split separates the options of a wrapper from its command, because all wrappers stop at the first operand.
func (c *call) split(r row) (parsed, []word) {
	p := parsed{}
	args := c.args
	for len(args) > 0 {
		w := args[0]
		if !w.known {
			if !w.operand() || !w.one {
				c.v.full("a word that can't be known could be an option of " + c.name)
			}
			break
		}
		if w.text == "--" {
			return p, args[1:]
		}
		if len(w.text) < 2 || w.text[0] != '-' {
			break
		}
		args = args[1:]
		if strings.HasPrefix(w.text, "--") {
			args = c.longOption(r, w, args, &p)
		} else {
			args = c.shortOptions(r, w.text, args, &p)
		}
	}
	return p, args
}

// wrap judges a wrapper with only options before the command.
func (c *call) wrap(options string) {
	_, args := c.split(row{options: options})
	if len(args) == 0 {
		c.v.full(c.name + " without a command is not judged")
	}
	c.under(args)
}

func (c *call) env() {
	p, args := c.split(row{options: " -i -0 -u: --ignore-environment --null --unset= "})
	for _, o := range p.options {
		if (o.name == "-u" || o.name == "--unset") && (!o.value.known || !harmlessEnv(o.value.text) && !harmlessName(o.value.text)) {
			c.v.full("env removes a variable that programs may need to be safe")
		}
	}
	if len(args) > 0 && args[0].text == "-" && args[0].known { // as -i
		c.s.bare, args = true, args[1:]
	}
	c.s.bare = c.s.bare || p.has("-i", "--ignore-environment")
	for len(args) > 0 {
		w := args[0]
		name, value, isSet := strings.Cut(w.text, "=")
		if !isSet {
			if !w.known {
				c.v.full("a word that can't be known could set a variable")
			}
			break
		}
		set := word{}
		if w.known {
			set = literal(value)
		}
		if !variably(name) || !harmlessAssign(name, set) {
			c.v.full("setting " + name + " can change what programs do")
		}
		args = args[1:]
	}
	c.under(args)
}

// xargs judges the command with unknown words at its end.
func (c *call) xargs() {
	p, args := c.split(row{options: " -0rtx -n: -L: -P: -s: -I: -d: -E: -a:path --null --no-run-if-empty --verbose --max-args= --max-lines= " +
		"--max-procs= --replace= --delimiter= --arg-file=path "})
	if len(args) == 0 {
		return // it prints the words
	}
	replace := ""
	for _, o := range p.options {
		if o.kind == "path" {
			c.j.read(o.value, c.s, c.v)
		}
		if o.name == "-I" || o.name == "--replace" {
			if replace = o.value.text; !o.value.known || replace == "" {
				c.v.full("what xargs replaces can't be known")
				return
			}
		}
	}
	words := slices.Clone(args)
	if replace == "" {
		c.under(append(words, word{loose: true}))
		return
	}
	for i, w := range words {
		words[i] = hole(w, replace, word{one: true, loose: true})
	}
	c.under(words)
}

// hole returns a word in which a mark represents unknown text.
func hole(w word, mark string, filled word) word {
	before, after, found := strings.Cut(w.text, mark)
	switch {
	case !w.known || !found:
		return w
	case before == "" && after == "":
		return filled
	case before == "":
		filled.paths = nil
		return filled
	}
	return word{text: before, one: true}
}

// shell judges sh -c and bash -c.
func (c *call) shell() {
	args := c.args
	for len(args) > 0 && args[0].known && strings.HasPrefix(args[0].text, "-") {
		flag := args[0].text
		args = args[1:]
		switch {
		case flag == "-c" || flag == "-ec" || flag == "-euc" || flag == "-uc":
			c.scriptOf(args)
			return
		case flag == "-e" || flag == "-u" || flag == "-eu" || flag == "--noprofile" || flag == "--norc":
		case flag == "--version" && c.name == "bash" && len(args) == 0:
			return
		case (flag == "-o" || flag == "-eo" || flag == "-euo") && len(args) > 0 && args[0].known && args[0].text == "pipefail":
			args = args[1:]
		case strings.HasSuffix(flag, "c") && !strings.HasPrefix(flag, "--"):
			c.v.full(c.name + " " + flag + " reads start-up files or does more")
			c.scriptOf(args)
			return
		default:
			c.v.full(c.name + " " + flag + " is not judged")
			return
		}
	}
	if len(args) == 0 {
		c.v.full(c.name + " runs commands from its input")
		return
	}
	c.v.full(c.name + " runs " + spell(args[:1]) + ", whose content is not judged")
}

func (c *call) scriptOf(args []word) {
	if len(args) == 0 || !args[0].known {
		c.v.full("the script can't be known")
		return
	}
	if strings.HasPrefix(args[0].text, "-") {
		c.v.full("the script looks like an option")
		return
	}
	s := c.s.deeper()
	s.vars = nil
	c.j.script(args[0].text, s, dialects{bash: true, posix: c.name != "bash"})
}
