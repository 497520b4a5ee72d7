package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
)

// partialDigest is the beginning of the hash in [State.Digest]: everything before the messages, and the first
// messages.
type partialDigest struct {
	sum      hash.Cloner // cloned before each use
	messages int         // how many it covers
}

// Digest fingerprints the prompt and the cost of the session, to check that folding the log again gives the same
// state. The number before the colon is the version of the hashed form. Digests of different versions can't be
// compared. The form is a JSON list of the fields below, hashed piece by piece because it is as long as a prompt.
func (s *State) Digest() string {
	d := s.startDigest()
	for ; d.messages < len(s.Messages); d.messages++ {
		if d.messages > 0 {
			writeText(d.sum, ",")
		}
		writeJSON(d.sum, s.Messages[d.messages])
	}
	s.index.lastDigest = d // the next digest hashes only new messages
	sum := s.startDigest().sum
	if s.Messages != nil {
		writeText(sum, "]")
	}
	for _, field := range []any{s.Seen, s.Cwd, s.Mode, s.Route, s.Total} {
		writeText(sum, ",")
		writeJSON(sum, field)
	}
	writeText(sum, "]")
	return "1:" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// startDigest returns a copy of the last digest or, without one, the hash of everything before the messages.
func (s *State) startDigest() partialDigest {
	if last := s.index.lastDigest; last.messages > 0 {
		if sum, err := last.sum.Clone(); err == nil {
			return partialDigest{sum, last.messages}
		}
	}
	sum := sha256.New().(hash.Cloner)
	writeText(sum, "[")
	writeJSON(sum, s.System)
	writeText(sum, ",")
	writeJSON(sum, s.Tools)
	writeText(sum, ",")
	if s.Messages == nil {
		writeText(sum, "null")
	} else {
		writeText(sum, "[")
	}
	return partialDigest{sum: sum}
}

func writeText(sum hash.Hash, text string) { _, _ = sum.Write([]byte(text)) }

// writeJSON hashes the JSON of a value. Encoding can't fail, because the value was decoded from the log.
func writeJSON(sum hash.Hash, v any) {
	raw, _ := json.Marshal(v)
	_, _ = sum.Write(raw)
}
