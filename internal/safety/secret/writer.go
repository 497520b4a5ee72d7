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
	if w.err != nil {
		return 0, w.err
	}
	w.r.add(p)
	if w.pass(false); w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// Flush writes what was held back, as at the end of a text. What comes then is
// read as a new text.
func (w *Writer) Flush() error {
	w.pass(true)
	w.r = redactor{vault: w.r.vault}
	return w.err
}

// Close is Flush. The other side stays open.
func (w *Writer) Close() error { return w.Flush() }

// Held is how many bytes are held back.
func (w *Writer) Held() int { return len(w.r.text) - w.r.done }

func (w *Writer) pass(final bool) {
	for _, piece := range w.r.redact(final) {
		if w.err != nil {
			return
		}
		_, w.err = io.WriteString(w.w, piece)
	}
}

// redactor redacts a text that comes in pieces: for known values first, then
// for shapes.
type redactor struct {
	vault *Vault

	text  string // with known values replaced up to known, and some of what was passed on
	known int    // the rest may be a known value
	done  int    // up to where shapes were looked for

	learned bool // the vault knows more values than before

	shapes scanner
	out    []string // pieces to pass on
}

// add appends to the text. What nothing looks back at any more is dropped.
func (r *redactor) add(p []byte) {
	cut := max(0, r.done-context)
	var b strings.Builder
	b.Grow(len(r.text) - cut + len(p))
	b.WriteString(r.text[cut:])
	b.Write(p)
	r.text, r.known, r.done = b.String(), r.known-cut, r.done-cut
	r.shapes.start = max(0, r.shapes.start-cut)
}

// redact returns what can be passed on, in pieces that are good until it is called again.
func (r *redactor) redact(final bool) []string {
	if index := r.vault.ready(); index != nil {
		r.values(index, final)
	} else {
		r.known = len(r.text)
	}
	if r.shapes.finder == nil {
		r.shapes = *r.vault.finder.scanner("")
	}
	r.shapes.final = final
	r.rest()
	return r.out
}

// values replaces known values, and stops at what may be one.
func (r *redactor) values(x *index, final bool) {
	var b strings.Builder
	text, passed, i := r.text, 0, r.known
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
	r.known = i
	if passed > 0 {
		b.WriteString(text[passed:i])
		r.known = b.Len()
		b.WriteString(text[i:])
		r.text = b.String()
	}
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
func (r *redactor) rest() {
	s := &r.shapes
	s.text, s.memo, s.values, s.ahead = r.text[:r.known], [classes]run{}, values{}, stretch{}
	clear(r.out)
	r.out = r.out[:0]
	passed, i := r.done, r.done
	for i < len(s.text) {
		found, next := s.next(i)
		if found.End == 0 {
			i = next
			break
		}
		placeholder, learned := r.vault.shape(s.text[found.Start:found.End], found.What)
		r.learned = r.learned || learned
		r.pass(s.text[passed:found.Start], placeholder)
		i, passed = next, found.End
	}
	r.done = i
	r.pass(s.text[passed:i])
}

func (r *redactor) pass(pieces ...string) {
	for _, piece := range pieces {
		if piece != "" {
			r.out = append(r.out, piece)
		}
	}
}
