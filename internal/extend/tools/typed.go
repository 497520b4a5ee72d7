package tools

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/inspan/inspan/tool"
)

// typedText is a text as people type it: with composed letters, plain spaces and straight quotes, whatever its
// spelling. Models reproduce text in this form after reading it in another.
type typedText struct {
	text string
	at   []int // the origin of each byte, and the end
}

// typists replaces quotes and spaces of word processors and file systems by those of keyboards, and drops what no
// one sees: soft hyphens, characters without width, and the selectors of how an emoji looks.
func typists() []string {
	pairs := []string{
		"\u2018", "'", "\u2019", "'", "\u201c", `"`, "\u201d", `"`, "\u00a0", " ", "\u202f", " ", "\u205f", " ", "\u3000", " ",
		"\u00ad", "", "\u200b", "", "\u200c", "", "\u200d", "", "\u2060", "", "\ufe0e", "", "\ufe0f", "", "\ufeff", "",
	}
	for r := '\u2000'; r <= '\u200a'; r++ {
		pairs = append(pairs, string(r), " ")
	}
	return pairs
}

// keyboard replaces dashes and ellipses too.
func keyboard() *strings.Replacer {
	pairs := append(typists(), "\u2026", "...", "\u2212", "-")
	for r := '\u2010'; r <= '\u2015'; r++ {
		pairs = append(pairs, string(r), "-")
	}
	return strings.NewReplacer(pairs...)
}

func newTyped(text string) typedText {
	var t typedText
	var b strings.Builder
	var parts norm.Iter
	typed := keyboard()
	for parts.InitString(norm.NFC, text); !parts.Done(); {
		from := parts.Pos()
		part := typed.Replace(string(parts.Next()))
		b.WriteString(part)
		for range len(part) {
			t.at = append(t.at, from)
		}
	}
	t.text, t.at = b.String(), append(t.at, len(text))
	return t
}

// begins reports whether a character of the original text begins or ends at a place of the typed one.
func (t typedText) begins(i int) bool { return i == 0 || t.at[i] != t.at[i-1] }

// common returns how many bytes two texts have in common at their beginnings and ends, in whole letters.
func common(a, b string) (before, after int) {
	whole := func(s string) bool { return s == "" || norm.NFC.PropertiesString(s).BoundaryBefore() }
	for before < len(a) {
		_, n := utf8.DecodeRuneInString(a[before:])
		if !strings.HasPrefix(b[before:], a[before:before+n]) {
			break
		}
		before += n
	}
	for before > 0 && (!whole(a[before:]) || !whole(b[before:])) {
		_, n := utf8.DecodeLastRuneInString(a[:before])
		before -= n
	}
	left := min(len(a), len(b)) - before
	for after < left {
		_, n := utf8.DecodeLastRuneInString(a[:len(a)-after])
		if after+n > left || !strings.HasSuffix(b[:len(b)-after], a[len(a)-after-n:len(a)-after]) {
			break
		}
		after += n
	}
	for after > 0 && !whole(a[len(a)-after:]) {
		_, n := utf8.DecodeRuneInString(a[len(a)-after:])
		after -= n
	}
	return before, after
}

// asSpelled returns a path in the file system's spelling, if exactly one entry has the same letters, spaces and
// quotes in another spelling. Any other path stays.
func asSpelled(ctx context.Context, c *tool.Call, path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool { return r > '~' || r == ' ' || r == '\'' || r == '"' }) {
		return path
	}
	dir, rest := string(filepath.Separator), strings.TrimPrefix(path, string(filepath.Separator))
	if below, inside := strings.CutPrefix(path, c.Env.Root+string(filepath.Separator)); inside {
		dir, rest = c.Env.Root, below
	}
	for name := range strings.SplitSeq(rest, string(filepath.Separator)) {
		if name == "" || name == "." || name == ".." {
			return path
		}
		entries, err := readDir(ctx, c.Env.Files, dir)
		if err != nil {
			return path
		}
		found, ok := spelled(entries, name)
		if !ok {
			return path
		}
		dir = filepath.Join(dir, found)
	}
	return dir
}

// spelled returns the entry for a name: the same name, or else the only one that is typed alike.
func spelled(entries []fs.DirEntry, name string) (found string, ok bool) {
	replace := strings.NewReplacer(typists()...)
	plain := func(name string) string { return replace.Replace(norm.NFC.String(name)) }
	typed, alike := plain(name), 0
	for _, e := range entries {
		if e.Name() == name {
			return name, true
		}
		if plain(e.Name()) == typed {
			found = e.Name()
			alike++
		}
	}
	return found, alike == 1
}
