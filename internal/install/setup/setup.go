package setup

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/providers"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
)

// Talk sets inspan up with a person at a terminal.
type Talk struct {
	App  *app.App
	Root string // the workspace
	Out  io.Writer
	// Ask shows a question and returns the typed line. Secret does so without echo.
	Ask    func(ctx context.Context, question string) (string, error)
	Secret func(ctx context.Context, question string) (string, error)
	Login  func(ctx context.Context, provider string) error // for providers with logins
}

// source is a possible origin of a model.
type source struct {
	providers.Found
	title string
	state string
}

// mostModels bounds the models in the menu; others can be typed.
const mostModels = 9

// Model lets the person choose a model: of a provider, with a key or a login, of a server on this machine, or
// the scripted one. It checks the key with a request, stores it, and writes the model into the settings. If the
// person gives up, done is false and nothing is written.
func (t *Talk) Model(ctx context.Context) (done bool, err error) {
	fmt.Fprintln(t.Out, "inspan needs a model: from a provider, with a key, or from a server on this machine.\n"+
		"Without either, take the offline script to try inspan.")
	for {
		from, err := t.source(ctx)
		if err != nil || from == nil {
			return false, err
		}
		found, key, err := t.reach(ctx, *from)
		if err != nil {
			return false, err
		}
		if found == nil {
			continue
		}
		model, err := t.choose(ctx, *found)
		if err != nil {
			return false, err
		}
		if model == "" {
			continue
		}
		return true, t.keep(ctx, found.Provider, key, model)
	}
}

// titles returns the providers that are always offered, with the origin of their keys.
func titles() [][3]string {
	return [][3]string{
		{"anthropic", "Anthropic", "a key from console.anthropic.com"},
		{"openai", "OpenAI", "a key from platform.openai.com"},
		{"gemini", "Google Gemini", "a key from aistudio.google.com"},
		{"openrouter", "OpenRouter", "one key for many models, from openrouter.ai"},
	}
}

// sources lists possible origins of a model: running servers on this machine, logins, the usual providers, and
// others with a key here.
func (t *Talk) sources(ctx context.Context) (out []source) {
	for _, f := range t.App.Providers.Discover(ctx) {
		has := text.Count(len(f.Models), "model")
		if len(f.Models) == 0 {
			has = "no model yet"
		}
		out = append(out, source{f, f.Provider.Name, "runs at " + f.Provider.BaseURL + ", " + has})
	}
	titled := titles()
	for _, p := range t.App.Providers.List() {
		i := slices.IndexFunc(titled, func(row [3]string) bool { return row[0] == p.Name })
		_, set := t.App.Config.Providers[p.Name]
		keyed := p.Ready && p.KeyEnv+p.KeyCommand != ""
		switch {
		case p.OAuth != nil:
			out = append(out, source{providers.Found{Provider: p}, p.Name, "log in"})
		case i >= 0 && !keyed:
			out = append(out, source{providers.Found{Provider: p}, titled[i][1], titled[i][2]})
		case keyed:
			title := p.Name
			if i >= 0 {
				title = titled[i][1]
			}
			out = append(out, source{providers.Found{Provider: p}, title, "has a key already (" + cmp.Or(t.App.Providers.Source(p), "key_command") + ")"})
		case set && !p.Stays():
			out = append(out, source{providers.Found{Provider: p}, p.Name, "from your settings"})
		}
	}
	return append(out, offline())
}

// offline returns the scripted model, which needs neither a key nor a server.
func offline() source {
	m := (&script.Model{}).Info()
	return source{
		providers.Found{Provider: providers.Provider{Name: m.Provider, Ready: true}, Models: []llm.Info{m}},
		"Offline script", "not an AI: it follows commands that you type",
	}
}

// source lets the person choose the origin of the model; nil: they gave up.
func (t *Talk) source(ctx context.Context) (*source, error) {
	list := t.sources(ctx)
	var rows [][2]string
	for _, s := range list {
		rows = append(rows, [2]string{s.title, s.state})
	}
	t.table(rows)
	fmt.Fprintln(t.Out, "Other providers by name; 'inspan models' lists them.")
	for {
		said, err := t.Ask(ctx, "Number or name (Enter: stop): ")
		if err != nil || said == "" {
			return nil, err
		}
		if n, err := strconv.Atoi(said); err == nil && n > 0 && n <= len(list) {
			return &list[n-1], nil
		}
		var names []string
		for _, p := range t.App.Providers.List() {
			if names = append(names, p.Name); strings.EqualFold(p.Name, said) {
				return &source{providers.Found{Provider: p}, p.Name, ""}, nil
			}
		}
		for i, s := range list {
			if strings.EqualFold(s.title, said) || strings.EqualFold(s.Provider.Name, said) {
				return &list[i], nil
			}
		}
		fmt.Fprintf(t.Out, "No provider %q%s\n", said, cmp.Or(words.DidYouMean(strings.ToLower(said), names), "; there are "+strings.Join(names, ", ")))
	}
}

func (t *Talk) table(rows [][2]string) {
	width := 0
	for _, row := range rows {
		width = max(width, len(row[0]))
	}
	fmt.Fprintln(t.Out)
	for i, row := range rows {
		fmt.Fprintln(t.Out, strings.TrimRight(fmt.Sprintf("  %2d  %-*s  %s", i+1, width, row[0], row[1]), " "))
	}
	fmt.Fprintln(t.Out)
}

// reach returns the model list of a provider. If it has no key, the person types one, which is returned in key
// and not stored yet. Nil: the list is not available, and the person has seen why.
func (t *Talk) reach(ctx context.Context, from source) (found *providers.Found, key string, err error) {
	p := from.Provider
	switch {
	case p.OAuth != nil:
		if err := t.Login(ctx, p.Name); err != nil {
			fmt.Fprintf(t.Out, "%v\n", err)
			return nil, "", nil
		}
	case !p.Ready:
		return t.typed(ctx, p)
	case len(from.Models) > 0:
		return &from.Found, "", nil
	}
	fmt.Fprintf(t.Out, "Asking %s for its models ...\n", p.Name)
	f, err := t.App.Providers.DiscoverAt(ctx, p.Name)
	if err == nil {
		return &f, "", nil
	}
	fmt.Fprintf(t.Out, "%v\n", err)
	if llm.AsError(err).Kind != llm.KindAuth || p.KeyEnv == "" || os.Getenv(p.KeyEnv) != "" {
		return nil, "", nil // a typed key would be ignored, or would not help
	}
	return t.typed(ctx, p)
}

// typed lets the person type a key until the provider accepts one.
func (t *Talk) typed(ctx context.Context, p providers.Provider) (found *providers.Found, key string, err error) {
	for {
		key, err := t.Secret(ctx, "Paste the key of "+p.Name+", which is not shown (Enter: back): ")
		if key = strings.TrimSpace(key); err != nil || key == "" {
			return nil, "", err
		}
		if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
			fmt.Fprintln(t.Out, "That is not a key: it contains spaces or special characters.")
			continue
		}
		fmt.Fprintf(t.Out, "Checking the key: asking %s for its models ...\n", p.Name)
		f := t.App.Providers.Try(ctx, p, key)
		e := llm.AsError(f.Err)
		switch {
		case e == nil && f.Open:
			fmt.Fprintf(t.Out, "%s has %s. It lists them without a key, so the key is not checked.\n", p.Name, text.Count(len(f.Models), "model"))
			return &f, key, nil
		case e == nil:
			fmt.Fprintf(t.Out, "%s accepts the key and has %s.\n", p.Name, text.Count(len(f.Models), "model"))
			return &f, key, nil
		case e.Kind == llm.KindAuth:
			fmt.Fprintf(t.Out, "%v. Check that you copied all of it.\n", e)
		default:
			fmt.Fprintf(t.Out, "The key could not be checked. %v\n", e)
			said, err := t.Ask(ctx, "Keep it unchecked? y or n (Enter: n): ")
			if err != nil || words.Choice(said) != "y" {
				return nil, "", err
			}
			return &f, key, nil
		}
	}
}

// unlisted lets the person name a model of a provider without a model list; empty: they went back.
func (t *Talk) unlisted(ctx context.Context, p providers.Provider) (string, error) {
	back := "Enter: back"
	if p.Default != "" {
		back = "Enter: " + p.Default
	}
	for {
		said, err := t.Ask(ctx, "Name of the model at "+p.Name+" ("+back+"): ")
		said = strings.TrimPrefix(cmp.Or(strings.TrimSpace(said), p.Default), p.Name+"/")
		if err != nil || !strings.ContainsFunc(said, unicode.IsSpace) {
			return said, err
		}
		fmt.Fprintln(t.Out, "That is not the name of a model: it contains spaces.")
	}
}

// choose lets the person choose a model of a provider; empty: they went back.
func (t *Talk) choose(ctx context.Context, f providers.Found) (string, error) {
	if f.Err != nil {
		return t.unlisted(ctx, f.Provider)
	}
	ids, usual := ordered(f)
	if len(ids) == 0 {
		get := ""
		if f.Provider.Kind == "ollama" {
			get = "; get one with 'ollama pull qwen3-coder'"
		}
		fmt.Fprintf(t.Out, "%s has no models yet%s\n", f.Provider.Name, get)
		return "", nil
	}
	if len(ids) == 1 {
		return ids[0], nil
	}
	var rows [][2]string
	for _, id := range ids[:min(len(ids), mostModels)] {
		rows = append(rows, [2]string{words.OneLine(id, 80), ""})
	}
	question := "Model: number, or name"
	if n := len(ids) - len(rows); n > 0 {
		question += fmt.Sprintf(" of %d more", n)
	}
	if usual {
		rows[0][1] = "(default)"
		question += " (Enter: 1)"
	}
	t.table(rows)
	for {
		said, err := t.Ask(ctx, question+": ")
		if err != nil {
			return "", err
		}
		if said == "" && usual {
			said = "1"
		}
		n, failed := strconv.Atoi(said)
		switch {
		case slices.Contains(ids, said):
			return said, nil
		case failed == nil && n > 0 && n <= len(rows):
			return ids[n-1], nil
		case said == "":
			continue
		}
		fmt.Fprintf(t.Out, "%s has no model %q%s\n", f.Provider.Name, said, words.DidYouMean(said, ids))
	}
}

// ordered returns the models of a provider: its default first, if present, then those with known prices, then
// the others.
func ordered(f providers.Found) (ids []string, usual bool) {
	models := slices.Clone(f.Models)
	first := func(m llm.Info) int {
		switch {
		case m.Model == f.Provider.Default:
			usual = true
			return 0
		case len(m.Prices) > 0:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(models, func(a, b llm.Info) int { return cmp.Compare(first(a), first(b)) })
	for _, m := range models {
		ids = append(ids, m.Model)
	}
	return ids, usual
}

// keep stores the choice, and prints the next steps.
func (t *Talk) keep(ctx context.Context, p providers.Provider, key, model string) error {
	if key != "" {
		where, err := t.App.Logins.KeepKey(ctx, p.Name, key)
		if err != nil {
			return fmt.Errorf("keep the key: %w", err)
		}
		if where != "the keychain" {
			where += ", which only you can read"
		}
		fmt.Fprintf(t.Out, "Stored the key in %s.\n", where)
	}
	file := app.SettingsFile(t.App.Installation, "", false)
	if err := file.Set(config.Change{Key: "model", Values: []string{p.Name + "/" + model}}); err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "Set model = %q in %s.\n", p.Name+"/"+model, file.Path)
	if p.Name == script.Provider {
		fmt.Fprintln(t.Out, "The offline script is not an AI. Type commands such as 'bash: ls'; anything else lists them.\n"+
			"'inspan setup' chooses a real model.")
	}
	if t.App.Sets("INSPAN_MODEL") {
		fmt.Fprintln(t.Out, "The variable INSPAN_MODEL is set and comes before the file.")
	}
	if found, err := Look(t.App, t.Root, nil); err == nil && found.Pending() > 0 {
		fmt.Fprintf(t.Out, "Found settings of %s: 'inspan import' shows what it can import.\n", strings.Join(found.agents(), ", "))
	}
	return nil
}
