package server

import (
	"sync"

	"github.com/inspan/inspan/internal/view/markdown"
)

// painter makes HTML of code for the page. It keeps the diffs that it made last, because each open page asks for the
// same ones every two seconds, and a diff of 100 KB takes a quarter of a second. The zero value is ready. Safe for
// concurrent use.
type painter struct {
	lexers markdown.Lexers

	mu    sync.Mutex
	diffs map[string][]string // by their text
	size  int                 // of their texts, in bytes
}

// mostPainted is the size of the texts of all diffs that a painter keeps, in bytes. Their HTML has some ten times that.
const mostPainted = 1 << 20

// diff returns a unified diff as lines of HTML; nil if it is empty.
func (p *painter) diff(unified string) []string {
	if unified == "" {
		return nil
	}
	p.mu.Lock()
	lines, known := p.diffs[unified]
	p.mu.Unlock()
	if known {
		return lines
	}
	lines = markdown.DiffHTML(unified, &p.lexers)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size += len(unified); p.diffs == nil || p.size > mostPainted {
		p.diffs, p.size = map[string][]string{}, len(unified)
	}
	p.diffs[unified] = lines
	return lines
}
