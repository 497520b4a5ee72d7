package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxInside bounds how often the inside of unproven commands is examined in one text, because each examination can
// find more. Long commands count more.
const maxInside = 64

// inside lists the commands that an unproven command would run itself, so that deny rules can see them. It
// proves nothing: the command stays Full.
func (c *call) inside(words []word) {
	name := path.Base(words[0].text) // in any folder
	if !words[0].known || !plain(name) && name != "[" || len(words) < 2 {
		return
	}
	before := c.j.inside
	c.j.inside += 1 + len(words)/256
	if c.j.inside > maxInside {
		if before <= maxInside {
			c.j.unproven(c.s, c.j.segments[len(c.j.segments)-1].Text, "it runs too many commands to be looked into")
		}
		return
	}
	args := words[1:]
	for _, w := range args {
		if variable, value, ok := strings.Cut(w.text, "="); ok && w.known {
			c.j.insideVariable(variable, literal(value), c.s)
		}
	}
	if evaluatesWords(name, args) {
		c.unseen(spell(words), "what "+name+" evaluates can't be known")
	}
	if rest, ok := strings.CutPrefix(name, "git-"); ok {
		name, args = "git", append([]word{literal(rest)}, args...)
	}
	switch name {
	case "git":
		c.insideGit(args)
	case "sed", "awk", "gawk", "mawk", "nawk":
		c.insideProgram(name, args)
	case "alias":
		c.aliases(args)
	case "parallel":
		c.parallel(args)
	default:
		c.insideShell(name, args)
		known, _ := program(words[0].text)
		if _, _, carries := carriers(name); known == "" && !carries { // such as /opt/bin/xargs
			(&call{j: c.j, s: c.s, v: &verdict{}, name: name, args: args}).wrapper()
		}
	}
}

// insideShell examines what the shell itself and other shells run.
func (c *call) insideShell(name string, args []word) {
	switch name {
	case "eval":
		c.joined(skipOptions(args, " "))
	case "trap", "watch":
		args = skipOptions(args, " -n --interval ")
		if name == "watch" {
			c.joined(args)
		} else if len(args) > 0 {
			c.text(args[0])
		}
	case "jobs":
		if len(args) > 1 && args[0].text == "-x" {
			c.under(args[1:])
		}
	case "env":
		c.splitText(args)
		c.named(args, "-a", "--argv0")
	case "sh", "dash", "bash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh", "pwsh", "powershell":
		c.flagged(args)
	case "exec":
		c.named(args, "-a")
	case "ssh":
		if rest := skipOptions(args, " -B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w "); len(rest) > 1 {
			c.away(func() { c.joined(skipOptions(rest[1:], " ")) })
		}
	case "adb", "fd", "fdfind":
		if at := slices.IndexFunc(args, func(w word) bool {
			return slices.Contains([]string{"shell", "-x", "-X", "--exec", "--exec-batch"}, w.text)
		}); at >= 0 && at+1 < len(args) {
			c.joined(args[at+1:])
		}
	case "cmake":
		if len(args) > 1 && args[0].text == "-E" {
			c.under(args[1:])
		}
	case "gdb":
		if at := slices.IndexFunc(args, func(w word) bool { return w.text == "--args" }); at >= 0 {
			c.under(args[at+1:])
		}
	case "docker", "podman", "nerdctl", "docker-compose":
		c.contained(args)
	}
	c.texts(optionCommands(name, args))
	if len(args) > 1 && runsRest(name, args[0].text) {
		rest := args[1:]
		if at := slices.IndexFunc(rest, func(w word) bool { return w.text == "--" }); at >= 0 {
			rest = rest[at+1:]
		}
		c.under(skipOptions(rest, " -n --name -p --prefix --package --with --python --project --directory --extra --group "))
	}
	if takes, operands, ok := carriers(name); ok {
		args = skipOptions(args, takes)
		for len(args) > 0 && args[0].known { // settings of variables
			if variable, _, sets := strings.Cut(args[0].text, "="); !sets || !variably(variable) {
				break
			}
			args = args[1:]
		}
		if len(args) > operands {
			c.under(args[operands:])
		}
	}
}

// carriers returns, for programs that run their last words, the options that take a word, and the number of
// operands before the command.
func carriers(name string) (takes string, operands int, ok bool) {
	if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || name == "ld.so" { // loaders
		return " --library-path --preload --argv0 --audit --inhibit-rpath --glibc-hwcaps-prepend --glibc-hwcaps-mask ", 0, true
	}
	switch name {
	case "env":
		return " -u --unset -C --chdir -a --argv0 ", 0, true
	case "exec":
		return " -a ", 0, true
	case "command", "builtin", "nohup", "setsid":
		return " ", 0, true
	case "nice":
		return " -n --adjustment ", 0, true
	case "ionice":
		return " -c -n -t --class --classdata ", 0, true
	case "stdbuf":
		return " -i -o -e --input --output --error ", 0, true
	case "time":
		return " -o -f --output --format ", 0, true
	case "npx", "pnpx", "bunx":
		return " -p --package -c --call ", 0, true
	case "timeout":
		return " -k -s --kill-after --signal ", 1, true
	case "flock":
		return " -w -E --timeout --conflict-exit-code ", 1, true
	case "chroot", "taskset":
		return " ", 1, true
	case "chrt":
		return " -T -P -D --sched-runtime --sched-period --sched-deadline ", 1, true
	case "nsenter":
		return " -t -S -G --target --setuid --setgid ", 0, true
	case "setpriv":
		return " --reuid --regid --groups --inh-caps --bounding-set --securebits ", 0, true
	case "systemd-run":
		return " -p --property -u --unit -E --setenv --slice --uid --gid --description ", 0, true
	case "numactl":
		return " -m -N -C -p -i ", 0, true
	}
	return "", 0, false
}

// contained examines what docker exec, docker run and their like run in a container.
func (c *call) contained(args []word) {
	at := slices.IndexFunc(args, func(w word) bool { return w.text == "exec" || w.text == "run" })
	if at < 0 {
		return
	}
	rest := skipOptions(args[at+1:], " -e --env --env-file -u --user -w --workdir -v --volume -p --publish --name --network --mount -h --hostname "+
		"-l --label -m --memory --cpus --entrypoint --platform --pull --add-host --cap-add --cap-drop --device --dns --gpus --index ")
	if len(rest) > 1 {
		c.away(func() { c.under(rest[1:]) })
	}
}

// away examines what runs on another machine or in a container. It changes nothing here.
func (c *call) away(examine func()) {
	from := len(c.j.segments)
	examine()
	for i := range c.j.segments[from:] {
		c.j.segments[from+i].Effects = nil
	}
}

// optionCommands returns the values of options that a program runs as command lines.
func optionCommands(name string, args []word) []word {
	switch name {
	case "mapfile", "readarray", "compgen", "complete":
		return values(args, "-C")
	case "su", "runuser", "script":
		return values(args, "-c", "--command", "--session-command")
	case "flock":
		return values(args, "-c", "--command")
	case "npm", "npx", "pnpm", "pnpx":
		return values(args, "-c", "--call")
	case "rsync":
		return values(args, "-e", "--rsh", "--rsync-path")
	case "sort":
		return values(args, "--compress-program")
	case "cpio":
		return values(args, "--rsh-command")
	case "rg":
		return values(args, "--pre", "--hostname-bin")
	case "svn":
		return values(args, "--editor-cmd", "--diff-cmd", "--diff3-cmd")
	case "zip":
		return values(args, "-TT", "--unzip-command")
	case "nodemon":
		return values(args, "-x", "--exec")
	case "wget":
		return values(args, "--use-askpass")
	case "go":
		return values(args, "-exec", "-toolexec", "-vettool")
	case "vagrant", "gcloud":
		return values(args, "-c", "--command")
	case "concurrently", "tmux":
		return args
	case "expect":
		return marked(values(args, "-c"), "spawn ", "exec ", "system ")
	case "apt-get", "apt", "dpkg":
		out := values(args, "--pre-invoke", "--post-invoke")
		for _, w := range values(args, "-o", "--option") {
			if _, value, ok := strings.Cut(w.text, "="); ok {
				out = append(out, literal(strings.TrimPrefix(value, "=")))
			}
		}
		return out
	case "vi", "vim", "nvim", "view", "ex", "vimdiff", "less", "more":
		return marked(append(values(args, "-c", "--cmd"), args...), "!", ":!", "+!", "+:!", "silent !", "+silent !", "%!")
	case "sqlite3":
		return marked(args, ".shell ", ".system ")
	case "psql":
		return marked(values(args, "-c", "--command"), `\!`)
	case "mysql", "mariadb":
		return marked(values(args, "-e", "--execute"), "system ", `\!`)
	case "hg":
		var out []word
		for _, w := range values(args, "--config") {
			if _, value, ok := strings.Cut(w.text, "="); ok {
				out = append(out, literal(strings.TrimPrefix(value, "!")))
			}
		}
		return out
	case "split":
		return values(args, "--filter")
	case "man":
		return values(args, "-P", "--pager")
	case "tar", "bsdtar", "gtar":
		return append(values(args, "-I", "-F", "--use-compress-program", "--to-command", "--info-script", "--new-volume-script",
			"--rsh-command", "--rmt-command"), marked(values(args, "--checkpoint-action"), "exec=")...)
	case "ssh", "scp", "sftp":
		var out []word
		if name != "ssh" {
			out = values(args, "-S")
		}
		return append(out, marked(values(args, "-o"), "proxycommand=", "proxycommand ", "localcommand=", "localcommand ", "knownhostscommand=", "knownhostscommand ")...)
	case "gdb":
		return marked(values(args, "-ex", "-iex", "--eval-command", "--init-eval-command"), "shell ", "!")
	}
	return nil
}

// marked returns the texts after one of the marks, in any case, at the beginning of words.
func marked(words []word, marks ...string) (out []word) {
	for _, w := range words {
		for _, mark := range marks {
			if len(w.text) > len(mark) && strings.EqualFold(w.text[:len(mark)], mark) {
				out = append(out, word{text: w.text[len(mark):], known: w.known, one: true})
			}
		}
	}
	return out
}

// named examines a command whose name an option replaces, as multi-call programs run what they are called.
func (c *call) named(args []word, options ...string) {
	for _, name := range values(args, options...) {
		if rest := skipOptions(args, " "+strings.Join(options, " ")+" "); len(rest) > 1 {
			c.under(append([]word{name}, rest[1:]...))
		}
	}
}

// runsRest reports whether a subcommand runs the words after it as a command.
func runsRest(name, sub string) bool {
	return slices.Contains([]string{
		"uv run", "poetry run", "pipenv run", "pdm run", "hatch run", "rye run", "pixi run", "conda run", "mamba run", "micromamba run",
		"bundle exec", "npm exec", "npm x", "pnpm exec", "pnpm dlx", "yarn exec", "yarn dlx", "bun x", "mise exec", "mise x", "asdf exec",
		"direnv exec", "oc exec", "lxc exec", "crictl exec", "heroku run", "nix run", "nix develop", "nix shell", "kubectl exec", "opam exec", "stack exec", "cabal exec", "composer exec",
		"rustup run", "rbenv exec", "pyenv exec", "volta run",
	}, name+" "+sub)
}

// skipOptions skips options and the words of those in takes.
func skipOptions(args []word, takes string) []word {
	rest := args
	for len(rest) > 0 && rest[0].known && strings.HasPrefix(rest[0].text, "-") {
		n := 1
		if strings.Contains(takes, " "+rest[0].text+" ") {
			n = min(2, len(rest))
		}
		rest = rest[n:]
	}
	return rest
}

// values returns the values of options, in any notation.
func values(args []word, options ...string) []word {
	var out []word
	for i, w := range args {
		for _, o := range options {
			rest, ok := strings.CutPrefix(w.text, o)
			if at := strings.IndexByte(w.text, o[1]); !ok && len(o) == 2 && at > 1 && w.text[0] == '-' && w.text[1] != '-' {
				rest, ok = w.text[at+1:], true // at the end of a cluster
			}
			switch {
			case !w.known || !ok:
			case rest == "" && i+1 < len(args):
				out = append(out, args[i+1])
			case rest != "" && len(o) == 2:
				out = append(out, literal(rest))
			case strings.HasPrefix(rest, "="):
				out = append(out, literal(rest[1:]))
			}
		}
	}
	return out
}

// text examines a word that is run as a script.
func (c *call) text(w word) {
	if !w.known {
		return // the segment itself then has no words, so that any rule may match it
	}
	s := c.s.deeper()
	s.vars = nil
	if s.depth <= maxNest {
		c.j.script(w.text, s, dialects{bash: true})
	}
}

func (c *call) texts(words []word) {
	for _, w := range words {
		c.text(w)
	}
}

// joined examines words that are run as one script.
func (c *call) joined(words []word) {
	var text []string
	for _, w := range words {
		if !w.known {
			return
		}
		text = append(text, w.text)
	}
	c.text(literal(strings.Join(text, " ")))
}

// unseen adds a segment that may be any command.
func (c *call) unseen(text, why string) {
	c.j.unproven(c.s.deeper(), text, why)
}

// flagged examines the text after -c, whatever options surround it.
func (c *call) flagged(args []word) {
	for i, w := range args {
		if !w.known || !strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "+") {
			continue
		}
		short := !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "c")
		if value, ok := strings.CutPrefix(w.text, "--command="); ok {
			c.text(literal(value))
		} else if short || strings.EqualFold(w.text, "--command") || strings.EqualFold(w.text, "-Command") {
			if rest := skipOptions(args[i+1:], " "); len(rest) > 0 {
				c.text(rest[0])
			}
			return
		}
	}
}

// splitText examines env -S, which splits its word into words.
func (c *call) splitText(args []word) {
	for i, w := range args {
		value, long := strings.CutPrefix(w.text, "--split-string")
		at := strings.IndexByte(w.text, 'S')
		switch {
		case !w.known || !strings.HasPrefix(w.text, "-"):
			return
		case long:
			value = strings.TrimPrefix(value, "=")
		case strings.HasPrefix(w.text, "--") || at < 0:
			continue
		default:
			value = w.text[at+1:]
		}
		rest := args[i+1:]
		if value != "" {
			rest = append([]word{literal(value)}, rest...)
		}
		if len(rest) > 0 && strings.ContainsAny(rest[0].text, `\$#`) {
			c.unseen(rest[0].text, "env reads this differently than shells")
		}
		c.joined(rest)
		return
	}
}

// aliases examines alias definitions. Words after the alias are run with it.
func (c *call) aliases(args []word) {
	for _, w := range args {
		if _, value, ok := strings.Cut(w.text, "="); ok && w.known {
			c.text(literal(value))
			c.text(literal(value + ` "$@"`))
		}
	}
}

// parallel examines the command of GNU parallel, with each of its arguments.
func (c *call) parallel(args []word) {
	args = skipOptions(args, " -j --jobs -n -N -I -a -S --delay --timeout --retries --joblog --results --colsep -d ")
	at := slices.IndexFunc(args, func(w word) bool { return w.known && slices.Contains([]string{":::", ":::+", "::::"}, w.text) })
	if at < 0 {
		c.under(append(slices.Clone(args), word{loose: true}))
		return
	}
	command, items := args[:at], args[at+1:]
	for i, item := range items {
		if i == 16 || !item.known || item.text == ":::" {
			c.unseen("parallel …", "what parallel runs can't be known")
			return
		}
		words, held := slices.Clone(command), false
		for k, w := range words {
			held = held || strings.Contains(w.text, "{}")
			words[k] = word{text: strings.ReplaceAll(w.text, "{}", item.text), known: w.known}
		}
		if !held {
			words = append(words, item)
		}
		c.joined(words)
	}
}

// Where an awk program runs commands.
const (
	awkSystem = `system\s*\(\s*"((?:[^"\\]|\\.)*)"\s*\)`
	awkFrom   = `"((?:[^"\\]|\\.)*)"\s*\|&?\s*getline`
	awkTo     = `\|&?\s*"((?:[^"\\]|\\.)*)"`
)

// insideProgram examines sed and awk programs for the commands that they run.
func (c *call) insideProgram(name string, args []word) {
	if name == "sed" {
		scripts := values(args, "-e", "--expression")
		if rest := skipOptions(args, " "); len(scripts) == 0 && len(rest) > 0 {
			scripts = rest[:1]
		}
		for _, w := range scripts {
			c.insideSed(w.text)
		}
		return
	}
	for _, w := range args {
		if w.known {
			c.insideAwk(w.text)
		}
	}
}

func (c *call) insideSed(text string) {
	s := &sedReader{text: text}
	for !s.end() {
		switch s.command() {
		case "":
		case "e runs a command":
			line, _, _ := strings.Cut(s.text[s.at:], "\n")
			s.at += len(line)
			if strings.Trim(line, " \t;}") == "" { // it runs the line that was read
				c.unseen(text, "what sed runs can't be known")
			}
			c.text(literal(line))
		case "s///e runs a command":
			c.unseen(text, "what sed runs can't be known")
			return
		default:
			return
		}
	}
}

func (c *call) insideAwk(text string) {
	found := 0
	for _, pattern := range []string{awkSystem, awkFrom, awkTo} {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, 8) {
			found++
			c.text(literal(unescape(m[1], `"\`)))
		}
	}
	if found < strings.Count(text, "system")+strings.Count(text, "getline") {
		c.unseen(text, "what awk runs can't be known")
	}
}
