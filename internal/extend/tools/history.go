package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/inspan/inspan/tool"
)

//go:embed history.md
var historyDoc string

const (
	maxPassages = 20
	maxAround   = 20
	glimpseSize = 400 // bytes shown of a passage that was found
)

type historyArgs struct {
	Words  string `json:"words,omitempty" jsonschema:"finds the newest passages that hold all of these"`
	At     uint64 `json:"at,omitempty" jsonschema:"shows the passage of this number whole"`
	Call   string `json:"call,omitempty" jsonschema:"shows the result of the call of this id whole"`
	Around int    `json:"around,omitempty" jsonschema:"with at: so many passages around it"`
	Who    string `json:"who,omitempty" jsonschema:"only those of person, model or a tool"`
}

func history() tool.Tool {
	t := tool.New("history", historyDoc, runHistory)
	// It is the session's own, and was judged when it was made.
	t.Effects = tool.NoEffects
	return t
}

func runHistory(ctx context.Context, c *tool.Call, in historyArgs) (tool.Result, error) {
	words := strings.Fields(strings.ToLower(in.Words))
	whose := func(p tool.Passage) bool { return in.Who == "" || in.Who == p.Who }
	switch {
	case c.Env.History == nil:
		return tool.Result{}, errors.New("there is no history here")
	case in.Call != "":
		found, err := c.Env.History.Find(ctx, 1, func(p tool.Passage) bool { return p.Call == in.Call })
		if err != nil {
			return tool.Result{}, err
		}
		if len(found) == 0 {
			return tool.Result{}, fmt.Errorf("no call %q has ended in this session", in.Call)
		}
		return tool.Text(heading(found[0]) + "\n" + found[0].Text), nil
	case in.At > 0:
		return passage(ctx, c, in, whose)
	case len(words) == 0 && in.Who == "":
		return tool.Result{}, errors.New("give words to look for, who said it, the number of a passage as at, or the id of a call")
	}
	found, err := c.Env.History.Find(ctx, maxPassages, func(p tool.Passage) bool {
		text := strings.ToLower(p.Text)
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return whose(p)
	})
	if err != nil {
		return tool.Result{}, err
	}
	if len(found) == 0 {
		return tool.Text(fmt.Sprintf("Nothing in the history of this session holds %q.", strings.TrimSpace(in.Words+" "+in.Who))), nil
	}
	words = append(words, "") // passages by author are shown from the beginning
	var b strings.Builder
	for _, p := range found {
		fmt.Fprintf(&b, "%s\n%s\n\n", heading(p), glimpse(p.Text, words[0]))
	}
	return tool.Text(strings.TrimSpace(b.String())), nil
}

// passage shows one passage, and the neighbouring ones that whose accepts.
func passage(ctx context.Context, c *tool.Call, in historyArgs, whose func(tool.Passage) bool) (tool.Result, error) {
	around := min(max(in.Around, 0), maxAround)
	var before, after []tool.Passage
	_, err := c.Env.History.Find(ctx, 1, func(p tool.Passage) bool {
		switch {
		case p.Seq != in.At && !whose(p):
		case p.Seq <= in.At:
			before = append(before, p)
			before = before[max(0, len(before)-around-1):]
		case len(after) < around:
			after = append(after, p)
		}
		return false
	})
	if err != nil {
		return tool.Result{}, err
	}
	if len(before) == 0 || before[len(before)-1].Seq != in.At {
		return tool.Result{}, fmt.Errorf("there is no passage %d; words finds some", in.At)
	}
	var b strings.Builder
	for _, p := range append(before, after...) {
		fmt.Fprintf(&b, "%s\n%s\n\n", heading(p), p.Text)
	}
	return tool.Text(strings.TrimSpace(b.String())), nil
}

func heading(p tool.Passage) string {
	return fmt.Sprintf("#%d %s %s:", p.Seq, p.Time.Format("2006-01-02 15:04"), p.Who)
}

// glimpse returns the part of a text around the first place of a word, ignoring case.
func glimpse(text, word string) string {
	at := max(0, strings.Index(strings.ToLower(text), word))
	from := min(max(0, at-glimpseSize/2), len(text))
	to := min(len(text), from+glimpseSize)
	out := strings.TrimSpace(strings.ToValidUTF8(text[from:to], ""))
	if from > 0 {
		out = "… " + out
	}
	if to < len(text) {
		out += " …"
	}
	return out
}
