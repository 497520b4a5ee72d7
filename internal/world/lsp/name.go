package lsp

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// CheckName returns an error if a name can't be an identifier in a file, judging by the file's name; nil means the
// server may still reject it.
func CheckName(path, name string) error {
	language := ""
	for _, s := range Usual() {
		if id := s.language(path); id != "" {
			language = id
			break
		}
	}
	if slices.Contains([]string{"", "markdown", "yaml", "json", "jsonc"}, language) { // there a name may be any text
		if strings.ContainsFunc(name, unicode.IsControl) || strings.TrimSpace(name) == "" {
			return fmt.Errorf("%q is not a name: it is empty or has control characters", name)
		}
		return nil
	}
	begins, holds, ends := signs(language)
	for i, r := range name {
		last := i+len(string(r)) == len(name)
		switch {
		case unicode.IsLetter(r) || r == '_' || strings.ContainsRune(begins, r) && i == 0:
		case i > 0 && (unicode.IsDigit(r) || unicode.Is(unicode.Mn, r) || strings.ContainsRune(holds, r)):
		case last && i > 0 && strings.ContainsRune(ends, r):
		default:
			return fmt.Errorf("%q is not an identifier%s: %q can't stand there", name, of(path), r)
		}
	}
	if slices.Contains(reserved(language), name) {
		return fmt.Errorf("%q is a keyword%s", name, of(path))
	}
	return nil
}

func of(path string) string {
	if ext := filepath.Ext(path); ext != "" {
		return " in a " + ext + " file"
	}
	return ""
}

// signs returns the characters of a language's identifiers in addition to letters, digits and underscores.
func signs(language string) (begins, holds, ends string) {
	switch language {
	case "typescript", "typescriptreact", "javascript", "javascriptreact":
		return "$#", "$", ""
	case "java":
		return "$", "$", ""
	case "php":
		return "$", "", ""
	case "ruby":
		return "@$", "@", "?!="
	case "elixir", "phoenix-heex":
		return "@", "", "?!"
	case "haskell", "literate haskell":
		return "", "'", "'"
	case "rust":
		return "'", "#", "" // lifetimes, and raw identifiers
	case "cpp", "objective-cpp", "cuda":
		return "~", ":", ""
	case "shellscript", "terraform", "terraform-vars":
		return "", "-.", ""
	}
	return "", "", ""
}

// reserved returns the reserved words of a language.
func reserved(language string) []string {
	words := map[string]string{
		"go": "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return " +
			"select struct switch type var",
		"python": "False None True and as assert async await break class continue def del elif else except finally for from global if import " +
			"in is lambda nonlocal not or pass raise return try while with yield",
		"rust": "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref " +
			"return self Self static struct super trait true type unsafe use where while",
		"java": "abstract assert boolean break byte case catch char class const continue default do double else enum extends final finally " +
			"float for goto if implements import instanceof int interface long native new package private protected public return short static " +
			"super switch synchronized this throw throws transient try void volatile while true false null",
		"c": "auto break case char const continue default do double else enum extern float for goto if int long register return short " +
			"signed sizeof static struct switch typedef union unsigned void volatile while",
	}
	words["javascript"] = "break case catch class const continue debugger default delete do else enum export extends false finally for " +
		"function if import in instanceof new null return super switch this throw true try typeof var void while with"
	words["cpp"] = words["c"] +
		" class delete friend namespace new operator private protected public template this throw try typename using virtual true false"
	switch language {
	case "typescript", "typescriptreact", "javascriptreact":
		language = "javascript"
	}
	return strings.Fields(words[language])
}
