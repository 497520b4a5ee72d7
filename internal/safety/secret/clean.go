package secret

import (
	"strings"
	"sync"
)

// cleanTexts caches texts without secrets under the values that a vault knew at a time. Prompts and
// descriptions of tools pass through a vault repeatedly. The zero value is empty. It is safe for concurrent
// use.
type cleanTexts struct {
	mu    sync.Mutex
	texts map[string]struct{}
	bytes int
}

// Bounds on a cached text, and on all of them together, in bytes.
const (
	mostClean    = 16 << 10
	mostAllClean = 512 << 10
)

// cleanNow returns the cache for the current values. After a change of the values the old cache is no longer
// used, so late additions to it do no harm.
func (v *Vault) cleanNow() *cleanTexts {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.clean == nil {
		v.clean = &cleanTexts{}
	}
	return v.clean
}

func (c *cleanTexts) has(text string) bool {
	if len(text) > mostClean {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, is := c.texts[text]
	return is
}

func (c *cleanTexts) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(text) > mostClean || c.bytes+len(text) > mostAllClean {
		return
	}
	if c.texts == nil {
		c.texts = map[string]struct{}{}
	}
	c.bytes += len(text)
	c.texts[strings.Clone(text)] = struct{}{} // the text may be part of a large one
}
