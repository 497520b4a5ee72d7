package memory

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

const (
	opens  = "<!--"
	closes = "-->"
)

// item is an entry and its lines.
type item struct {
	Entry
	said      string // content of its comment
	line, end int    // lines from line to before end
}

// file is MEMORY.md as read. Lines keep their ends, so joined they are the file.
type file struct {
	path     string
	lines    []string
	items    []item
	problems []Problem

	unvouched bool // no one vouches for its content
}

// parse parses MEMORY.md. It accepts any text.
func parse(path string, data []byte) file {
	f := file{path: path}
	for line := range bytes.Lines(data) {
		f.lines = append(f.lines, string(line))
	}
	fence, comment, open := "", false, false // open: the previous line belongs to an item
	for i, raw := range f.lines {
		line := strings.TrimRight(raw, "\r\n")
		if i == 0 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case comment:
			comment = !strings.Contains(line, closes)
		case strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~"):
			fence, open = line[:3], false
		case strings.HasPrefix(line, opens):
			comment, open = !strings.Contains(line, closes), false
		case isItem(line):
			f.add(i, line)
			open = true
		case open && trimmed != "" && (line[0] == ' ' || line[0] == '\t'):
			f.extend(i, trimmed)
		default:
			open = false
		}
	}
	f.finish()
	return f
}

func isItem(line string) bool {
	return len(line) > 2 && strings.ContainsRune("-*+", rune(line[0])) && (line[1] == ' ' || line[1] == '\t') && strings.TrimSpace(line[2:]) != ""
}

func (f *file) add(i int, line string) {
	text, said := split(strings.TrimSpace(line[2:]))
	f.items = append(f.items, item{Entry: Entry{Text: text}, said: said, line: i, end: i + 1})
}

func (f *file) extend(i int, text string) {
	it := &f.items[len(f.items)-1]
	text, said := split(text)
	it.Text += " " + text
	it.said = strings.TrimSpace(it.said + " " + said)
	it.end = i + 1
}

// finish parses the items when all their lines are there.
func (f *file) finish() {
	seen := map[string]bool{}
	for n := range f.items {
		it := &f.items[n]
		problem := func(format string, args ...any) {
			f.problems = append(f.problems, Problem{f.path, it.line + 1, fmt.Sprintf(format, args...)})
		}
		s := it.Text
		clean := text.Flat(text.Clean(s))
		if text.Holds(s, text.Hidden&^text.Tab) {
			problem("has characters that can't be seen; they are left out")
		}
		it.Kind, it.Text = kindOf(clean)
		it.read(it.said, problem)
		if it.ID == "" {
			it.ID = idOf(it.Text)
		}
		if it.Source == "" {
			it.Source = "person"
		}
		if seen[it.ID] {
			problem("the id %s is there twice", it.ID)
		}
		seen[it.ID] = true
	}
}

// split separates a line of an item from the comment at its end.
func split(text string) (before, said string) {
	inside, ok := strings.CutSuffix(text, closes)
	at := strings.LastIndex(inside, opens)
	if !ok || at < 0 {
		return text, ""
	}
	return strings.TrimSpace(text[:at]), strings.TrimSpace(inside[at+len(opens):])
}

// kindOf separates the kind from the text. Other text in brackets is part of the text.
func kindOf(text string) (Kind, string) {
	name, rest, ok := strings.Cut(strings.TrimPrefix(text, "["), "]")
	if k := Kind(strings.ToLower(name)); ok && strings.HasPrefix(text, "[") && slices.Contains(Kinds(), k) && strings.TrimSpace(rest) != "" {
		return k, strings.TrimSpace(rest)
	}
	return Fact, text
}

// read parses the content of a comment. It reports and ignores what it can't parse.
func (e *Entry) read(said string, problem func(format string, args ...any)) {
	for said != "" {
		var field string
		var err error
		if field, said, err = next(said); err != nil {
			problem("the comment can't be read at %s", words.OneLine(said, 40))
			return
		}
		name, value, _ := strings.Cut(field, "=")
		if !e.set(name, value) {
			problem("the comment says %s, which means nothing here", words.OneLine(field, 80))
		}
	}
}

// next cuts one field off the front: a flag, name=value or name="value".
func next(said string) (field, rest string, err error) {
	name, after, found := strings.Cut(said, `="`)
	if !found || strings.ContainsAny(name, " \t") {
		field, rest, _ = strings.Cut(said, " ")
		return field, strings.TrimSpace(rest), nil
	}
	quoted, err := strconv.QuotedPrefix(`"` + after)
	if err != nil {
		return "", said, err
	}
	value, err := strconv.Unquote(quoted)
	return name + "=" + value, strings.TrimSpace(after[len(quoted)-1:]), err
}

// set sets one field. It reports whether the field is known.
func (e *Entry) set(name, value string) bool {
	var ok bool
	switch name {
	case "id":
		if ok = isName(value); ok {
			e.ID = value
		}
	case "source":
		e.Source, ok = words.OneLine(value, sources), true
	case "date":
		e.Date, ok = dayOf(value)
	case "expires":
		e.Expires, ok = dayOf(value)
	case "topic":
		if ok = isName(value); ok {
			e.Topic = value
		}
	case "supersedes":
		e.Supersedes = strings.Split(value, ",")
		ok = !slices.ContainsFunc(e.Supersedes, func(id string) bool { return !isName(id) })
	case "untrusted":
		e.Untrusted, ok = true, true
	}
	return ok
}

func dayOf(s string) (time.Time, bool) {
	t, err := time.Parse(day, s)
	return t, err == nil
}

// isName reports whether s can be an id or the name of a topic: a valid file name on any system.
func isName(s string) bool {
	return len(s) > 0 && len(s) <= 64 && s[0] != '-' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// idOf makes an id from a text. It is independent of spaces, case and the full stop.
func idOf(text string) string {
	sum := sha256.Sum256([]byte(likeness(text)))
	return hex.EncodeToString(sum[:4])
}

// likeness is equal for texts that say the same.
func likeness(text string) string {
	return strings.TrimRight(strings.ToLower(strings.Join(strings.Fields(text), " ")), ".! ")
}

// format returns an entry as a line of MEMORY.md, without its end.
func (e Entry) format() string {
	return fmt.Sprintf("- [%s] %s %s %s %s", e.Kind, e.Text, opens, e.said(), closes)
}

// said returns the content of an entry's comment.
func (e Entry) said() string {
	out := []string{"id=" + e.ID, "source=" + quoted(e.Source), "date=" + e.Date.Format(day)}
	if !e.Expires.IsZero() {
		out = append(out, "expires="+e.Expires.Format(day))
	}
	if len(e.Supersedes) > 0 {
		out = append(out, "supersedes="+strings.Join(e.Supersedes, ","))
	}
	if e.Topic != "" {
		out = append(out, "topic="+e.Topic)
	}
	if e.Untrusted {
		out = append(out, "untrusted")
	}
	return strings.Join(out, " ")
}

// quoted quotes a value for a comment.
func quoted(s string) string {
	if isName(s) {
		return s
	}
	return strconv.Quote(s)
}
