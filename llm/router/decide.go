package router

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
)

// Steps of a conversation, for [Cond]. The purpose of a request outside of the conversation, such as "summary",
// is a step too.
const (
	stepPrompt  = "prompt"  // the messages end with what a person said
	stepResults = "results" // they end with results of calls
)

// Values of Rule in a [Decision] that no rule of the router made.
const (
	ruleForced  = "forced"  // a person named the route
	rulePinned  = "pinned"  // it works on the task
	ruleDefault = "default" // no rule matched, or there are none
)

// Cond is a condition on a request. All fields that are set must hold; the zero value always matches. Health
// and window need no condition: a route that has failed or is too small is skipped anyway.
type Cond struct {
	MinTokens int    `toml:"min_tokens"` // the prompt has at least so many, by our estimate
	MaxTokens int    `toml:"max_tokens"` // at most; 0: no bound
	Hard      *bool  `toml:"hard"`       // whether the task is hard, see [Features]; nil: either
	Said      string `toml:"said"`       // a regular expression that matches what the person asks for; empty: any
	Private   *bool  `toml:"private"`    // whether it holds private text; nil: either
	Step      string `toml:"step"`       // "prompt", "results", or a purpose such as "summary"; empty: any
}

// Decision says which routes may answer a request, and why. Its texts are for people and contain nothing of the
// request.
type Decision struct {
	Rule    string   // name of what decided: the rule's, or "forced", "pinned" or "default"
	Reason  string   // what it saw
	Use     []string // routes to ask, in order
	Reserve []string // routes to ask only if those leave no hope, in order
	// Cut is the window, in tokens, to which the conversation must be cut first, so that the model for hard tasks
	// can take over; 0 means none.
	Cut    int
	Passed []Passed // every other route the rule named, and those in Reserve
}

// Passed is a route that is not asked, or not first.
type Passed struct {
	Route string
	Why   string
	Kind  llm.Kind // the failure that it would come to, or that it came to last
}

// String returns the reason, and why routes were skipped.
func (d Decision) String() string {
	var b strings.Builder
	b.WriteString(d.Reason)
	for _, p := range d.Passed {
		fmt.Fprintf(&b, "; not %s: %s", p.Route, p.Why)
	}
	return b.String()
}

// choice is the rule that decided, or a substitute for one.
type choice struct {
	Rule
	reason string
	// escalates says that the rule takes the task from the route that works on it.
	escalates bool
	pin       string // route that works on the task; empty means none does
}

// Decide chooses the routes for a request with these features, given the health in v. It depends only on them
// and on the fields of m, which must pass [Model.Check].
func (m *Model) Decide(f Features, v View) Decision {
	c := m.choose(f)
	d := Decision{Rule: c.Name, Reason: c.reason}
	type reserve struct {
		name  string
		until time.Time
	}
	var reserves []reserve
	for _, name := range c.Use {
		r := m.route(name)
		info := r.Model.Info()
		if why, kind := m.forbids(c, r, info, f, v); why != "" {
			d.Passed = append(d.Passed, Passed{name, why, kind})
			continue
		}
		why, kind := hinders(info, f, v)
		if why == "" {
			d.Use = append(d.Use, name)
			continue
		}
		d.Passed = append(d.Passed, Passed{name, why, kind})
		reserves = append(reserves, reserve{name, v.Models[info.Route()].Until})
	}
	slices.SortStableFunc(reserves, func(a, b reserve) int { return a.until.Compare(b.until) })
	for _, r := range reserves {
		d.Reserve = append(d.Reserve, r.name)
	}
	if c.pin != "" && len(d.Use) > 0 && d.Use[0] == c.pin {
		d.Rule, d.Reason = rulePinned, "it works on this task; "+f.size()
	}
	if first := c.Use[0]; c.escalates && !f.Cut && len(d.Passed) > 0 && d.Passed[0].Route == first && d.Passed[0].Kind == llm.KindWindow {
		if info := m.route(first).Model.Info(); v.healthy(info.Route()) {
			d.Cut = info.Window
		}
	}
	return d
}

// choose finds the rule, and the routes in the order in which they would be asked if all could answer.
func (m *Model) choose(f Features) choice {
	if m.Force != "" {
		return choice{Rule: Rule{Name: ruleForced, Use: []string{m.Force}}, reason: "asked for by name; " + f.size()}
	}
	c := choice{Rule: Rule{Name: ruleDefault}, reason: "in the order of the routes; " + f.size()}
	for _, r := range m.Routes {
		c.Use = append(c.Use, r.Name)
	}
	for _, rule := range m.Rules {
		if rule.When.matches(f) {
			c = choice{Rule: rule, reason: rule.When.reason(f)}
			break
		}
	}
	for _, r := range m.Routes {
		if f.Private != "" && r.Local && !slices.Contains(c.Use, r.Name) {
			// The rule may name none that may see it.
			c.Use = append(slices.Clip(c.Use), r.Name)
		}
	}
	return m.stay(c, f)
}

// stay puts the route that works on the task before those of the rule, unless it is stuck and the rule has a
// better one.
func (m *Model) stay(c choice, f Features) choice {
	i := slices.IndexFunc(m.Routes, func(r Route) bool { return f.Pin != "" && r.Model.Info().Route() == f.Pin })
	if i < 0 {
		return c
	}
	c.pin = m.Routes[i].Name
	if c.escalates = f.Stuck && c.When.Hard != nil && *c.When.Hard && c.Use[0] != c.pin; c.escalates {
		c.reason = "taken over from " + c.pin + ": " + c.reason
		return c
	}
	c.Use = append([]string{c.pin}, slices.DeleteFunc(slices.Clone(c.Use), func(name string) bool { return name == c.pin })...)
	return c
}

func (c Cond) matches(f Features) bool {
	return f.Tokens >= c.MinTokens && (c.MaxTokens == 0 || f.Tokens <= c.MaxTokens) &&
		(c.Hard == nil || *c.Hard == f.Hard) && (c.Said == "" || slices.Contains(f.Said, c.Said)) &&
		(c.Private == nil || *c.Private == (f.Private != "")) &&
		(c.Step == "" || c.Step == f.Step)
}

// reason describes the match of the condition.
func (c Cond) reason(f Features) string {
	var said []string
	if c.Hard != nil && f.Why != "" {
		said = append(said, f.Why)
	}
	if c.Said != "" {
		said = append(said, "the rule's expression matches the task")
	}
	if c.Private != nil && f.Private != "" {
		said = append(said, "private: it holds "+f.Private)
	} else if c.Private != nil {
		said = append(said, "not private")
	}
	if c.Step != "" {
		said = append(said, "step "+f.Step)
	}
	size := f.size()
	if c.MinTokens > 0 {
		size += ", at least " + text.Thousands(c.MinTokens)
	}
	if c.MaxTokens > 0 {
		size += ", at most " + text.Thousands(c.MaxTokens)
	}
	return strings.Join(append(said, size), "; ")
}

// forbids gives the reason why a route must not answer; empty means it may.
func (m *Model) forbids(c choice, r Route, info llm.Info, f Features, v View) (why string, kind llm.Kind) {
	if f.Private != "" && !r.Local {
		return "leaves the machine, but the text is private: it holds " + f.Private, llm.KindInvalid
	}
	if m.Force != "" {
		return "", "" // the estimate may be wrong, and a person says so
	}
	room := reserved(info, f.MaxOutput)
	switch {
	case info.Window > 0 && f.Tokens > info.Window:
		return fmt.Sprintf("does not fit: %s of %s", f.size(), text.Thousands(info.Window)), llm.KindWindow
	case info.Window > 0 && f.Tokens+room > info.Window:
		return fmt.Sprintf("does not fit: %s and %s for the reply of %s", f.size(), text.Thousands(room),
			text.Thousands(info.Window)), llm.KindWindow
	case c.MaxCost > 0 && r.Name != c.pin:
		return dear(r, f, v, c.MaxCost), llm.KindBudget
	}
	return "", ""
}

// replyRoom is the part of a window, in tokens, that must be left for the reply, unless the reply has a lower
// limit. Small windows leave a quarter.
const replyRoom = 4096

func reserved(info llm.Info, asked int) int {
	room := min(replyRoom, info.Window/4)
	for _, bound := range []int{asked, info.MaxOutput} {
		if bound > 0 {
			room = min(room, bound)
		}
	}
	return room
}

// dear says that the prompt costs more than a limit; empty means it does not.
func dear(r Route, f Features, v View, limit float64) string {
	price, known := r.Model.Info().Prices.At(v.At)
	cost := price.Cost(llm.Usage{Input: f.Tokens})
	switch {
	case !known && !r.Local:
		return "its price is not known"
	case cost > limit:
		return fmt.Sprintf("costs $%.4f for this prompt, more than $%.4f", cost, limit)
	}
	return ""
}

// hinders gives the reason why a route should be asked only if no other can answer; empty means there is no reason.
func hinders(info llm.Info, f Features, v View) (why string, kind llm.Kind) {
	route := info.Route()
	switch {
	case !v.healthy(route):
		c := v.Models[route]
		return fmt.Sprintf("unhealthy until %s: %s", c.Until.In(v.At.Location()).Format(time.TimeOnly), words(c.Kind)), c.Kind
	case f.Tools && info.NoTools:
		return "takes no tools", llm.KindNoTools
	case f.Images && !info.Images:
		return "takes no images", llm.KindInvalid
	}
	return "", ""
}

// refusal is the error for a request that no route may answer. If a route would be allowed but is too small,
// the error says that the prompt is too long for it.
func (m *Model) refusal(d Decision, f Features) *llm.Error {
	e := &llm.Error{Kind: llm.KindBudget, Provider: Provider, Message: "no route may answer"}
	for _, p := range d.Passed {
		e.Message += "; " + p.Route + ": " + p.Why
		switch {
		case p.Kind == llm.KindWindow:
			e.Kind, e.Used, e.Private = p.Kind, f.Tokens, f.Private
			e.Limit = max(e.Limit, m.route(p.Route).Model.Info().Window)
		case f.Private != "" && e.Kind != llm.KindWindow:
			e.Kind = llm.KindInvalid // a shorter conversation is private too
		}
	}
	return e
}

// mostPrivate returns the window of the largest route that may see private text; 0 if the text is not private,
// or the window is unknown.
func (m *Model) mostPrivate(f Features) int {
	most := 0
	for _, r := range m.Routes {
		if f.Private == "" || !r.Local {
			continue
		}
		window := r.Model.Info().Window
		if window == 0 {
			return 0
		}
		most = max(most, window)
	}
	return most
}

// words returns a kind in words.
func words(k llm.Kind) string { return strings.ReplaceAll(string(k), "_", " ") }
