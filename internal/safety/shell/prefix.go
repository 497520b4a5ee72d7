package shell

import (
	"slices"
	"strings"
)

// prefixOf returns the narrowest prefix that a rule may name for a program, or nil if any prefix would allow
// everything.
func prefixOf(name string, args []word) []string {
	if tooMuch(name) {
		return nil
	}
	depth := subcommands(name)
	if depth == 0 {
		return []string{name}
	}
	out := []string{name}
	for len(out) <= depth {
		if len(args) < len(out) {
			return nil
		}
		sub := args[len(out)-1]
		if !sub.known || !spelled(sub.text, lows, lows+numbers+":_-", 31) {
			return nil
		}
		out = append(out, sub.text)
		if depth == 1 && nests(name, out[1]) {
			depth = 2
		}
	}
	if runsAnything(out) {
		return nil
	}
	return out
}

// subcommands returns how many words after the program determine its action.
func subcommands(name string) int {
	switch name {
	case "git", "npm", "yarn", "pnpm", "bun", "go", "cargo", "docker", "podman", "kubectl", "pip", "pip3", "apt", "apt-get", "dnf", "yum",
		"brew",
		"systemctl", "make", "gmake", "just", "task", "terraform", "tofu", "poetry", "uv", "bundle", "dotnet", "deno", "composer", "helm",
		"rustup", "mvn",
		"gradle", "rake", "mix", "cabal", "stack", "zig", "swift", "flutter", "dart", "conda", "mamba", "pipx", "gem", "snap", "nix", "cmake",
		"ctest",
		"docker-compose", "svn", "hg", "jj", "vercel", "fly", "heroku", "firebase", "golangci-lint", "ruff":
		return 1
	case "gh", "glab", "aws", "gcloud", "az":
		return 2
	}
	return 0
}

// nests reports whether a subcommand has subcommands of its own.
func nests(name, sub string) bool {
	return slices.Contains([]string{
		"docker compose", "docker image", "docker container", "docker network", "docker volume", "npm run", "npm run-script", "yarn run",
		"pnpm run", "bun run",
		"git stash", "git remote", "git worktree", "git submodule", "git notes", "go mod", "go work", "go tool", "cargo nextest", "uv pip",
		"poetry env", "kubectl config",
	}, name+" "+sub)
}

// runsAnything reports subcommands that run arbitrary commands.
func runsAnything(words []string) bool {
	switch strings.Join(words[:min(len(words), 3)], " ") {
	case "docker compose run", "docker compose exec", "docker container run", "docker container exec":
		return true
	}
	switch strings.Join(words[:2], " ") {
	case "swift repl", "swift sh", "rustup run", "gem exec", "poetry shell", "composer exec", "docker-compose run", "docker-compose exec",
		"firebase functions:shell", "heroku run", "fly ssh", "hg config", "jj config", "jj util", "brew sh", "brew irb", "zig build",
		"helm plugin", "go run", "go tool", "go generate", "cargo run", "docker run", "docker exec", "docker build", "podman run",
		"podman exec",
		"kubectl exec", "kubectl run", "kubectl debug",
		"uv run", "uv tool", "poetry run", "bundle exec", "npm exec", "npm x", "npm explore", "npm config", "npm init", "npm create", "yarn exec",
		"yarn dlx", "yarn node", "yarn create",
		"pnpm exec", "pnpm dlx", "pnpm create", "bun x", "deno run", "deno eval", "deno task", "dotnet run", "dotnet exec", "git config",
		"git bisect", "git rebase",
		"git filter-branch", "git difftool", "git mergetool", "git submodule", "git alias", "git credential", "git upload-pack",
		"git receive-pack", "git daemon", "git shell",
		"conda run", "mamba run", "pipx run", "stack exec", "cabal exec", "cabal run", "mix run", "nix run", "nix shell", "nix develop",
		"swift run", "dart run", "zig run",
		"systemctl edit", "svn diff", "hg debugshell", "gh api", "gh extension", "gh alias", "gh codespace", "glab alias", "aws " +
			"ssm", "terraform console", "git instaweb", "git web--browse":
		return true
	}
	return false
}

// tooMuch reports programs that run or destroy arbitrary things, and interpreters.
func tooMuch(name string) bool {
	return interprets(name) || interprets(strings.TrimRight(name, "0123456789.-")) || strings.HasPrefix(name, "mkfs") ||
		strings.HasPrefix(name, "qemu-")
}

// interprets is tooMuch for a name without a version.
func interprets(name string) bool {
	switch name {
	case "python", "python2", "python3", "pypy", "pypy3", "node", "nodejs", "ruby", "irb", "perl", "php", "lua", "luajit", "tclsh", "wish",
		"Rscript", "R", "julia", "osascript",
		"java", "jshell", "groovy", "scala", "ghci", "ocaml", "guile", "sbcl", "clojure", "elixir", "iex", "erl", "ts-node", "tsx", "npx", "bunx",
		"uvx", "pnpx", "corepack",
		"vi", "vim", "nvim", "emacs", "ed", "ex", "nano", "less", "more", "man", "info", "most", "gawk", "mawk", "nawk", "m4", "dc", "gnuplot",
		"octave", "sqlite3", "psql", "mysql",
		"rm", "dd", "shred", "wipefs", "fdisk", "parted", "mount", "umount", "chmod", "chown", "chgrp", "chattr", "setfacl", "ln", "install",
		"patch", "tee",
		"kill", "killall", "pkill", "shutdown", "reboot", "halt", "poweroff", "init", "crontab", "visudo", "passwd", "useradd", "usermod",
		"userdel",
		"tar", "zip", "cpio", "7z", "openssl", "gpg", "ld", "gcc", "cc", "clang", "tmux", "screen", "zgrep", "zless", "ldd", "vagrant", "ansible",
		"ansible-playbook", "salt",
		"kotlin", "kotlinc", "swiftc", "ghc", "runghc", "racket", "raku", "nim", "crystal", "io", "janet", "bb", "babashka", "nu",
		"elvish", "xonsh",
		"lldb", "valgrind", "wine", "wine64", "nix-shell", "nix-env", "nix-build", "pipenv", "hatch", "tox", "nox", "rye", "pixi", "mise", "asdf",
		"rtx", "direnv", "volta", "fnm", "mongosh", "mongo", "redis-cli", "mariadb", "duckdb", "gosu", "su-exec", "capsh", "newgrp", "sg",
		"tcpdump", "nmap", "socat", "split", "rg", "fd", "fdfind", "ag", "ack", "sort", "column", "printf":
		return true
	}
	return false
}
