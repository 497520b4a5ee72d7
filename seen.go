package inspan

import "github.com/inspan/inspan/tool"

// seen is what calls know of the files that the session has read or written: each call as it
// was when the call began, whatever others that run beside it bring. The state has the files as
// they are now; what the calls of this reply have changed of it is kept beside, so that nothing
// is copied for a call.
type seen struct {
	*Session
	changes []change // since the reply; guarded by Session.mu
}

// change is what was known of a file before a call of this reply has ended.
type change struct {
	path, digest string
	known        bool
}

// changing takes note of what is known of files that an event is about to change.
func (s *seen) changing(files []tool.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range files {
		digest, known := s.state.Seen[f.Path]
		s.changes = append(s.changes, change{f.Path, digest, known})
	}
}

// now is what is known of the files at this moment, by their real paths.
func (s *seen) now() tool.Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := len(s.changes)
	return func(path string) (string, bool) {
		stored := s.vault.Redact(path)
		s.mu.Lock()
		defer s.mu.Unlock()
		digest, known := s.at(since, path)
		if !known && stored != path {
			digest, known = s.at(since, stored)
		}
		return digest, known
	}
}

// asStored is what is known of a file by its path as the log has it.
func (s *seen) asStored(path string) (digest string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at(len(s.changes), path)
}

// at is what was known of a file after so many changes. Session.mu is held.
func (s *seen) at(since int, path string) (digest string, known bool) {
	for _, c := range s.changes[min(since, len(s.changes)):] {
		if c.path == path {
			return c.digest, c.known
		}
	}
	digest, known = s.state.Seen[path]
	return digest, known
}
