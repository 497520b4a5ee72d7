package recall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
)

// Bounds of what is kept of one document, in bytes; of what is longer the middle
// is left out.
const (
	maxText   = 4 << 10
	maxResult = 2 << 10
)

// kinds in the order in which they are numbered in the file.
func kinds() []string { return []string{Said, Replied, Call, Result, Title, Note} }

// Marks returns how far each session is indexed.
func (x *Index) Marks(ctx context.Context) (map[string]Mark, error) {
	v, err := x.view()
	if err != nil {
		return nil, x.wrap(ctx, "read", err)
	}
	defer v.close()
	out := map[string]Mark{}
	for id, m := range v.marks {
		name, err := v.name(id)
		if err != nil {
			return nil, x.wrap(ctx, "read", err)
		}
		out[name] = m
	}
	return out, x.wrap(ctx, "read", ctx.Err())
}

// Add indexes documents of a session, all or none, and says that it is indexed up
// to mark. Documents up to the mark that is stored already are left out, so that
// adding something twice, also by two processes at once, changes nothing. Docs are
// in order; what their field Session holds is not looked at. Text is shortened to
// some KiB, and rid of hidden characters; a document without any text is left out.
func (x *Index) Add(ctx context.Context, session string, mark Mark, docs []Doc) error {
	if session == "" {
		return errors.New("add to index: no session is named")
	}
	for _, d := range docs {
		if !slices.Contains(kinds(), d.Kind) {
			return fmt.Errorf("add to index: there is no kind %q", d.Kind)
		}
		if d.Seq > mark.Seq {
			return fmt.Errorf("add to index: event %d lies behind the mark %d", d.Seq, mark.Seq)
		}
	}
	return x.change(ctx, "add to", func(w *writer) error { return w.add(session, mark, docs) })
}

// writer changes the index, alone.
type writer struct {
	ctx context.Context
	x   *Index
	f   *os.File
	st  *state // as it will be
	a   *appender
}

// change runs one change. What it appends counts once all of it is there.
func (x *Index) change(ctx context.Context, doing string, do func(w *writer) error) error {
	if x.closed.Load() {
		return x.wrap(ctx, doing, fs.ErrClosed)
	}
	alone, err := keep.LockFile(ctx, x.Path+".write", busyTime)
	if err != nil {
		return x.wrap(ctx, doing, err)
	}
	w := &writer{ctx: ctx, x: x}
	if err = w.open(); err == nil {
		err = do(w)
	}
	return x.wrap(ctx, doing, errors.Join(err, w.close(), alone.Close()))
}

// open opens the file as it is, and begins one where there is none.
func (w *writer) open() error {
	info, err := os.Stat(w.x.Path)
	if err == nil && info.Size() > 0 {
		if w.f, err = os.OpenFile(w.x.Path, os.O_RDWR, 0); err != nil {
			return err
		}
		w.st, err = w.x.load(w.f, true)
		if err == nil {
			w.a = newAppender(w.f, w.st.slot.state.end())
		}
		return err
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := w.x.replace(w.ctx, func(*appender) (*state, error) { return newState(), nil }); err != nil {
		return err
	}
	return w.open()
}

func (w *writer) close() error {
	if w.f == nil {
		return nil
	}
	err := w.f.Close()
	w.f = nil
	return err
}

func (w *writer) add(session string, mark Mark, docs []Doc) error {
	id := w.st.id(session)
	stored, known := w.st.marks[id]
	if known && stored.Seq >= mark.Seq {
		return nil
	}
	docs = slices.DeleteFunc(slices.Clone(docs), func(d Doc) bool { return d.Seq <= stored.Seq })
	if err := w.put(id, docs); err != nil {
		return err
	}
	w.st.marks[id] = mark
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if err := w.a.commit(w.f, w.st); err != nil {
		return err
	}
	if err := w.tidy(); w.ctx.Err() == nil {
		return err
	}
	return nil // it is added; the next one tidies
}

// put appends documents, and a segment of their words.
func (w *writer) put(session uint32, docs []Doc) error {
	first := w.st.docs + 1
	var refs []ref
	words := map[string][]uint32{}
	for _, d := range docs {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		r := row{session: session, seq: d.Seq, time: d.Time, kind: slices.Index(kinds(), d.Kind), untrusted: d.Untrusted, text: kept(d)}
		if r.text == "" {
			continue
		}
		r.root = w.st.id(d.Root)
		w.st.docs++
		for _, word := range indexed(r) {
			words[word] = append(words[word], w.st.docs)
		}
		refs = append(refs, w.a.put(r.encode(nil)))
		w.st.count(refs[len(refs)-1], r)
	}
	if len(refs) == 0 {
		return nil
	}
	return w.segment(first, refs, words)
}

// count takes a document into account that was just put.
func (st *state) count(r ref, d row) {
	st.texts += uint64(r.size)
	st.widen(st.docs, d.time.UnixMilli())
}

// kept is what is kept of the text of a document.
func kept(d Doc) string {
	most := maxText
	if d.Kind == Result {
		most = maxResult
	}
	s := strings.TrimSpace(d.Text)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most*3/4], "") + "\n…\n" + strings.ToValidUTF8(s[len(s)-most/4:], "")
	}
	return text.Clean(s)
}

// indexed lists the words by which a document is found: each once, and each two words
// that are joined.
func indexed(d row) []string {
	out := []string{ofSession(d.session), ofRoot(d.root), ofKind(d.kind)}
	seen := make(map[string]struct{}, len(d.text)/6)
	put := func(word string) {
		if _, ok := seen[word]; !ok {
			seen[word] = struct{}{}
			out = append(out, word)
		}
	}
	var last token
	for t := range each(d.text) {
		put(t.text)
		if t.piece {
			continue
		}
		if last.to > 0 && joined(d.text, last, t) {
			put(pair(last.text, t.text))
		}
		last = t
	}
	return out
}

// pair is the word that stands for two that are joined.
func pair(a, b string) string { return a + meta + b }

// The words that stand for what a document is. No word of a text
// begins with that mark.

func ofSession(id uint32) string { return meta + "s" + strconv.Itoa(int(id)) }
func ofRoot(id uint32) string    { return meta + "r" + strconv.Itoa(int(id)) }
func ofKind(n int) string        { return meta + "k" + strconv.Itoa(n) }

// Forget takes sessions out of the index, their marks too. One that is not there is no
// error. The file is written anew without them, which takes as long for many as for one.
func (x *Index) Forget(ctx context.Context, sessions ...string) error {
	return x.change(ctx, "forget in", func(w *writer) error {
		gone := map[uint32]bool{}
		for _, name := range sessions {
			if id := w.st.ids[name]; id > 0 {
				if _, known := w.st.marks[id]; known {
					gone[id] = true
				}
			}
		}
		if len(gone) == 0 {
			return nil
		}
		return w.rewrite(gone)
	})
}
