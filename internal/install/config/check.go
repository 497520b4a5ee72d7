package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/extend/profile"
	"github.com/inspan/inspan/internal/safety/guard"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
)

func (s Sandbox) check() error {
	_, local := s.Ranges()
	var engine, environment, outside error
	if e := s.Engine; e != "" && e != "podman" && e != "docker" && filepath.Base(e) == e {
		engine = fmt.Errorf("engine: %q is not podman, docker or a path", e)
	}
	for _, name := range s.Environment {
		if name == "" || strings.ContainsAny(name, "= \x00") {
			environment = fmt.Errorf("environment: %q is not the name of a variable", name)
		}
	}
	for _, path := range s.Outside {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path {
			outside = fmt.Errorf("outside: %q is not the absolute path of a program", path)
		}
	}
	return errors.Join(local, engine, environment, outside,
		checkRange("processes", int64(s.Processes), math.MaxInt64),
		checkRange("cpu_seconds", int64(s.CPU), math.MaxInt64/int64(time.Second)),
		checkRange("memory_mb", s.Memory, mostMegabytes),
		checkRange("file_mb", s.FileSize, mostMegabytes),
	)
}

// mostMegabytes is the largest number of megabytes whose bytes fit into an int64.
const mostMegabytes = math.MaxInt64 >> 20

func checkRange(key string, n, most int64) error {
	if n < 0 || n > most {
		return fmt.Errorf("%s: %d is not between 0 and %d", key, n, most)
	}
	return nil
}

func (r *Router) check() error {
	if r == nil {
		return nil
	}
	for _, expr := range r.Private {
		if _, err := regexp.Compile(expr); err != nil {
			return fmt.Errorf("private: %w", err)
		}
	}
	for i, rule := range r.Rules {
		if _, err := regexp.Compile(rule.When.Said); err != nil {
			return fmt.Errorf("rules[%d].when.said: %w", i, err)
		}
	}
	return oneOf("begin", r.Begin, "local", "cloud")
}

// allAre returns an error about the first text of a list that is not valid.
func allAre(key string, list []string, what string, valid func(string) bool) error {
	for _, text := range list {
		if !valid(text) {
			return fmt.Errorf("%s: %q is not %s", key, text, what)
		}
	}
	return nil
}

// noErrors joins the errors of a function about the elements of a list, by their index.
func noErrors[T any](list []T, of func(i int, v T) error) error {
	var out []error
	for i, v := range list {
		out = append(out, of(i, v))
	}
	return errors.Join(out...)
}

// check returns an error for each invalid setting; it begins with the key.
func (c Config) check() error {
	branch := func(glob string) bool { _, err := path.Match(glob, ""); return err == nil && glob != "" }
	folder := func(dir string) bool { return filepath.IsAbs(dir) || strings.HasPrefix(dir, "~/") }
	public := func(glob string) bool { return doublestar.ValidatePathPattern(glob) && glob != "" }
	_, uncompiled := guard.Compile(c.Checks)
	return errors.Join(
		keyed("mode", c.Mode.Check()),
		oneOf("leftovers", c.Leftovers, LeftoversEnd, LeftoversKeep),
		oneOf("effort", c.Effort, llm.Efforts()...),
		checkActions(c.Rules), c.checkLimits(), allAre("public", c.Public, `a pattern such as "testdata/*.pem"`, public),
		allAre("folders", c.Folders, "an absolute path or one such as ~/src/lib", folder),
		allAre("protected_branches", c.Protected, `a pattern such as "release/*"`, branch),
		inTable("sandbox", c.Sandbox.check()), inTable("router", c.Router.check()),
		allAre("skills.folders", c.Skills.Folders, "absolute", filepath.IsAbs),
		c.Programs.check(), notNegative("agents.depth", c.Agents.Depth), notNegative("agents.open", c.Agents.Open),
		checkRange("checkpoints.quota_mb", c.Checkpoints.Quota, mostMegabytes),
		c.Retention.Check(), uncompiled, checkHooks(c.Hooks), checkSources(c.ToolSecrets),
		c.TUI.Check(), inTable("notify", c.Notify.Check()), inTable("levers", c.Levers.Check()), inTable("web", c.Web.Check()),
		c.Reviewer.check(), noErrors(c.Profiles, func(i int, p profile.Profile) error {
			if err := p.Check(); err != nil {
				return fmt.Errorf("profiles[%d].%w", i, err)
			}
			return nil
		}), checkProviders(c.Providers),
	)
}

// keyed prefixes an error about a value with the key of the setting.
func keyed(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", key, err)
}

// notNegative returns an error for a number below zero.
func notNegative[N int | int64 | float64 | time.Duration](key string, n N) error {
	if n < 0 {
		return fmt.Errorf("%s: %v can't be negative; 0 means the default, or no limit", key, n)
	}
	return nil
}

// value returns the value of a setting; zero if it is not set.
func value[N any](set *N) (n N) {
	if set != nil {
		n = *set
	}
	return n
}

func (c Config) checkLimits() error {
	perMinute := errors.Join(
		notNegative("max_cost_per_minute", value(c.MinuteCost)), notNegative("max_tokens_per_minute", value(c.MinuteTokens)),
	)
	return errors.Join(
		perMinute, notNegative("max_turns", value(c.MaxTurns)), notNegative("max_cost", c.MaxCost), notNegative("max_tokens", c.MaxTokens),
		notNegative("max_cost_per_day", c.DayCost), notNegative("retry_for", c.RetryFor),
		aSecond("max_time", c.MaxTime), aSecond("ask_timeout", c.Timeout),
	)
}

// aSecond returns an error for a positive time below a second.
func aSecond(key string, d time.Duration) error {
	if d != 0 && d < time.Second {
		return fmt.Errorf("%s: want a time such as \"10m\", at least a second; 0 means no limit", key)
	}
	return nil
}

func checkSources(secrets map[string]map[string][]string) error {
	return noErrors(slices.Sorted(maps.Keys(secrets)), func(_ int, source string) error {
		if source != "user" && source != "project" {
			return fmt.Errorf("tool_secrets.%s: tools are from user or project", bare(source))
		}
		return nil
	})
}

func (r *Reviewer) check() error {
	if r == nil {
		return nil
	}
	var model error
	if r.Model == "" {
		model = errors.New("reviewer.model: it is missing; name one, as PROVIDER/MODEL")
	}
	return errors.Join(model, notNegative("reviewer.max_cost", r.MaxCost), notNegative("reviewer.timeout", r.Timeout))
}

func checkHooks(list []hook.Config) error {
	return noErrors(list, func(i int, h hook.Config) error { return keyed(fmt.Sprintf("hook[%d]", i), h.Check()) })
}

func checkProviders(list map[string]Provider) error {
	return noErrors(slices.Sorted(maps.Keys(list)), func(_ int, name string) error {
		key := "providers." + bare(name)
		switch {
		case strings.Contains(name, "/"):
			return fmt.Errorf("%s: a name can't contain a slash", key)
		case name == "script" || name == router.Provider:
			return fmt.Errorf("%s: the name is taken", key)
		}
		return errors.Join(oneOf(key+".kind", list[name].Kind, Kinds()...), inTable(key, list[name].check()))
	})
}
