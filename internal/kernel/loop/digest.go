package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
)

// digested is the hash of the beginning of what [State.Digest] is of: of all that stands before
// the messages, and of the first messages.
type digested struct {
	sum      hash.Cloner // is not changed any more
	messages int
}

// Digest fingerprints what the model has seen and what it cost, to be compared
// when the log is folded again. The number before the colon is the version of
// what is hashed; digests of different versions can't be compared. It is the JSON of a list of
// these fields, which is hashed in parts, as it is as long as a prompt.
func (s *State) Digest() string {
	s.sight.digest = s.digested() // so that the next one hashes only what is new
	sum := s.begun().sum
	if s.Messages != nil {
		literal(sum, "]")
	}
	for _, field := range []any{s.Seen, s.Cwd, s.Mode, s.Route, s.Total} {
		literal(sum, ",")
		encoded(sum, field)
	}
	literal(sum, "]")
	return "1:" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// digested is the hash up to the last message that there is.
func (s *State) digested() digested {
	d := s.begun()
	for ; d.messages < len(s.Messages); d.messages++ {
		if d.messages > 0 {
			literal(d.sum, ",")
		}
		encoded(d.sum, s.Messages[d.messages])
	}
	return d
}

// begun is a hash of what was hashed before, or of all that stands before the messages.
func (s *State) begun() digested {
	if before := s.sight.digest; before.messages > 0 {
		if sum, err := before.sum.Clone(); err == nil {
			return digested{sum, before.messages}
		}
	}
	sum := sha256.New().(hash.Cloner)
	literal(sum, "[")
	encoded(sum, s.System)
	literal(sum, ",")
	encoded(sum, s.Tools)
	literal(sum, ",")
	if s.Messages == nil {
		literal(sum, "null")
	} else {
		literal(sum, "[")
	}
	return digested{sum: sum}
}

func literal(sum hash.Hash, text string) { _, _ = sum.Write([]byte(text)) }

// encoded hashes the JSON of a value. All of it can be encoded: it is in the log.
func encoded(sum hash.Hash, v any) {
	raw, _ := json.Marshal(v)
	_, _ = sum.Write(raw)
}
