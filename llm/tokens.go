package llm

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// imageTokens is the approximate number of tokens that vendors count for a picture of usual size.
const imageTokens = 1500

// Tokens estimates the size of the prompt: that of its texts, and 1,500 for each image.
func (r Request) Tokens() int {
	n := 0.0
	for _, s := range r.System {
		n += tokens(s)
	}
	for _, t := range r.Tools {
		n += tokens(t.Name) + tokens(t.Description) + tokens(t.Schema)
	}
	for _, m := range r.Messages {
		n += m.Parts.tokens()
	}
	return int(n)
}

// Tokens estimates the size of a message like [Request.Tokens].
func (m Message) Tokens() int { return int(m.Parts.tokens()) }

func (p Parts) tokens() float64 {
	n := 0.0
	for _, part := range p {
		switch v := part.(type) {
		case Text:
			n += tokens(v.Text)
		case Reasoning:
			n += float64(len(v.Opaque)) * 2 / 7
		case Call:
			n += tokens(v.Name) + tokens(v.Args)
		case Result:
			n += v.Parts.tokens()
		case Image:
			n += imageTokens
		}
	}
	return n
}

// cautious makes estimates slightly high, since some tokenizers are finer.
const cautious = 1.05

// Tokens for parts of texts, measured with o200k_base; see test/oracle.
const (
	longWord  = 9       // bytes of a word that is one token,
	moreWord  = 2.0 / 7 // and the tokens of each further byte
	leastBlob = 24      // minimum length of noise of mixed letters and digits,
	hexByte   = 0.577
	blobByte  = 0.67
)

// run is a class of bytes that share a token.
type run int

const (
	letters run = iota
	digits
	signs
	spaces
	others
)

func runOf(c byte) run {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		return letters
	case '0' <= c && c <= '9':
		return digits
	case c == ' ' || c == '\n' || c == '\t' || c == '\r':
		return spaces
	case c >= utf8.RuneSelf:
		return others
	}
	return signs
}

func tokens[T ~string | ~[]byte](text T) float64 {
	n := 0.0
	for i := 0; i < len(text); {
		if size, each := blob(text, i); size > 0 {
			n, i = n+float64(size)*each, i+size
			continue
		}
		kind, start := runOf(text[i]), i
		if kind == others {
			r, size := utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))]))
			n, i = n+ofRune(r), i+size
			continue
		}
		for i < len(text) && runOf(text[i]) == kind && (i == start || !humped(text[i-1], text[i])) {
			i++
		}
		size := i - start
		switch kind {
		case letters:
			n += 1 + moreWord*float64(max(size-longWord, 0))
		case digits:
			n += float64((size + 2) / 3)
		case signs:
			if size == 1 && i < len(text) && strings.IndexByte("/._=-", text[start]) >= 0 && runOf(text[i]) == letters {
				n += 0.5 // it often begins the token of the word
				continue
			}
			n += 1 + 0.25*float64(max(size-4, 0))
		case spaces:
			if size > 1 || text[start] != ' ' {
				n++
			}
		}
	}
	return n * cautious
}

// humped reports whether a word such as camelCase begins a new part.
func humped(a, b byte) bool { return 'a' <= a && a <= 'z' && 'A' <= b && b <= 'Z' }

// blob measures noise that begins at i, where a word may begin; 0 if there is none.
func blob[T ~string | ~[]byte](text T, i int) (size int, each float64) {
	if i > 0 && (runOf(text[i-1]) == letters || runOf(text[i-1]) == digits) {
		return 0, 0
	}
	number, upper, lower, hex := 0, 0, 0, true
	for _, c := range []byte(text[i:]) {
		switch {
		case '0' <= c && c <= '9':
			number++
		case 'a' <= c && c <= 'z':
			lower++
			hex = hex && c <= 'f'
		case 'A' <= c && c <= 'Z':
			upper++
			hex = hex && c <= 'F'
		case (c == '+' || c == '/' || c == '=') && size > 0:
		default:
			goto end
		}
		size++
	}
end:
	if size < leastBlob || number < size/20 || lower+upper < size/8 {
		return 0, 0
	}
	if hex {
		return size, hexByte
	}
	return size, blobByte
}

// ofRune returns the tokens of a letter that is not ASCII.
func ofRune(r rune) float64 {
	switch {
	case unicode.Is(unicode.Latin, r):
		return 0.5
	case unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Arabic, unicode.Hebrew):
		return 0.26
	case unicode.In(r, unicode.Devanagari, unicode.Bengali):
		return 0.36
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
		return 0.64
	case unicode.Is(unicode.Hangul, r):
		return 0.6
	case r > 0xFFFF:
		return 2
	}
	return 0.6
}

// Images returns the number of images, including those in results.
func (p Parts) Images() int {
	n := 0
	for _, part := range p {
		switch v := part.(type) {
		case Image:
			n++
		case Result:
			n += v.Parts.Images()
		}
	}
	return n
}
