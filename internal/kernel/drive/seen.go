package drive

import "github.com/inspan/inspan/tool"

// seenFiles is what calls know about the files that the session has read or written. Each call sees them as
// they were when it began, regardless of concurrent calls. The state has the current knowledge. What was known
// before each change by a call of the same reply is kept here, so that nothing is copied per call.
type seenFiles struct {
	journal *journal
	changes []seenChange // since the last reply; guarded by journal.mu
}

// seenChange is what was known about a file before a call of this reply ended.
type seenChange struct {
	path, digest string
	known        bool
}

// forget begins a new reply.
func (s *seenFiles) forget() {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	s.changes = nil
}

// change records what is known about files that an event is about to change.
func (s *seenFiles) change(files []tool.File) {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	for _, f := range files {
		digest, known := s.journal.state.Seen[f.Path]
		s.changes = append(s.changes, seenChange{f.Path, digest, known})
	}
}

// now returns what is known at this moment, by the real paths of files.
func (s *seenFiles) now() tool.Seen {
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

// stored returns what is known about a file, by its path in the log.
func (s *seenFiles) stored(path string) (digest string, known bool) {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return s.at(len(s.changes), path)
}

// at returns what was known about a file after so many changes. The caller holds the lock.
func (s *seenFiles) at(since int, path string) (digest string, known bool) {
	for _, c := range s.changes[min(since, len(s.changes)):] {
		if c.path == path {
			return c.digest, c.known
		}
	}
	digest, known = s.journal.state.Seen[path]
	return digest, known
}
