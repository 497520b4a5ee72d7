package secret

import (
	"strings"
	"sync"
)

// cleanTexts are texts without a secret under the values that a vault knew at a time. Prompts and
// descriptions of tools pass through a vault again and again. The zero value has none. Several
// goroutines may use it at once.
type cleanTexts struct {
	mu    sync.Mutex
	texts map[string]struct{}
	bytes int
}

// How long a text may be that is kept, and all of them together, in bytes.
const (
	mostClean    = 16 << 10
	mostAllClean = 512 << 10
)

// cleanNow returns those under the values that are known by now. Once there are others, nobody
// gets it any more, so that what is still added by then does no harm.
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
	c.texts[strings.Clone(text)] = struct{}{} // which may be a part of something large
}
