package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Values of Check.On.
const (
	OnCall   = "call"   // the arguments of a call
	OnInput  = "input"  // the person's messages
	OnOutput = "output" // the model's replies
	OnResult = "result" // the results of calls
)

// Check is a pattern that a person has configured.
type Check struct {
	Name string `json:"name" toml:"name"` // unique; for people
	On   string `json:"on" toml:"on"`     // [OnCall], [OnInput], [OnOutput] or [OnResult]
	// Pattern is a regular expression in RE2 syntax, which may match anywhere. (?i) at its start ignores case.
	Pattern string `json:"pattern" toml:"pattern"`
	// Tool is a glob over names of tools, for OnCall and OnResult; empty means all.
	Tool string `json:"tool,omitempty" toml:"tool"`
	// Action is Deny (also if empty) or, for OnCall, Ask. A denied result is withheld and replaced by a
	// sentence.
	Action tool.Action `json:"action,omitempty" toml:"action"`
	Reason string      `json:"reason,omitempty" toml:"reason"` // shown to people and to the model; may be empty
}

// Checks are compiled checks. The zero value has none. It is safe for concurrent use.
//
// Every check matches the text both as it is and as people see it, without hidden characters. It does not
// detect other spellings, so a pattern can be evaded.
type Checks struct {
	list []compiled
}

var _ tool.Judge = Checks{}

type compiled struct {
	Check
	re *regexp.Regexp
}

// Compile compiles checks. The error names all invalid ones.
func Compile(list []Check) (Checks, error) {
	var out Checks
	var problems []error
	for i, c := range list {
		re, err := c.compile()
		if err == nil && slices.ContainsFunc(list[:i], func(o Check) bool { return o.Name == c.Name }) {
			err = errors.New("there is another of that name")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("check[%d]: %q: %w", i, c.Name, err))
		}
		if c.Action == tool.Abstain {
			c.Action = tool.Deny
		}
		out.list = append(out.list, compiled{c, re})
	}
	if len(problems) > 0 {
		return Checks{}, errors.Join(problems...)
	}
	return out, nil
}

func (c Check) compile() (*regexp.Regexp, error) {
	ofTool := c.On == OnCall || c.On == OnResult
	switch {
	case c.Name == "":
		return nil, errors.New("it has no name")
	case !slices.Contains([]string{OnCall, OnInput, OnOutput, OnResult}, c.On):
		return nil, fmt.Errorf("on is %q, not one of call, input, output, result", c.On)
	case c.Pattern == "":
		return nil, errors.New("it has no pattern")
	case c.Tool != "" && !ofTool:
		return nil, fmt.Errorf("tool is only for call and result, not for %s", c.On)
	case c.Action == tool.Ask && c.On != OnCall:
		return nil, errors.New("only a check on calls can ask")
	case c.Action != tool.Abstain && c.Action != tool.Ask && c.Action != tool.Deny:
		return nil, fmt.Errorf("action is %q, not deny or ask", c.Action)
	}
	if _, err := path.Match(c.Tool, ""); err != nil {
		return nil, fmt.Errorf("tool %q is not a glob", c.Tool)
	}
	re, err := regexp.Compile(c.Pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	return re, nil
}

// first returns the first check of a kind that matches one of the texts, nil if none does. Checks that deny
// take precedence over those that ask.
func (c Checks) first(on, toolName string, texts ...string) *Check {
	var found *Check
	for _, check := range c.list {
		if check.On != on || !check.speaksOf(toolName) || found != nil && check.Action != tool.Deny {
			continue
		}
		if slices.ContainsFunc(texts, check.matches) {
			found = &check.Check
			if found.Action == tool.Deny {
				return found
			}
		}
	}
	return found
}

func (c compiled) speaksOf(toolName string) bool {
	ok, _ := path.Match(c.Tool, toolName)
	return ok || c.Tool == ""
}

func (c compiled) matches(text string) bool {
	if c.re.MatchString(text) {
		return true
	}
	seen, _ := reveal(text)
	return seen != text && c.re.MatchString(seen)
}

// reason returns the reason of a check, in a short sentence.
func (c Check) reason(what string) string {
	if c.Reason != "" {
		return c.Reason
	}
	return what + " matches the check"
}

// Judge implements [tool.Judge] with the checks on calls. They match every string, number and name in the
// decoded arguments, one by one. If arguments can't be decoded, and a check would apply, it returns an error,
// which denies.
func (c Checks) Judge(_ context.Context, call *tool.Call, _ []tool.Effect) (tool.Verdict, error) {
	concerned := func(check compiled) bool { return check.On == OnCall && check.speaksOf(call.Name) }
	if !slices.ContainsFunc(c.list, concerned) {
		return tool.Verdict{}, nil
	}
	texts, err := textsOf(call.Args)
	if err != nil {
		return tool.Verdict{}, fmt.Errorf("check arguments: %w", err)
	}
	check := c.first(OnCall, call.Name, texts...)
	if check == nil {
		return tool.Verdict{}, nil
	}
	return tool.Verdict{Action: check.Action, By: "check " + check.Name, Reason: check.reason("what the call says")}, nil
}

// textsOf lists the decoded strings, numbers and names in JSON.
func textsOf(raw json.RawMessage) ([]string, error) {
	if !json.Valid(raw) { // the tokens of half an object end like those of a whole one
		return nil, errors.New("they are not JSON")
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var out []string
	for {
		tok, err := dec.Token()
		switch tok := tok.(type) {
		case string:
			out = append(out, tok)
		case json.Number:
			out = append(out, tok.String())
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Input returns the check that denies a person's message, nil if none does.
func (c Checks) Input(text string) (refused *Check) { return c.first(OnInput, "", text) }

// Output returns the check that denies a model's reply, nil if none does.
func (c Checks) Output(text string) (refused *Check) { return c.first(OnOutput, "", text) }

// Wrap returns the tool with its results checked. If a check denies one of the texts, or all of them joined, a
// sentence that names the check replaces all texts; images are preserved. The text of an error is checked and
// replaced likewise.
func (c Checks) Wrap(t tool.Tool) tool.Tool {
	if !slices.ContainsFunc(c.list, func(check compiled) bool { return check.On == OnResult && check.speaksOf(t.Name) }) {
		return t
	}
	run := t.Run
	t.Run = func(ctx context.Context, call *tool.Call) (tool.Result, error) {
		res, err := run(ctx, call)
		texts := []string{res.Parts.Text()}
		for _, part := range res.Parts {
			if p, ok := part.(llm.Text); ok {
				texts = append(texts, p.Text)
			}
		}
		if check := c.first(OnResult, t.Name, texts...); check != nil {
			res.Parts = withheld(res.Parts, check)
		}
		if err == nil {
			return res, nil
		}
		if check := c.first(OnResult, t.Name, err.Error()); check != nil {
			err = markedError{err, check.instead()}
		}
		return res, err
	}
	return t
}

// WrapAll applies Wrap to all tools.
func (c Checks) WrapAll(list []tool.Tool) []tool.Tool {
	out := make([]tool.Tool, len(list))
	for i, t := range list {
		out[i] = c.Wrap(t)
	}
	return out
}

// instead returns the replacement of a result.
func (c Check) instead() string {
	return fmt.Sprintf("[inspan: what the call brought is withheld by the check %s: %s]", c.Name, c.reason("it"))
}

// withheld returns parts with one sentence in place of all texts.
func withheld(parts llm.Parts, check *Check) llm.Parts {
	out := llm.Say(check.instead())
	for _, part := range parts {
		if _, ok := part.(llm.Text); !ok {
			out = append(out, part)
		}
	}
	return out
}
