package tools

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// applyEdit makes one edit and returns how many matches it replaced. It
// searches with CRLF read as LF; outside the matches every byte stays. New
// lines end as most lines of the text do.
func applyEdit(raw string, e edit) (string, int, error) {
	want, with := unix(e.Old), unix(e.New)
	switch want {
	case "":
		return "", 0, errors.New("old_string is empty; use write_file for a new file")
	case with:
		return "", 0, errors.New("old_string and new_string are the same")
	}
	if endsInCRLF(raw) {
		with = dos(with)
	}
	v := newView(raw)
	found := v.find(want, e.All)
	if len(found) == 0 {
		if out, n := v.typed(want, with, e.All); n > 0 {
			return out, n, nil
		}
	}
	switch {
	case len(found) == 0:
		return "", 0, errors.New(notFound(v.text, want))
	case len(found) > 1 && !e.All:
		return "", 0, fmt.Errorf("old_string matches %d times, at lines %s; add lines around it until it is unique, or set replace_all",
			len(found), lineList(v.text, found))
	}
	return v.replace(found, len(want), with), len(found), nil
}

// view is a text with CRLF read as LF, and the way back.
type view struct {
	raw  string
	text string
	crlf []int // offsets in text of the LFs that are CRLF in raw
}

func newView(raw string) *view {
	v := &view{raw: raw, text: raw}
	if !strings.Contains(raw, "\r\n") {
		return v
	}
	v.text = unix(raw)
	for i := 0; ; {
		j := strings.Index(raw[i:], "\r\n")
		if j < 0 {
			return v
		}
		v.crlf = append(v.crlf, i+j-len(v.crlf))
		i += j + 2
	}
}

// rawOffset returns where an offset in text lies in raw: before the CR of a
// CRLF, never inside it.
func (v *view) rawOffset(i int) int {
	before, _ := slices.BinarySearch(v.crlf, i)
	return i + before
}

// find returns the offsets of all matches. Without apart they may overlap:
// then it is not clear which one is meant.
func (v *view) find(want string, apart bool) []int {
	step := 1
	if apart {
		step = len(want)
	}
	var found []int
	for i := 0; i <= len(v.text)-len(want); {
		j := strings.Index(v.text[i:], want)
		if j < 0 {
			break
		}
		found = append(found, i+j)
		i += j + step
	}
	return found
}

// replace replaces length bytes of text at each offset by with.
func (v *view) replace(found []int, length int, with string) string {
	var b strings.Builder
	done := 0
	for _, i := range found {
		b.WriteString(v.raw[done:v.rawOffset(i)])
		b.WriteString(with)
		done = v.rawOffset(i + length)
	}
	b.WriteString(v.raw[done:])
	return b.String()
}

// typed replaces the wanted text if the text spells it differently, by the comparison of [typedText]. Only the
// difference between want and with changes: the rest keeps its own bytes. n is 0 if there is no match, or more
// than one and not all are meant.
func (v *view) typed(want, with string, all bool) (out string, n int) {
	sought := newTyped(want).text
	if len(v.text) > maxCompared || sought == "" {
		return "", 0
	}
	have := newTyped(v.text)
	before, after := common(want, with)
	first, last := len(newTyped(want[:before]).text), len(newTyped(want[len(want)-after:]).text)
	var b strings.Builder
	done := 0
	for i := 0; ; {
		j := strings.Index(have.text[i:], sought)
		if j < 0 {
			break
		}
		from, to := i+j+first, i+j+len(sought)-last
		i += j + len(sought)
		if !have.begins(from) || !have.begins(to) {
			continue
		}
		n++
		b.WriteString(v.raw[done:v.rawOffset(have.at[from])])
		b.WriteString(with[before : len(with)-after])
		done = v.rawOffset(have.at[to])
	}
	if n > 1 && !all {
		return "", 0
	}
	b.WriteString(v.raw[done:])
	return b.String(), n
}

// lineList names the lines of offsets, at most twenty of them.
func lineList(text string, offsets []int) string {
	var list []string
	line, at := 1, 0
	for _, o := range offsets[:min(len(offsets), 20)] {
		line += strings.Count(text[at:o], "\n")
		at = o
		list = append(list, strconv.Itoa(line))
	}
	if len(offsets) > 20 {
		list = append(list, "…")
	}
	return strings.Join(list, ", ")
}
