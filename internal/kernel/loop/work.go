package loop

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Most entries that Work remembers, the last ones.
const (
	maxChanged = 500
	maxRan     = 60
	maxShown   = 4 // failed commands whose Shown is kept
)

// Work is what the log proves about the work so far. It survives compaction.
type Work struct {
	Changed []string `json:"changed,omitempty"` // files changed by calls, each once, the last changed at the end
	Ran     []Ran    `json:"ran,omitempty"`     // processes of calls, each command line once, the last run at the end
	// Files changed since the last successful check, in the order of Changed.
	Unchecked []string `json:"unchecked,omitempty"`
	// Commands that run in the background.
	Running []Running `json:"running,omitempty"`
}

// Running is a background command, and the unchecked files when it began.
type Running struct {
	Job       string   `json:"job"`
	Command   string   `json:"command"`
	Check     bool     `json:"check,omitempty"`
	Unchecked []string `json:"unchecked,omitempty"`
}

// Ran is how a process ended.
type Ran struct {
	Command string `json:"command"`
	Exit    int    `json:"exit"`
	Failed  bool   `json:"failed,omitempty"` // by its exit code or its output
	Line    string `json:"line,omitempty"`   // the last meaningful line
	Shown   string `json:"shown,omitempty"`  // what it printed about its failure beyond Line: which checks, and why
	Check   bool   `json:"check,omitempty"`  // it may have shown whether the work is right
}

// ended records what a call did. A call that could write anywhere in the workspace root must name the files it
// changed; otherwise nothing is known of them.
func (w *Work) ended(root string, c Call, b event.Ended) {
	for _, f := range b.Files {
		if f.Written {
			w.changed(f.Path)
		}
	}
	var commands []string
	check := false
	for _, e := range c.Effects {
		switch {
		case e.Kind == tool.Execute:
			commands = append(commands, e.Text)
			check = check || checks(e)
		case e.Throwaway:
		case e.Kind == tool.Write && b.Exit != nil && *b.Exit == 0 && e.Path != root:
			w.changed(e.Path)
		case e.Kind == tool.Read && b.Outcome == event.OutcomeOK:
			w.seen(e.Path)
		}
	}
	command := cut(strings.Join(commands, "; "), 300)
	if b.Job != nil {
		r := Running{Job: b.Job.ID, Command: command, Check: check, Unchecked: w.Unchecked}
		w.Running = latest(w.Running, r, maxRan, func(r Running) string { return r.Job })
	}
	if b.Exit == nil || len(commands) == 0 {
		return
	}
	w.ran(command, *b.Exit, b.Parts.Text(), check, w.Unchecked)
}

// finished records how a background command ended.
func (w *Work) finished(b event.Finished) {
	i := slices.IndexFunc(w.Running, func(r Running) bool { return r.Job == b.Job })
	if i < 0 {
		return
	}
	r := w.Running[i]
	if w.Running = slices.Delete(slices.Clone(w.Running), i, i+1); b.Exit != nil {
		w.ran(r.Command, *b.Exit, b.Line, r.Check, r.Unchecked)
	}
}

// ran records how a command ended and, if it is a check, which files it checked.
func (w *Work) ran(command string, exit int, text string, check bool, checked []string) {
	ran := Ran{Command: command, Exit: exit, Failed: exit != 0 || failing.MatchString(text), Line: telling(text), Check: check}
	if check && !ran.Failed {
		var left []string
		for _, path := range w.Unchecked {
			if !slices.Contains(checked, path) {
				left = append(left, path)
			}
		}
		w.Unchecked = left
	}
	if shown := failures(text); ran.Failed && shown != ran.Line {
		ran.Shown = shown
	}
	w.Ran = latest(w.Ran, ran, maxRan, func(r Ran) string { return r.Command })
	shown := 0
	for i, r := range slices.Backward(w.Ran) {
		if shown += min(len(r.Shown), 1); shown > maxShown {
			w.Ran[i].Shown = ""
		}
	}
}

// changed records that a file changed.
func (w *Work) changed(path string) {
	w.Changed, w.Unchecked = latest(w.Changed, path, maxChanged, itself), latest(w.Unchecked, path, maxChanged, itself)
}

func itself(path string) string { return path }

// seen records that a file was read. Prose needs no other check.
func (w *Work) seen(path string) {
	if prose(path) {
		w.Unchecked = slices.DeleteFunc(slices.Clone(w.Unchecked), func(p string) bool { return p == path })
	}
}

// prose reports by its name whether a file holds text for people, plain data or settings.
func prose(path string) bool {
	return slices.Contains([]string{
		".md", ".txt", ".rst", ".adoc", ".csv", ".log", ".html", ".css", ".svg", ".conf", ".cfg", ".ini",
	}, strings.ToLower(filepath.Ext(path)))
}

// tried counts the failed calls since the last successful check, and records changed files and whether the last
// check failed. A command that only looks for something and finds nothing has not failed.
func (r *Run) tried(c Call, b event.Ended) {
	for _, f := range b.Files {
		if f.Written {
			r.Wrote = latest(r.Wrote, f.Path, maxChanged, itself)
		}
	}
	check := slices.ContainsFunc(c.Effects, func(e tool.Effect) bool { return e.Kind == tool.Execute && checks(e) })
	if check && b.Exit != nil {
		r.Broken = *b.Exit != 0 || failing.MatchString(b.Parts.Text())
	}
	switch {
	case b.Outcome == event.OutcomeFailed, check && b.Exit != nil && (*b.Exit != 0 || failing.MatchString(b.Parts.Text())):
		r.Failing++
	case check && b.Exit != nil:
		r.Failing = 0
	}
}

// checks reports whether a command can show that files are right: it runs something that is not known to only
// look, move files, fetch or record.
func checks(e tool.Effect) bool {
	return e.Class == tool.Unproven && !fetches(strings.Fields(e.Text))
}

// fetches reports whether a command fetches, sets up or records, and so proves nothing. It decides by the
// program and, for programs that do more, by their first arguments.
func fetches(words []string) bool {
	for len(words) > 0 && (words[0] == "sudo" || strings.Contains(words[0], "=")) {
		words = words[1:]
	}
	if len(words) == 0 {
		return false
	}
	name := words[0]
	if slices.Contains([]string{
		"git", "apt", "apt-get", "apk", "dnf", "yum", "brew", "chmod", "chown", "mkdir", "cp", "mv", "rm", "touch", "tee", "ln", "export",
		"source",
		"sleep", "kill", "pkill", "wget",
	}, name) {
		return true
	}
	first := map[string][]string{
		"pip": {"install"}, "pip3": {"install"}, "go": {"mod", "get"}, "cargo": {"add", "fetch"},
		"npm": {"i", "ci", "add", "install"}, "pnpm": {"i", "ci", "add", "install"}, "yarn": {"i", "ci", "add", "install"},
		"bun": {"i", "ci", "add", "install"},
	}[name]
	return len(words) > 1 && slices.Contains(first, words[1])
}

// latest moves an entry to the end of a list that holds it once.
func latest[T any](list []T, entry T, most int, key func(T) string) []T {
	list = slices.DeleteFunc(slices.Clone(list), func(old T) bool { return key(old) == key(entry) })
	return append(list, entry)[max(0, len(list)+1-most):]
}

// failing matches what programs print when checks fail, since an exit code can get lost in a pipe.
var failing = regexp.MustCompile(`(?m)^(?:FAIL\b|--- FAIL|FAILED(?:[ :]|$)|E   |error(?:\[\w+\])?:)|\b[1-9]\d* (?:failed|failing|failures?|errors?)\b`)

// telling returns the last line that is not one of ours, or the last one about a failure.
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

// telltale matches lines in which programs name a failed check, or say why it failed.
const telltale = `\b(?:FAIL|FAILED|FAILURES?|ERRORS?|Fail(?:ed|ure)s?)\b|\b\w*(?:Error|Exception)\b|\berror(?:\[\w+\])?:|\bpanic|\bassert|\bnot ok\b` +
	`|[✕✗✘●]|^\s*\d+\) |^E  |(?i:^\s*(?:expected|received|actual|got|want|left|right)\b *:)|^\s*\S+:\d+(?::\d+)?: `

const (
	firstFailures, lastFailures = 8, 4 // lines that are kept
	maxFailures                 = 1000 // bytes
)

// failures returns the lines of an output that say which checks failed and why: the first and the last of them,
// or the end of an output without any.
func failures(text string) string {
	var found, all []string
	tells := regexp.MustCompile(telltale) // compiled at most once for each failed command
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "[") && strings.HasSuffix(l, "]") { // one of ours
			continue
		}
		all = append(all, l)
		if tells.MatchString(l) {
			found = append(found, l)
		}
	}
	if len(found) == 0 {
		found = all[max(0, len(all)-lastFailures):]
	}
	if n := len(found); n > firstFailures+lastFailures {
		found = slices.Concat(found[:firstFailures], found[n-lastFailures:])
	}
	each := maxFailures / max(len(found), 1)
	for i, l := range found {
		found[i] = cut(l, each)
	}
	return strings.Join(found, "\n")
}

// cut returns the beginning of a text. The mark comes on top of the limit, as in existing logs.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return text.Head(s, most) + text.More
}

// work describes the run for a model that chooses among others.
func (s *State) work() llm.Work {
	r := s.Run
	turns := r.Turn
	if r.Asking {
		turns-- // the turn in progress
	}
	return llm.Work{
		Person: s.Person, Turns: max(turns, 0), Files: len(r.Wrote), Failing: r.Failing, Again: r.Repeats.Most,
		Useless: r.Nudges, Judged: r.Judged, Cut: s.Compaction.Tried > 0,
	}
}
