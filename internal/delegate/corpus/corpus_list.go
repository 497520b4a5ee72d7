package corpus

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/world/web"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

//go:embed corpus_list.md
var listDoc string

const (
	mostSources = 50_000
	mostBytes   = 8 << 30 // of a corpus, together
	mostLeft    = 20      // names of omitted files
	binaryHead  = 8 << 10 // start of a file, in which a NUL means that it is not text
)

type listArgs struct {
	Sources []string `json:"sources,omitempty" jsonschema:"files, folders, blob:NAME, https://..., session, session:ID or sessions"`
	Corpus  string   `json:"corpus,omitempty" jsonschema:"one that is open, to list more of it"`
	Glob    string   `json:"glob,omitempty" jsonschema:"list only these"`
	From    int      `json:"from,omitempty" jsonschema:"number of the first one to list"`
}

func (s *Set) listTool() tool.Tool {
	t := tool.New("corpus_list", listDoc, s.list)
	t.Effects = s.listEffects
	return t
}

// listEffects returns the reads and the hosts for the sources to open, or for the open corpus.
func (s *Set) listEffects(ctx context.Context, c *tool.Call) ([]tool.Effect, error) {
	in, err := tool.Args[listArgs](c)
	if err != nil {
		return nil, err
	}
	if (in.Corpus == "") == (len(in.Sources) == 0) {
		return nil, fmt.Errorf("%w: give sources to open, or the corpus that is open", tool.ErrInvalid)
	}
	if in.Corpus != "" {
		m, err := s.manifest(ctx, c, in.Corpus)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", tool.ErrInvalid, err)
		}
		return reads(m.Roots), nil
	}
	out := []tool.Effect{}
	for _, name := range in.Sources {
		fixed, err := s.named(ctx, c, name)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", tool.ErrInvalid, err)
		}
		switch kind, at := kindOf(name); {
		case kind == kindFile:
			path, err := tools.Resolve(ctx, c, at)
			if err != nil {
				return nil, err
			}
			out = append(out, tool.Effect{Kind: tool.Read, Path: path})
		case kind == kindPage && fixed == "":
			u, err := web.Address(at)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", tool.ErrInvalid, err)
			}
			out = append(out, pageEffects(u)...)
		}
	}
	return out, nil
}

// named returns an error if a source is not among those that can be opened, nor below one. Fixed is the blob of a
// page that is not fetched again; empty means there is none.
func (s *Set) named(ctx context.Context, c *tool.Call, name string) (fixed string, err error) {
	kind, at := kindOf(name)
	var names []string
	for _, one := range s.Only {
		names = append(names, one.Name)
		switch own, place := kindOf(one.Name); {
		case one.Name == name, one.Name == cleaned(c.Env.Clean, name): // the log has addresses without their secrets
			return one.Blob, nil
		case own == kindSession && place == "sessions" && kind == kindSession && at != "session":
			return "", nil
		case own == kindFile && kind == kindFile:
			below, err := tools.Resolve(ctx, c, place)
			if path, failed := tools.Resolve(ctx, c, at); err == nil && failed == nil && text.Inside(below, path) {
				return "", nil
			}
		}
	}
	if s.Only == nil {
		return "", nil
	}
	return "", fmt.Errorf("%s is not one of the sources of the question: %s", name, strings.Join(names, ", "))
}

// Exist returns an error if a source can't be used by a new session of a folder. Pages are not fetched.
func Exist(ctx context.Context, sessions store.Store, root string, names []string) error {
	for _, name := range names {
		kind, at := kindOf(name)
		var err error
		switch {
		case kind == kindFile && at == "", kind == kindBlob:
			err = errors.New("a new session reads only files, folders, pages and logs of sessions")
		case kind == kindInput:
		case kind == kindPage:
			_, err = web.Address(at)
		case kind == kindFile && filepath.IsAbs(at):
			_, err = os.Stat(at)
		case kind == kindFile:
			_, err = os.Stat(filepath.Join(root, at))
		case at != "session" && at != "sessions":
			_, err = store.Resolve(ctx, sessions, at)
		}
		if err != nil {
			return fmt.Errorf("source %q: %w", name, err)
		}
	}
	return nil
}

// kindOf returns the kind of a source by its name, and the rest of the name.
func kindOf(name string) (kind, at string) {
	switch {
	case strings.HasPrefix(name, "blob:"):
		return kindBlob, strings.TrimPrefix(name, "blob:")
	case strings.Contains(name, "://"):
		return kindPage, name
	case name == Input:
		return kindInput, name
	case name == "session", name == "sessions":
		return kindSession, name
	case strings.HasPrefix(name, "session:"):
		return kindSession, strings.TrimPrefix(name, "session:")
	}
	return kindFile, name
}

func (s *Set) list(ctx context.Context, c *tool.Call, in listArgs) (tool.Result, error) {
	m, err := s.manifest(ctx, c, in.Corpus)
	if in.Corpus == "" {
		m, err = s.openAll(ctx, c, in.Sources)
	}
	if err != nil {
		return tool.Result{Untrusted: true}, err
	}
	res, err := m.listed(in)
	res.Untrusted = true
	return res, err
}

// openAll opens a corpus.
func (s *Set) openAll(ctx context.Context, c *tool.Call, names []string) (*manifest, error) {
	if c.Env.Blobs == nil {
		return nil, errNoBlobs
	}
	o := opening{set: s, call: c, m: &manifest{Version: manifestVersion, Skipped: map[string]int{}}, seen: map[string]bool{}}
	for _, name := range names {
		fixed, err := s.named(ctx, c, name)
		if err != nil {
			return nil, err
		}
		switch kind, at := kindOf(name); kind {
		case kindFile:
			err = o.files(ctx, at)
		case kindPage:
			err = o.page(ctx, at, fixed)
		case kindInput:
			if err = errNoInput; fixed != "" {
				err = o.add(ctx, source{Name: "standard input", Kind: kindBlob, At: fixed})
			}
		case kindBlob:
			err = o.add(ctx, source{Name: name, Kind: kindBlob, At: at})
		case kindSession:
			err = o.sessions(ctx, at)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(o.m.Sources) == 0 {
		return nil, fmt.Errorf("there is no text to read there%s", o.m.left())
	}
	if err := s.save(ctx, o.m, c.Env.Blobs); err != nil {
		return nil, err
	}
	s.keep(o.m)
	return o.m, nil
}

// opening is a corpus that is being opened.
type opening struct {
	set   *Set
	call  *tool.Call
	m     *manifest
	seen  map[string]bool // names
	bytes int64
}

// skip omits a file.
func (o *opening) skip(name, why string) {
	o.m.Skipped[why]++
	if len(o.m.Left) < mostLeft {
		o.m.Left = append(o.m.Left, name+": "+why)
	}
}

// files adds a file, or all files below a folder.
func (o *opening) files(ctx context.Context, at string) error {
	path, err := tools.Resolve(ctx, o.call, at)
	if err != nil {
		return err
	}
	f, err := o.call.Env.Files.Open(ctx, path)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	o.m.Roots = append(o.m.Roots, path)
	if !info.IsDir() {
		return o.file(ctx, path)
	}
	unread, err := tools.Below(ctx, o.call, path, func(file string) error { return o.file(ctx, file) })
	if unread > 0 {
		o.m.Skipped["folder can't be read"] += unread
	}
	return err
}

// file adds one file. A file that is not text, or not readable, is omitted.
func (o *opening) file(ctx context.Context, path string) error {
	name := tools.Shown(o.call, path)
	if o.seen[name] {
		return nil
	}
	f, err := o.call.Env.Files.Open(ctx, path)
	if err != nil {
		o.skip(name, "can't be read")
		return ctx.Err()
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		o.skip(name, "not a regular file")
		return nil
	}
	head := make([]byte, binaryHead)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		o.skip(name, "can't be read")
		return nil
	}
	src := source{Name: name, Kind: kindFile, At: path, Stamp: stampOf(info), Decoding: wide(head[:n])}
	if src.Decoding == "" && bytes.IndexByte(head[:n], 0) >= 0 {
		o.skip(name, "not text")
		return nil
	}
	whole := io.LimitReader(io.MultiReader(bytes.NewReader(head[:n]), f), info.Size()) // data appended meanwhile is not part of it
	if src.Decoding == "" {
		var seen bytesSeen
		err := o.measure(ctx, src, io.TeeReader(whole, &seen))
		if err == nil && seen.narrow() {
			o.m.Sources[len(o.m.Sources)-1].Decoding = narrow
		}
		return err
	}
	return o.measure(ctx, src, src.Decoding.reader(whole))
}

// page adds the text of a page, from its blob if it has one.
func (o *opening) page(ctx context.Context, at, blob string) error {
	u, err := web.Address(at)
	if err == nil && blob == "" {
		blob, err = fetched(ctx, o.call.Env, u)
	}
	if err != nil {
		return err
	}
	return o.add(ctx, source{Name: cleaned(o.call.Env.Clean, u.String()), Kind: kindPage, At: blob})
}

// sessions adds logs: of the calling session, of another, or of all past ones.
func (o *opening) sessions(ctx context.Context, which string) (err error) {
	ids := []string{which}
	switch {
	case o.set.Sessions == nil:
		return errNoSessions
	case which == "session":
		ids = []string{asking(o.call)}
	case which == "sessions":
		ids, err = o.set.past(ctx, o.call)
	default:
		ids[0], err = store.Resolve(ctx, o.set.Sessions, which)
	}
	if err != nil {
		return err
	}
	for _, id := range ids {
		name := "session:" + id
		if which == "session" {
			name = which
		}
		if err := o.add(ctx, source{Name: name, Kind: kindSession, At: id}); err != nil {
			if which != "sessions" || ctx.Err() != nil {
				return err
			}
			o.skip(name, "its log can't be read")
		}
	}
	return nil
}

// add measures a source that is not a file, and adds it.
func (o *opening) add(ctx context.Context, src source) error {
	if o.seen[src.Name] {
		return nil
	}
	var r io.ReadCloser
	if src.Kind == kindSession {
		if err := o.set.mayRead(ctx, o.call, src.At); err != nil {
			return fmt.Errorf("%s: %w", src.Name, err)
		}
		log := o.set.log(ctx, src.At, 0)
		defer func() { // the number of the last event is known now
			if n := len(o.m.Sources); n > 0 && o.m.Sources[n-1].Name == src.Name {
				o.m.Sources[n-1].Upto = log.last
			}
		}()
		r = log
	} else {
		var err error
		if r, err = o.call.Env.Blobs.Get(ctx, src.At); err != nil {
			return fmt.Errorf("%s: %w", src.Name, err)
		}
	}
	defer r.Close()
	return o.measure(ctx, src, r)
}

// measure reads a source once, and adds it.
func (o *opening) measure(ctx context.Context, src source, r io.Reader) error {
	m := newMeter()
	if _, err := io.Copy(m, keep.Reading(ctx, io.LimitReader(r, mostBytes-o.bytes+1))); err != nil {
		return fmt.Errorf("%s: %w", src.Name, err)
	}
	if o.bytes += m.bytes; o.bytes > mostBytes || len(o.m.Sources) >= mostSources {
		return fmt.Errorf("the corpus is too big: at most %d sources and %d bytes; open a part of it", mostSources, int64(mostBytes))
	}
	src.Bytes, src.Lines, src.Digest = m.bytes, m.count(), m.digest()
	o.seen[src.Name] = true
	o.m.Sources = append(o.m.Sources, src)
	return nil
}

// left describes the omitted files.
func (m *manifest) left() string {
	if len(m.Left) == 0 {
		return ""
	}
	return " (" + strings.Join(m.Left, "; ") + ")"
}

// listedSource is a source in the form for the model.
type listedSource struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Lines int64  `json:"lines"`
	// Decoding is the encoding of the text.
	Decoding decoding `json:"decoding,omitempty"`
}

func (m *manifest) listed(in listArgs) (tool.Result, error) {
	which, err := m.matching(in.Glob)
	if err != nil {
		return tool.Result{}, err
	}
	out := struct {
		Corpus  string         `json:"corpus"`
		Count   int            `json:"count"`
		Bytes   int64          `json:"bytes"`
		Lines   int64          `json:"lines"`
		Sources []listedSource `json:"sources"`
		Next    int            `json:"next,omitempty"` // the start of the rest of the list
		Skipped map[string]int `json:"skipped,omitempty"`
		Left    []string       `json:"some_skipped,omitempty"`
	}{Corpus: m.name, Count: len(which), Sources: []listedSource{}, Skipped: m.Skipped, Left: m.Left}
	if in.From < 0 || in.From > len(which) {
		return tool.Result{}, fmt.Errorf("from is %d; there are %d", in.From, len(which))
	}
	room := mostShown - shown(out) - 200
	for n, i := range which {
		s := m.Sources[i]
		out.Bytes, out.Lines = out.Bytes+s.Bytes, out.Lines+s.Lines
		one := listedSource{valid(s.Name), s.Bytes, s.Lines, s.Decoding}
		if n < in.From || out.Next > 0 {
			continue
		}
		if room -= shown(one); room < 0 || len(out.Sources) == 300 {
			out.Next = n
			continue
		}
		out.Sources = append(out.Sources, one)
	}
	return result(out)
}
