package places

// Files that run automatically, relative to a home, including the content of listed folders.

// shells lists files that run at a login, and when a shell or a terminal starts.
func shells() []string {
	return []string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile",
		".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".bash_completion", ".bash_completion.d",
		".local/share/bash-completion", ".bashrc.d", ".bash.d", ".bash_functions", ".bash_env", ".bash_it", ".oh-my-bash", ".blerc",
		".config/bash", ".config/shell", ".config/sh", ".shrc", ".shinit", ".mkshrc", ".yashrc", ".logout", ".aliases", ".functions",
		".exports", ".extra", ".path", ".zsh", ".zshrc.d", ".zfunc", ".zsh_plugins.txt", ".zsh_plugins.zsh", ".oh-my-zsh", ".zinit",
		".zplug", ".zprezto", ".zpreztorc", ".zim", ".zimrc", ".antigen", ".antidote", ".p10k.zsh", ".config/zsh", ".local/share/zsh",
		".local/share/zinit", ".fzf", ".fzf.bash", ".fzf.zsh", ".config/starship.toml", ".config/fish",
		".local/share/fish/vendor_conf.d", ".local/share/omf", ".config/omf", ".config/nushell", ".config/powershell",
		".local/share/powershell", ".config/elvish", ".elvish", ".config/xonsh", ".xonshrc", ".config/oh-my-posh",
		".config/environment.d", ".pam_environment", ".login_conf", ".config/user-dirs.dirs", ".config/locale.conf", ".config/direnv",
		".direnvrc", ".tool-versions", ".config/mise", ".asdfrc", ".lesskey", ".config/lesskey", ".lessfilter", ".lesspipe",
		".tmux.conf", ".tmux", ".config/tmux", ".config/tmuxinator", ".tmuxinator", ".tmuxp", ".config/tmuxp", ".screenrc", ".byobu",
		".config/byobu", ".config/zellij", ".config/alacritty", ".alacritty.toml", ".alacritty.yml", ".config/kitty", ".config/ghostty",
		".config/wezterm", ".wezterm.lua", ".config/foot", ".config/terminator", ".config/xfce4", ".local/share/konsole",
		".config/konsolerc", ".hyper.js", ".hyper_plugins", ".config/rio",
	}
}

// desktops lists files that a desktop session, a mail system or a timer runs.
func desktops() []string {
	return []string{
		".xinitrc", ".xprofile", ".xsession", ".xsessionrc", ".xserverrc", ".Xsession", ".Xclients", ".Xresources", ".Xdefaults",
		".xbindkeysrc", ".gnomerc", ".dmrc", ".xsettingsd", ".config/autostart", ".config/autostart-scripts", ".config/systemd",
		".local/share/systemd", ".config/cron", ".config/fcron", ".config/upstart", ".config/dconf", ".local/share/dbus-1",
		".local/share/applications", ".local/share/mime", ".local/share/thumbnailers", ".config/mimeapps.list", ".mailcap",
		".local/share/gnome-shell", ".local/share/cinnamon", ".local/share/plasma", ".local/share/kwin", ".local/share/kio",
		".local/share/kservices5", ".local/share/nautilus", ".local/share/nautilus-python", ".local/share/nemo", ".local/share/flatpak",
		".config/plasma-workspace", ".config/kwinrc", ".config/kglobalshortcutsrc", ".config/khotkeysrc", ".kde", ".kde4",
		".config/lxsession", ".config/i3", ".i3", ".config/i3status", ".config/sway", ".config/hypr", ".config/awesome", ".config/bspwm",
		".config/sxhkd", ".config/openbox", ".config/fluxbox", ".fluxbox", ".config/qtile", ".xmonad", ".config/xmonad",
		".config/herbstluftwm", ".config/river", ".config/niri", ".config/labwc", ".config/wayfire.ini", ".config/polybar",
		".config/waybar", ".config/rofi", ".config/dunst", ".config/mako", ".config/swaync", ".config/swayidle", ".config/eww", ".conky",
		".conkyrc", ".config/conky", ".config/pulse", ".config/pipewire", ".config/wireplumber", ".forward", ".procmailrc", ".qmail",
		".mailrc", ".muttrc", ".mutt", ".config/mutt", ".neomuttrc", ".config/neomutt", ".config/aerc", ".fetchmailrc", ".rhosts",
		".shosts", ".k5login", "Library/LaunchAgents", "Library/Preferences", "Library/Scripts", "Library/Application Scripts",
		"Library/Services", "Library/Workflows", "Library/QuickLook", "Library/Spotlight", "Library/StartupItems",
		"Library/Input Methods", "Library/Internet Plug-Ins", ".hammerspoon", ".yabairc", ".skhdrc", ".config/yabai", ".config/skhd",
		".config/karabiner", ".phoenix.js",
	}
}

// editors lists files of editors, pagers, agents and other programs that load code of the person.
func editors() []string {
	return []string{
		".vimrc", ".vim", ".gvimrc", ".ideavimrc", ".exrc", ".config/vim", ".config/nvim", ".local/share/nvim", ".config/lvim",
		".local/share/lunarvim", ".emacs", ".emacs.el", ".emacs.d", ".config/emacs", ".doom.d", ".config/doom", ".spacemacs",
		".spacemacs.d", ".nanorc", ".config/nano", ".joerc", ".jedrc", ".kakrc", ".config/kak", ".config/helix", ".config/micro",
		".config/Code", ".vscode", ".vscode-server", ".vscode-insiders", ".vscode-oss", ".vscode-remote", ".config/Code - Insiders",
		".config/VSCodium", ".config/Cursor", ".cursor", ".cursor-server", ".windsurf", ".windsurf-server", ".codeium", ".config/zed",
		".local/share/zed", ".config/sublime-text", ".config/sublime-text-3", ".config/JetBrains", ".local/share/JetBrains", ".atom",
		".config/geany", ".local/share/gedit", ".local/share/kate", "Library/Application Support/Code",
		"Library/Application Support/JetBrains", "Library/Application Support/iTerm2", ".claude", ".codex", ".gemini", ".qwen",
		".continue", ".aider.conf.yml", ".config/opencode", ".config/goose", ".config/crush", ".config/amp", ".config/ranger",
		".config/lf", ".config/nnn", ".config/vifm", ".config/mc", ".config/yazi", ".config/broot", ".config/mpv", ".config/yt-dlp",
		".config/youtube-dl", ".newsboat", ".config/newsboat", ".w3m", ".irssi", ".weechat", ".config/weechat", ".config/qutebrowser",
		".config/GIMP", ".config/inkscape", ".config/libreoffice", ".config/blender", ".config/obs-studio", ".config/bat",
		".config/ripgrep", ".ackrc",
	}
}

// interpreters lists files that an interpreter or a debugger loads when it starts.
func interpreters() []string {
	return []string{
		".pythonrc", ".pythonrc.py", ".pythonstartup.py", ".config/python", ".local/lib", ".pdbrc", ".pdbrc.py", ".ipython",
		".config/ipython", ".jupyter", ".config/jupyter", ".bpython", ".config/bpython", "Library/Python", ".irbrc", ".config/irb",
		".pryrc", ".config/pry", ".rdbgrc", ".byebugrc", ".rspec", ".config/rspec", ".guard.rb", ".rubocop.yml", ".config/rubocop",
		".node_modules", ".node_libraries", ".perldb", ".perl5", "perl5", ".cpan", ".cpanm", ".Rprofile", ".Renviron", ".config/R",
		".octaverc", ".config/octave", ".julia/config", ".juliarc.jl", ".sbclrc", ".clisprc", ".clisprc.lisp", ".eclrc",
		".ccl-init.lisp", ".swank.lisp", ".guile", ".racketrc", ".config/racket", ".ocamlinit", ".utoprc", ".config/utop", ".ghci",
		".ghc", ".config/ghc", ".erlang", ".config/erlang", ".iex.exs", ".config/iex", ".tclshrc", ".wishrc", ".expect.rc", ".psysh",
		".config/psysh", ".ammonite", ".groovy", ".gnuplot", ".config/gnuplot", ".maxima", ".gdbinit", ".gdbearlyinit", ".config/gdb",
		".lldbinit", ".cgdb", ".config/rr", ".valgrindrc", ".psqlrc", ".sqliterc", ".mongorc.js", ".mongoshrc.js", ".redisclirc",
		".config/litecli", ".config/pgcli", ".config/mycli",
	}
}

// managers lists files that package managers, version managers and build tools load or run.
func managers() []string {
	return []string{
		".gradle/init.gradle", ".gradle/init.gradle.kts", ".gradle/init.d", ".gradle/wrapper", ".m2/extensions.xml", ".m2/wrapper",
		".mavenrc", ".config/maven", ".antrc", ".ant", ".sbt", ".sbtrc", ".mill", ".ivy2", ".lein", ".clojure", ".config/clojure",
		".boot", ".bazelrc", ".config/bazel", ".buckconfig", ".conan", ".conan2", ".cmake", ".config/ccache", ".ccache/ccache.conf",
		".distcc", ".config/sccache", ".cargo/config", ".cargo/config.toml", ".cargo/env", ".config/go",
		"Library/Application Support/go", ".stack", ".config/stack", ".cabal", ".config/cabal", ".ghcup", ".opam", ".esy", ".elan",
		".juliaup", ".nix-profile", ".nix-defexpr", ".nixpkgs", ".config/nix", ".config/nixpkgs", ".config/home-manager", ".config/guix",
		".guix-profile", ".linuxbrew", ".homebrew", ".config/homebrew", ".config/pip", ".pip", ".config/uv", ".config/pypoetry",
		".config/pdm", ".config/hatch", ".config/pixi", ".pixi", ".poetry", ".pydistutils.cfg", ".condarc", ".mambarc", ".conda",
		".config/conda", "miniforge3", "mambaforge", "micromamba", ".local/share/virtualenv", ".local/share/pipx", ".virtualenvs",
		".npm-global", ".npm-packages", ".npm-init.js", ".pnpmfile.cjs", ".config/pnpm", ".local/share/pnpm", ".yarnrc", ".yarn",
		".config/yarn", ".bunfig.toml", ".bun", ".config/fnm", ".fnm", ".local/share/fnm", ".n", "n/bin", ".nodenv", ".goenv", ".jenv", ".plenv",
		".phpenv", ".tfenv", ".tgenv", ".rvm", ".rvmrc", ".gvm", ".kerl", ".kiex", ".proto", ".version-fox", ".vfox", ".config/pkgx",
		".gemrc", ".gem", ".local/share/gem", ".bundle", ".composer", ".config/composer", ".luarocks", ".config/luarocks", ".mix",
		".hex", ".pub-cache", ".cocoapods", ".swiftpm", ".config/swiftpm", ".swiftly", ".nuget/plugins", ".config/NuGet",
		".dotnet/tools", "go/bin", ".go/bin", ".foundry", ".krew", "google-cloud-sdk", ".local/bin", "bin", ".bin", ".local/opt",
	}
}

// tools lists settings of other tools that name programs.
func tools() []string {
	return []string{
		".gitconfig", ".config/git", ".gitattributes", ".git-templates", ".git_template", ".config/lazygit", ".config/gitui", ".tigrc",
		".config/tig", ".config/pre-commit", ".cache/pre-commit", ".hgrc", ".config/hg", ".config/jj", ".jjconfig.toml", ".subversion",
		".bazaar", ".cvsrc", ".curlrc", ".config/curlrc", ".wgetrc", ".config/wget", ".ansible.cfg", ".ansible", ".packer.d",
		".vagrant.d", ".kitchen", ".chef", ".puppet", ".docker/cli-plugins", ".config/containers", ".config/podman", ".config/helm",
		".local/share/helm", ".helm", ".config/k9s", ".local/share/k9s", ".fabricrc", ".terraform.rc", ".pulumi", ".serverless",
		".config/gcloud/configurations", ".lftprc", ".lftp", ".config/lftp", ".taskrc", ".config/btop",
	}
}
