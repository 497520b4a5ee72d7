package recall

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
)

const maxToken = 64 // bytes; a longer one is found by its beginning

// token is a word of a text in the form in which it is indexed.
type token struct {
	text     string // folded: lower case, without accents and endings
	from, to int    // its place, in bytes
	piece    bool   // it is a part of the word before it, as "busy" is of "ErrBusy"
}

// tokens calls yield for each word of a text. A word is a run of letters and digits, so that snake_case and
// paths are several words in a row; a word in camelCase also yields its pieces. Scripts without spaces yield
// every pair of characters, and the last one alone.
func tokens(text string, yield func(token) bool) {
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		if !wordly(r) {
			i += size
			continue
		}
		read := word
		if dense(r) {
			read = pairs
		}
		var ok bool
		if i, ok = read(text, i, yield); !ok {
			return
		}
	}
}

// wordly reports whether r is part of words.
func wordly(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
}

// dense reports whether r is of a script without spaces between words.
func dense(r rune) bool {
	return r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// pairs reads a run of a dense script.
func pairs(text string, i int, yield func(token) bool) (end int, ok bool) {
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !dense(r) {
			break
		}
		next, more := utf8.DecodeRuneInString(text[i+size:])
		if !dense(next) {
			more = 0
		}
		if !yield(token{text: text[i : i+size+more], from: i, to: i + size + more}) {
			return 0, false
		}
		i += size
	}
	return i, true
}

// word reads a word and its pieces.
func word(s string, i int, yield func(token) bool) (end int, ok bool) {
	from, plain, humps := i, true, false
	last := false // the character before is a capital letter
	for i < len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			humps = humps || last && i > from+1
			last = false
			i++
			continue
		}
		r, size := rune(c), 1
		if c >= utf8.RuneSelf {
			if r, size = utf8.DecodeRuneInString(s[i:]); dense(r) {
				break
			}
		}
		if !wordly(r) {
			break
		}
		plain = false
		big := upper(r)
		humps = humps || i > from && big && !last || !big && last && i > from+1
		last = big
		i += size
	}
	whole := s[from:i]
	if !plain {
		whole = fold(whole)
	}
	if whole == "" { // of accents alone
		return i, true
	}
	if !yield(token{text: stem(text.Head(whole, maxToken)), from: from, to: i}) {
		return 0, false
	}
	if humps && i-from <= maxToken {
		return i, pieces(s, from, i, yield)
	}
	return i, true
}

// pieces yields the parts of a word in camelCase: parse, HTTP and Error of parseHTTPError. A word of one part
// has none.
func pieces(text string, from, to int, yield func(token) bool) bool {
	start := from
	for i := from + 1; i < to; i++ {
		if !utf8.RuneStart(text[i]) {
			continue
		}
		last, _ := utf8.DecodeLastRuneInString(text[from:i])
		r, size := utf8.DecodeRuneInString(text[i:to])
		next, _ := utf8.DecodeRuneInString(text[i+size : to])
		if upper(r) && (!upper(last) || unicode.IsLower(next)) {
			if !piece(text, start, i, yield) {
				return false
			}
			start = i
		}
	}
	return start == from || piece(text, start, to, yield)
}

func piece(text string, from, to int, yield func(token) bool) bool {
	return to-from < 2 || yield(token{text: stem(fold(text[from:to])), from: from, to: to, piece: true})
}

func upper(r rune) bool {
	if r < utf8.RuneSelf {
		return 'A' <= r && r <= 'Z'
	}
	return unicode.IsUpper(r)
}

// latin has the letters without accents for U+00C0 to U+017F; letters without an equivalent stay.
const latin = "aaaaaa\x00ceeeeiiii\x00nooooo\x00ouuuuy\x00\x00aaaaaa\x00ceeeeiiii\x00nooooo\x00ouuuuy\x00y" +
	"aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiii\x00\x00jjkk\x00llllllllllnnnnnn\x00\x00\x00oooooo\x00\x00rrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzz\x00"

// fold returns a word in lower case and without accents.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf:
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			return r
		case r >= 0xc0 && r < 0x180 && latin[r-0xc0] != 0:
			return rune(latin[r-0xc0])
		case unicode.Is(unicode.Mn, r):
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// stem removes the usual English endings of a word of a to z, so that tests, tested and testing are found by
// test. It is crude on purpose: it only must treat queries and texts alike.
func stem(s string) string {
	if len(s) < 4 || strings.IndexByte("sgde", s[len(s)-1]) < 0 {
		return s
	}
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return s
		}
	}
	s = singular(s)
	for _, end := range []string{"ing", "ed"} {
		base, ok := strings.CutSuffix(s, end)
		if ok && len(base) >= 3 && strings.ContainsAny(base, "aeiouy") && !strings.HasSuffix(s, "eed") {
			s = single(base)
			break
		}
	}
	if len(s) >= 4 {
		s = strings.TrimSuffix(s, "e")
	}
	return s
}

func singular(s string) string {
	switch {
	case strings.HasSuffix(s, "ies") && len(s) > 4:
		return s[:len(s)-3] + "y"
	case strings.HasSuffix(s, "sses"):
		return s[:len(s)-2]
	case strings.HasSuffix(s, "s") && !strings.HasSuffix(s, "ss") && !strings.HasSuffix(s, "us") && !strings.HasSuffix(s, "is"):
		return s[:len(s)-1]
	}
	return s
}

// single turns two equal consonants at the end into one: runn of running.
func single(s string) string {
	n := len(s)
	if s[n-1] == s[n-2] && !strings.ContainsRune("aeioulsz", rune(s[n-1])) {
		return s[:n-1]
	}
	return s
}

// each is tokens as a sequence.
func each(text string) iter.Seq[token] {
	return func(yield func(token) bool) { tokens(text, yield) }
}
