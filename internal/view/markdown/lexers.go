package markdown

import (
	"embed"
	"encoding/xml"
	"regexp"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
)

// lexerFiles has lexers of chroma. Its own registry reads the heads of all its lexers at every start, which
// takes 9 to 13 ms and 2.7 MB.
//
//go:embed lexers/*.xml
var lexerFiles embed.FS

// Lexers caches the lexers of languages, each read and compiled when it is first needed, which takes some
// milliseconds. The zero value is ready; it is safe for concurrent use.
type Lexers struct {
	mu   sync.Mutex
	read map[string]*lexer // by file name; nil if it can't be read
}

// lexer reads one language.
type lexer struct {
	rules  *chroma.RegexLexer
	state  *chroma.LexerState // set by the rule that matches probe
	blocks []block
}

// probe is the text that makes a lexer hand out its state.
const probe = "\ue000"

// Mutate is called by the lexer when it has read probe.
func (l *lexer) Mutate(s *chroma.LexerState) error {
	l.state = s
	return nil
}

// get returns the lexer of a language, nil if there is none. The caller holds mu.
func (x *Lexers) get(language string) *lexer {
	file := lexerFile(strings.ToLower(language))
	if file == "" {
		return nil
	}
	l, known := x.read[file]
	if !known {
		if x.read == nil {
			x.read = map[string]*lexer{}
		}
		l = readLexer(file)
		x.read[file] = l
	}
	return l
}

// readLexer reads a lexer and the lexers that it passes parts of its text to.
func readLexer(file string) *lexer {
	registry := chroma.NewLexerRegistry()
	l := &lexer{blocks: blocksOf(file)}
	seen := map[string]bool{file: true}
	for todo := []string{file}; len(todo) > 0; todo = todo[1:] {
		rules, uses := decodeLexer(todo[0], l)
		if rules == nil {
			return nil
		}
		if l.rules == nil {
			l.rules = rules
		}
		registry.Register(rules)
		for _, u := range uses {
			if f := lexerFile(strings.ToLower(u)); !seen[f] {
				seen[f] = true
				todo = append(todo, f)
			}
		}
	}
	return l
}

// decodeLexer reads one file. It adds a rule that gives access to the state of the lexer. uses names the other
// lexers it needs.
func decodeLexer(file string, m chroma.Mutator) (l *chroma.RegexLexer, uses []string) {
	raw, err := lexerFiles.ReadFile("lexers/" + file + ".xml")
	if err != nil {
		return nil, nil
	}
	var def struct {
		Config chroma.Config `xml:"config"`
		Rules  chroma.Rules  `xml:"rules"`
	}
	if xml.Unmarshal(raw, &def) != nil {
		return nil, nil
	}
	for _, match := range regexp.MustCompile(`<using lexer="([^"]*)"`).FindAllSubmatch(raw, -1) {
		uses = append(uses, string(match[1]))
	}
	hand := chroma.Rule{Pattern: probe, Type: chroma.Text, Mutator: m}
	def.Rules["root"] = append([]chroma.Rule{hand}, def.Rules["root"]...)
	l, err = chroma.NewLexer(&def.Config, func() chroma.Rules { return def.Rules })
	if err != nil {
		return nil, nil
	}
	return l, uses
}

// lexerFile names the file of a language in lower case, "" if there is none.
func lexerFile(language string) string {
	switch language {
	case "bash", "c", "css", "diff", "elixir", "go", "graphql", "haskell", "hcl", "html", "ini", "java", "javascript", "json", "kotlin", "lua",
		"makefile", "markdown", "nix", "php", "powershell", "python", "ruby", "rust", "scala", "sql", "swift", "terraform", "toml", "typescript",
		"xml", "yaml", "zig":
		return language
	case "sh", "shell", "zsh", "ksh", "console", "shell-session", "bashrc":
		return "bash"
	case "c++", "cpp", "cc", "cxx", "h++", "hpp":
		return "cpp"
	case "h":
		return "c"
	case "c#", "cs", "csharp":
		return "csharp"
	case "docker", "dockerfile", "containerfile":
		return "docker"
	case "ex", "exs":
		return "elixir"
	case "golang":
		return "go"
	case "gql", "graphqls":
		return "graphql"
	case "hs":
		return "haskell"
	case "htm", "xhtml":
		return "html"
	case "cfg", "conf", "dosini", "properties", "editorconfig", "env":
		return "ini"
	case "js", "mjs", "cjs", "node":
		return "javascript"
	case "jsonc", "json5", "jsonl", "ndjson":
		return "json"
	case "jsx", "react":
		return "react"
	case "kt", "kts":
		return "kotlin"
	case "make", "mk", "mf":
		return "makefile"
	case "md", "mdx":
		return "markdown"
	case "nixos":
		return "nix"
	case "patch", "udiff":
		return "diff"
	case "php3", "php5", "php7", "php8":
		return "php"
	case "proto", "protobuf":
		return "protocol_buffer"
	case "posh", "ps1", "psm1", "pwsh":
		return "powershell"
	case "py", "py3", "python3", "pyi", "starlark", "bzl":
		return "python"
	case "rb":
		return "ruby"
	case "rs":
		return "rust"
	case "mysql", "postgres", "postgresql", "plpgsql", "sqlite":
		return "sql"
	case "tf", "tfvars":
		return "terraform"
	case "ts", "tsx", "mts", "cts":
		return "typescript"
	case "svg", "xsd", "xsl", "plist", "rss":
		return "xml"
	case "yml":
		return "yaml"
	}
	return ""
}

// block is a construct that spans lines until it is closed.
type block struct{ open, end string }

// blocksOf lists the blocks of a language that its lexer only recognizes when they are closed.
func blocksOf(file string) []block {
	c := block{"/*", "*/"}
	text := block{`"""`, `"""`}
	switch file {
	case "go", "javascript", "typescript", "react":
		return []block{c, {"`", "`"}}
	case "java", "kotlin", "scala", "swift", "graphql":
		return []block{c, text}
	case "c", "cpp", "csharp", "css", "rust", "php", "sql", "protocol_buffer", "hcl", "terraform":
		return []block{c}
	case "python", "elixir":
		return []block{text, {"'''", "'''"}}
	case "html", "xml", "markdown":
		return []block{{"<!--", "-->"}}
	case "haskell":
		return []block{{"{-", "-}"}}
	case "lua":
		return []block{{"--[[", "]]"}, {"[[", "]]"}}
	case "powershell":
		return []block{{"<#", "#>"}}
	case "nix":
		return []block{c, {"''", "''"}}
	case "toml":
		return []block{text, {"'''", "'''"}}
	}
	return nil
}
