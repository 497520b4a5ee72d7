package tools

import (
	"bytes"
	"regexp"
	"slices"
)

// maxWatched is how much of one line is searched for a pattern, in bytes.
const maxWatched = 64 << 10

// A watcher looks for a pattern in the lines of an output, including an incomplete last line: a program that
// asks does not end its question with a line end.
type watcher struct {
	pattern *regexp.Regexp
	line    []byte        // the current line, as printed
	found   chan struct{} // closed when the pattern has come
}

// feed reports whether the pattern has come with the next piece.
func (w *watcher) feed(p []byte) bool {
	w.line = append(w.line, p...)
	if w.pattern.MatchString(clean(w.line)) {
		return true
	}
	w.line = w.line[bytes.LastIndexByte(w.line, '\n')+1:]
	w.line = bytes.Clone(w.line[max(0, len(w.line)-maxWatched):])
	return false
}

// notify signals that p has come. The caller holds o.mu.
func (o *capture) notify(p []byte) {
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	o.watchers = slices.DeleteFunc(o.watchers, func(w *watcher) bool {
		if !w.feed(p) {
			return false
		}
		close(w.found)
		return true
	})
}

// size returns the size of the output so far.
func (o *capture) size() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// beyond returns a channel that is closed once the output is longer than offset.
func (o *capture) beyond(offset int64) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.total > offset {
		over := make(chan struct{})
		close(over)
		return over
	}
	if o.more == nil {
		o.more = make(chan struct{})
	}
	return o.more
}

// seek returns a channel that is closed once the pattern is in the output from an offset
// on. Stop ends the search.
func (o *capture) seek(pattern *regexp.Regexp, offset int64) (found <-chan struct{}, stop func()) {
	w := &watcher{pattern: pattern, found: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	head, tail, _, _ := o.kept(offset)
	if w.feed(head) || w.feed(tail) {
		close(w.found)
		return w.found, func() {}
	}
	o.watchers = append(o.watchers, w)
	return w.found, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.watchers = slices.DeleteFunc(o.watchers, func(other *watcher) bool { return other == w })
	}
}

// pattern compiles a search text: a regular expression, or else the text itself. Its ^ and $ are the ends of
// lines.
func pattern(text string) *regexp.Regexp {
	if re, err := regexp.Compile("(?m)" + text); err == nil {
		return re
	}
	return regexp.MustCompile(regexp.QuoteMeta(text))
}
