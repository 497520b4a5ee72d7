package words

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/models/reaction"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Told returns a sentence about an event, and whether a person should notice it. It is empty for events that
// are shown in other ways, or not worth mentioning. The sentence contains text by others unchanged, and may
// have several lines.
func Told(body event.Body) (told string, notice bool) {
	switch b := body.(type) {
	case event.Note:
		return b.Text, true
	case event.Served:
		return served(b), true
	case event.Progress:
		if b.Call == "" && b.Wait == 0 {
			return b.Text, false
		}
	case event.Routed:
		if b.From != "" {
			return fmt.Sprintf("%s takes over from %s: %s", b.Route, b.From, b.Error), true
		}
		return fmt.Sprintf("%s answers, by the rule %s: %s", b.Route, b.Rule, b.Reason), false
	case event.Failed:
		if b.Retry == 0 && b.Limit > 0 && reaction.To(b.Cause) == reaction.Compact {
			return fmt.Sprintf("the model that is asked now takes %s tokens; the conversation is kept within that", text.Thousands(b.Limit)), true
		}
	case event.Healed:
		without := "calls and results so far, which become text"
		switch b.Level {
		case loop.HealReasoning:
			without = "the reasoning so far"
		case loop.HealImages:
			without = "the images so far"
		}
		return "the model refused the conversation (" + spaced(b.Cause) + "); it goes on without " + without, true
	case event.Hooked:
		switch {
		case b.Action == tool.Deny:
			return b.By + " says no: " + b.Reason, true
		case b.Text != "":
			return ToldModel(b.Text), false
		}
	case event.Switched:
		return switched(b), false
	case event.Judged:
		if b.Action == tool.Allow && len(Sensitive(b.Effects)) > 0 {
			return "sensitive: it " + strings.Join(Sensitive(b.Effects), ", and "), true
		}
	case event.Kept:
		return "the conversation was not compacted: " + b.Reason, true
	case event.Compacted:
		return fmt.Sprintf("the conversation was compacted from about %s to %s tokens; the log keeps all of it",
			text.Thousands(b.Before), text.Thousands(b.After)), false
	case event.Pruned:
		return fmt.Sprintf("old results were cut short, from about %s to %s tokens; the log keeps all of them",
			text.Thousands(b.Before), text.Thousands(b.After)), false
	case event.Withdrawn:
		return "a queued message was taken back", false
	case event.Rewound:
		return fmt.Sprintf("the conversation was rewound to event %d", b.To), false
	case event.Spawned:
		return "agent " + cmp.Or(b.Name, Agent(b.Agent, b.Child)) + " started: " + b.Task, false
	case event.Returned:
		how := Ending(b.Reason)
		if b.Detail != "" {
			how += ", " + b.Detail
		}
		return fmt.Sprintf("agent %s returned: %s · %s · %s", Agent("", b.Child), how, text.Count(b.Turns, "turn"), Cost(b.Cost, b.Unpriced)),
			b.Reason != event.ReasonDone
	case event.Paused:
		until := b.Until.UTC().Format("2006-01-02 15:04 MST")
		return "paused with all agents until " + until + ": " + cmp.Or(b.Message, spaced(b.Cause)), true
	case event.Finished:
		switch {
		case b.Kept:
			return fmt.Sprintf("keeps running after the session, in process %d: %s", b.PID, OneLine(b.Command, 100)), false
		case b.Exit == nil:
			return "job " + b.Job + " has ended: " + b.Error, true
		}
		return fmt.Sprintf("job %s has ended: exit code %d, after %.0f s", b.Job, *b.Exit, b.Seconds), false
	case event.StepStarted:
		return strings.TrimSuffix("step "+b.Step+": "+b.Title, ": "), false
	case event.StepEnded:
		said := "step " + b.Step + ": " + string(b.Outcome)
		if took := Took(b.Millis); took != "" {
			said += " after " + took
		}
		if b.Error != "" {
			said += ": " + b.Error
		}
		return said, b.Outcome != event.OutcomeOK
	case event.Restored:
		return restored(b), false
	}
	return "", false
}

// restored names the files that were restored, and those that were removed.
func restored(b event.Restored) string {
	gone := func(path string) bool { return slices.Contains(b.Removed, path) }
	back := slices.DeleteFunc(slices.Clone(b.Files), gone)
	switch {
	case len(b.Removed) == 0:
		return became(back, "restored")
	case len(back) == 0:
		return became(b.Removed, "removed")
	}
	return became(back, "restored") + "; " + became(b.Removed, "removed")
}

// became describes the changes of files, naming the first of many.
func became(files []string, what string) string {
	n := len(files)
	said := text.Count(n, "file") + text.Plural(n, " was ", " were ") + what
	const most = 3
	switch {
	case n == 0:
		return said
	case n > most+1:
		return fmt.Sprintf("%s: %s and %d more", said, strings.Join(files[:most], ", "), n-most)
	}
	return said + ": " + strings.Join(files, ", ")
}

// Returned returns the results of a workflow, one value a line; empty if none.
func Returned(result json.RawMessage) string {
	var values map[string]any
	if json.Unmarshal(result, &values) != nil {
		return ""
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		said, ok := values[name].(string)
		if raw, err := json.Marshal(values[name]); !ok && err == nil && values[name] != nil {
			said = string(raw)
		}
		if said = strings.TrimRight(said, "\n"); said == "" {
			continue
		}
		if strings.Contains(said, "\n") {
			said = "\n" + said
		}
		fmt.Fprintf(&b, "%s: %s\n", name, said)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// served names the servers that need a person's help, one a line.
func served(b event.Served) string {
	var lines []string
	for _, s := range b.Servers {
		name := "the MCP server " + OneLine(s.Name, 60)
		switch {
		case s.State == "failed":
			lines = append(lines, name+" is unavailable: "+s.Why)
		case s.State == "login":
			lines = append(lines, name+": "+s.Why)
		case s.State == "changed" && s.Why != "":
			lines = append(lines, name+": "+s.Why+"; 'inspan mcp agree "+s.Name+"' shows them")
		case s.State == "changed": // in logs of version 0.1.0
			lines = append(lines, name+" offers other tools than you approved: 'inspan mcp agree "+s.Name+"' shows them")
		case s.State == "connecting" && s.Why != "":
			lines = append(lines, name+" is not connected yet: "+s.Why)
		}
	}
	return strings.Join(lines, "\n")
}

// Sensitive describes effects on sensitive places, to follow "it".
func Sensitive(effects []tool.Effect) []string {
	var out []string
	for _, e := range effects {
		does := "reads "
		if e.Kind == tool.Write {
			does = "changes "
		}
		if text := does + e.Path + ", which " + e.Sensitive; e.Sensitive != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// Agent names a child for people: its kind, and the distinctive part of its id.
func Agent(kind, child string) string {
	return strings.TrimSpace(kind + " " + child[strings.LastIndexByte(child, '.')+1:])
}

// Ending says how the run of an agent ended; an empty reason means that it was broken off.
func Ending(reason event.Reason) string {
	return cmp.Or(strings.ReplaceAll(string(reason), "_", " "), "broken off")
}

// ToldModel says that the model was told something, as one harmless line of at most about 200 cells.
func ToldModel(text string) string { return "told the model: " + OneLine(text, 200) }

func switched(b event.Switched) string {
	if b.Route == "" && b.Mode == "" && b.Effort == "" {
		return ""
	}
	text := "now working"
	if b.Route != "" {
		text += " with " + b.Route
	}
	if b.Mode != "" {
		text += " in mode " + string(b.Mode)
	}
	if b.Effort != "" {
		text += " at effort " + b.Effort
	}
	return text
}

// Wait gives the reason why the session pauses now, what comes next, and for how many seconds; zero if the event is
// not about a pause. Why is text by others.
func Wait(body event.Body) (why, what string, seconds float64) {
	switch b := body.(type) {
	case event.Failed:
		if b.Retry > 0 {
			return b.Message, "retrying", b.Retry
		}
	case event.Progress:
		if b.Wait > 0 {
			return b.Text, "continuing", b.Wait
		}
	}
	return "", "", 0
}

// Judged returns a call as it will run after its verdict.
func Judged(c llm.Call, b event.Judged) llm.Call {
	if b.Args != nil {
		c.Args = b.Args
	}
	if b.Tool != "" {
		c.Name = b.Tool
	}
	return c
}

// Result returns the result of a call for reading: without escape sequences, surrounding blank lines, and the
// marks that fence it for the model. It is as harmless as the output of [text.Clean].
func Result(said string) string {
	said = strings.TrimSpace(text.Clean(ansi.Strip(said)))
	if lines := strings.Split(said, "\n"); len(lines) > 2 && strings.HasPrefix(lines[0], "<untrusted ") {
		said = strings.Join(lines[1:len(lines)-1], "\n")
	}
	return said
}

// Summary returns the first line of a result, and how many more there are.
func Summary(said string) string {
	lines := strings.Split(Result(said), "\n")
	first := OneLine(lines[0], 100)
	if len(lines) > 1 {
		first += fmt.Sprintf(" (+%s)", text.Count(len(lines)-1, "line"))
	}
	return first
}

// Stored returns the blob with the whole of a result whose middle was left out; empty if nothing was.
func Stored(said string) string {
	if m := storedForm.FindAllStringSubmatch(said, -1); m != nil { // others may have written the same further up
		return m[len(m)-1][1]
	}
	return ""
}

var storedForm = regexp.MustCompile(`(?m)^\[.*\bblob:(sha256-[0-9a-f]{64})\b.*\]$`)

// Failed says how a call has failed, in a word or two: the exit code of its command, or its outcome. It is
// empty for a successful call.
func Failed(b event.Ended) string {
	switch {
	case b.Outcome != event.OutcomeOK:
		return OneLine(string(b.Outcome), 64)
	case b.Exit == nil || *b.Exit == 0:
		return ""
	case *b.Exit > 128 && *b.Exit <= 128+64: // how shells report a signal
		return fmt.Sprintf("exit %d, signal %d", *b.Exit, *b.Exit-128)
	}
	return fmt.Sprintf("exit %d", *b.Exit)
}
