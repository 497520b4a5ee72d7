package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// severalName is the tool that makes several calls as one. It is not in the model's list: calls in the form of
// other tool sets are converted to it.
const severalName = "several_calls"

// mostOfSeveral is the largest number of calls in one.
const mostOfSeveral = 200

type severalArgs struct {
	Calls []oneOfSeveral `json:"calls"`
}

// oneOfSeveral is a call of a tool.
type oneOfSeveral struct {
	Tool string         `json:"tool"`
	Args map[string]any `json:"args"`
}

func several() tool.Tool {
	t := tool.New(severalName, "Makes several calls.", runSeveral)
	t.Calls = true
	return t
}

// runSeveral begins all calls and returns their results in order. It fails if all of them do.
func runSeveral(ctx context.Context, c *tool.Call, in severalArgs) (tool.Result, error) {
	if n := len(in.Calls); n == 0 || n > mostOfSeveral {
		return tool.Result{}, fmt.Errorf("there are %d calls in it; use 1 to %d", n, mostOfSeveral)
	}
	waits := make([]func() (tool.Result, error), len(in.Calls))
	for i, one := range in.Calls {
		raw, err := json.Marshal(one.Args)
		if err != nil {
			return tool.Result{}, err
		}
		waits[i] = c.Start(ctx, one.Tool, raw)
	}
	var out tool.Result
	failed := 0
	for i, wait := range waits {
		res, err := wait()
		text := strings.TrimRight(res.Parts.Text(), "\n")
		if err != nil {
			if failed++; text == "" {
				text = err.Error()
			}
			text = "Error: " + text
		}
		if res.Exit != nil && *res.Exit != 0 && !strings.Contains(text, "[exit code") {
			text = strings.TrimPrefix(fmt.Sprintf("%s\n[exit code %d]", text, *res.Exit), "\n")
		}
		out.Parts = append(out.Parts, llm.Text{Text: fmt.Sprintf("[%d: %s]\n%s\n", i+1, in.Calls[i].Tool, text)})
		for _, p := range res.Parts {
			if _, is := p.(llm.Text); !is {
				out.Parts = append(out.Parts, p)
			}
		}
	}
	if failed == len(waits) {
		return out, errors.New(out.Parts.Text())
	}
	if failed > 0 {
		out.Parts = append(llm.Say(fmt.Sprintf("%d of %d calls failed.\n", failed, len(waits))), out.Parts...)
	}
	return out, nil
}
