package loop

import (
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// Most entries that Work remembers, the last ones.
const (
	maxChanged = 500
	maxRan     = 60
)

// Work is what the log proves of the work so far. It outlives compactions.
type Work struct {
	Changed []string `json:"changed,omitempty"` // files that calls have changed, each once, the one changed last at the end
	Ran     []Ran    `json:"ran,omitempty"`     // processes of calls, each command line once, the one run last at the end
}

// Ran is how a process ended.
type Ran struct {
	Command string `json:"command"`
	Exit    int    `json:"exit"`
	Failed  bool   `json:"failed,omitempty"` // by its exit code, or by what it said
	Line    string `json:"line,omitempty"`   // the last that tells something
}

// ended takes note of what a call did.
func (w *Work) ended(c Call, b event.Ended) {
	for _, f := range b.Files {
		if f.Written {
			w.Changed = latest(w.Changed, f.Path, maxChanged, func(p string) string { return p })
		}
	}
	var commands []string
	for _, e := range c.Effects {
		switch {
		case e.Kind == tool.Execute:
			commands = append(commands, e.Text)
		case e.Kind == tool.Write && b.Exit != nil && *b.Exit == 0:
			w.Changed = latest(w.Changed, e.Path, maxChanged, func(p string) string { return p })
		}
	}
	if b.Exit == nil || len(commands) == 0 {
		return
	}
	text := b.Parts.Text()
	ran := Ran{Command: cut(strings.Join(commands, "; "), 300), Exit: *b.Exit, Failed: *b.Exit != 0 || failing.MatchString(text), Line: telling(text)}
	w.Ran = latest(w.Ran, ran, maxRan, func(r Ran) string { return r.Command })
}

// latest moves an entry to the end of a list that holds it once.
func latest[T any](list []T, entry T, most int, key func(T) string) []T {
	list = slices.DeleteFunc(slices.Clone(list), func(old T) bool { return key(old) == key(entry) })
	return append(list, entry)[max(0, len(list)+1-most):]
}

// failing finds what programs print when checks fail, as an exit code can be
// lost in a pipe.
var failing = regexp.MustCompile(`(?m)^(?:FAIL\b|--- FAIL|FAILED\b|E   |error(?:\[\w+\])?:)|\b[1-9]\d* (?:failed|failing|failures?|errors?)\b`)

// telling is the last line that is not one of ours, or the last that speaks of a
// failure.
func telling(text string) string {
	if loc := failing.FindAllStringIndex(text, -1); len(loc) > 0 {
		at := loc[len(loc)-1][0]
		start := strings.LastIndexByte(text[:at], '\n') + 1
		line, _, _ := strings.Cut(text[start:], "\n")
		return cut(strings.TrimSpace(line), 200)
	}
	last := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "[") {
			last = line
		}
	}
	return cut(last, 200)
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
