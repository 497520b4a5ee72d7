package secret

import (
	"io"
	"strings"
)

// Writer redacts a stream. It holds back what may turn out to be part of a
// secret, at most about 40 KB and what gaps in a known value add to it, and passes
// on the rest at once: what reaches the other side is the same as [Vault.Redact]
// of the whole, however the stream is cut. It is for one goroutine at a time.
type Writer struct {
	w   io.Writer
	r   redactor
	err error
}

// Writer returns a writer that redacts what it passes on to w.
func (v *Vault) Writer(w io.Writer) *Writer { return &Writer{w: w, r: redactor{vault: v}} }

// Write implements [io.Writer]. An error of the other side stays: what was not
// written is lost, and nothing more is.
func (w *Writer) Write(p []byte) (int, error) {
	if w.pass(string(p), false); w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// Flush writes what was held back, as at the end of a text. What comes then is
// read as a new text.
func (w *Writer) Flush() error {
	w.pass("", true)
	w.r = redactor{vault: w.r.vault}
	return w.err
}

// Close is Flush. The other side stays open.
func (w *Writer) Close() error { return w.Flush() }

// Held is how many bytes are held back.
func (w *Writer) Held() int { return len(w.r.held) + len(w.r.text) - w.r.done }

func (w *Writer) pass(text string, final bool) {
	if w.err != nil {
		return
	}
	if out := w.r.write(text, final); out != "" {
		_, w.err = io.WriteString(w.w, out)
	}
}

// redactor redacts a text that comes in pieces: for known values first, then
// for shapes.
type redactor struct {
	vault *Vault
	held  string // may be the beginning of a known value

	learned bool // the vault knows more values than before

	shapes scanner
	text   string // what shapes are looked for in, with some of what was passed on
	done   int    // up to where it was
}

func (r *redactor) write(text string, final bool) string {
	index := r.vault.ready()
	if r.shapes.finder == nil {
		r.shapes = *r.vault.finder.scanner("")
	}
	r.shapes.final = final
	if index != nil {
		text = r.values(index, r.held+text, final)
	}
	return r.rest(text)
}

// values replaces known values, and holds back what may be one.
func (r *redactor) values(x *index, text string, final bool) string {
	var b strings.Builder
	passed, i := 0, 0
	for i < len(text) {
		wall, size := x.nextWall(text, i, final)
		s := x.search(text[i:wall], final || size > 0)
		for h, ok := s.next(); ok; h, ok = s.next() {
			b.WriteString(text[passed : i+h.from])
			b.WriteString(r.vault.placeholder(h.form, text[i+h.from:i+h.to]))
			passed = i + h.to
		}
		if i += s.at; i < wall || size == 0 {
			break // the rest may be a value, or there is none
		}
		i = wall + size
	}
	r.held = strings.Clone(text[i:])
	if passed == 0 {
		return text[:i]
	}
	b.WriteString(text[passed:i])
	return b.String()
}

// nextWall finds the next placeholder: where it begins and its size. Size 0:
// there is none, and a text that goes on may have one where it says.
func (x *index) nextWall(text string, i int, final bool) (at, size int) {
	for {
		n := strings.Index(text[i:], opening)
		if n < 0 {
			break
		}
		i += n
		size, cut := parsePlaceholder(text[i:min(len(text), i+longestPlaceholder)])
		if size > 0 && !x.poses(text[i:i+size]) || cut && !final {
			return i, size
		}
		i += len(opening)
	}
	for n := min(len(opening)-1, len(text)-i); n > 0 && !final; n-- {
		if strings.HasSuffix(text, opening[:n]) {
			return len(text) - n, 0
		}
	}
	return len(text), 0
}

// rest replaces shapes, and holds back what may be one.
func (r *redactor) rest(text string) string {
	s := &r.shapes
	cut := max(0, r.done-context)
	r.text, r.done, s.start = r.text[cut:]+text, r.done-cut, max(0, s.start-cut)
	s.text, s.memo, s.values = r.text, [classes]run{}, values{}
	var b strings.Builder
	passed, i := r.done, r.done
	for i < len(r.text) {
		found, next := s.next(i)
		if found.End == 0 {
			i = next
			break
		}
		b.WriteString(r.text[passed:found.Start])
		placeholder, learned := r.vault.shape(r.text[found.Start:found.End], found.What)
		r.learned = r.learned || learned
		b.WriteString(placeholder)
		i, passed = next, found.End
	}
	r.done = i
	if passed == 0 && i == len(r.text) {
		return r.text
	}
	b.WriteString(r.text[passed:i])
	return b.String()
}
