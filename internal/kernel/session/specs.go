package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
)

const (
	specsName = "specs" // the folder of tool specs that all sessions share
	specExt   = ".json"

	specsMark = "+specs"  // behind the kind of a line that refers to specs
	specHead  = `"#spec:` // prefix of a reference
	specTail  = '"'
	digestLen = 24 // characters of 5 bits: enough against chance, and against a second content for a name

	leastSpec = 128     // bytes; a smaller spec stays in the line
	mostSpecs = 8 << 20 // bytes of specs that a store caches

	// A spec is used again after this long only if its file has a recent time. This is much shorter than the
	// age at which [Store.Sweep] may remove a spec that no log names.
	specsSure = time.Hour
	specsWait = 5 * time.Second // for other writers of specs; then the line has them itself
)

var (
	errSpec     = errors.New("tool spec")               // that a line refers to has changed
	errSpecRead = errors.New("tool spec can't be read") // temporarily
	errReserved = errors.New("the name of a kind that only the log on disk uses")
)

// specs caches a store's knowledge of the shared tool specs.
type specs struct {
	mu   sync.Mutex
	read map[string][]byte    // content by digest
	size int                  // of read
	sure map[string]time.Time // when a file was last found or made durable
}

// refers lists the kinds whose lines may refer to specs: they have the tools of a session, in their body or in
// its snapshot.
func refers(kind string) bool {
	switch kind {
	case event.Switched{}.Kind(), event.Compacted{}.Kind(), event.Rewound{}.Kind():
		return true
	}
	return false
}

// plainKind returns the kind of an event whose line states this one.
func plainKind(stated string) string {
	if kind, marked := strings.CutSuffix(stated, specsMark); marked && refers(kind) {
		return kind
	}
	return stated
}

// encode is [event.Encode] for a line of a log: large tool specs are stored once for all sessions.
func (s *Store) encode(e event.Event) ([]byte, error) {
	enc, err := event.Encode(e)
	if err != nil {
		return nil, err
	}
	return s.shared(enc, e.Body.Kind()), nil
}

// shared returns an encoded event with references to shared specs. If that fails, as on a full disk, the event
// has them itself.
func (s *Store) shared(enc []byte, kind string) []byte {
	if !refers(kind) {
		return enc
	}
	short, parts := shorten(enc, kind)
	if len(parts) == 0 {
		return enc
	}
	back, bad := expand(short, func(digest string) ([]byte, error) { return parts[digest], nil })
	if bad == nil && bytes.Equal(back, enc) && s.share(parts) == nil {
		return short
	}
	return enc
}

// decode decodes a verified line. It writes into the line.
func (s *Store) decode(line []byte) (event.Event, error) {
	line[headLen-1] = '{'
	whole, err := expand(line[headLen-1:], s.spec)
	if err != nil {
		return event.Event{}, err
	}
	return event.Decode(whole)
}

// shorten replaces the large specs in an encoded event by references, and returns them by digest.
func shorten(enc []byte, kind string) (short []byte, parts map[string][]byte) {
	type holder struct {
		Tools []json.RawMessage
	}
	var w struct {
		Body struct {
			holder
			Snapshot holder
		}
	}
	if err := json.Unmarshal(enc, &w); err != nil {
		return nil, nil
	}
	list := w.Body.Tools
	if list == nil {
		list = w.Body.Snapshot.Tools
	}
	parts = make(map[string][]byte)
	was, is := []byte{'['}, []byte{'['}
	for i, spec := range list {
		if i > 0 {
			was, is = append(was, ','), append(is, ',')
		}
		was = append(was, spec...)
		if len(spec) < leastSpec {
			is = append(is, spec...)
			continue
		}
		digest := specDigest(spec)
		parts[digest] = spec
		is = append(append(append(is, specHead...), digest...), specTail)
	}
	at := bytes.Index(enc, append(was, ']'))
	head := bytes.Index(enc, kindHead(kind))
	if at < 0 || head < 0 || head > at {
		return nil, nil
	}
	short = append(short, enc[:head]...)
	short = append(short, kindMarked(kind)...)
	short = append(short, enc[head+len(kindHead(kind)):at]...)
	short = append(append(short, is...), enc[at+len(was):]...)
	return short, parts
}

// kindHead precedes the body in an encoded event, kindMarked if the body has references. A reader that does not
// know references sees an unknown kind that it must understand.
func kindHead(kind string) []byte { return []byte(`,"kind":"` + kind + `","body":`) }

func kindMarked(kind string) []byte {
	return []byte(`,"kind":"` + kind + specsMark + `","must":true,"body":`)
}

// markedKind finds the kind of an encoded event if its body has references.
func markedKind(enc []byte) (kind string, marked bool) {
	const mark = specsMark + `","must":true,"body":`
	end := bytes.Index(enc[:min(len(enc), 512)], []byte(mark))
	if end < 0 {
		return "", false
	}
	start := bytes.LastIndexByte(enc[:end], '"') + 1
	kind = string(enc[start:end])
	return kind, refers(kind) && bytes.HasSuffix(enc[:start], []byte(`,"kind":"`))
}

// expand replaces the references of shorten by the specs.
func expand(short []byte, spec func(digest string) ([]byte, error)) ([]byte, error) {
	kind, marked := markedKind(short)
	if !marked {
		return short, nil
	}
	head, body, found := bytes.Cut(short, kindMarked(kind))
	if !found {
		return short, nil
	}
	out := append(bytes.Clone(head), kindHead(kind)...)
	for {
		before, after, found := bytes.Cut(body, []byte(specHead))
		out = append(out, before...)
		if !found {
			return out, nil
		}
		if len(after) <= digestLen || after[digestLen] != specTail || !isDigest(string(after[:digestLen])) {
			out, body = append(out, specHead...), after
			continue
		}
		content, err := spec(string(after[:digestLen]))
		if err != nil {
			return nil, err
		}
		out, body = append(out, content...), after[digestLen+1:]
	}
}

func specDigest(spec []byte) string {
	sum := sha256.Sum256(spec)
	return strings.ToLower(base32.HexEncoding.EncodeToString(sum[:digestLen*5/8]))
}

func isDigest(s string) bool {
	return len(s) == digestLen && strings.Trim(s, "0123456789abcdefghijklmnopqrstuv") == ""
}

func (s *Store) specsDir() string { return filepath.Join(s.Dir, specsName) }

func (s *Store) specPath(digest string) string { return filepath.Join(s.specsDir(), digest+specExt) }

// spec returns the content of a shared spec. If it is missing or has changed, the error wraps errSpec.
func (s *Store) spec(digest string) ([]byte, error) {
	s.specs.mu.Lock()
	defer s.specs.mu.Unlock()
	if content, ok := s.specs.read[digest]; ok {
		return content, nil
	}
	name := filepath.Join(specsName, digest+specExt)
	content, err := s.readFile(s.specPath(digest), maxLine)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w %s is missing; a new session with the same tools writes it again", errSpec, name)
	case err != nil && !errors.Is(err, errTooBig): // so large a file matches no name
		return nil, fmt.Errorf("%w: %w", errSpecRead, err)
	case specDigest(content) != digest:
		return nil, fmt.Errorf("%w %s is damaged: its content does not match its name; a new session with the same tools writes it again", errSpec, name)
	}
	s.specs.remember(digest, content)
	return content, nil
}

func (x *specs) remember(digest string, content []byte) {
	if x.read == nil || x.size > mostSpecs {
		x.read, x.size = make(map[string][]byte), 0
	}
	if _, there := x.read[digest]; !there {
		x.read[digest], x.size = content, x.size+len(content)
	}
}

// share makes sure that each spec has a durable file that no clean-up removes before the line that refers to it
// is written.
func (s *Store) share(parts map[string][]byte) error {
	s.specs.mu.Lock()
	defer s.specs.mu.Unlock()
	now := s.clock()
	var unsure []string
	for digest := range parts {
		if at, ok := s.specs.sure[digest]; !ok || now.Sub(at) > specsSure {
			unsure = append(unsure, digest)
		}
	}
	if len(unsure) == 0 {
		return nil
	}
	err := s.withSpecs(func() error {
		for _, digest := range unsure {
			if err := s.shareOne(digest, parts[digest]); err != nil {
				return err
			}
		}
		return s.syncDir(s.specsDir()) // also for files that another has just made
	})
	if err != nil {
		return err
	}
	if s.specs.sure == nil {
		s.specs.sure = make(map[string]time.Time)
	}
	for _, digest := range unsure {
		s.specs.sure[digest] = now
		s.specs.remember(digest, parts[digest])
	}
	return nil
}

// reshare marks the specs that a line refers to as used, because the line is written to another log.
func (s *Store) reshare(line []byte) error {
	parts := make(map[string][]byte)
	_, err := expand(line, func(digest string) (content []byte, err error) {
		content, err = s.spec(digest)
		parts[digest] = content
		return content, err
	})
	if err != nil || len(parts) == 0 {
		return err
	}
	return s.share(parts)
}

// withSpecs calls do while no other process writes or removes specs.
func (s *Store) withSpecs(do func() error) error {
	if err := mkdirAll(s.fs(), s.specsDir(), s.Sync == SyncPower); err != nil {
		return err
	}
	lock, err := s.fs().Open(filepath.Join(s.specsDir(), lockName), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), specsWait)
	defer stop()
	if _, err = acquire(ctx, lock, true); err == nil {
		err = errors.Join(do(), lock.Unlock())
	}
	return errors.Join(err, lock.Close())
}

// shareOne writes a spec, or marks the existing file as used. A file with another content is replaced, so
// damage is repaired.
func (s *Store) shareOne(digest string, spec []byte) error {
	path := s.specPath(digest)
	if there, err := s.readFile(path, maxLine); err == nil && bytes.Equal(there, spec) {
		return s.fs().Touch(path)
	}
	return s.replaceFile(path, spec, true)
}
