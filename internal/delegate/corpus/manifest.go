package corpus

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/tool"
)

// manifest is a corpus in the form of its blob.
type manifest struct {
	Version int      `json:"version"`
	Roots   []string `json:"roots,omitempty"` // resolved paths that contain its files
	Sources []source `json:"sources"`
	// Skipped counts omitted files, by reason.
	Skipped map[string]int `json:"skipped,omitempty"`
	Left    []string       `json:"left,omitempty"` // some of these

	name   string
	byName map[string]int
}

// Kinds of sources.
const (
	kindFile    = "file"
	kindBlob    = "blob"
	kindPage    = "page"
	kindSession = "session"
	kindInput   = "input"
)

// source is one text of a corpus.
type source struct {
	Name   string `json:"name"` // as cited
	Kind   string `json:"kind"`
	At     string `json:"at"`             // resolved path, name of a blob, or id of a session
	Upto   uint64 `json:"upto,omitempty"` // of a session: number of the last event
	Bytes  int64  `json:"bytes"`
	Lines  int64  `json:"lines"`
	Digest string `json:"digest"`          // of the first Bytes
	Stamp  string `json:"stamp,omitempty"` // metadata of a file when its content was read
	// Decoding is the encoding of a file; empty means it is read as it is. For UTF-16, all else is about the
	// decoded text.
	Decoding decoding `json:"decoding,omitempty"`
}

const (
	manifestVersion = 1
	mostManifest    = 64 << 20 // bytes
)

// sealed is a manifest as it is stored. A model can store any text as a blob, such as a page that it fetches.
// The seal distinguishes such a text from a result of corpus_list. Without it, anyone could invent names of
// sources.
type sealed struct {
	Seal     []byte          `json:"seal"`
	Manifest json.RawMessage `json:"manifest"`
}

// seal returns the seal of a manifest, which only holders of the key can make.
func (s *Set) seal(manifest []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.Key) == 0 {
		s.Key = []byte(rand.Text())
	}
	mac := hmac.New(sha256.New, s.Key)
	mac.Write([]byte("corpus\n"))
	mac.Write(manifest)
	return mac.Sum(nil)
}

// save stores a manifest as a blob of the session, and names it.
func (s *Set) save(ctx context.Context, m *manifest, blobs tool.Blobs) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if raw, err = json.Marshal(sealed{s.seal(raw), raw}); err != nil {
		return err
	}
	if len(raw) > mostManifest {
		return errors.New("the corpus has too many sources")
	}
	m.name, err = blobs.Put(ctx, bytes.NewReader(raw))
	return err
}

// unseal returns the manifest with a name, from its blob.
func (s *Set) unseal(name string, raw []byte) (*manifest, error) {
	var in sealed
	m := &manifest{name: name}
	if err := json.Unmarshal(raw, &in); err != nil || !hmac.Equal(in.Seal, s.seal(in.Manifest)) {
		return nil, fmt.Errorf("%q is not the name of a corpus; corpus_list opens one and tells its name", name)
	}
	if err := json.Unmarshal(in.Manifest, m); err != nil || m.Version != manifestVersion {
		return nil, fmt.Errorf("corpus %q is of another version of inspan; open it again with corpus_list", name)
	}
	return m, nil
}

// manifest returns the corpus with a name.
func (s *Set) manifest(ctx context.Context, c *tool.Call, name string) (*manifest, error) {
	m, err := s.known(name)
	if m != nil || err != nil {
		return m, err
	}
	if c.Env.Blobs == nil {
		return nil, errNoBlobs
	}
	raw, err := blob(ctx, c, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no corpus %q; corpus_list opens one and tells its name", name)
	}
	if err != nil {
		return nil, err
	}
	if m, err = s.unseal(name, raw); err != nil {
		return nil, err
	}
	s.keep(m)
	return m, nil
}

// known returns a corpus that this process has opened; without a name the only one.
func (s *Set) known(name string) (*manifest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.opened[name]; m != nil || name != "" {
		return m, nil
	}
	if len(s.opened) != 1 {
		return nil, fmt.Errorf("%d corpora are open here; give the name that corpus_list told", len(s.opened))
	}
	for _, m := range s.opened {
		return m, nil
	}
	return nil, nil
}

// blob reads a whole blob that one of our calls has stored.
func blob(ctx context.Context, c *tool.Call, name string) ([]byte, error) {
	r, err := c.Env.Blobs.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, mostManifest+1))
}

func (s *Set) keep(m *manifest) {
	m.byName = map[string]int{}
	for i, src := range m.Sources {
		m.byName[src.Name] = i
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened == nil || len(s.opened) > 16 { // all can be reopened by name
		s.opened = map[string]*manifest{}
	}
	s.opened[m.name] = m
}

// find returns the source with a name.
func (m *manifest) find(name string) (int, error) {
	if i, ok := m.byName[name]; ok {
		return i, nil
	}
	if i, ok := m.byName[strings.TrimPrefix(filepath.ToSlash(name), "./")]; ok {
		return i, nil
	}
	var names []string
	for _, s := range m.Sources[:min(len(m.Sources), 2000)] {
		names = append(names, s.Name)
	}
	if near := text.Nearest(name, names); near != "" {
		return 0, fmt.Errorf("the corpus has no source %q; did you mean %q?", name, near)
	}
	return 0, fmt.Errorf("the corpus has no source %q; corpus_list tells their names", name)
}

// matching lists the sources that match a glob; empty means all.
func (m *manifest) matching(pattern string) ([]int, error) {
	fits := func(string) bool { return true }
	if pattern != "" {
		glob, err := tools.Matcher(pattern)
		if err != nil {
			return nil, err
		}
		fits = func(name string) bool { return name == pattern || glob(strings.TrimPrefix(name, "/")) }
	}
	var out []int
	for i, s := range m.Sources {
		if fits(s.Name) {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no source of the corpus matches %q", pattern)
	}
	return out, nil
}

// piece is a range of bytes of a source.
type piece struct {
	Source   int
	From, To int64
}

// String returns the handle for the model.
func (p piece) String() string { return fmt.Sprintf("%d:%d-%d", p.Source, p.From, p.To) }

// MarshalJSON implements [json.Marshaler].
func (p piece) MarshalJSON() ([]byte, error) { return json.Marshal(p.String()) }

// UnmarshalJSON implements [json.Unmarshaler].
func (p *piece) UnmarshalJSON(raw []byte) error {
	var text string
	err := json.Unmarshal(raw, &text)
	if err == nil {
		*p, err = parsePiece(text)
	}
	return err
}

// parsePiece returns the piece for a handle.
func parsePiece(handle string) (p piece, err error) {
	index, span, _ := strings.Cut(handle, ":")
	from, to, _ := strings.Cut(span, "-")
	var errs [3]error
	p.Source, errs[0] = strconv.Atoi(index)
	p.From, errs[1] = strconv.ParseInt(from, 10, 64)
	p.To, errs[2] = strconv.ParseInt(to, 10, 64)
	if errors.Join(errs[:]...) != nil {
		return p, fmt.Errorf("%q is not a piece; corpus_pieces makes them, such as 3:0-16000", handle)
	}
	return p, nil
}

// check returns an error if the corpus has no such range.
func (m *manifest) check(p piece) error {
	if p.Source < 0 || p.Source >= len(m.Sources) {
		return fmt.Errorf("piece %v: the corpus has only %d sources", p, len(m.Sources))
	}
	s := m.Sources[p.Source]
	if p.From < 0 || p.To < p.From || p.To > s.Bytes {
		return fmt.Errorf("bytes %d-%d of %s: it has %d bytes", p.From, p.To, s.Name, s.Bytes)
	}
	return nil
}
