package places

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// Known is a sensitive place with a known path.
type Known struct {
	Path  string
	Guard Guard
	Why   string
}

// Known lists the sensitive places of the machine with known paths, whether they exist or not. Everything below
// them is equally sensitive.
func (m Map) Known() []Known {
	out := m.own()
	for _, dir := range m.Apart {
		out = append(out, Known{dir, Secret, othersWork})
	}
	return append(out, m.elsewhere()...)
}

// own returns inspan's own places. No setting opens them.
func (m Map) own() []Known {
	var out []Known
	for _, dir := range m.State {
		if dir != "" {
			out = append(out, Known{dir, Secret, "holds the sessions of inspan"})
		}
	}
	if m.Settings != "" {
		out = append(out, Known{m.Settings, Frozen, "holds the settings of inspan"})
	}
	return out
}

func (m Map) elsewhere() []Known {
	var out []Known
	for _, path := range secretSystem() {
		out = append(out, Known{path, Secret, "holds secrets of the system"})
	}
	for _, path := range kernel() {
		out = append(out, Known{path, Frozen, "decides how the system, or every program on it, works"})
	}
	if m.Home != "" {
		for _, name := range secretHome() {
			out = m.addKnown(out, name, Secret, "holds keys, passwords or private data")
		}
		for _, list := range [][]string{shells(), desktops(), editors(), interpreters(), managers(), tools()} {
			for _, name := range list {
				out = m.addKnown(out, name, Frozen, "decides what runs when a shell or a program starts")
			}
		}
		out = append(out, m.programs()...)
	}
	for _, path := range m.Git {
		out = append(out, Known{path, Guarded, "is what settings of git have it run"})
	}
	if m.Root != "" {
		for _, name := range frozenRoot() {
			out = append(out, Known{filepath.Join(m.Root, name), Frozen, "can name programs to run"})
		}
		for _, name := range guardedNames() {
			out = append(out, Known{filepath.Join(m.Root, name), Guarded, "names programs that others run"})
		}
	}
	return out
}

// addKnown adds a place in the home, and its moved location.
func (m Map) addKnown(list []Known, name string, guard Guard, why string) []Known {
	for from, to := range m.Moved {
		if inside(from, name) {
			list = append(list, Known{filepath.Join(to, name[len(from):]), guard, why})
		}
	}
	return append(list, Known{filepath.Join(m.Home, name), guard, why})
}

// programs returns folders of the home with programs and packages that the person and other projects will run.
// A workspace in one is an ordinary project. A workspace that is not a home has its own programs.
func (m Map) programs() []Known {
	var out []Known
	add := func(dir, why string) {
		within := text.Inside(m.Root, dir) && !text.Inside(m.Root, m.Home)
		if dir != m.Home && text.Inside(m.Home, dir) && (m.Root == "" || !within && !text.Inside(dir, m.Root)) {
			out = append(out, Known{dir, Frozen, why})
		}
	}
	for _, name := range Caches() {
		add(filepath.Join(m.Home, name), "holds programs and packages that other projects run")
	}
	for _, dir := range m.Programs {
		add(dir, "holds programs that are run by their names")
	}
	return out
}

// system lists folders with the same content for all users.
func system() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/sys", "/dev", "/nix/store", "/snap",
		"/var/lib/dpkg", "/var/lib/apt",
		"/Library/Developer", "/Applications", "/System",
	}
}

// Caches lists folders, relative to a home, with downloaded packages: their content is the same for all users.
func Caches() []string {
	return []string{
		"go/pkg/mod", "sdk", ".cargo/registry", ".cargo/bin", ".rustup", ".npm/_cacache", ".nvm", ".pyenv", ".rbenv", ".sdkman", ".m2/repository",
		".gradle/caches", ".cache/go-build",
		".cache/pip", ".local/lib", ".local/pipx", ".local/share/pipx", ".volta", ".bun/install", ".deno", ".asdf", ".local/share/mise",
		".conda/pkgs", "miniconda3", "anaconda3", ".nuget/packages", ".gem/ruby", ".local/share/uv",
	}
}

func secretSystem() []string {
	return []string{
		"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private",
		"/etc/security/opasswd", "/etc/krb5.keytab",
		"/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_dsa_key",
		"/etc/NetworkManager/system-connections", "/etc/wireguard",
		"/etc/openvpn", "/etc/letsencrypt", "/etc/docker/key.json", "/etc/kubernetes", "/etc/rancher",
		"/run/secrets", "/var/run/secrets", "/run/docker.sock", "/var/run/docker.sock", "/run/containerd", "/proc/kcore", "/proc/kmem",
		"/proc/keys", "/proc/key-users", "/dev/mem", "/dev/kmem", "/dev/port",
		"/var/lib/docker", "/var/lib/kubelet", "/var/spool/cron", "/var/mail", "/var/spool/mail",
	}
}

// kernel lists the files that control the kernel, the loader, logins and system timers.
func kernel() []string {
	return []string{
		"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/sys", "/boot", "/etc/ld.so.preload", "/etc/ld.so.conf",
		"/etc/ld.so.conf.d", "/etc/ld.so.cache", "/etc/ld-musl-x86_64.path", "/etc/ld-musl-aarch64.path", "/etc/sysctl.conf", "/etc/sysctl.d",
		"/etc/modprobe.d", "/etc/modules",
		"/etc/modules-load.d", "/etc/udev", "/etc/binfmt.d", "/etc/pam.d", "/etc/pam.conf", "/etc/security", "/etc/crontab", "/etc/cron.d",
		"/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly", "/etc/anacrontab",
		"/etc/systemd", "/etc/init.d", "/etc/inittab", "/etc/rc.local", "/etc/profile", "/etc/profile.d", "/etc/environment", "/etc/bash.bashrc",
		"/etc/bashrc", "/etc/zsh", "/etc/xdg/autostart", "/etc/grub.d",
	}
}

func secretHome() []string {
	return []string{
		".ssh", ".aws", ".azure", ".gnupg", ".kube", ".oci", ".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op",
		".config/sops", ".config/age", ".config/doctl",
		".config/heroku", ".config/rclone", ".config/netlify", ".config/stripe", ".config/hcloud", ".config/containers/auth.json",
		".config/git/credentials", ".config/pip/pip.conf",
		".docker/config.json", ".netrc", "_netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".cargo/credentials",
		".cargo/credentials.toml", ".gem/credentials", ".bundle/config",
		".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".ivy2/.credentials", ".sbt/credentials",
		".nuget/NuGet/NuGet.Config", ".composer/auth.json", ".config/composer/auth.json",
		".terraform.d", ".terraformrc", ".vault-token", ".pgpass", ".my.cnf", ".mylogin.cnf", ".s3cfg", ".boto", ".fly", ".vercel",
		".databrickscfg", ".snowsql", ".dbt/profiles.yml", ".cloudflared", ".wrangler",
		".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".pki", ".mozilla", ".config/google-chrome", ".config/chromium",
		".config/BraveSoftware", ".config/microsoft-edge", ".thunderbird",
		"Library/Keychains", "Library/Cookies", "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox",
		"Library/Messages", "Library/Mail",
		".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".config/github-copilot", ".copilot",
		".local/share/opencode/auth.json", ".huggingface", ".cache/huggingface/token", ".kaggle",
		".electrum", ".bitcoin", ".ethereum", ".config/solana", ".wine", ".config/keepassxc", ".config/Bitwarden", ".config/1Password",
		".bash_history", ".zsh_history", ".history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history",
		".sqlite_history", ".lesshst", ".local/share/fish/fish_history", ".viminfo",
	}
}

// frozenRoot lists the places in a workspace that tools never change: the inside of its repository, and the
// project's files for inspan.
func frozenRoot() []string { return []string{".git", ".inspan", ".hg", ".svn", ".jj"} }

// guardedNames lists names, in any folder, of files that name programs which editors, other agents, git, direnv
// and shells run automatically.
func guardedNames() []string {
	return []string{
		".gitmodules", ".mcp.json", ".envrc", ".vscode", ".idea", ".fleet", ".zed", ".devcontainer", ".devcontainer.json", ".husky", ".githooks",
		// Editors whose folder settings name language servers, builders or code: Helix, Kakoune, Vim with
		// coc.nvim and YouCompleteMe, Neovim, Emacs, Nova, Lapce, Lite XL, Theia, Visual Studio, browser-based
		// ones, and other agents.
		".helix", ".kakrc", ".vim", ".ycm_extra_conf.py", ".nvim", ".dir-locals-2.el", ".nova", ".lapce", ".lite_project.lua", ".theia", ".vs",
		".gitpod.yml", ".replit", ".stackblitzrc", ".codesandbox", ".idx", ".kilocode", ".trae", ".junie",
		".neoconf.json", ".nlsp-settings", ".lazy.lua", ".local.vimrc", ".local_vimrc.vim", "_vimrc_local.vim", ".kateproject", ".kdev4",
		".tm_properties", ".project", ".cproject", ".externaltoolbuilders",
		// Language and build servers that start or load what a file of the project names: Lua, Haskell, OCaml,
		// Clojure, Scala, Swift, C#, PHP, Ruby, and Gradle's wrapper.
		".luarc.json", ".luarc.jsonc", "hie.yaml", ".hie-bios", ".merlin", ".lsp", ".bsp", ".bloop", "buildserver.json", ".sourcekit-lsp",
		"omnisharp.json", ".phpactor.json", ".phpactor.yml", ".solargraph.yml", "gradle-wrapper.properties", "gradle-wrapper.jar",
		// More agents.
		".factory", ".augment", ".qoder", ".zencoder", ".goose", ".openhands", ".amp", ".crush", ".codebuddy", ".iflow", ".lingma", ".rovodev",
		".vibe", ".grok", ".kimi", ".pi", ".agents", ".copilot", ".warp", ".devin", ".antigravity",
		// Version managers, git hooks, and interpreters and debuggers that load a file of their starting
		// folder.
		".tool-versions", ".rtx.toml", ".prototools", ".shadowenv.d", ".rvmrc", ".versions.conf", ".rbenv-vars", ".overcommit.yml", ".lefthook",
		".lefthook-local.yml", "lefthook-local.yml", "lefthook.toml", "lefthook.json", ".lefthook.yml", ".lefthook.yaml", "lefthook.yml", "lefthook.yaml",
		".huskyrc", ".huskyrc.json", ".huskyrc.js", ".cargo-husky", ".rusty-hook.toml", ".simple-git-hooks.json", ".simple-git-hooks.js",
		".simple-git-hooks.cjs", "simple-git-hooks.json", "captainhook.json", "grumphp.yml", "prek.toml", "hk.pkl",
		".byebugrc", ".iex.exs", ".ocamlinit", ".psysh.php", ".radian_profile", ".perldb", ".rdata", ".renviron", ".erlang", ".gnuplot",
		".pre-commit-config.yaml", ".pre-commit-config.yml", ".pre-commit-hooks.yaml", ".hg", ".svn", ".jj", ".sl", ".bzr", "_darcs", ".pijul",
		".repo", ".gclient", ".bazelrc", ".bazeliskrc", "opencode.jsonc", "crush.json", ".crush.json", ".qwen",
		".mise", "mise.local.toml", ".rprofile", ".ghci", ".pnp.cjs", ".pnp.loader.mjs", ".pnpmfile.mjs",
		"bunfig.toml", ".mvn", ".zlogin", ".zlogout", ".bash_login", ".bash_logout", ".bash_aliases", ".kshrc", ".cshrc", ".tcshrc", ".login",
		".irbrc", ".pryrc", ".psqlrc", ".sqliterc", ".curlrc", ".wgetrc", ".condarc",
		".claude", ".codex", ".cursor", ".gemini", ".continue", ".windsurf", ".aider.conf.yml", ".opencode", "opencode.json", ".roo", ".cline",
		".kiro", ".amazonq",
		".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn", ".pnpmfile.cjs", ".cargo", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv",
		".zprofile", ".gitconfig", ".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".lvimrc",
		".bash_completion", ".bash_env", ".bash_functions", ".xprofile", ".gvimrc", ".pythonrc", ".pdbrc", ".lessfilter", ".mongorc.js",
		".octaverc", "usercustomize.py", "sitecustomize.py",
		".mise.toml", "mise.toml", ".autoenv", ".autoenv.zsh", ".autoenv_leave.zsh", ".gdbinit", ".lldbinit", ".dir-locals.el", ".emacs", ".tmux.conf",
		".inputrc",
		".ripgreprc",
	}
}

// guardedForm reports whether a name in a folder, both folded, is as one of guardedNames because of its form.
func guardedForm(folder, name string) bool {
	switch {
	case strings.HasSuffix(name, ".code-workspace"), strings.HasSuffix(name, ".sublime-project"), strings.HasPrefix(name, ".envrc."):
		return true
	case strings.HasPrefix(strings.TrimPrefix(name, "."), "lefthook.") || strings.HasPrefix(strings.TrimPrefix(name, "."), "lefthook-local."):
		return true
	case strings.HasPrefix(strings.TrimPrefix(name, "."), "mise.") && strings.HasSuffix(name, ".toml"): // for one environment
		return true
	}
	return guardedPair(folder, name)
}

// guardedPair reports whether a name is guarded in a folder of that name only.
func guardedPair(folder, name string) bool {
	return slices.Contains([]string{".config/mise", "mise/config.toml", "tools/bazel", ".github/hooks", ".github/copilot"}, folder+"/"+name)
}

// dockerLogins reports whether a name in a folder is that of the file with Docker's logins.
func dockerLogins(folder, name string) bool { return folder == ".docker" && name == "config.json" }

// Steers reports whether programs that work below a folder look there for a file of that name, relative to it,
// that would control them: hidden files, and those that define a project.
func Steers(below string) bool {
	parts := strings.Split(below, "/")
	return slices.ContainsFunc(parts, func(name string) bool { return strings.HasPrefix(name, ".") || name == "node_modules" }) ||
		slices.Contains([]string{
			"package.json", "tsconfig.json", "jsconfig.json", "go.mod", "go.work", "conftest.py", "pytest.ini", "tox.ini", "setup.cfg",
			"pyproject.toml", "Cargo.toml", "rust-toolchain.toml", "pom.xml", "settings.gradle", "Gemfile", "composer.json", "mise.toml", "WORKSPACE",
			"MODULE.bazel", "CMakeLists.txt", "AGENTS.md", "CLAUDE.md",
		}, parts[len(parts)-1])
}
