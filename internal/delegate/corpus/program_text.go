package corpus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// textTool is the tool that stores the text of sources for programs. Only [Set.programTool] calls it.
const textTool = "corpus_text"

// mostVariable is the number of bytes that programs of a session can have as a variable.
const mostVariable = 64 << 20

// redacted marks a source that programs have without its secrets: places in it are those of that text.
const redacted decoding = "redacted"

// variable is the text of a corpus as programs have it, in the form of its blob.
type variable struct {
	Variable bool           `json:"variable"` // true: it is no manifest
	Sources  []*held        `json:"sources"`
	Skipped  map[string]int `json:"skipped,omitempty"`

	name string
}

// held is the text of a source in a blob of the session, where it never changes.
type held struct {
	Name     string   `json:"name"`
	Blob     string   `json:"blob"`
	Bytes    int64    `json:"bytes"` // of the source
	Decoding decoding `json:"decoding,omitempty"`

	text   string
	marks  []mark // one for each markEvery characters; nil means each byte is a character
	breaks []int  // places of the ends of lines
}

// mark is the place of a character: its first byte, and its number in UTF-16, as JavaScript counts.
type mark struct{ at, unit int }

const markEvery = 1 << 12

func (s *Set) textTool() tool.Tool {
	t := tool.New(textTool, "Stores the text of sources for programs.", func(ctx context.Context, c *tool.Call, in listArgs) (tool.Result, error) {
		m, err := s.openAll(ctx, c, in.Sources)
		if err != nil {
			return tool.Result{}, err
		}
		v, err := s.hold(ctx, &reading{set: s, call: c, manifest: m})
		if err != nil {
			return tool.Result{}, err
		}
		return result(struct {
			Variable string `json:"variable"`
		}{v.name})
	})
	t.Effects = s.listEffects
	return t
}

// hold stores the text of an open corpus as blobs.
func (s *Set) hold(ctx context.Context, r *reading) (*variable, error) {
	total := int64(0)
	for _, src := range r.Sources {
		total += src.Bytes
	}
	if total > mostVariable {
		return nil, fmt.Errorf("the sources have %s bytes; programs can hold %s. Name fewer sources, or ask without --program, where tools search the text in place",
			text.Thousands(int(total)), text.Thousands(mostVariable))
	}
	v, all := &variable{Variable: true, Skipped: r.Skipped}, make([]int, len(r.Sources))
	for i := range all {
		all[i] = i
	}
	err := r.each(ctx, all, func(view *view) error {
		data, err := view.bytes(ctx, 0, view.src.Bytes)
		if err != nil {
			return err
		}
		raw := view.src.Decoding.asked(data)
		h := &held{Name: valid(view.src.Name), Bytes: view.src.Bytes, Decoding: view.src.Decoding}
		if h.text = cleaned(r.call.Env.Clean, raw); h.text != raw {
			h.Decoding, h.Bytes = redacted, int64(len(h.text))
		}
		h.index()
		h.Blob, err = r.call.Env.Blobs.Put(ctx, strings.NewReader(h.text))
		v.Sources = append(v.Sources, h)
		return err
	})
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(v)
	if err == nil {
		body, err = json.Marshal(sealed{s.seal(body), body})
	}
	if err != nil {
		return nil, err
	}
	if v.name, err = r.call.Env.Blobs.Put(ctx, bytes.NewReader(body)); err == nil {
		s.keepVariable(v)
	}
	return v, err
}

func (s *Set) keepVariable(v *variable) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.variable = v
}

// variableOf returns the variable with a name. Its texts are in memory from then on.
func (s *Set) variableOf(ctx context.Context, c *tool.Call, name string) (*variable, error) {
	s.mu.Lock()
	v := s.variable
	s.mu.Unlock()
	if v != nil && v.name == name {
		return v, nil
	}
	raw, err := blob(ctx, c, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no text %q", name)
	}
	var in sealed
	v = &variable{name: name}
	if err == nil {
		err = json.Unmarshal(raw, &in)
	}
	if err == nil {
		err = json.Unmarshal(in.Manifest, v)
	}
	if err != nil {
		return nil, err
	}
	if seal := s.seal(in.Manifest); !v.Variable || string(seal) != string(in.Seal) {
		return nil, fmt.Errorf("%q is not the text of sources", name)
	}
	for _, h := range v.Sources {
		data, err := blob(ctx, c, h.Blob)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
		h.text = string(data)
		h.index()
	}
	s.keepVariable(v)
	return v, nil
}

// index marks characters and lines of the text.
func (h *held) index() {
	units, plain := 0, true
	for i, r := range h.text {
		if units >= len(h.marks)*markEvery {
			h.marks = append(h.marks, mark{i, units})
		}
		if r == '\n' {
			h.breaks = append(h.breaks, i)
		}
		units, plain = units+max(utf16.RuneLen(r), 1), plain && r < utf8.RuneSelf
	}
	if plain {
		h.marks = nil
	}
}

// at returns the byte of the text where a character begins.
func (h *held) at(unit int) int {
	if h.marks == nil || unit <= 0 {
		return max(0, min(unit, len(h.text)))
	}
	near := min(unit/markEvery, len(h.marks)-1)
	if h.marks[near].unit > unit {
		near--
	}
	i, units := h.marks[near].at, h.marks[near].unit
	for units < unit && i < len(h.text) {
		r, size := utf8.DecodeRuneInString(h.text[i:])
		i, units = i+size, units+max(utf16.RuneLen(r), 1)
	}
	return i
}

// source returns the range of bytes of the source that a range of the text stands for.
func (h *held) source(from, to int) span {
	begin := int64(from)
	if h.Decoding == narrow {
		begin = h.Decoding.bytes(h.text[:from])
	}
	return span{begin, begin + h.Decoding.bytes(h.text[from:to])}
}

// lineOf returns the number of the line in which a byte of the text is, from 1.
func (h *held) lineOf(at int) int64 { return int64(sort.SearchInts(h.breaks, at)) + 1 }

// merged returns ranges in order, those that touch as one.
func merged(spans []span) (out []span) {
	sort.Slice(spans, func(i, j int) bool { return spans[i].from < spans[j].from })
	for _, s := range spans {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}
