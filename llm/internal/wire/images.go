package wire

import (
	"encoding/base64"
	"slices"

	"github.com/inspan/inspan/llm"
)

// Images are the limits for images in one request. An image beyond them would make the vendor refuse it, and every
// later one.
type Images struct {
	Count int // maximum number; 0 means any
	Bytes int // of all of them, in base64; 0 means any
	// Fits reports whether the vendor accepts an image on its own; nil means any.
	Fits func(llm.Image) bool
}

const noImage = "[An image was here. It is no longer sent.]"

// Trim replaces with a note each image that the vendor refuses, and the oldest ones if there are too many. When a
// conversation passes a limit, a quarter is replaced at once: each change invalidates the prefix that the vendor
// has cached.
func (m Images) Trim(turns []Turn) {
	var sizes []int // 0 for an image that is replaced
	eachImage(turns, func(v llm.Image) bool {
		size := base64.StdEncoding.EncodedLen(len(v.Data))
		if m.Bytes > 0 && size > m.Bytes || m.Fits != nil && !m.Fits(v) {
			size = 0
		}
		sizes = append(sizes, size)
		return true
	})
	first := m.first(sizes)
	n := -1
	eachImage(turns, func(llm.Image) bool {
		n++
		return n >= first && sizes[n] > 0
	})
}

// first returns the index of the oldest image that stays.
func (m Images) first(sizes []int) int {
	first, bytes := 0, 0
	beyond := func(count, share int) bool {
		return m.Count > 0 && count > m.Count*share/4 || m.Bytes > 0 && bytes > m.Bytes/4*share
	}
	for i, size := range sizes {
		if bytes += size; !beyond(i-first+1, 4) {
			continue
		}
		for first < i && beyond(i-first+1, 3) {
			bytes -= sizes[first]
			first++
		}
	}
	return first
}

// eachImage calls keep for every image in order and replaces those for which it returns false. The parts of results
// are shared with the request and are copied.
func eachImage(turns []Turn, keep func(llm.Image) bool) {
	for i, t := range turns {
		for j, r := range t.Results {
			t.Results[j].Parts = withImages(r.Parts, keep)
		}
		turns[i].Parts = withImages(t.Parts, keep)
	}
}

func withImages(parts []llm.Part, keep func(llm.Image) bool) []llm.Part {
	out := parts
	for i, p := range parts {
		if v, ok := p.(llm.Image); !ok || keep(v) {
			continue
		}
		if &out[0] == &parts[0] {
			out = slices.Clone(parts)
		}
		out[i] = llm.Text{Text: noImage}
	}
	return out
}
