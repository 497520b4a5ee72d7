package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
)

// digested is the hash of a prefix of what [State.Digest] covers: everything before the messages, and the first
// messages.
type digested struct {
	sum      hash.Cloner // never changed
	messages int
}

// Digest fingerprints what the model has seen and what it cost, for comparison when the log is folded again.
// The number before the colon is the version of the hashed form; digests of different versions can't be
// compared. The form is the JSON of a list of these fields. It is hashed in parts because it is as long as a
// prompt.
func (s *State) Digest() string {
	s.sight.digest = s.digested() // the next digest hashes only new messages
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

// digested returns the hash up to the last message.
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

// begun returns the last stored hash, or that of everything before the messages.
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

// encoded hashes the JSON of a value. Encoding can't fail, since the value comes from the log.
func encoded(sum hash.Hash, v any) {
	raw, _ := json.Marshal(v)
	_, _ = sum.Write(raw)
}
