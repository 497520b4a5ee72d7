package secret

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// head is the minimum length of a form, in bytes.
const head = 8

// index finds forms of known values. It skips as Wu and Manber do (A fast algorithm for multi-pattern
// searching, 1994): three bytes determine the minimum distance to the next form. It is immutable.
type index struct {
	forms map[string][]form // by their first bytes; longest first
	heads []string          // the same first bytes, sorted
	skips [1 << 15]uint8

	// For forms with gaps inside.
	pairs   pairs
	gapped  [256]bool // bytes that gaps begin with
	longest int       // bytes of a form
}

func newIndex(values []string) *index {
	x := &index{forms: map[string][]form{}, gapped: gapped()}
	for i := range x.skips {
		x.skips[i] = head - 2
	}
	seen := map[string]bool{}
	for pass := range 2 { // values as they are win over forms of others
		for n, value := range values {
			for i, f := range formsOf(value) {
				if (i == 0) == (pass == 0) && !seen[f.text] {
					seen[f.text], f.value = true, n
					x.add(f)
				}
			}
		}
	}
	for _, forms := range x.forms {
		slices.SortStableFunc(forms, func(a, b form) int { return cmp.Compare(len(b.text), len(a.text)) })
	}
	x.heads = slices.Sorted(maps.Keys(x.forms))
	return x
}

func (x *index) add(f form) {
	x.forms[f.text[:head]] = append(x.forms[f.text[:head]], f)
	for i := range head - 2 {
		at := block(f.text[i], f.text[i+1], f.text[i+2])
		x.skips[at] = min(x.skips[at], uint8(head-3-i))
	}
	x.pairs.add(f.text)
	x.longest = max(x.longest, len(f.text))
}

func block(a, b, c byte) uint16 { return (uint16(a)<<10 ^ uint16(b)<<5 ^ uint16(c)) & (1<<15 - 1) }

// next finds the first form in a text, the longest at its position. It returns its start. Without a match it
// returns the position where more text is needed: the end if final.
func (x *index) next(text string, final bool) (form, int) {
	i := 0
	for i+head <= len(text) {
		if n := x.skips[block(text[i+head-3], text[i+head-2], text[i+head-1])]; n > 0 {
			i += int(n)
			continue
		}
		for _, f := range x.forms[text[i:i+head]] {
			if strings.HasPrefix(text[i:], f.text) {
				return f, i
			}
			if !final && strings.HasPrefix(f.text, text[i:]) {
				return form{}, i
			}
		}
		i++
	}
	for ; !final && i < len(text); i++ {
		n, _ := slices.BinarySearch(x.heads, text[i:])
		if n < len(x.heads) && strings.HasPrefix(x.heads[n], text[i:]) {
			return form{}, i
		}
	}
	return form{}, len(text)
}
