package lsp

import (
	"maps"
	"path/filepath"
	"slices"
)

// Server configures a language server.
type Server struct {
	// Name is unique among the servers of a [Manager].
	Name string
	// Command is the program, looked up in PATH, and its arguments. It uses the protocol on standard input and
	// output.
	Command []string
	// Languages maps file names, an extension with its dot or the whole name, to the protocol's language
	// identifiers.
	Languages map[string]string
	// RootMarkers are names of files in the root of a project, the most significant first. Without any of them
	// the workspace is the root.
	RootMarkers []string
	// Options are the initialization options; nil means none.
	Options any
	// Settings are the responses to the server's configuration requests, by section; a missing section is null.
	Settings map[string]any
}

// language returns the language identifier of a file, empty if the server does not handle it.
func (s Server) language(path string) string {
	base := filepath.Base(path)
	if id, ok := s.Languages[base]; ok {
		return id
	}
	return s.Languages[filepath.Ext(base)]
}

// clone returns a copy that shares no mutable data with s.
func (s Server) clone() Server {
	s.Command, s.Languages, s.Settings = slices.Clone(s.Command), maps.Clone(s.Languages), maps.Clone(s.Settings)
	return s
}

// Usual lists commonly installed servers. An earlier one is preferred for the same files.
func Usual() []Server {
	script := map[string]string{
		".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "typescriptreact",
		".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascriptreact",
	}
	python := map[string]string{".py": "python", ".pyi": "python"}
	pythonRoots := []string{"pyrightconfig.json", "pyproject.toml", "setup.cfg", "setup.py", "requirements.txt", "Pipfile"}
	c := map[string]string{
		".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hh": "cpp", ".hpp": "cpp", ".hxx": "cpp",
		".m": "objective-c", ".mm": "objective-cpp", ".cu": "cuda",
	}
	ruby := map[string]string{".rb": "ruby", ".rake": "ruby", ".gemspec": "ruby", "Rakefile": "ruby", "Gemfile": "ruby"}
	php := map[string]string{".php": "php"}
	return []Server{
		{
			Name: "gopls", Command: []string{"gopls"}, RootMarkers: []string{"go.work", "go.mod"},
			Languages: map[string]string{".go": "go", "go.mod": "go.mod", "go.work": "go.work", "go.sum": "go.sum"},
			// Symbols of all known packages would hide those of the workspace, and vet's problems should arrive
			// before the server counts as done.
			Options: map[string]any{"symbolScope": "workspace", "diagnosticsDelay": "50ms"},
		},
		{
			Name: "typescript-language-server", Command: []string{"typescript-language-server", "--stdio"},
			Languages: script, RootMarkers: []string{"tsconfig.json", "jsconfig.json", "package.json"},
			// Without it an imported name is renamed in one file only.
			Options: map[string]any{"preferences": map[string]any{"providePrefixAndSuffixTextForRename": false}},
		},
		{Name: "basedpyright", Command: []string{"basedpyright-langserver", "--stdio"}, Languages: python, RootMarkers: pythonRoots},
		{Name: "pyright", Command: []string{"pyright-langserver", "--stdio"}, Languages: python, RootMarkers: pythonRoots},
		{Name: "pylsp", Command: []string{"pylsp"}, Languages: python, RootMarkers: pythonRoots},
		{
			Name: "rust-analyzer", Command: []string{"rust-analyzer"}, Languages: map[string]string{".rs": "rust"},
			RootMarkers: []string{"rust-project.json", "Cargo.lock", "Cargo.toml"},
		},
		{
			Name: "clangd", Command: []string{"clangd"}, Languages: c,
			RootMarkers: []string{
				"compile_commands.json", "compile_flags.txt",
				".clangd", "CMakeLists.txt", "meson.build", "configure.ac", "Makefile",
			},
		},
		{
			Name: "jdtls", Command: []string{"jdtls"}, Languages: map[string]string{".java": "java"},
			RootMarkers: []string{"settings.gradle", "settings.gradle.kts", "mvnw", "gradlew", "pom.xml", "build.gradle", "build.gradle.kts"},
		},
		{Name: "ruby-lsp", Command: []string{"ruby-lsp"}, Languages: ruby, RootMarkers: []string{"Gemfile"}},
		{Name: "solargraph", Command: []string{"solargraph", "stdio"}, Languages: ruby, RootMarkers: []string{"Gemfile", ".solargraph.yml"}},
		{Name: "phpactor", Command: []string{"phpactor", "language-server"}, Languages: php, RootMarkers: []string{"composer.json"}},
		{Name: "intelephense", Command: []string{"intelephense", "--stdio"}, Languages: php, RootMarkers: []string{"composer.json"}},
		{
			Name: "lua-language-server", Command: []string{"lua-language-server"}, Languages: map[string]string{".lua": "lua"},
			RootMarkers: []string{".luarc.json", ".luarc.jsonc", ".stylua.toml"},
		},
		{
			Name: "zls", Command: []string{"zls"}, Languages: map[string]string{".zig": "zig", ".zon": "zig"},
			RootMarkers: []string{"build.zig"},
		},
		{
			Name: "bash-language-server", Command: []string{"bash-language-server", "start"},
			Languages: map[string]string{".sh": "shellscript", ".bash": "shellscript"},
		},
		{
			Name: "yaml-language-server", Command: []string{"yaml-language-server", "--stdio"},
			Languages: map[string]string{".yaml": "yaml", ".yml": "yaml"},
		},
		{
			Name: "vscode-json-language-server", Command: []string{"vscode-json-language-server", "--stdio"},
			Languages: map[string]string{".json": "json", ".jsonc": "jsonc"}, Options: map[string]any{"provideFormatter": false},
		},
		{
			Name: "kotlin-language-server", Command: []string{"kotlin-language-server"},
			Languages:   map[string]string{".kt": "kotlin", ".kts": "kotlin"},
			RootMarkers: []string{"settings.gradle.kts", "settings.gradle", "build.gradle.kts", "build.gradle", "pom.xml"},
		},
		{
			Name: "elixir-ls", Command: []string{"elixir-ls"}, RootMarkers: []string{"mix.exs"},
			Languages: map[string]string{".ex": "elixir", ".exs": "elixir", ".heex": "phoenix-heex"},
		},
		{
			Name: "haskell-language-server", Command: []string{"haskell-language-server-wrapper", "--lsp"},
			Languages:   map[string]string{".hs": "haskell", ".lhs": "literate haskell"},
			RootMarkers: []string{"hie.yaml", "cabal.project", "stack.yaml", "package.yaml"},
		},
		{
			Name: "terraform-ls", Command: []string{"terraform-ls", "serve"}, RootMarkers: []string{".terraform", ".terraform.lock.hcl"},
			Languages: map[string]string{".tf": "terraform", ".tfvars": "terraform-vars"},
		},
		{
			Name: "marksman", Command: []string{"marksman", "server"}, RootMarkers: []string{".marksman.toml"},
			Languages: map[string]string{".md": "markdown"},
		},
	}
}
