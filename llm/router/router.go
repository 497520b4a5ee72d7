// Package router is a model that chooses among models: a local one begins, the one in the cloud takes over if
// the run gets stuck, and the next one does if one is unavailable.
//
//	m := &router.Model{
//		ID: "hybrid",
//		Routes: []router.Route{
//			{Name: "desk", Model: local, Local: true},
//			{Name: "cloud", Model: remote},
//		},
//		Rules: []router.Rule{
//			{Name: "hard", When: router.Cond{Hard: new(true)}, Use: []string{"cloud", "desk"}},
//			{Name: "easy", Use: []string{"desk", "cloud"}},
//		},
//	}
//
// An answer takes three steps, which you can inspect:
//
//  1. [Model.Features] extracts the features of a request: its length, the course of its run, whether it
//     contains a secret. They depend on
//     the request alone, and so on the log of a session: a resumed session is routed as before.
//  2. [Model.Decide] says which routes may answer it, in which order, and why others may not. It is a pure
//     function, so a recorded session
//     can be decided again under other rules.
//  3. [Model.Stream] asks them one after the other, and reports the answering route in an [llm.Routed] chunk.
//     [Health] remembers failures.
//
// Text that contains a secret never reaches a route that is not Local: no rule, pin, failure or force changes
// that.
//
// For a fallback alone, Routes without Rules are enough.
//
// # Compatibility
//
// That promise and the names of rules in logs stay. How features are extracted and what is decided without a rule can
// change between versions.
package router

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
)

// Provider is the provider name of routers: "router/ID".
const Provider = "router"

// Values of [Model].Begin.
const (
	beginLocal = "local"
	beginCloud = "cloud"
)

// Model chooses among models. Only Routes are required; see [Model.Check] for the rules of the other fields.
// The fields must not be changed once it is in use; then it is safe for concurrent use. Do not copy it.
type Model struct {
	// ID is the model's name: its route is "router/ID". Empty means the name of the first route's model. The others
	// are its fallbacks.
	ID string
	// Routes are the candidates.
	Routes []Route
	// Rules choose among them; the first match decides. If none matches, Routes are asked in order.
	Rules []Rule
	// Force names a route that a person has chosen, to be used regardless of rules and health; empty means none. It
	// has no fallback, and does not see private text unless it is Local.
	Force string
	// Private are regular expressions in addition to the built-in ones. A request with matching text stays on
	// Local routes.
	Private []string
	// Begin says how a task counts before its run shows how hard it is: "local" as not hard, "cloud" as
	// hard. Empty means the Judge decides, or else the text: a task is hard if it is long, or neither says where
	// its work is nor asks a question.
	Begin string
	// Judge is asked how hard each new task is, if it may see it. Nil, or if it fails or takes too long: the
	// task is not judged.
	Judge *Route
	// Health remembers failures of the routes. It is best shared by all routers of a process; nil means the model
	// has its own.
	Health *Health

	once    sync.Once
	broken  error // what Check says
	health  *Health
	secrets scanner
	said    map[string]*regexp.Regexp // the expressions of the rules

	judgements judgements
}

// Route is a candidate.
type Route struct {
	Name  string // what rules call it
	Model llm.Model
	Local bool // what it is sent does not leave the user's machine or network, so it may see private text
}

// Rule says which routes answer which requests.
type Rule struct {
	Name string   `toml:"name"` // for people
	When Cond     `toml:"when"` // the zero Cond always matches
	Use  []string `toml:"use"`  // names of routes: the first that can answer does
	// MaxCost skips routes on which this prompt alone, without a cache, costs more, in US dollars; 0 means no
	// limit. An unknown price is above any limit, unless the route is Local.
	MaxCost float64 `toml:"max_cost"`
}

var _ llm.Model = (*Model)(nil)

// Info implements [llm.Model]. The window is the largest of the routes', as longer conversations go to the
// routes that can hold them; so images and tools are accepted if any route accepts them. The maximum length of
// a reply is the shortest of the routes'. With a forced route, all of it is that route's. Prices are known only
// if they are the same everywhere; the price of a reply follows from the Info in [llm.Routed].
func (m *Model) Info() llm.Info {
	info := llm.Info{Provider: Provider, Model: m.ID, NoTools: len(m.Routes) > 0}
	if m.ID == "" && len(m.Routes) > 0 {
		first := m.Routes[0].Model.Info()
		info.Provider, info.Model = first.Provider, first.Model
	}
	for i, r := range m.Routes {
		if m.Force != "" && r.Name != m.Force {
			continue
		}
		of := r.Model.Info()
		info.Window = max(info.Window, of.Window)
		if info.MaxOutput == 0 || of.MaxOutput != 0 && of.MaxOutput < info.MaxOutput {
			info.MaxOutput = of.MaxOutput
		}
		if i == 0 || m.Force != "" {
			info.Prices = of.Prices
		} else if !reflect.DeepEqual(info.Prices, of.Prices) {
			info.Prices = nil
		}
		info.Images = info.Images || of.Images
		info.NoTools = info.NoTools && of.NoTools
	}
	return info
}

// Check returns everything that is wrong with the fields, nil if nothing is. A model that does not pass answers
// no request.
func (m *Model) Check() error {
	var errs []error
	names := map[string]bool{}
	for i, r := range m.Routes {
		switch {
		case r.Name == "":
			errs = append(errs, fmt.Errorf("route %d has no name", i+1))
		case names[r.Name]:
			errs = append(errs, fmt.Errorf("two routes are called %q", r.Name))
		case r.Model == nil:
			errs = append(errs, fmt.Errorf("route %q has no model", r.Name))
		}
		names[r.Name] = true
	}
	if len(m.Routes) == 0 {
		errs = append(errs, errors.New("there are no routes"))
	}
	if m.Begin != "" && m.Begin != beginLocal && m.Begin != beginCloud {
		errs = append(errs, fmt.Errorf("begin is %q; use %q, %q, or nothing", m.Begin, beginLocal, beginCloud))
	}
	known := func(where, name string) {
		if !names[name] {
			errs = append(errs, fmt.Errorf("%s names the route %q; known: %s", where, name, strings.Join(slices.Sorted(maps.Keys(names)), ", ")))
		}
	}
	if m.Force != "" {
		known("force", m.Force)
	}
	for i, r := range m.Rules {
		where := fmt.Sprintf("rule %d (%q)", i+1, r.Name)
		if len(r.Use) == 0 {
			errs = append(errs, fmt.Errorf("%s uses no route", where))
		}
		for i, name := range r.Use {
			known(where, name)
			if slices.Contains(r.Use[:i], name) {
				errs = append(errs, fmt.Errorf("%s names %q twice", where, name))
			}
		}
		if _, err := regexp.Compile(r.When.Said); err != nil {
			errs = append(errs, fmt.Errorf("%s: said: %w", where, err))
		}
		if why := r.impossible(); why != "" {
			errs = append(errs, fmt.Errorf("%s never matches: %s", where, why))
		}
	}
	_, err := custom(m.Private)
	return errors.Join(append(errs, err)...)
}

// impossible gives the reason why no request can match; empty means some can.
func (r Rule) impossible() string {
	c := r.When
	switch {
	case c.MaxTokens != 0 && c.MinTokens > c.MaxTokens:
		return "min_tokens is above max_tokens"
	case c.MinTokens < 0 || c.MaxTokens < 0 || r.MaxCost < 0:
		return "a bound is negative"
	}
	return ""
}

// prepare compiles the fields, once.
func (m *Model) prepare() {
	m.once.Do(func() {
		m.health = m.Health
		if m.health == nil {
			m.health = new(Health)
		}
		if m.broken = m.Check(); m.broken == nil {
			m.secrets.patterns, _ = custom(m.Private) // Check has seen the error
			m.said = map[string]*regexp.Regexp{}
			for _, r := range m.Rules {
				if expr := r.When.Said; expr != "" {
					m.said[expr] = regexp.MustCompile(expr)
				}
			}
		}
	})
}

// Stream implements [llm.Model]. The first chunk is always Routed.
//
// After a failure that waiting does not cure, or a lack of capacity, the next route is asked at once. A
// temporary failure is returned, so that the request is sent again a little later; but if it makes the route
// unhealthy (see [Health]), the next one is asked at once, if there is one. When no route is left, the failure
// that leaves the most hope is returned.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		m.prepare()
		if m.broken != nil {
			yield(llm.Chunk{}, &llm.Error{Kind: llm.KindInvalid, Provider: Provider, Err: m.broken})
			return
		}
		f := m.Features(req)
		d := m.Decide(f, m.health.View())
		if len(d.Use)+len(d.Reserve) == 0 {
			yield(llm.Chunk{}, m.refusal(d, f))
			return
		}
		a := &attempt{Model: m, window: m.mostPrivate(f), private: f.Private, tokens: f.Tokens, yield: yield}
		v := m.judge(ctx, req, f)
		if a.judged, a.verdict = v.took, v.says; v.says != "" {
			req.Work.Judged = v.says
			f = m.Features(req)
			d = m.Decide(f, m.health.View())
		}
		if a.decision = d; d.Cut > 0 {
			yield(llm.Chunk{}, &llm.Error{
				Kind: llm.KindWindow, Provider: Provider, Used: f.Tokens, Limit: d.Cut, Private: f.Private,
				Message: d.Reason + "; the conversation is to be cut to " + text.Thousands(d.Cut) + " tokens",
			})
			return
		}
		a.run(ctx, req)
	}
}

// route returns the route with a name. Check has verified that it exists.
func (m *Model) route(name string) Route {
	i := slices.IndexFunc(m.Routes, func(r Route) bool { return r.Name == name })
	return m.Routes[i]
}
