package inspan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/drive"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
)

// Context describes the next request to the model by the sources of its tokens.
type Context struct {
	Window  int  // size of the current model's context window in tokens; 0 if unknown
	Reserve int  // tokens of the window that are reserved for the reply
	Assumed bool // no one states Window, so it is assumed
	Tokens  int  // approximate tokens of the next prompt: the provider's last count, and an estimate of the rest
	Sources []Source
	// Compactions is how often the conversation was compacted.
	Compactions int
	Calls       int // calls of the session
	NotRepeated int // results that were not sent again because the model could still see an equal one
	// Untrusted means that the conversation holds text by strangers, Private that it holds private data from beyond the
	// workspace. If both are true, every call that can reach the outside asks.
	Untrusted, Private bool
}

// Source is one part of the prompt.
type Source struct {
	Name   string
	Why    string // why it is in the prompt, or how it is made up; for people
	Tokens int    // approximate
}

// ContextOf is like [Session.Context], for a log that is not open as a session.
func ContextOf(ctx context.Context, log event.Log) (Context, error) {
	state, err := drive.Fold(ctx, log)
	if err != nil {
		return Context{}, err
	}
	return contextOf(state), nil
}

func contextOf(st *loop.State) Context {
	window := st.WindowNow()
	c := Context{
		Window: window.Tokens, Reserve: window.Reserve, Assumed: window.Assumed,
		Tokens: st.Tokens(), Compactions: st.Compaction.Times, Calls: st.Total.Calls,
		NotRepeated: st.Total.Again,
		Untrusted:   st.Untrusted, Private: st.Private,
	}
	system, messages := fixedSources(st), conversation(st)
	fixed := min(st.Fixed(), c.Tokens)
	if sum(messages) == 0 {
		fixed = c.Tokens
	}
	c.Sources = slices.Concat(scaleTo(fixed, system), scaleTo(c.Tokens-fixed, messages))
	return c
}

// sum returns the total tokens of sources.
func sum(sources []Source) (n int) {
	for _, s := range sources {
		n += s.Tokens
	}
	return n
}

// scaleTo returns the non-empty sources, with their estimates scaled to add up to tokens.
func scaleTo(tokens int, sources []Source) (out []Source) {
	total, seen, assigned := sum(sources), 0, 0
	for _, s := range sources {
		if s.Tokens == 0 {
			continue
		}
		seen += s.Tokens
		s.Tokens = int(int64(tokens)*int64(seen)/int64(total)) - assigned
		assigned += s.Tokens
		out = append(out, s)
	}
	return out
}

// fixedSources splits the part of the prompt before the messages, with estimated tokens.
func fixedSources(st *loop.State) []Source {
	var out []Source
	for i, block := range st.System {
		name := "system prompt"
		if i < len(st.Sources) {
			name = cmp.Or(st.Sources[i], name)
		}
		out = append(out, Source{name, "part of the system prompt since the session began", llm.Message{Parts: llm.Say(block)}.Tokens()})
	}
	tools := Source{Name: "tools", Why: fmt.Sprintf("descriptions and schemas: %d", len(st.Tools))}
	for _, t := range st.Tools {
		tools.Tokens += llm.Message{Parts: llm.Say(t.Name + t.Description + string(t.Schema))}.Tokens()
	}
	return append(out, tools)
}

// conversation splits the messages, with estimated tokens.
func conversation(st *loop.State) []Source {
	person, model := Source{Name: "what you said"}, Source{Name: "what the model said", Why: "text, thoughts and calls"}
	other := Source{Name: "what inspan said", Why: "summaries, hints and added instructions"}
	results, images := Source{Name: "results of tools"}, Source{Name: "images"}
	messages, byTool, calls := 0, map[string]int{}, 0
	for i, m := range st.Messages {
		if slices.Contains(st.Person, i) {
			messages++
		}
		for _, part := range m.Parts {
			n := llm.Message{Parts: llm.Parts{part}}.Tokens()
			r, isResult := part.(llm.Result)
			_, isImage := part.(llm.Image)
			switch {
			case isResult:
				results.Tokens += n
				byTool[r.Name] += n
				calls++
			case isImage:
				images.Tokens += n
			case m.Role == llm.Assistant:
				model.Tokens += n
			case slices.Contains(st.Person, i):
				person.Tokens += n
			default:
				other.Tokens += n
			}
		}
	}
	person.Why = fmt.Sprintf("messages: %d; a compaction keeps them word for word, the oldest only while they fit", messages)
	results.Why = fmt.Sprintf("results: %d", calls) + largest(byTool)
	return []Source{person, other, model, results, images}
}

// largest names the three tools with the most tokens, with their shares.
func largest(byTool map[string]int) string {
	var names []string
	total := 0
	for name, n := range byTool {
		names, total = append(names, name), total+n
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(byTool[b], byTool[a]), strings.Compare(a, b))
	})
	var out []string
	for _, name := range names[:min(3, len(names))] {
		out = append(out, fmt.Sprintf("%s %d%%", name, (100*byTool[name]+total/2)/max(total, 1)))
	}
	if len(out) == 0 {
		return ""
	}
	return ", most of them " + strings.Join(out, ", ")
}
