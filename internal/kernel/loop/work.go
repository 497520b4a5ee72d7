package loop

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// Bounds of the lists in Work, which keep their last entries.
const (
	maxChanged = 500
	maxRan     = 60
	maxShown   = 4 // failed commands whose Shown is kept
)

// Work holds facts that the log proves about the work so far. It survives compaction.
type Work struct {
	Changed []string `json:"changed,omitempty"` // files changed by calls, each once, the last changed at the end
	Ran     []Ran    `json:"ran,omitempty"`     // commands that ended, each once, the last run at the end
	// Files changed since the last successful check, in the order of Changed.
	Unchecked []string `json:"unchecked,omitempty"`
	// Commands that run in the background.
	Running []Running `json:"running,omitempty"`
}

// Running is a background command, with the files that were unchecked when it began.
type Running struct {
	Job       string   `json:"job"`
	Command   string   `json:"command"`
	Check     bool     `json:"check,omitempty"`
	Unchecked []string `json:"unchecked,omitempty"`
}

// Ran describes how a command ended.
type Ran struct {
	Command string `json:"command"`
	Exit    int    `json:"exit"`
	Failed  bool   `json:"failed,omitempty"` // by its exit code or its output
	Line    string `json:"line,omitempty"`   // the most telling line of its output
	Shown   string `json:"shown,omitempty"`  // more lines about a failure: which checks failed, and why
	Check   bool   `json:"check,omitempty"`  // it may have checked the work
}

// ended records the changes, reads and commands of a call. A tool that may write anywhere in the workspace must name
// the files it changed in its result, because its effects don't.
func (w *Work) ended(root string, c Call, b event.Ended) {
	for _, f := range b.Files {
		if f.Written {
			w.recordChange(f.Path)
		}
	}
	var commands []string
	check := false
	for _, e := range c.Effects {
		switch {
		case e.Kind == tool.Execute:
			commands = append(commands, e.Text)
			check = check || canCheck(e)
		case e.Throwaway:
		case e.Kind == tool.Write && b.Exit != nil && *b.Exit == 0 && e.Path != root:
			w.recordChange(e.Path)
		case e.Kind == tool.Read && b.Outcome == event.OutcomeOK && isProse(e.Path): // having read it is a sufficient check
			w.Unchecked = slices.DeleteFunc(slices.Clone(w.Unchecked), func(p string) bool { return p == e.Path })
		}
	}
	command := truncate(strings.Join(commands, "; "), 300)
	if b.Job != nil {
		r := Running{Job: b.Job.ID, Command: command, Check: check, Unchecked: w.Unchecked}
		w.Running = appendLatest(w.Running, r, maxRan, func(r Running) string { return r.Job })
	}
	if b.Exit == nil || len(commands) == 0 {
		return
	}
	w.recordRun(command, *b.Exit, b.Parts.Text(), check, w.Unchecked)
}

// finished records how a background command ended.
func (w *Work) finished(b event.Finished) {
	i := slices.IndexFunc(w.Running, func(r Running) bool { return r.Job == b.Job })
	if i < 0 {
		return
	}
	r := w.Running[i]
	if w.Running = slices.Delete(slices.Clone(w.Running), i, i+1); b.Exit != nil {
		w.recordRun(r.Command, *b.Exit, b.Line, r.Check, r.Unchecked)
	}
}

// recordRun records how a command ended and, if it is a check, which files it checked.
func (w *Work) recordRun(command string, exit int, text string, check bool, checked []string) {
	ran := Ran{Command: command, Exit: exit, Failed: exit != 0 || failurePattern.MatchString(text), Line: tellingLine(text), Check: check}
	if check && !ran.Failed {
		var unchecked []string
		for _, path := range w.Unchecked {
			if !slices.Contains(checked, path) {
				unchecked = append(unchecked, path)
			}
		}
		w.Unchecked = unchecked
	}
	if ran.Failed {
		if details := failureDetails(text); details != ran.Line {
			ran.Shown = details
		}
	}
	w.Ran = appendLatest(w.Ran, ran, maxRan, func(r Ran) string { return r.Command })
	shown := 0
	for i, r := range slices.Backward(w.Ran) {
		if shown += min(len(r.Shown), 1); shown > maxShown {
			w.Ran[i].Shown = ""
		}
	}
}

// recordChange records that a file changed.
func (w *Work) recordChange(path string) {
	w.Changed, w.Unchecked = appendLatest(w.Changed, path, maxChanged, itself), appendLatest(w.Unchecked, path, maxChanged, itself)
}

func itself(path string) string { return path }

// isProse reports whether a file's extension stands for text for people, plain data or settings.
func isProse(path string) bool {
	return slices.Contains([]string{
		".md", ".txt", ".rst", ".adoc", ".csv", ".log", ".html", ".css", ".svg", ".conf", ".cfg", ".ini",
	}, strings.ToLower(filepath.Ext(path)))
}

// recordAttempt records changed files, whether the last check failed, and how many calls have failed since the last
// successful check. A command that only searches has not failed if it finds nothing.
func (r *Run) recordAttempt(c Call, b event.Ended) {
	for _, f := range b.Files {
		if f.Written {
			r.ChangedFiles = appendLatest(r.ChangedFiles, f.Path, maxChanged, itself)
		}
	}
	check := slices.ContainsFunc(c.Effects, func(e tool.Effect) bool { return e.Kind == tool.Execute && canCheck(e) })
	if check && b.Exit != nil {
		r.CheckFailed = *b.Exit != 0 || failurePattern.MatchString(b.Parts.Text())
	}
	switch {
	case b.Outcome == event.OutcomeFailed, check && b.Exit != nil && (*b.Exit != 0 || failurePattern.MatchString(b.Parts.Text())):
		r.FailedCalls++
	case check && b.Exit != nil:
		r.FailedCalls = 0
	}
}

// canCheck reports whether a command may check the work: it is not proven to only read, and not known to only set
// something up.
func canCheck(e tool.Effect) bool {
	return e.Class == tool.Unproven && !isSetup(strings.Fields(e.Text))
}

// isSetup reports whether a command only installs, moves, fetches or records, and so proves nothing. It decides by the
// program and, for programs that do more than that, by the first argument.
func isSetup(words []string) bool {
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

// appendLatest returns a copy of a list with the entry at its end, without an older entry of the same key. It drops
// the first entries beyond most.
func appendLatest[T any](list []T, entry T, most int, key func(T) string) []T {
	list = slices.DeleteFunc(slices.Clone(list), func(old T) bool { return key(old) == key(entry) })
	return append(list, entry)[max(0, len(list)+1-most):]
}

// failurePattern matches output of failed checks, because an exit code can get lost in a pipe.
var failurePattern = regexp.MustCompile(`(?m)^(?:FAIL\b|--- FAIL|FAILED(?:[ :]|$)|E   |error(?:\[\w+\])?:)|\b[1-9]\d* (?:failed|failing|failures?|errors?)\b`)

// tellingLine returns the last line about a failure or, if there is none, the last line that inspan did not add.
func tellingLine(text string) string {
	if loc := failurePattern.FindAllStringIndex(text, -1); len(loc) > 0 {
		found := loc[len(loc)-1][0]
		start := strings.LastIndexByte(text[:found], '\n') + 1
		line, _, _ := strings.Cut(text[start:], "\n")
		return truncate(strings.TrimSpace(line), 200)
	}
	last := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "[") {
			last = line
		}
	}
	return truncate(last, 200)
}

// detailPattern matches lines that name a failed check or say why it failed.
const detailPattern = `\b(?:FAIL|FAILED|FAILURES?|ERRORS?|Fail(?:ed|ure)s?)\b|\b\w*(?:Error|Exception)\b|\berror(?:\[\w+\])?:|\bpanic|\bassert|\bnot ok\b` +
	`|[✕✗✘●]|^\s*\d+\) |^E  |(?i:^\s*(?:expected|received|actual|got|want|left|right)\b *:)|^\s*\S+:\d+(?::\d+)?: `

const (
	firstFailures, lastFailures = 8, 4 // lines kept from the beginning and the end
	maxFailures                 = 1000 // bytes kept in all
)

// failureDetails returns the first and last lines of an output that say which checks failed and why. If there are
// none, it returns the end of the output.
func failureDetails(text string) string {
	var found, all []string
	details := regexp.MustCompile(detailPattern) // compiled for failed commands only
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "[") && strings.HasSuffix(l, "]") { // added by inspan
			continue
		}
		all = append(all, l)
		if details.MatchString(l) {
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
		found[i] = truncate(l, each)
	}
	return strings.Join(found, "\n")
}

// truncate returns the beginning of a text. The mark of the cut exceeds the limit, as in existing logs.
func truncate(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return text.Head(s, most) + text.More
}
