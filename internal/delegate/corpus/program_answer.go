package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// Passage says from where a part of the answer of a program is.
type Passage struct {
	From int    `json:"from"` // bytes of the answer
	To   int    `json:"to"`
	By   string `json:"by"` // "copied" from a source, "asked": a model said it, or "computed" by the program
	// Of are the places that it was copied from, or that the model had before it to say it.
	Of   []Place `json:"of,omitempty"`
	More int     `json:"more,omitempty"` // further such places
}

// Place is a range of a source.
type Place struct {
	Source string `json:"source"`
	Line   int64  `json:"line"` // of its first byte, from 1
	From   int64  `json:"from"`
	To     int64  `json:"to"`
}

const (
	byCopying   = "copied"
	byAsking    = "asked"
	byPrinting  = "printed"
	byComputing = "computed"

	mostPlaces = 20 // of a passage
)

// readBy has ranges of texts of sources, by means and source.
type readBy map[string]map[int][]span

func (r readBy) note(means string, ranges map[int][]span) {
	if r[means] == nil {
		r[means] = map[int][]span{}
	}
	for i, spans := range ranges {
		r[means][i] = append(r[means][i], spans...)
	}
}

// given is the answer that a program has set.
type given struct {
	Nothing bool     `json:"nothing"`
	Text    []part   `json:"text"`
	Quotes  [][]part `json:"quotes"`

	size int
}

// give reads an answer. The last one of a program counts.
func (p *program) give(what string) (*given, error) {
	g := &given{}
	if err := json.Unmarshal([]byte(what), g); err != nil {
		return nil, err
	}
	for _, one := range g.Text {
		text, err := p.text(one)
		if err != nil {
			return nil, err
		}
		g.size += len(text)
	}
	if len(g.Quotes) > mostEvidence {
		return nil, fmt.Errorf("it has %d quotes; give the best %d", len(g.Quotes), mostEvidence)
	}
	for n, q := range g.Quotes {
		if len(q) != 1 || q[0].Source == nil {
			return nil, fmt.Errorf("quote %d is not a part of one source: cut it from context, or take it from the quotes of ask", n+1)
		}
		quote, err := p.text(q[0])
		if err != nil {
			return nil, err
		}
		if len(quote) > mostQuote || strings.TrimSpace(quote) == "" {
			return nil, fmt.Errorf("quote %d has %d bytes; at most %d show something", n+1, len(quote), mostQuote)
		}
	}
	if g.size == 0 && !g.Nothing {
		return nil, errors.New("it is empty; give null if there is none")
	}
	return g, nil
}

func (g *given) summary() string {
	if g.Nothing {
		return "the answer is set: nothing was found"
	}
	return fmt.Sprintf("the answer is set: %s bytes, %s", text.Thousands(g.size), text.Counted(len(g.Quotes), "quote", "quotes"))
}

// answer returns the answer with everything that is known about it.
func (p *program) answer() Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.variable
	out := Answer{
		Nothing: p.given.Nothing, Evidence: []Evidence{}, Sources: len(v.Sources), Skipped: v.Skipped, Program: true,
		Requests: &Requests{Answered: len(p.calls)},
	}
	for _, o := range p.calls {
		if o.Error != "" {
			out.Requests.Failed, out.Requests.Answered = out.Requests.Failed+1, out.Requests.Answered-1
		}
	}
	var b strings.Builder
	copied := []string{}
	for _, one := range p.given.Text {
		words, _ := v.part(one) // give has checked it
		words = valid(words)
		passage := Passage{From: b.Len(), To: b.Len() + len(words), By: byComputing}
		switch {
		case one.Source != nil:
			passage.By = byCopying
			ranges := v.ranges([]part{one})
			passage.Of, passage.More = v.places(ranges)
			p.reads.note(byCopying, ranges)
			copied = append(copied, words)
		case one.Ask != nil:
			passage.By = byAsking
			passage.Of, passage.More = v.places(p.behind(*one.Ask))
		}
		b.WriteString(words)
		out.Trace = append(out.Trace, passage)
	}
	out.Coverage = v.coverage(p.reads)
	if out.Answer = b.String(); out.Nothing {
		if out.Answer = silent; out.Coverage.Read < out.Coverage.Bytes {
			out.Answer = unread
		}
		return out
	}
	check := Answer{Answer: out.Answer}
	for _, q := range p.given.Quotes {
		words, _ := v.part(q[0])
		at, _ := v.places(v.ranges(q))
		h := v.Sources[*q[0].Source]
		e := Evidence{Source: h.Name, Line: at[0].Line, From: at[0].From, To: at[0].To, Quote: valid(words), Decoding: string(h.Decoding)}
		out.Evidence = append(out.Evidence, e)
		check.Evidence = append(check.Evidence, e)
	}
	for _, words := range copied {
		check.Evidence = append(check.Evidence, Evidence{Quote: words})
	}
	if out.QuotesVerified = len(check.Evidence) > 0; out.QuotesVerified {
		out.Unsupported = unshown(check)
		out.Supported = len(out.Unsupported) == 0
		out.Verified = out.Supported
	}
	return out
}

// behind returns the texts that the model of a request had before it, directly or by answers to other requests.
func (p *program) behind(n int) map[int][]span {
	all, todo, done := readBy{}, []int{n}, map[int]bool{}
	for len(todo) > 0 {
		n, todo = todo[0], todo[1:]
		if done[n] {
			continue
		}
		done[n] = true
		parts := p.asks[n].parts()
		all.note(byAsking, p.variable.ranges(parts))
		for _, one := range parts {
			if one.Ask != nil {
				todo = append(todo, *one.Ask)
			}
		}
	}
	return all[byAsking]
}

// places returns ranges of texts as places in their sources, and how many more there are.
func (v *variable) places(ranges map[int][]span) (out []Place, more int) {
	for _, i := range slices.Sorted(maps.Keys(ranges)) {
		h := v.Sources[i]
		for _, s := range merged(ranges[i]) {
			if len(out) == mostPlaces {
				more++
				continue
			}
			at := h.source(int(s.from), int(s.to))
			out = append(out, Place{h.Name, h.lineOf(int(s.from)), at.from, at.to})
		}
	}
	return out, more
}

// coverage returns how much of the sources models have read, and how. Code can have looked at all of it.
func (v *variable) coverage(r readBy) (c Coverage) {
	c.By = map[string]int64{}
	for i, h := range v.Sources {
		length := func(spans []span) (n int64) {
			for _, s := range merged(slices.Clone(spans)) {
				at := h.source(int(s.from), int(s.to))
				n += at.to - at.from
			}
			return n
		}
		for means := range r {
			c.By[means] += length(r[means][i])
		}
		n := length(slices.Concat(r[byAsking][i], r[byPrinting][i]))
		c.Read, c.Bytes = c.Read+n, c.Bytes+h.Bytes
		if n < h.Bytes {
			c.Unread = append(c.Unread, Unread{h.Name, h.Bytes - n})
		}
	}
	c.listed()
	return c
}

// stored reads the answer of a program from its blob.
func stored(ctx context.Context, blobs tool.Blobs, store map[string]json.RawMessage) (*Answer, error) {
	raw, ok := store[answerStore]
	if !ok {
		return nil, nil
	}
	var name string
	if err := json.Unmarshal(raw, &name); err != nil {
		return nil, err
	}
	r, err := blobs.Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	defer r.Close()
	out := &Answer{}
	err = json.NewDecoder(io.LimitReader(r, mostManifest)).Decode(out)
	return out, err
}
