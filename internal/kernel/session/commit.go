package session

import "sync"

// commit makes one sync of the file serve all appends that wait for it.
type commit struct {
	mu      sync.Mutex
	written int64         // everything below was written before the sync was requested
	synced  int64         // everything below is durable
	running chan struct{} // closed when the current sync ends; nil means none
	err     error         // why every later sync fails
}

// has reports whether everything below end is durable.
func (c *commit) has(end int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.synced >= end
}

// wait returns once everything below end is durable. A failed sync is never retried: the kernel may have
// dropped the data and would report the next one as a success.
func (c *commit) wait(end int64, sync func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written = max(c.written, end)
	for c.err == nil && c.synced < end {
		if done := c.running; done != nil {
			c.mu.Unlock()
			<-done
			c.mu.Lock()
			continue
		}
		done, goal := make(chan struct{}), c.written
		c.running = done
		c.mu.Unlock()
		err := sync()
		c.mu.Lock()
		c.running = nil
		close(done)
		if err != nil {
			c.err = err
		} else {
			c.synced = max(c.synced, goal)
		}
	}
	if c.synced >= end {
		return nil
	}
	return c.err
}

// syncLog makes the written data durable, and records that next to the log.
func (l *Log) syncLog() error {
	l.mu.Lock()
	out, end := l.out, l.tail.Off
	l.mu.Unlock()
	if out == nil { // another log has written the data
		return l.f.Sync()
	}
	if err := out.Sync(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.promise(end)
	return nil
}
