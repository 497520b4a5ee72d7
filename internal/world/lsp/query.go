package lsp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/base/text"
)

const (
	maxFound   = 200      // locations of one response
	maxSymbols = 2000     // symbols of one response
	maxHover   = 16 << 10 // bytes
	maxDepth   = 32       // nesting of symbols
)

// Location is a place in a file.
type Location struct {
	Path       string
	Start, End Position
	// Text is the line of Start. It is empty for files outside of the workspace, which are not read: the Byte
	// of their positions may be wrong on lines that are not plain ASCII.
	Text string
}

// Found is a list of places.
type Found struct {
	List    []Location // by path and position
	More    int        // left out
	Loading bool       // the server has not read the whole project yet
}

// Definition finds the definition of the symbol at a position.
func (m *Manager) Definition(ctx context.Context, path string, at Position) (Found, error) {
	return m.locate(ctx, "textDocument/definition", path, at)
}

// TypeDefinition finds the definition of the type of the symbol at a position.
func (m *Manager) TypeDefinition(ctx context.Context, path string, at Position) (Found, error) {
	return m.locate(ctx, "textDocument/typeDefinition", path, at)
}

// Implementation finds implementations of the interface or method at a position, or the interfaces that it
// implements.
func (m *Manager) Implementation(ctx context.Context, path string, at Position) (Found, error) {
	return m.locate(ctx, "textDocument/implementation", path, at)
}

// References finds all uses of the symbol at a position, including its declaration.
func (m *Manager) References(ctx context.Context, path string, at Position) (Found, error) {
	return m.locate(ctx, "textDocument/references", path, at)
}

func (m *Manager) locate(ctx context.Context, method, path string, at Position) (Found, error) {
	var out Found
	err := m.query(ctx, path, func(ctx context.Context, c *client) error {
		var list []wireLocation
		err := c.patiently(ctx, func() (bool, error) {
			o, err := c.sync(ctx, path)
			if err != nil {
				return false, err
			}
			params := o.at(at)
			if method == "textDocument/references" {
				params["context"] = map[string]any{"includeDeclaration": true}
			}
			var raw json.RawMessage
			if err := c.ask(ctx, method, params, &raw); err != nil {
				return false, err
			}
			list, err = oneOrMany[wireLocation](raw)
			return len(list) > 0, err
		})
		if err == nil {
			out = newReader(ctx, c).found(list)
			out.Loading = c.loading()
		}
		return err
	})
	return out, err
}

// patiently repeats a query, when the server is no longer busy or half of the time is over, if the server may
// not have read the whole project: it found nothing and is busy, or it was busy for the first time.
func (c *client) patiently(ctx context.Context, ask func() (found bool, err error)) error {
	before := c.loading()
	found, err := ask()
	first := c.firstLoad()
	if err != nil || found && !first || !before && !first && !c.loading() {
		return err
	}
	end, _ := ctx.Deadline() // every query has one
	half, cancel := context.WithTimeout(ctx, time.Until(end)/2)
	defer cancel()
	if err := c.idle(half); err != nil && half.Err() == nil {
		return err
	}
	_, err = ask()
	return err
}

// Hover returns the server's description of the symbol at a position, as plain text; empty if there is none.
func (m *Manager) Hover(ctx context.Context, path string, at Position) (string, error) {
	text := ""
	err := m.query(ctx, path, func(ctx context.Context, c *client) error {
		return c.patiently(ctx, func() (bool, error) {
			o, err := c.sync(ctx, path)
			if err != nil {
				return false, err
			}
			var answer struct {
				Contents json.RawMessage `json:"contents"`
			}
			err = c.ask(ctx, "textDocument/hover", o.at(at), &answer)
			text = endsOf(hoverText(answer.Contents), maxHover)
			return text != "", err
		})
	})
	return text, err
}

// Symbol is a named declaration.
type Symbol struct {
	Name      string
	Kind      string // "function", "method", "struct", ...
	Detail    string // such as the signature; may be empty
	Container string // the enclosing symbol; may be empty
	Depth     int    // number of enclosing symbols in the list
	Location  Location
}

// Symbols is a list of symbols.
type Symbols struct {
	List    []Symbol
	More    int  // left out
	Loading bool // the server has not read the whole project yet
}

// DocumentSymbols lists the declarations in a file, in order.
func (m *Manager) DocumentSymbols(ctx context.Context, path string) (Symbols, error) {
	var out Symbols
	err := m.query(ctx, path, func(ctx context.Context, c *client) error {
		o, err := c.sync(ctx, path)
		if err != nil {
			return err
		}
		var list []wireSymbol
		if err := c.ask(ctx, "textDocument/documentSymbol", map[string]any{"textDocument": o.id()}, &list); err != nil {
			return err
		}
		f := &flattener{o: o}
		f.add(list, "", 0)
		slices.SortStableFunc(f.out.List, func(a, b Symbol) int {
			return comparePositions(a.Location.Start, b.Location.Start)
		})
		out = f.out
		return nil
	})
	return out, err
}

// flattener flattens nested symbols.
type flattener struct {
	o   opened
	out Symbols
}

func (f *flattener) add(list []wireSymbol, container string, depth int) {
	for _, w := range list {
		if len(f.out.List) >= maxSymbols || depth > maxDepth {
			f.out.More++
			continue
		}
		at := w.Location.Range
		if w.Selection != nil {
			at = *w.Selection
		}
		s := w.symbol(f.o.location(f.o.path, at))
		s.Container, s.Depth = cmp.Or(s.Container, container), depth
		f.out.List = append(f.out.List, s)
		f.add(w.Children, s.Name, depth+1)
	}
}

func (w wireSymbol) symbol(at Location) Symbol {
	return Symbol{
		Name: endsOf(w.Name, 300), Kind: kind(w.Kind),
		Detail: endsOf(w.Detail, 300), Container: endsOf(w.Container, 300), Location: at,
	}
}

// WorkspaceSymbols lists the symbols matching query in the project of path, which is a file or the workspace.
// For the workspace it queries every running server, or if none is running, the first with a project there.
func (m *Manager) WorkspaceSymbols(ctx context.Context, query, path string) (Symbols, error) {
	var out Symbols
	ask := func(ctx context.Context, c *client) error {
		more, err := c.workspaceSymbols(ctx, query)
		out.List, out.More, out.Loading = append(out.List, more.List...), out.More+more.More, out.Loading || more.Loading
		return err
	}
	if all := m.all(); path == m.Env.Root && len(all) > 0 {
		for _, t := range all {
			if err := m.with(ctx, t, ask); err != nil {
				return out, err
			}
		}
		return out, nil
	}
	err := m.query(ctx, path, ask)
	return out, err
}

// all lists the running servers that can list symbols.
func (m *Manager) all() []target {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []target
	for k, s := range m.slots {
		if s.client != nil && s.client.alive() && s.client.offers("workspace/symbol") {
			list = append(list, target{s.client.server, k.root})
		}
	}
	slices.SortStableFunc(list, func(a, b target) int {
		return cmp.Or(cmp.Compare(a.root, b.root), cmp.Compare(a.server.Name, b.server.Name))
	})
	return list
}

func (c *client) workspaceSymbols(ctx context.Context, query string) (Symbols, error) {
	var out Symbols
	var list []wireSymbol
	err := c.patiently(ctx, func() (bool, error) {
		err := c.refresh(ctx)
		if err == nil {
			err = c.ask(ctx, "workspace/symbol", map[string]any{"query": query}, &list)
		}
		return len(list) > 0, err
	})
	if err != nil {
		return out, err
	}
	r := newReader(ctx, c)
	for _, w := range list {
		if len(out.List) >= maxFound {
			out.More++
			continue
		}
		if at, ok := r.location(w.Location); ok {
			out.List = append(out.List, w.symbol(at))
		}
	}
	out.Loading = c.loading()
	return out, nil
}

// A reader converts locations, and reads each file once.
type reader struct {
	ctx    context.Context
	c      *client
	sheets map[string]sheet
}

func newReader(ctx context.Context, c *client) *reader { return &reader{ctx, c, map[string]sheet{}} }

// found converts a server's locations. Those that are not files are left out.
func (r *reader) found(list []wireLocation) Found {
	var out Found
	seen := map[wireLocation]bool{}
	for _, w := range list {
		name, at := w.place()
		if w = (wireLocation{URI: name, Range: at}); seen[w] {
			continue
		}
		seen[w] = true
		if len(out.List) >= maxFound {
			out.More++
			continue
		}
		if l, ok := r.location(w); ok {
			out.List = append(out.List, l)
		}
	}
	slices.SortStableFunc(out.List, func(a, b Location) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), comparePositions(a.Start, b.Start), comparePositions(a.End, b.End))
	})
	return out
}

func comparePositions(a, b Position) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Byte, b.Byte))
}

func (r *reader) location(w wireLocation) (Location, bool) {
	name, at := w.place()
	path, err := pathOf(name)
	if err != nil {
		return Location{}, false
	}
	resolved, err := r.c.env.Files.Resolve(r.ctx, path)
	if err != nil {
		return Location{}, false
	}
	if !text.Inside(r.c.env.Root, resolved) {
		return Location{Path: resolved, Start: plain(at.Start), End: plain(at.End)}, true
	}
	s, ok := r.sheets[resolved]
	if !ok {
		text, _, _ := readText(r.ctx, r.c.env.Files, resolved) // without the text the place is still returned
		s = newSheet(text, r.c.utf8)
		r.sheets[resolved] = s
	}
	if s.text == "" {
		return Location{Path: resolved, Start: plain(at.Start), End: plain(at.End)}, true
	}
	return s.location(resolved, at), true
}

func (s sheet) location(path string, at wireRange) Location {
	return Location{Path: path, Start: s.position(at.Start), End: s.position(at.End), Text: s.line(at.Start.Line)}
}

// plain converts a position without its text.
func plain(w wirePosition) Position { return Position{max(w.Line, 0), max(w.Character, 0)} }

// FileEdit is a file after an edit.
type FileEdit struct {
	Path          string
	Before, After string
}

// Rename returns the changes for renaming the symbol at a position. It changes nothing. Files outside of the
// workspace, and files to create, move or delete, are errors.
func (m *Manager) Rename(ctx context.Context, path string, at Position, name string) ([]FileEdit, error) {
	var out []FileEdit
	err := m.query(ctx, path, func(ctx context.Context, c *client) error {
		var edit workspaceEdit
		err := c.patiently(ctx, func() (bool, error) {
			o, err := c.sync(ctx, path)
			if err != nil {
				return false, err
			}
			params := o.at(at)
			params["newName"] = name
			edit = workspaceEdit{}
			err = c.ask(ctx, "textDocument/rename", params, &edit)
			return true, err
		})
		if err != nil {
			return err
		}
		if out, err = c.edits(ctx, edit); err != nil {
			return fmt.Errorf("what %s would change can't be used: %w", c.server.Name, err)
		}
		return nil
	})
	return out, err
}
