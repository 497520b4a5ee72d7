package lsp

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Declared lists the declarations of a symbol in a file. The symbol may be qualified, as in Baker.Sell.
func (m *Manager) Declared(ctx context.Context, path, symbol string) ([]Position, error) {
	symbols, err := m.DocumentSymbols(ctx, path)
	if err != nil {
		return nil, err
	}
	of, name := qualified(symbol)
	var out []Position
	for _, s := range symbols.List {
		declaredOf, declaredName := qualified(s.Name)
		if declaredOf == "" {
			_, declaredOf = qualified(s.Container)
		}
		at := s.Location
		if declaredName == name && (of == "" || of == declaredOf) && strings.HasPrefix(at.Text[min(at.Start.Byte, len(at.Text)):], name) {
			out = append(out, at.Start)
		}
	}
	return out, nil
}

// qualified splits Baker.Sell, (*Baker).Sell, a::b and Sell(int) into qualifier and name.
func qualified(symbol string) (of, name string) {
	symbol = strings.NewReplacer("(*", "", "(", " ", ")", "", "::", ".", "#", ".", "->", ".").Replace(strings.TrimPrefix(symbol, "("))
	symbol, _, _ = strings.Cut(symbol, " ")
	parts := strings.Split(symbol, ".")
	name = parts[len(parts)-1]
	if len(parts) > 1 {
		of = parts[len(parts)-2]
	}
	return of, name
}

// Standing lists the occurrences of a symbol in a text as a whole word, including strings and comments: first
// qualified ones, as in Baker.Sell, then others. The positions are those of its last part.
func Standing(text, symbol string) []Position {
	_, name := qualified(symbol)
	var full, bare []Position
	for i, line := range strings.Split(text, "\n") {
		for at := range words(line, name) {
			p := Position{Line: i, Byte: at}
			if strings.HasSuffix(line[:at+len(name)], symbol) {
				full = append(full, p)
			} else {
				bare = append(bare, p)
			}
		}
	}
	return append(full, bare...)
}

// words yields the positions of a word in a line.
func words(line, word string) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for from := 0; word != ""; {
			i := strings.Index(line[from:], word)
			if i < 0 {
				return
			}
			at := from + i
			from = at + len(word)
			before, _ := utf8.DecodeLastRuneInString(line[:at])
			after, _ := utf8.DecodeRuneInString(line[from:])
			if !partOfName(before) && !partOfName(after) && !yield(at) {
				return
			}
		}
	}
}

func partOfName(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
