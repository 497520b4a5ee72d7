package tools

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/lsp"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

//go:embed lsp.md
var lspDoc string

const (
	maxPlaces   = 100 // shown places of one answer
	maxOutline  = 300 // symbols shown of one file
	maxProblems = 50  // diagnostics shown of one file
	maxTried    = 5   // places tried for a name
	maxNews     = 10  // diagnostics added to the result of another tool
	maxNewsOf   = 5   // files of these

	diagnoseTime = 10 * time.Second // until a server is done with a file
	newsTime     = 3 * time.Second  // the same, after a change by another tool
	draftTime    = 10 * time.Second // to work out a rename before it is judged
)

type lspArgs struct {
	Action  string `json:"action" enum:"definition,type_definition,references,implementation,hover,symbols,workspace_symbols,diagnostics,rename"`
	Path    string `json:"path,omitempty" jsonschema:"the file; only workspace_symbols can do without"`
	Line    int    `json:"line,omitempty" jsonschema:"line of the symbol, from 1; anywhere in the file if not given"`
	Symbol  string `json:"symbol,omitempty" jsonschema:"name as it stands in the file"`
	Query   string `json:"query,omitempty" jsonschema:"part of a name, for workspace_symbols"`
	NewName string `json:"new_name,omitempty" jsonschema:"for rename"`
}

// languages returns the tool that asks language servers. A call that would start one has an Execute effect.
func languages(m *lsp.Manager) tool.Tool {
	t := tool.New("lsp", lspDoc, func(ctx context.Context, c *tool.Call, in lspArgs) (tool.Result, error) {
		q, err := ask(ctx, m, c, in)
		if err != nil {
			return tool.Result{}, err
		}
		return q.run(ctx)
	})
	t.Effects = withArgs(func(ctx context.Context, c *tool.Call, in lspArgs) ([]tool.Effect, error) {
		if in.lack() != "" {
			return []tool.Effect{}, nil // the call fails for the same reason
		}
		q, err := ask(ctx, m, c, in)
		if err != nil {
			return nil, err
		}
		return q.effects(ctx), nil
	})
	t.Preview = withArgs(func(ctx context.Context, c *tool.Call, in lspArgs) (string, error) {
		q, err := ask(ctx, m, c, in)
		if err != nil || !q.ready(ctx) {
			return "", err
		}
		drafts, err := q.drafts(ctx)
		return cutDiff(diffs(c, drafts), maxStoredDiff), err
	})
	return t
}

// question is one call of the tool.
type question struct {
	m    *lsp.Manager
	c    *tool.Call
	in   lspArgs
	path string // resolved; the workspace if none is given
}

// ask prepares a call.
func ask(ctx context.Context, m *lsp.Manager, c *tool.Call, in lspArgs) (question, error) {
	q := question{m, c, in, c.Env.Root}
	if lack := in.lack(); lack != "" {
		return q, errors.New(lack)
	}
	q.in.Query = cmp.Or(in.Query, in.Symbol)
	if in.Path == "" {
		return q, nil
	}
	var err error
	q.path, err = Resolve(ctx, c, in.Path)
	return q, err
}

// lack returns what is missing in the arguments, if anything.
func (in lspArgs) lack() string {
	switch in.Action {
	case "definition", "type_definition", "references", "implementation", "hover", "rename":
		if in.Symbol == "" {
			return fmt.Sprintf("%s needs a symbol", in.Action)
		}
	case "workspace_symbols":
		if in.Query+in.Symbol == "" {
			return "workspace_symbols needs a query"
		}
	case "symbols", "diagnostics":
	default:
		return fmt.Sprintf("there is no action %q; the actions are definition, type_definition, references, implementation, hover, symbols, "+
			"workspace_symbols, diagnostics and rename", in.Action)
	}
	switch {
	case in.Line < 0:
		return "lines count from 1"
	case in.Action == "rename" && in.NewName == "":
		return "rename needs a new_name"
	case in.Path == "" && in.Action != "workspace_symbols":
		return fmt.Sprintf("%s needs a path", in.Action)
	case in.Action == "rename":
		if err := lsp.CheckName(in.Path, in.NewName); err != nil {
			return err.Error()
		}
	}
	return ""
}

// ready reports whether the call is a rename that a running server can work out.
func (q question) ready(ctx context.Context) bool {
	servers, err := q.m.Needs(ctx, q.path)
	return q.in.Action == "rename" && err == nil && len(servers) == 0
}

func (q question) effects(ctx context.Context) []tool.Effect {
	effects := []tool.Effect{{Kind: tool.Read, Path: q.path}}
	servers, _ := q.m.Needs(ctx, q.path) // if there is none, the call fails, and starts none
	for _, s := range servers {
		effects = append(effects, tool.Effect{
			Kind: tool.Execute, Text: strings.Join(s.Command, " "), Class: tool.Unproven,
			Words: &tool.Words{Argv: s.Command, Prefix: s.Command, Exact: true},
		})
	}
	if q.in.Action != "rename" {
		return effects
	}
	limited, cancel := context.WithTimeout(ctx, draftTime)
	defer cancel()
	if q.ready(ctx) {
		if drafts, err := q.drafts(limited); err == nil {
			for _, d := range drafts {
				effects = append(effects, tool.Effect{Kind: tool.Write, Path: d.path})
			}
			return effects
		}
	}
	return append(effects, tool.Effect{Kind: tool.Write, Path: q.c.Env.Root})
}

func (q question) run(ctx context.Context) (tool.Result, error) {
	var text string
	var err error
	switch q.in.Action {
	case "symbols":
		text, err = q.outline(ctx)
	case "workspace_symbols":
		text, err = q.search(ctx)
	case "diagnostics":
		text, err = q.diagnose(ctx)
	case "hover":
		text, err = q.hover(ctx)
	case "rename":
		return q.rename(ctx)
	default:
		text, err = q.places(ctx)
	}
	return tool.Text(text), err
}

// locate finds places by one kind of request.
func (q question) locate(ctx context.Context, at lsp.Position) (lsp.Found, error) {
	switch q.in.Action {
	case "definition":
		return q.m.Definition(ctx, q.path, at)
	case "type_definition":
		return q.m.TypeDefinition(ctx, q.path, at)
	case "implementation":
		return q.m.Implementation(ctx, q.path, at)
	}
	return q.m.References(ctx, q.path, at)
}

// each makes the request for each possible place of the symbol until one is answered.
func (q question) each(ctx context.Context, try func(at lsp.Position) (found bool, err error)) error {
	places, err := q.meant(ctx)
	if err != nil {
		return err
	}
	var last error
	for _, at := range places[:min(len(places), maxTried)] {
		found, err := try(at)
		if found {
			return nil
		}
		last = cmp.Or(err, last)
	}
	return last
}

func (q question) places(ctx context.Context) (string, error) {
	var found lsp.Found
	err := q.each(ctx, func(at lsp.Position) (bool, error) {
		var err error
		found, err = q.locate(ctx, at)
		return len(found.List) > 0, err
	})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	file := ""
	for _, l := range found.List[:min(len(found.List), maxPlaces)] {
		if file != "" && l.Path != file {
			b.WriteByte('\n')
		}
		file = l.Path
		fmt.Fprintf(&b, "%s: %s\n", q.at(l), cutLine(strings.TrimSpace(l.Text), maxShownLine))
	}
	if file == "" {
		fmt.Fprintf(&b, "no %s of %s found\n", strings.ReplaceAll(q.in.Action, "_", " "), q.in.Symbol)
	}
	return b.String() + rest(len(found.List)-maxPlaces, found.More, found.Loading), nil
}

// rest names the parts that an answer lacks.
func rest(left, more int, loading bool) string {
	text := ""
	if n := max(left, 0) + more; n > 0 {
		text = fmt.Sprintf("+%d more\n", n)
	}
	if loading {
		text += "[the language server is still loading the project; there may be more]\n"
	}
	return text
}

// at writes a place as path:line:column, both from 1 and in characters.
func (q question) at(l lsp.Location) string {
	column := l.Start.Byte
	if l.Text != "" {
		column = utf8.RuneCountInString(l.Text[:min(column, len(l.Text))])
	}
	return fmt.Sprintf("%s:%d:%d", Shown(q.c, l.Path), l.Start.Line+1, column+1)
}

func (q question) hover(ctx context.Context) (string, error) {
	text := ""
	err := q.each(ctx, func(at lsp.Position) (bool, error) {
		var err error
		text, err = q.m.Hover(ctx, q.path, at)
		return text != "", err
	})
	if err == nil && text == "" {
		text = "the language server says nothing of " + q.in.Symbol
	}
	return text, err
}

func (q question) outline(ctx context.Context) (string, error) {
	symbols, err := q.m.DocumentSymbols(ctx, q.path)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, s := range symbols.List[:min(len(symbols.List), maxOutline)] {
		line := fmt.Sprintf("%d: %s%s %s %s", s.Location.Start.Line+1, strings.Repeat("  ", s.Depth), s.Kind, s.Name, s.Detail)
		b.WriteString(cutLine(strings.Join(strings.Split(strings.TrimSpace(line), "\n"), " "), maxShownLine) + "\n")
	}
	if b.Len() == 0 {
		b.WriteString(Shown(q.c, q.path) + " declares nothing\n")
	}
	return b.String() + rest(len(symbols.List)-maxOutline, symbols.More, symbols.Loading), nil
}

func (q question) search(ctx context.Context) (string, error) {
	symbols, err := q.m.WorkspaceSymbols(ctx, q.in.Query, q.path)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, s := range symbols.List[:min(len(symbols.List), maxPlaces)] {
		in := ""
		if s.Container != "" {
			in = " in " + s.Container
		}
		fmt.Fprintf(&b, "%s: %s %s%s\n", q.at(s.Location), s.Kind, s.Name, in)
	}
	if b.Len() == 0 {
		fmt.Fprintf(&b, "nothing is called like %s\n", q.in.Query)
	}
	return b.String() + rest(len(symbols.List)-maxPlaces, symbols.More, symbols.Loading), nil
}

func (q question) diagnose(ctx context.Context) (string, error) {
	r, err := q.m.Diagnostics(ctx, q.path, diagnoseTime)
	if err != nil {
		return "", err
	}
	text := problems(q.c, r.List, maxProblems) + rest(len(r.List)-maxProblems, r.More, false)
	if text == "" && r.Settled {
		text = "no problems in " + Shown(q.c, q.path)
	}
	switch {
	case r.Loading:
		text += rest(0, 0, true)
	case !r.Settled:
		text += "[the language server is not done with the file; there may be more]"
	}
	return text, nil
}

// problems writes diagnostics, errors first.
func problems(c *tool.Call, list []lsp.Diagnostic, most int) string {
	rank := []string{lsp.Error, lsp.Warning, "info", "hint"}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b lsp.Diagnostic) int {
		return cmp.Compare(slices.Index(rank, a.Severity), slices.Index(rank, b.Severity))
	})
	q := question{c: c}
	var b strings.Builder
	for _, d := range list[:min(len(list), most)] {
		by := strings.TrimSpace(d.Source + " " + d.Code)
		if by != "" {
			by = " (" + by + ")"
		}
		fmt.Fprintf(&b, "%s: %s: %s%s\n", q.at(d.Location), d.Severity, strings.Join(strings.Fields(d.Message), " "), by)
	}
	return b.String()
}

// meant lists the possible places of the call's symbol, the most likely first. There is always one.
func (q question) meant(ctx context.Context) ([]lsp.Position, error) {
	data, err := readWhole(ctx, q.c, q.path)
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(data, []byte("\n")) + 1; q.in.Line > n {
		return nil, fmt.Errorf("%s has %s", Shown(q.c, q.path), text.Count(n, "line"))
	}
	all := lsp.Standing(string(data), q.in.Symbol)
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no %s", Shown(q.c, q.path), q.in.Symbol)
	}
	if q.in.Line > 0 {
		here := slices.DeleteFunc(slices.Clone(all), func(p lsp.Position) bool { return p.Line != q.in.Line-1 })
		if len(here) == 0 {
			return nil, fmt.Errorf("line %d of %s has no %s; it stands in %s", q.in.Line, Shown(q.c, q.path), q.in.Symbol, linesOf(all))
		}
		return here, nil
	}
	declared, err := q.m.Declared(ctx, q.path, q.in.Symbol)
	switch {
	case err != nil:
		return nil, err
	case len(declared) == 1:
		return declared, nil
	case len(declared) > 1:
		return nil, fmt.Errorf("%s declares %s in %s; give the line you mean", Shown(q.c, q.path), q.in.Symbol, linesOf(declared))
	case q.in.Action == "rename" && len(all) > 1:
		return nil, fmt.Errorf("%s stands in %s of %s; give the line of the one you mean", q.in.Symbol, linesOf(all), Shown(q.c, q.path))
	}
	return all, nil
}

// linesOf names the lines of places.
func linesOf(list []lsp.Position) string {
	var lines []string
	for _, p := range list {
		if n := fmt.Sprint(p.Line + 1); !slices.Contains(lines, n) {
			lines = append(lines, n)
		}
	}
	text := strings.Join(lines[:min(len(lines), 10)], ", ")
	if n := len(lines) - 10; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if len(lines) == 1 {
		return "line " + text
	}
	return "lines " + text
}

// diagnosing adds to the result of a tool the errors and warnings caused by its changes, if a language server
// runs for the files. It never fails a call.
func diagnosing(m *lsp.Manager, t tool.Tool) tool.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
		r, err := run(ctx, c)
		if err != nil {
			return r, err
		}
		if text := news(ctx, m, c, r.Files); text != "" {
			r.Parts = append(slices.Clip(r.Parts), llm.Text{Text: text})
		}
		return r, nil
	}
	return t
}

// news describes the new errors and warnings in written files.
func news(ctx context.Context, m *lsp.Manager, c *tool.Call, files []tool.File) string {
	ctx, cancel := context.WithTimeout(ctx, newsTime)
	defer cancel()
	end, _ := ctx.Deadline()
	var b strings.Builder
	left, seen := maxNews, 0
	for _, f := range files {
		if !f.Written || f.Digest == "" || seen == maxNewsOf || left == 0 {
			continue
		}
		r, ok := m.News(ctx, f.Path, time.Until(end)-newsTime/10)
		if !ok {
			continue
		}
		seen++
		if len(r.List) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\ndiagnostics of %s:\n%s", Shown(c, f.Path), problems(c, r.List, left)+rest(len(r.List)-left, 0, false))
		left -= min(left, len(r.List))
	}
	return b.String()
}
