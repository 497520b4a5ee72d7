package corpus

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
)

// part is a part of a text of a program: a range of a source, words that a model said, or computed text. Only its
// place crosses the pipe for a range, and the text is taken from the source, so a program can't claim what a source
// does not say.
type part struct {
	Source   *int // number of the source, or nil
	From, To int  // range of its characters, in UTF-16
	Ask      *int // number of the request that brought Text, or nil
	Text     string
}

type (
	sourcePart struct {
		S int `json:"s"`
		F int `json:"f"`
		T int `json:"t"`
	}
	askPart struct {
		A int    `json:"a"`
		T string `json:"t"`
	}
)

// MarshalJSON implements [json.Marshaler].
func (p part) MarshalJSON() ([]byte, error) {
	switch {
	case p.Source != nil:
		return json.Marshal(sourcePart{*p.Source, p.From, p.To})
	case p.Ask != nil:
		return json.Marshal(askPart{*p.Ask, p.Text})
	}
	return json.Marshal(p.Text)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *part) UnmarshalJSON(raw []byte) error {
	*p = part{}
	if json.Unmarshal(raw, &p.Text) == nil {
		return nil
	}
	var kind struct {
		S, A *int
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return err
	}
	if kind.A != nil {
		var a askPart
		err := json.Unmarshal(raw, &a)
		p.Ask, p.Text = &a.A, a.T
		return err
	}
	var s sourcePart
	if kind.S == nil {
		return errors.New("a text has parts of a source, of a model or of the program")
	}
	err := json.Unmarshal(raw, &s)
	p.Source, p.From, p.To = &s.S, s.F, s.T
	return err
}

// part returns the text of a part.
func (v *variable) part(p part) (string, error) {
	if p.Source == nil {
		return p.Text, nil
	}
	if *p.Source < 0 || *p.Source >= len(v.Sources) || p.From < 0 || p.To < p.From {
		return "", fmt.Errorf("there is no part %d to %d of source %d", p.From, p.To, *p.Source)
	}
	h := v.Sources[*p.Source]
	return h.text[h.at(p.From):h.at(p.To)], nil
}

// joined returns the text of parts.
func (v *variable) joined(parts []part) (string, error) {
	var b strings.Builder
	for _, p := range parts {
		text, err := v.part(p)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// ranges returns the bytes of texts of sources among parts, by source.
func (v *variable) ranges(parts []part) map[int][]span {
	out := map[int][]span{}
	for _, p := range parts {
		if p.Source != nil {
			h := v.Sources[*p.Source]
			out[*p.Source] = append(out[*p.Source], span{int64(h.at(p.From)), int64(h.at(p.To))})
		}
	}
	return out
}

// units returns the length of a text in UTF-16, in which JavaScript counts.
func units(text string) (n int) {
	for _, r := range text {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// head returns the beginning of a text that has at most so many units.
func head(text string, most int) string {
	n := 0
	for i, r := range text {
		if n += max(utf16.RuneLen(r), 1); n > most {
			return text[:i]
		}
	}
	return text
}
