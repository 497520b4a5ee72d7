package tui

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// fuzzy ranks the names that contain the letters of what in order, the best first, at most limit. Case only
// matters for upper-case letters.
func fuzzy(names []string, what string, limit int) []string {
	type hit struct {
		name  string
		score int
	}
	var hits []hit
	for _, name := range names {
		if score, ok := match(name, what); ok {
			hits = append(hits, hit{name, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	var out []string
	for _, h := range hits[:min(limit, len(hits))] {
		out = append(out, h.name)
	}
	return out
}

// match scores a name: adjacent letters, letters at the beginning of words and letters in the last element
// count more, and long names less.
func match(name, what string) (score int, ok bool) {
	base := strings.LastIndexByte(strings.TrimSuffix(name, "/"), '/') + 1
	if i := strings.Index(strings.ToLower(name[base:]), strings.ToLower(what)); what != "" && i >= 0 {
		score += 100 - min(i, 50)
	}
	at, last := 0, -2
	for i := 0; i < len(what); i++ {
		c := what[i]
		for at < len(name) && name[at] != c && (c >= 'A' && c <= 'Z' || lower(name[at]) != c) {
			at++
		}
		if at == len(name) {
			return 0, false
		}
		if at == last+1 {
			score += 5
		}
		if at == 0 || strings.IndexByte("/_-. ", name[at-1]) >= 0 {
			score += 8
		}
		if at >= base {
			score += 2
		}
		last = at
		at++
	}
	return score - len(name)/8, true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func readAtMost(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is larger than %d MB", path, limit>>20)
	}
	return data, err
}
