package secret

import (
	"cmp"
	"slices"
	"strings"
)

// leastPiece is the minimum length of a hidden part of a secret, in bytes.
const leastPiece = 5

const (
	apart  = " \t&|;<>()$`{}'\"\\" // where a shell may split a word
	quotes = `'"\`                 // removed from a word by a shell
)

// Pieces hides parts of secrets. A shell splits a secret that contains operators (hunter&zq77wkk), so parts of
// it appear alone in words of commands, names of files and messages. The zero value hides nothing.
type Pieces struct {
	key     []byte
	secrets []string // any part is hidden
	words   []string // as split by shells, the longest first
}

// Pieces returns the parts of the secrets behind the placeholders in a text. The scheme and the host of an
// address are not parts: people must see them.
func (v *Vault) Pieces(text string) Pieces {
	p := Pieces{key: v.Key}
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		i := strings.Index(text, opening)
		if i < 0 {
			break
		}
		size, _ := parsePlaceholder(text[i:])
		if e, f := v.stands(text[i : i+size]); e != nil {
			p.add(e.value)
			p.add(f.text)
		}
		text = text[i+max(size, len(opening)):]
	}
	slices.SortFunc(p.words, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return p
}

func (p *Pieces) add(value string) {
	for _, part := range concealed(value) {
		for _, text := range []string{part, without(part, quotes)} {
			p.secrets = longEnough(p.secrets, text)
			words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(apart, r) })
			if len(words) > 1 || text != part {
				p.words = longEnough(p.words, words...)
			}
		}
	}
}

func without(text, chars string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(chars, r) {
			return -1
		}
		return r
	}, text)
}

func longEnough(list []string, texts ...string) []string {
	for _, text := range texts {
		if len(text) >= leastPiece && sameRun(text) < len(text) && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// concealed returns the lines of a secret without their public parts: the marks at the beginning and end of a
// key, and the scheme and the host of an address.
func concealed(value string) (out []string) {
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		_, rest, address := strings.Cut(line, "://")
		switch {
		case strings.HasPrefix(line, "-----BEGIN "), strings.HasPrefix(line, "-----END "):
		case address:
			end := strings.IndexAny(rest+"/", "/?#")
			user := rest[:max(0, strings.LastIndexByte(rest[:end], '@'))]
			out = append(out, user, rest[end:])
		default:
			out = append(out, line)
		}
	}
	return out
}

// Hide replaces every part of a secret. The replacement has the form of a placeholder, is the same for the same
// part, and can't be resolved. Placeholders are unchanged. Whole secrets must have been redacted before.
func (p Pieces) Hide(text string) string {
	return p.hide(text, p.part)
}

// HideWords hides only the words that a shell would make of a secret. It is for long texts, in which a short
// part of a secret may be a coincidence.
func (p Pieces) HideWords(text string) string {
	return p.hide(text, p.word)
}

func (p Pieces) hide(text string, next func(string) int) string {
	if len(p.secrets) == 0 {
		return text
	}
	var b strings.Builder
	for text != "" {
		n, _ := parsePlaceholder(text)
		hidden := 0
		if n == 0 {
			hidden = next(text)
		}
		if hidden > 0 {
			b.WriteString(opening + digest(p.key, "piece\x00"+text[:hidden])[:tagLen] + "]")
		} else {
			b.WriteString(text[:max(n, 1)])
		}
		text = text[max(n, hidden, 1):]
	}
	return b.String()
}

// part returns the length of the longest part of a secret at the beginning of a text; 0 means too short.
func (p Pieces) part(text string) int {
	longest := 0
	if len(text) < leastPiece {
		return 0
	}
	for _, secret := range p.secrets {
		for rest := secret; ; {
			i := strings.Index(rest, text[:leastPiece])
			if i < 0 {
				break
			}
			rest = rest[i:]
			n := leastPiece
			for n < len(rest) && n < len(text) && rest[n] == text[n] {
				n++
			}
			longest, rest = max(longest, n), rest[1:]
		}
	}
	if sameRun(text[:longest]) == longest {
		return 0
	}
	return longest
}

// word returns the length of the secret word at the beginning of a text; 0 means none.
func (p Pieces) word(text string) int {
	for _, word := range p.words {
		if strings.HasPrefix(text, word) {
			return len(word)
		}
	}
	return 0
}
