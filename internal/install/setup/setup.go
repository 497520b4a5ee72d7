package setup

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/inspan/inspan/internal/base/keep"
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
	// Choose shows rows of a name and a note, and returns the number of the chosen one, or a typed text; empty
	// means the person goes back. If nil, the rows are printed, and Ask asks for a number or a name.
	Choose func(ctx context.Context, title string, rows [][2]string) (said string, err error)
}

// menu is a choice among rows.
type menu struct {
	title    string // for a list to move in
	question string // for a printed list
	rows     [][2]string
	usual    string // the answer to an empty line after a printed list; empty means back
}

// pick lets the person choose. The answer is the number of a row, or a typed text; empty means back.
func (t *Talk) pick(ctx context.Context, m menu) (string, error) {
	if t.Choose != nil {
		return t.Choose(ctx, m.title, m.rows)
	}
	t.table(m.rows[:min(len(m.rows), mostRows)])
	said, err := t.Ask(ctx, m.question)
	return cmp.Or(said, m.usual), err
}

// source is a possible origin of a model.
type source struct {
	providers.Found
	title string
	state string
	model string // that the person named; empty means none yet
}

// mostRows bounds the rows of a printed list; others can be typed.
const mostRows = 15

// Model lets the person choose a model: of a server on this machine or at an address, of a provider, with a key or
// a login, or the scripted one. It checks the key with a request, stores it, and writes the model into the settings.
// Then it offers to import what other agents have here. If the person gives up, done is false and nothing is
// written.
func (t *Talk) Model(ctx context.Context) (done bool, err error) {
	fmt.Fprintln(t.Out, "Which model should inspan use?\nWithout a server or a key, choose the offline script to try inspan.")
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
		model, err := t.choose(ctx, *found, from.model)
		if err != nil {
			return false, err
		}
		if model == "" {
			continue
		}
		if err := t.keep(ctx, found.Provider, key, model); err != nil {
			return true, err
		}
		_, err = t.Import(ctx)
		return true, err
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
		out = append(out, source{Found: f, title: f.Provider.Name, state: "runs at " + f.Provider.BaseURL + ", " + has})
	}
	titled := titles()
	for _, p := range t.App.Providers.List() {
		i := slices.IndexFunc(titled, func(row [3]string) bool { return row[0] == p.Name })
		_, set := t.App.Config.Providers[p.Name]
		keyed := p.Ready && p.KeyEnv+p.KeyCommand != ""
		switch {
		case p.OAuth != nil:
			out = append(out, source{Found: providers.Found{Provider: p}, title: p.Name, state: "log in"})
		case i >= 0 && !keyed:
			out = append(out, source{Found: providers.Found{Provider: p}, title: titled[i][1], state: titled[i][2]})
		case keyed:
			title := p.Name
			if i >= 0 {
				title = titled[i][1]
			}
			state := "has a key already (" + cmp.Or(t.App.Providers.Source(p), "key_command") + ")"
			out = append(out, source{Found: providers.Found{Provider: p}, title: title, state: state})
		case set && !p.Stays():
			out = append(out, source{Found: providers.Found{Provider: p}, title: p.Name, state: "from your settings"})
		}
	}
	return append(out, source{title: elsewhere, state: "at an address such as http://127.0.0.1:8080/v1"}, offline())
}

// elsewhere is the title of the row for a server whose address the person types.
const elsewhere = "Another server"

// offline returns the scripted model, which needs neither a key nor a server.
func offline() source {
	m := (&script.Model{}).Info()
	return source{
		Found: providers.Found{Provider: providers.Provider{Name: m.Provider, Ready: true}, Models: []llm.Info{m}},
		title: "Offline script", state: "not an AI: it follows commands that you type",
	}
}

// source lets the person choose the origin of the model; nil means they gave up.
func (t *Talk) source(ctx context.Context) (*source, error) {
	list := t.sources(ctx)
	m := menu{
		title:    "Choose one, or type a provider, a model or the address of a server",
		question: "Number or name, or the address of a server (Enter: stop): ",
	}
	for _, s := range list {
		m.rows = append(m.rows, [2]string{s.title, s.state})
	}
	for {
		said, err := t.pick(ctx, m)
		if err != nil || said == "" {
			return nil, err
		}
		from, err := t.named(ctx, said, list)
		if err == nil && from != nil && from.title == elsewhere {
			if said, err = t.Ask(ctx, "Address of the server (Enter: back): "); said == "" && err == nil {
				continue
			}
			if err == nil {
				from, err = t.look(ctx, said)
			}
		}
		if from != nil || err != nil {
			return from, err
		}
	}
}

// named returns the origin that the person's answer means: the number of a row, the name of a row, a provider or a
// model, or an address. Nil means none, and the person has seen why.
func (t *Talk) named(ctx context.Context, said string, list []source) (*source, error) {
	if n, err := strconv.Atoi(said); err == nil && n > 0 && n <= len(list) {
		return &list[n-1], nil
	}
	if isAddress(said) {
		return t.look(ctx, said)
	}
	for i, s := range list {
		if strings.EqualFold(s.title, said) || strings.EqualFold(s.Provider.Name, said) {
			return &list[i], nil
		}
		if slices.ContainsFunc(s.Models, func(m llm.Info) bool { return m.Model == said }) {
			list[i].model = said
			return &list[i], nil
		}
	}
	route, err := t.App.Providers.Route(said)
	if err != nil {
		fmt.Fprintln(t.Out, err)
		return nil, nil
	}
	name, model, _ := strings.Cut(route, "/")
	var names []string
	for _, p := range t.App.Providers.List() {
		if names = append(names, p.Name); strings.EqualFold(p.Name, name) {
			return &source{Found: providers.Found{Provider: p}, title: p.Name, model: model}, nil
		}
	}
	near := cmp.Or(words.DidYouMean(strings.ToLower(said), names), "; there are "+strings.Join(names, ", "))
	fmt.Fprintf(t.Out, "No provider or model %q%s\n", said, near)
	return nil, nil
}

// isAddress reports whether an answer is the address of a server, and not a name.
func isAddress(said string) bool {
	host := regexp.MustCompile(`^(localhost|[\w-]+(\.[\w-]+)+|\[[0-9a-fA-F:]+\]):\d+(/\S*)?$`)
	return strings.Contains(said, "://") || host.MatchString(said)
}

// look looks which server is at an address. Nil means none, and the person has seen why.
func (t *Talk) look(ctx context.Context, address string) (*source, error) {
	fmt.Fprintf(t.Out, "Looking at %s ...\n", text.Line(address))
	found, err := t.App.Providers.At(ctx, address)
	if err != nil {
		fmt.Fprintf(t.Out, "%v\n", err)
		return nil, ctx.Err()
	}
	p := found.Provider
	program := cmp.Or(p.Dialect, map[string]string{"openai": "a server with the OpenAI API", "ollama": "ollama"}[p.Kind], p.Name)
	if at := cmp.Or(p.BaseURL, address); p.Ready && found.Err == nil {
		fmt.Fprintf(t.Out, "Found %s at %s with %s.\n", program, at, text.Count(len(found.Models), "model"))
	} else {
		fmt.Fprintf(t.Out, "Found %s at %s. It wants a key.\n", program, at)
	}
	return &source{Found: found, title: p.Name}, nil
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

// reach returns the model list of a provider. If it has no key, the person types one, which is returned in key and
// not stored yet. Nil means the list is not available, and the person has seen why.
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
		if key = strings.TrimSpace(key); err != nil || key == "" || key == "\x1b" { // Esc goes back in the lists, so here too
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

// unlisted lets the person name a model of a provider without a model list; empty means they went back.
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

// choose lets the person choose a model of a provider, unless they have named one; empty means they went back.
func (t *Talk) choose(ctx context.Context, f providers.Found, named string) (string, error) {
	if f.Err != nil {
		if named != "" {
			return named, nil
		}
		return t.unlisted(ctx, f.Provider)
	}
	ids, usual := ordered(f)
	if slices.Contains(ids, named) {
		return named, nil
	}
	if len(ids) == 0 {
		get := ""
		if f.Provider.Kind == "ollama" {
			get = "; get one with 'ollama pull qwen3-coder'"
		}
		fmt.Fprintf(t.Out, "%s has no models yet%s\n", f.Provider.Name, get)
		return "", nil
	}
	if len(ids) == 1 && named == "" {
		return ids[0], nil
	}
	m := menu{title: "Choose a model of " + f.Provider.Name + ", or type a part of its name", question: "Model: number, or name"}
	for _, id := range ids {
		m.rows = append(m.rows, [2]string{words.OneLine(id, 80), ""})
	}
	if n := len(ids) - mostRows; n > 0 {
		m.question += fmt.Sprintf(" of %d more", n)
	}
	if m.question += " (Enter: back): "; usual {
		m.rows[0][1], m.usual = "(default)", "1"
		m.question = strings.Replace(m.question, "back", "1", 1)
	}
	said := named
	for {
		if said != "" {
			fmt.Fprintf(t.Out, "%s has no model %q%s\n", f.Provider.Name, said, words.DidYouMean(said, ids))
		}
		var err error
		said, err = t.pick(ctx, m)
		if err != nil || said == "" || slices.Contains(ids, said) {
			return said, err
		}
		if n, failed := strconv.Atoi(said); failed == nil && n > 0 && n <= len(ids) {
			return ids[n-1], nil
		}
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
	if err := file.Set(append(t.added(p), config.Change{Key: "model", Values: []string{p.Name + "/" + model}})...); err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "Set model = %q in %s.\n", p.Name+"/"+model, file.Path)
	if p.Name == script.Provider {
		fmt.Fprintln(t.Out, "The offline script is not an AI. Type commands such as 'bash: ls'; anything else lists them.\n"+
			"'inspan setup' chooses a real model.")
	} else if info, err := t.App.Providers.Describe(ctx, p, model); err == nil && info.Assumed {
		setting := "providers." + config.Key(p.Name) + ".models." + config.Key(model) + ".window"
		fmt.Fprintf(t.Out, "Nothing states the model's context window, so inspan assumes %s tokens.\n"+
			"If that is wrong, type this in a shell; /exit leaves a session:\n"+
			"inspan config set %s %d\n", text.Thousands(info.Window), text.ShellWord(setting), info.Window)
	} else if err == nil && p.Stays() {
		fmt.Fprintf(t.Out, "The model has %s tokens.\n", words.Window(info.Window, false))
	}
	if t.App.Sets("INSPAN_MODEL") {
		fmt.Fprintln(t.Out, "The variable INSPAN_MODEL is set and comes before the file.")
	}
	return nil
}

// added returns the settings of a provider that has none yet.
func (t *Talk) added(p providers.Provider) (changes []config.Change) {
	known := func(k providers.Provider) bool { return k.Name == p.Name }
	if p.Name == script.Provider || slices.ContainsFunc(t.App.Providers.List(), known) {
		return nil
	}
	for _, field := range [][2]string{{"kind", p.Kind}, {"base_url", p.BaseURL}, {"dialect", p.Dialect}, {"key_env", p.KeyEnv}} {
		if field[1] != "" {
			changes = append(changes, config.Change{Key: "providers." + config.Key(p.Name) + "." + field[0], Values: []string{field[1]}})
		}
	}
	return changes
}

// Offer offers to import what other agents have here, once: to a person whose model comes from elsewhere than from
// [Talk.Model], such as from a key in the environment. It returns whether settings were written.
func (t *Talk) Offer(ctx context.Context) (wrote bool, err error) {
	if exists(t.offered()) {
		return false, nil
	}
	return t.Import(ctx)
}

// offered returns the path of the file that says that an import was offered.
func (t *Talk) offered() string { return filepath.Join(t.App.StateDir, "import-offered") }

// Import offers to import the settings, servers and commands that other agents have here. It returns whether they
// were written.
func (t *Talk) Import(ctx context.Context) (wrote bool, err error) {
	found, err := Look(t.App, t.Root, nil)
	if err != nil {
		fmt.Fprintf(t.Out, "The settings of other agents can't be read: %v\n", err)
		return false, nil
	}
	if err := cmp.Or(keep.MakeDir(t.App.StateDir), keep.Write(t.offered(), nil)); err != nil {
		return false, err
	}
	n := found.Pending()
	if n == 0 {
		return false, nil
	}
	fmt.Fprintf(t.Out, "\nFound files of %s.\n", strings.Join(found.agents(), ", "))
	does := "write " + text.Count(n, "item")
	if mode, effect := found.looser(); mode != "" {
		fmt.Fprintf(t.Out, "Import sets mode %s: %s.\n", mode, effect)
		does += ", with mode " + mode
	}
	m := menu{
		title: "Import their settings? Your own stay as they are.", question: "Number (Enter: 3): ", usual: "3",
		rows: [][2]string{
			{"Yes", "import: " + does},
			{"Show", "list every item, and what becomes of it"},
			{"No", "'inspan import' does it later"},
		},
	}
	for {
		said, err := t.pick(ctx, m)
		switch {
		case err != nil:
			return false, err
		case said == "" || said == "3":
			fmt.Fprintln(t.Out, "Nothing was imported; 'inspan import' does it later.")
			return false, nil
		case said == "2":
			found.Print(t.Out)
		case said == "1":
			if err := found.Write(); err != nil {
				return false, err
			}
			fmt.Fprintln(t.Out, found.Told(true))
			return true, nil
		}
	}
}
