package recall

import (
	"errors"
	"fmt"
	"slices"
)

// Inside reads all that is in the file of an index: how many documents there are, and how
// many of them hold each word. What does not fit together is an error.
func Inside(x *Index) (docs int, words map[string]int, err error) {
	v, err := x.view()
	if err != nil {
		return 0, nil, err
	}
	defer v.close()
	held := map[uint32]map[string]bool{}
	words = map[string]int{}
	for _, seg := range v.segments {
		if int(seg.first) != docs+1 {
			return 0, nil, fmt.Errorf("a segment begins at %d, behind %d", seg.first, docs)
		}
		docs += int(seg.count)
		last := ""
		for e, err := range seg.entries(v.f, "") {
			if err != nil {
				return 0, nil, err
			}
			ids, err := e.all(v.f, nil)
			word := string(e.word)
			if err != nil || word <= last || len(ids) != e.docs || !slices.IsSorted(ids) || len(slices.Compact(ids)) != e.docs {
				return 0, nil, fmt.Errorf("%q behind %q, of %d documents, is in %d: %w", word, last, e.docs, ids, err)
			}
			for _, id := range ids {
				if held[id] == nil {
					held[id] = map[string]bool{}
				}
				held[id][word] = true
			}
			last = word
			words[word] += len(ids)
		}
	}
	for id := 1; id <= docs; id++ {
		d, err := v.row(uint32(id))
		if err != nil {
			return 0, nil, err
		}
		for _, word := range indexed(d) {
			if !held[uint32(id)][word] {
				return 0, nil, fmt.Errorf("document %d does not stand at %q", id, word)
			}
			delete(held[uint32(id)], word)
		}
		if len(held[uint32(id)]) > 0 {
			return 0, nil, fmt.Errorf("document %d stands at more words than it has: %v", id, held[uint32(id)])
		}
	}
	if docs != int(v.docs) {
		return 0, nil, errors.New("the segments hold less than there is")
	}
	return docs, words, nil
}
