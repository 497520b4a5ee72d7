package secret

import (
	"io"
	"strings"
)

// Writer redacts a stream. It holds back possible parts of a secret, at most about 40 KB plus gaps in a known
// value, and passes on the rest at once. The output equals [Vault.Redact] of the whole, however the stream is
// cut. It is not safe for concurrent use.
type Writer struct {
	w   io.Writer
	r   redactor
	err error
}

// Writer returns a writer that redacts its input for w.
func (v *Vault) Writer(w io.Writer) *Writer { return &Writer{w: w, r: redactor{vault: v}} }

// Write implements [io.Writer]. An error of w is permanent: the unwritten data is lost, and nothing more is
// written.
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

// Flush writes the held back data, as at the end of a text. Later input is a new text.
func (w *Writer) Flush() error {
	w.pass(true)
	w.r = redactor{vault: w.r.vault}
	return w.err
}

// Close is Flush. It doesn't close w.
func (w *Writer) Close() error { return w.Flush() }

// Held returns the number of bytes held back.
func (w *Writer) Held() int { return len(w.r.text) - w.r.done }

func (w *Writer) pass(final bool) {
	for _, piece := range w.r.redact(final) {
		if w.err != nil {
			return
		}
		_, w.err = io.WriteString(w.w, piece)
	}
}

// redactor redacts a text that arrives in pieces: first known values, then shapes.
type redactor struct {
	vault *Vault

	text  string // with known values replaced up to known, and some of the passed on text
	known int    // the rest may be a known value
	done  int    // shapes were searched up to here

	learned bool // the vault knows more values than before

	shapes scanner
	out    []string // pieces to pass on
}

// add appends to the text. It drops text that is no longer needed.
func (r *redactor) add(p []byte) {
	cut := max(0, r.done-context)
	var b strings.Builder
	b.Grow(len(r.text) - cut + len(p))
	b.WriteString(r.text[cut:])
	b.Write(p)
	r.text, r.known, r.done = b.String(), r.known-cut, r.done-cut
	r.shapes.start = max(0, r.shapes.start-cut)
}

// redact returns the decided text, in pieces that are valid until the next call.
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

// values replaces known values, and stops at a possible one.
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

// nextWall finds the next placeholder: its position and size. Size 0: none; with more text one may begin at
// that position.
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

// rest replaces shapes, and holds back possible ones.
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
