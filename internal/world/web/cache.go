package web

import (
	"container/list"
	"sync"
	"time"
)

const (
	cacheFor   = 15 * time.Minute
	cachePages = 64
	cacheBytes = 16 << 20
)

// A Cache stores fetched pages for 15 minutes, at most 64 pages and 16 MiB of text: the most recently used
// ones. The zero value is ready; a nil Cache stores nothing. It is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	pages map[string]*list.Element // of *cached
	used  list.List                // most recently used first
	bytes int
}

type cached struct {
	address string
	page    Fetched
}

// Get returns the cached page of an address.
func (c *Cache) Get(address string) (Fetched, bool) {
	if c == nil {
		return Fetched{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.pages[address]
	if !ok {
		return Fetched{}, false
	}
	got := e.Value.(*cached)
	if time.Since(got.page.At) >= cacheFor {
		c.drop(e)
		return Fetched{}, false
	}
	c.used.MoveToFront(e)
	return got.page, true
}

// Put stores the page of an address.
func (c *Cache) Put(address string, f Fetched) {
	if c == nil || len(f.Text) > cacheBytes/2 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.pages[address]; ok {
		c.drop(e)
	}
	if c.pages == nil {
		c.pages = map[string]*list.Element{}
	}
	c.pages[address] = c.used.PushFront(&cached{address, f})
	c.bytes += f.size()
	for c.bytes > cacheBytes || len(c.pages) > cachePages {
		c.drop(c.used.Back())
	}
}

func (c *Cache) drop(e *list.Element) {
	got := c.used.Remove(e).(*cached)
	delete(c.pages, got.address)
	c.bytes -= got.page.size()
}

func (f Fetched) size() int { return len(f.Text) + 1<<10 }
