package drive

import "github.com/inspan/inspan/tool"

// seenFiles gives each call the digests of the files that the session had read or written when the call began,
// regardless of concurrent calls. The state has the current digests. To avoid a copy for each call, seenFiles keeps
// the digests that calls of the same reply have replaced.
type seenFiles struct {
	journal *journal
	changes []seenChange // since the last reply; guarded by journal.mu
}

// seenChange is the digest of a file before a call of this reply ended.
type seenChange struct {
	path, digest string
	known        bool
}

// forget drops the replaced digests when a new reply begins.
func (s *seenFiles) forget() {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	s.changes = nil
}

// beforeChange records the digests that an event is about to replace.
func (s *seenFiles) beforeChange(files []tool.File) {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	for _, f := range files {
		digest, known := s.journal.state.Seen[f.Path]
		s.changes = append(s.changes, seenChange{f.Path, digest, known})
	}
}

// snapshot returns the digests as of now, by the real paths of files.
func (s *seenFiles) snapshot() tool.Seen {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	since := len(s.changes)
	return func(path string) (string, bool) {
		stored := s.journal.secrets.Vault.Redact(path)
		s.journal.mu.Lock()
		defer s.journal.mu.Unlock()
		digest, known := s.at(since, path)
		if !known && stored != path {
			digest, known = s.at(since, stored)
		}
		return digest, known
	}
}

// stored returns the current digest of a file, by its path in the log.
func (s *seenFiles) stored(path string) (digest string, known bool) {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return s.at(len(s.changes), path)
}

// at returns the digest of a file after so many changes. The caller holds the lock.
func (s *seenFiles) at(since int, path string) (digest string, known bool) {
	for _, c := range s.changes[min(since, len(s.changes)):] {
		if c.path == path {
			return c.digest, c.known
		}
	}
	digest, known = s.journal.state.Seen[path]
	return digest, known
}
