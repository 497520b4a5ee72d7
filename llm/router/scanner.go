package router

import (
	"encoding/json"
	"hash/maphash"
	"iter"
	"strings"
	"sync"

	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/llm"
)

// sessions is how many conversations a scanner remembers.
const sessions = 64

// scanner finds secrets in conversations. It keeps a running hash over the messages it has read, so that only
// the new part of a grown conversation is read, and only the part after the first change of a changed one.
type scanner struct {
	shapes   secret.Finder
	patterns []pattern

	mu    sync.Mutex
	seed  maphash.Seed
	clock uint64
	seen  map[string]scanned // by session
}

// scanned says how far a conversation was read: a hash for the part before the messages, and one for each
// message.
type scanned struct {
	sums  []uint64
	found string // what secret the part of the last sum holds; empty means none was found
	used  uint64
}

// find says which secret a request contains; empty means none.
func (s *scanner) find(req llm.Request) string {
	old, h := s.recall(req.Session)
	var now scanned
	fresh := false
	for i := -1; i < len(req.Messages) && now.found == ""; i++ {
		for text := range texts(req, i) {
			_, _ = h.WriteString(text)
			maphash.WriteComparable(&h, len(text)) // texts must not flow into each other
		}
		now.sums = append(now.sums, h.Sum64())
		switch n := len(now.sums); {
		case n > len(old.sums) || old.sums[n-1] != now.sums[n-1]:
			now.found, fresh = s.search(req, i), true
		case n == len(old.sums):
			now.found = old.found
		}
	}
	if fresh {
		s.remember(req.Session, now)
	}
	return now.found
}

// recall returns the state of a session, and a hash to continue with.
func (s *scanner) recall(session string) (old scanned, h maphash.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen, s.seed = map[string]scanned{}, maphash.MakeSeed()
	}
	h.SetSeed(s.seed)
	old, known := s.seen[session]
	if known {
		s.clock++
		old.used = s.clock
		s.seen[session] = old
	}
	return old, h
}

// remember stores the state of a session, and drops the least recently used one if there are too many.
func (s *scanner) remember(session string, now scanned) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	now.used = s.clock
	s.seen[session] = now
	if len(s.seen) <= sessions {
		return
	}
	oldest := session
	for name, known := range s.seen {
		if known.used < s.seen[oldest].used {
			oldest = name
		}
	}
	delete(s.seen, oldest)
}

// search looks for secrets in one message of a request, or if i is -1 in the part before the messages.
func (s *scanner) search(req llm.Request, i int) string {
	for text, isJSON := range texts(req, i) {
		if found := s.match(text); found != "" {
			return found
		}
		if !isJSON {
			continue
		}
		// A secret may look different in JSON, and a truncated key ends only with its string.
		for d := json.NewDecoder(strings.NewReader(text)); ; {
			token, err := d.Token()
			if err != nil {
				break
			}
			if said, ok := token.(string); ok {
				if found := s.match(said); found != "" {
					return found
				}
			}
		}
	}
	return ""
}

func (s *scanner) match(text string) string {
	if found, ok := s.shapes.First(text); ok {
		return found.What
	}
	for _, p := range s.patterns {
		if p.re.MatchString(text) {
			return p.what
		}
	}
	return ""
}

// texts yields the text that a model would read of one message, or if i is -1 of the part before the messages,
// and whether it is JSON. Of reasoning only the text is read: the vendor's own block goes back to that vendor
// only. Images are not searched.
func texts(req llm.Request, i int) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		if i >= 0 {
			partTexts(req.Messages[i].Parts, yield)
			return
		}
		for _, block := range req.System {
			if !yield(block, false) {
				return
			}
		}
		for _, t := range req.Tools {
			if !yield(t.Description, false) || !yield(string(t.Schema), true) {
				return
			}
		}
	}
}

func partTexts(parts llm.Parts, yield func(string, bool) bool) bool {
	for _, part := range parts {
		open := true
		switch p := part.(type) {
		case llm.Text:
			open = yield(p.Text, false)
		case llm.Reasoning:
			open = yield(p.Text, false)
		case llm.Call:
			open = yield(string(p.Args), true) && yield(p.Invalid, false)
		case llm.Result:
			open = partTexts(p.Parts, yield)
		}
		if !open {
			return false
		}
	}
	return true
}
