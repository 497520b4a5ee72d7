package memory

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// Topic is a file with more on a subject.
type Topic struct {
	Name      string
	Text      string // without hidden characters
	Untrusted bool   // a part of it was learned in a session that had seen unvouched content, or Unvouched is set
	Unvouched bool   // no one vouches for the file, see [Store.Vouched]
}

// Topic reads a topic file.
func (s *Store) Topic(scope Scope, name string) (Topic, error) {
	if !isName(name) {
		return Topic{}, fmt.Errorf("read topic: %q can't be a topic", name)
	}
	f, err := s.folder(scope, false)
	if missing(err) {
		return Topic{}, fmt.Errorf("%w: there is no %s memory yet", ErrUnknown, scope)
	}
	if err != nil {
		return Topic{}, err
	}
	defer f.close()
	if err := f.isDir(topicDir); err != nil {
		return Topic{}, err
	}
	data, info, err := f.read(topicFile(name), MaxTopic)
	if err != nil {
		return Topic{}, fmt.Errorf("read topic: %w", err)
	}
	if info == nil {
		return Topic{}, fmt.Errorf("%w: %s memory has no topic %q", ErrUnknown, scope, name)
	}
	t := Topic{Name: name, Text: text.Clean(string(data)), Unvouched: !s.vouched(scope, f.name(topicFile(name)), data)}
	t.Untrusted = t.Unvouched
	for line := range strings.Lines(t.Text) {
		if said, ok := strings.CutPrefix(strings.TrimSpace(line), opens); ok {
			var e Entry
			e.read(strings.TrimSpace(strings.TrimSuffix(said, closes)), func(string, ...any) {})
			t.Untrusted = t.Untrusted || e.Untrusted
		}
	}
	return t, nil
}

// Topics lists the topics of a scope, sorted.
func (s *Store) Topics(scope Scope) ([]string, error) {
	f, err := s.folder(scope, false)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.close()
	var out []string
	for _, e := range f.list(topicDir) {
		if name, ok := strings.CutSuffix(e.Name(), ".md"); ok && isName(name) && e.Type().IsRegular() {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

func topicFile(name string) string { return path.Join(topicDir, name+".md") }

// isDir returns an error for anything but a folder, such as a link to one.
func (f home) isDir(name string) error {
	info, err := f.root.Lstat(name)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a folder: links are not followed", f.name(name))
	}
	if missing(err) {
		return nil
	}
	return err
}

// The lines around the part of a topic file that came with an entry.

// addTopic appends an entry's text to its topic file.
func (f home) addTopic(e Entry, text string) error {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), opens) {
			return fmt.Errorf("remember: no line of the topic can begin with %s", opens)
		}
	}
	if err := f.root.MkdirAll(topicDir, dirPerm(f.scope)); err != nil {
		return fmt.Errorf("remember: %w", err)
	}
	if err := f.isDir(topicDir); err != nil {
		return err
	}
	name := topicFile(e.Topic)
	data, info, err := f.read(name, maxRead)
	if err != nil {
		return err
	}
	if info == nil && len(f.list(topicDir)) >= topics {
		return fmt.Errorf("remember: %w: there are %d topics already", ErrFull, topics)
	}
	before, _ := without(string(data), e.ID)
	part := opens + " " + e.said() + " " + closes + "\n" + text + "\n" + opens + " end=" + e.ID + " " + closes + "\n"
	if before != "" {
		part = strings.TrimRight(before, "\n") + "\n\n" + part
	}
	if len(part) > MaxTopic {
		return fmt.Errorf("remember: %w: %s would have %d bytes; at most %d. Use another topic", ErrFull, f.name(name), len(part), MaxTopic)
	}
	return f.replace(name, data, []byte(part))
}

// dropTopic removes an entry's text from its topic file, and a file that is empty then.
func (f home) dropTopic(e Entry) error {
	if e.Topic == "" {
		return nil
	}
	if err := f.isDir(topicDir); err != nil {
		return err
	}
	data, info, err := f.read(topicFile(e.Topic), maxRead)
	if err != nil || info == nil {
		return err
	}
	left, found := without(string(data), e.ID)
	switch {
	case !found:
		return nil
	case strings.TrimSpace(left) == "":
		return f.root.Remove(topicFile(e.Topic))
	}
	return f.replace(topicFile(e.Topic), data, []byte(left))
}

// without cuts the part of an entry out of the text of a topic file.
func without(text, id string) (left string, found bool) {
	from, at := -1, 0
	for line := range strings.Lines(text) {
		start := at
		at += len(line)
		said, ok := strings.CutPrefix(strings.TrimSpace(line), opens)
		if !ok {
			continue
		}
		switch fields := strings.Fields(strings.TrimSuffix(said, closes)); {
		case slices.Contains(fields, "id="+id):
			from = start
		case from >= 0 && slices.Contains(fields, "end="+id):
			return text[:from] + strings.TrimPrefix(text[at:], "\n"), true
		}
	}
	return text, false
}
