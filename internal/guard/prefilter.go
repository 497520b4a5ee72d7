package guard

import "strings"

// filter finds where in a text one of many words may stand, in one pass. Every
// word has at least four bytes; the first four are looked up in a table of
// bits, and only where that says yes, the words are compared.
//
// Letters of ASCII count in either case. The table folds more than that, which
// only makes it less sharp.
type filter struct {
	bits  [1 << 9]uint64
	words map[uint32][]anchor
}

// anchor is a word in small letters, and what it stands for.
type anchor struct {
	word string
	rule int
}

const foldBits = 0x20202020

func bitOf(v uint32) uint32 { return v * 0x9e3779b1 >> 17 }

func newFilter(anchors []anchor) *filter {
	f := &filter{words: make(map[uint32][]anchor, len(anchors))}
	for _, a := range anchors {
		v := (uint32(a.word[0])<<24 | uint32(a.word[1])<<16 | uint32(a.word[2])<<8 | uint32(a.word[3])) | foldBits
		h := bitOf(v)
		f.bits[h>>6] |= 1 << (h & 63)
		f.words[v] = append(f.words[v], a)
	}
	return f
}

// each calls hit for every place of a word, in order.
func (f *filter) each(text string, hit func(at, rule int)) {
	v := uint32(0)
	for i := range len(text) {
		v = v<<8 | uint32(text[i]) | 0x20
		h := bitOf(v)
		if f.bits[h>>6]&(1<<(h&63)) != 0 && i >= 3 {
			f.compare(text, i-3, v, hit)
		}
	}
}

func (f *filter) compare(text string, at int, v uint32, hit func(at, rule int)) {
	for _, a := range f.words[v|foldBits] {
		if end := at + len(a.word); end <= len(text) && equalFold(text[at:end], a.word) {
			hit(at, a.rule)
		}
	}
}

// equalFold compares with a word in small letters; only ASCII is folded.
func equalFold(text, word string) bool {
	return text == word || strings.EqualFold(text, word)
}
