package corpus

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/tool"
)

//go:embed corpus_answer.md
var answerDoc string

const (
	mostEvidence = 200
	mostAnswer   = 8_000 // bytes
)

type answerArgs struct {
	Corpus   string   `json:"corpus,omitempty" jsonschema:"its name; not needed while only one is open"`
	Answer   string   `json:"answer" jsonschema:"the answer, for a person"`
	Evidence []answer `json:"evidence" jsonschema:"what it rests on"`
	Nothing  bool     `json:"nothing,omitempty" jsonschema:"the corpus does not answer the question; then answer is not shown, and there is no evidence"`
}

type answer struct {
	Source string `json:"source"`
	From   int64  `json:"from" jsonschema:"first byte"`
	To     int64  `json:"to" jsonschema:"byte behind the last one"`
	Quote  string `json:"quote" jsonschema:"the text there, character by character"`
}

func (in answerArgs) corpus() string { return in.Corpus }

// Answer is an answer whose evidence was compared with the sources.
type Answer struct {
	Verified       bool           `json:"verified"` // QuotesVerified and Supported
	Answer         string         `json:"answer"`
	Nothing        bool           `json:"nothing,omitempty"` // the agent has found no answer, so it claims nothing
	Evidence       []Evidence     `json:"evidence"`
	QuotesVerified bool           `json:"quotes_verified"`       // all quotes are in the sources; false only with Nothing
	Supported      bool           `json:"supported"`             // the quotes have the figures and names of the answer
	Unsupported    []string       `json:"unsupported,omitempty"` // those that they lack
	Coverage       Coverage       `json:"coverage"`
	Sources        int            `json:"sources"`           // of the corpus
	Skipped        map[string]int `json:"skipped,omitempty"` // omitted files, by reason

	// Of an answer that a program has set: from where each part of it is, and how its requests ended.
	Program  bool      `json:"program,omitempty"`
	Trace    []Passage `json:"trace,omitempty"`
	Requests *Requests `json:"requests,omitempty"`
}

// Requests counts requests of programs by how they ended.
type Requests struct {
	Answered int `json:"answered"`
	Failed   int `json:"failed"`
}

// Texts of an answer that claims nothing, depending on whether everything was read.
const (
	silent = "The corpus does not say."
	unread = "Nothing was found in what was read of the corpus."
)

// Evidence is a passage of a source.
type Evidence struct {
	Source string `json:"source"`
	Line   int64  `json:"line"` // of its first byte, from 1
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	Quote  string `json:"quote"`
	Event  uint64 `json:"event,omitempty"` // of a session: number of the event
	// Decoding is the encoding of the quote, if the source is not UTF-8.
	Decoding string `json:"decoding,omitempty"`
}

func runAnswer(ctx context.Context, r *reading, in answerArgs) (tool.Result, error) {
	switch {
	case in.Nothing && len(in.Evidence) > 0:
		return tool.Result{}, errors.New("nothing goes with no evidence: if passages answer the question, leave nothing out")
	case in.Nothing:
		out := Answer{Answer: silent, Nothing: true, Evidence: []Evidence{}, Sources: len(r.Sources), Skipped: r.Skipped, Coverage: r.coverage()}
		if out.Coverage.Read < out.Coverage.Bytes {
			out.Answer = unread
		}
		return result(out)
	case strings.TrimSpace(in.Answer) == "" || len(in.Answer) > mostAnswer:
		return tool.Result{}, fmt.Errorf("the answer is empty, or has more than %d bytes", mostAnswer)
	case len(in.Evidence) > mostEvidence:
		return tool.Result{}, fmt.Errorf("there are %d pieces of evidence; give the best %d", len(in.Evidence), mostEvidence)
	case len(in.Evidence) == 0:
		return tool.Result{}, errors.New("an answer needs evidence; set nothing if the corpus does not answer the question")
	}
	out := Answer{
		QuotesVerified: true, Answer: valid(in.Answer), Evidence: make([]Evidence, len(in.Evidence)), Sources: len(r.Sources), Skipped: r.Skipped,
		Coverage: r.coverage(),
	}
	var wrong []error
	bySource := map[int][]int{}
	for n, e := range in.Evidence {
		i, err := r.find(e.Source)
		if err == nil {
			err = r.check(piece{i, e.From, e.To})
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("evidence %d: %w", n+1, err))
			continue
		}
		bySource[i] = append(bySource[i], n)
	}
	for i, which := range bySource {
		wrong = append(wrong, r.verify(ctx, i, in.Evidence, which, out.Evidence)...)
	}
	if err := errors.Join(wrong...); err != nil {
		return tool.Result{}, err
	}
	out.Unsupported = unshown(out)
	out.Supported = len(out.Unsupported) == 0
	out.Verified = out.Supported
	return result(out)
}

// verify compares quotes with a whole source, whose digest must be unchanged.
func (r *reading) verify(ctx context.Context, i int, all []answer, which []int, out []Evidence) (wrong []error) {
	err := r.each(ctx, []int{i}, func(v *view) error {
		w := &witness{meter: newMeter(), at: map[int][]byte{}, around: map[int]*[2]string{}, line: map[int]int64{}, all: all, which: which}
		for _, n := range which {
			w.around[n] = &[2]string{}
		}
		if _, err := io.Copy(w, keep.Reading(ctx, v)); err != nil {
			return err
		}
		if v.at != v.src.Bytes || w.digest() != v.src.Digest {
			return changed(v.src.Name, nil)
		}
		for _, n := range which {
			e, is := all[n], v.src.Decoding.text(w.at[n])
			if e.Quote == "" || is != e.Quote {
				wrong = append(wrong, fmt.Errorf("evidence %d: bytes %d-%d of %s are %.120q, not %.120q", n+1, e.From, e.To, e.Source, is, e.Quote))
				continue
			}
			if short(e.Quote, w.around[n][0], w.around[n][1]) {
				wrong = append(wrong, fmt.Errorf("evidence %d: the quote %q is too short to show anything; give at least %d bytes, or all of the line",
					n+1, e.Quote, leastQuote))
				continue
			}
			out[n] = Evidence{Source: valid(v.src.Name), Line: w.line[n], From: e.From, To: e.To, Quote: e.Quote, Decoding: string(v.src.Decoding)}
		}
		return nil
	})
	if err == nil && r.Sources[i].Kind == kindSession {
		err = r.events(ctx, i, which, out)
	}
	if err != nil {
		wrong = append(wrong, err)
	}
	return wrong
}

// events adds the numbers of events to evidence from a log.
func (r *reading) events(ctx context.Context, i int, which []int, out []Evidence) error {
	lines := map[int64]uint64{}
	for _, n := range which {
		lines[out[n].Line] = 0
	}
	err := r.numbers(ctx, i, lines)
	for _, n := range which {
		out[n].Event = lines[out[n].Line]
	}
	return err
}

// witness extracts passages from a source while it is streamed.
type witness struct {
	*meter
	all    []answer
	which  []int
	at     map[int][]byte
	around map[int]*[2]string // the bytes before and after; empty at the ends of the source
	line   map[int]int64
}

// Write implements [io.Writer].
func (w *witness) Write(p []byte) (int, error) {
	begin := w.bytes
	end := begin + int64(len(p))
	for _, n := range w.which {
		e := w.all[n]
		if e.From >= begin && e.From < end {
			w.line[n] = w.lines + int64(countLines(p[:e.From-begin])) + 1
		}
		for i, at := range [2]int64{e.From - 1, e.To} {
			if at >= begin && at < end {
				w.around[n][i] = string(p[at-begin])
			}
		}
		if from, to := max(e.From, begin), min(e.To, end); from < to && e.To-e.From <= mostShown {
			w.at[n] = append(w.at[n], p[from-begin:to-begin]...)
		}
	}
	return w.meter.Write(p)
}

// numbers sets the numbers of the events at the start of lines of a log.
func (r *reading) numbers(ctx context.Context, i int, lines map[int64]uint64) error {
	re := regexp.MustCompile(`^#(\d+) `)
	return r.each(ctx, []int{i}, func(v *view) error {
		return search(v, re, make([]byte, block), func(l line) (err error) {
			if _, wanted := lines[l.number]; wanted {
				lines[l.number], err = strconv.ParseUint(string(re.FindSubmatch(l.text)[1]), 10, 64)
			}
			return err
		})
	})
}
