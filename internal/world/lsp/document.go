package lsp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/inspan/inspan/tool"
)

const (
	maxDocument = 4 << 20 // bytes of a file that servers can open
	maxOpen     = 64      // open documents of a server
)

// A document is a file that is open in the server. Its text is that on disk: the server never has unsaved
// changes.
type document struct {
	version int
	text    string
	stamp   stamp
	used    time.Time
	changed time.Time // when the server was informed
}

// stamp detects possible changes of a file.
type stamp struct {
	size     int64
	modified time.Time
}

// opened is an open document for a query.
type opened struct {
	sheet
	path    string
	uri     string
	version int
	changed time.Time
}

// at returns a position in the protocol's format.
func (o opened) at(p Position) map[string]any {
	return map[string]any{"textDocument": o.id(), "position": o.wire(p)}
}

func (o opened) id() map[string]any { return map[string]any{"uri": o.uri} }

// sync informs the server of all changes on disk, and opens a file.
func (c *client) sync(ctx context.Context, path string) (opened, error) {
	if err := c.catchUp(ctx, func() error { return c.show(ctx, path) }); err != nil {
		return opened{}, err
	}
	defer func() { <-c.syncing }()
	d := c.docs[path]
	return opened{newSheet(d.text, c.utf8), path, uri(path), d.version, d.changed}, nil
}

// refresh informs the server of all changes on disk.
func (c *client) refresh(ctx context.Context) error {
	if err := c.catchUp(ctx, func() error { return nil }); err != nil {
		return err
	}
	<-c.syncing
	return nil
}

// catchUp acquires syncing, and holds it on success.
func (c *client) catchUp(ctx context.Context, then func() error) error {
	select {
	case c.syncing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := c.changes(ctx)
	if err == nil {
		err = then()
	}
	if err != nil {
		<-c.syncing
	}
	return err
}

// changes reports changes of open documents, then of other files.
func (c *client) changes(ctx context.Context) error {
	for path, d := range c.docs {
		now, err := stat(ctx, c.env.Files, path)
		if err == nil && now == d.stamp {
			continue
		}
		if err == nil {
			err = c.show(ctx, path)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err != nil {
			c.hide(path) // it is gone, or not text any more
		}
	}
	events, err := c.watch.changes(ctx, c.env.Files, c.root, c.server)
	if err != nil || len(events) == 0 {
		return err
	}
	c.touch()
	return c.conn.Notify("workspace/didChangeWatchedFiles", map[string]any{"changes": events})
}

// show updates the server's document from disk.
func (c *client) show(ctx context.Context, path string) error {
	text, stamp, err := readText(ctx, c.env.Files, path)
	if err != nil {
		return err
	}
	d := c.docs[path]
	if d == nil {
		if len(c.docs) >= maxOpen {
			c.hide(c.oldest())
		}
		now := c.touch()
		c.docs[path] = &document{version: 1, text: text, stamp: stamp, used: now, changed: now}
		return c.conn.Notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{
			"uri": uri(path), "languageId": c.server.language(path), "version": 1, "text": text,
		}})
	}
	d.used, d.stamp = time.Now(), stamp
	if d.text == text {
		return nil
	}
	d.text, d.changed = text, c.touch()
	d.version++
	err = c.conn.Notify("textDocument/didChange", map[string]any{
		"textDocument":   map[string]any{"uri": uri(path), "version": d.version},
		"contentChanges": []map[string]any{{"text": text}},
	})
	if err != nil {
		return err
	}
	// Some servers check a document when it is saved.
	save := c.caps.saving()
	if !save.wanted {
		return nil
	}
	params := map[string]any{"textDocument": map[string]any{"uri": uri(path)}}
	if save.text {
		params["text"] = text
	}
	return c.conn.Notify("textDocument/didSave", params)
}

// hide closes a document.
func (c *client) hide(path string) {
	delete(c.docs, path)
	c.mu.Lock()
	delete(c.pushed, path) // its later reports have other versions
	c.mu.Unlock()
	c.touch()
	// fails only if the server is gone
	_ = c.conn.Notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": uri(path)}})
}

func (c *client) oldest() string {
	oldest := ""
	for path, d := range c.docs {
		if oldest == "" || d.used.Before(c.docs[oldest].used) {
			oldest = path
		}
	}
	return oldest
}

// touch records that the server is informed of a change now.
func (c *client) touch() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.touched = time.Now()
	return c.touched
}

func stat(ctx context.Context, files tool.Files, path string) (stamp, error) {
	f, err := files.Open(ctx, path)
	if err != nil {
		return stamp{}, err
	}
	defer f.Close()
	return stampOf(f)
}

func stampOf(f fs.File) (stamp, error) {
	info, err := f.Stat()
	if err != nil {
		return stamp{}, err
	}
	if !info.Mode().IsRegular() {
		return stamp{}, errors.New("not a regular file")
	}
	return stamp{info.Size(), info.ModTime()}, nil
}

// readText reads a file that servers can open.
func readText(ctx context.Context, files tool.Files, path string) (string, stamp, error) {
	f, err := files.Open(ctx, path)
	if err != nil {
		return "", stamp{}, err
	}
	defer f.Close()
	s, err := stampOf(f)
	if err != nil {
		return "", stamp{}, fmt.Errorf("%s: %w", path, err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	switch {
	case err != nil:
		return "", stamp{}, err
	case len(data) > maxDocument:
		return "", stamp{}, fmt.Errorf("%s is larger than %d MiB, the most a language server is given", path, maxDocument>>20)
	case !utf8.Valid(data):
		return "", stamp{}, fmt.Errorf("%s is not UTF-8 text", path)
	}
	return string(data), s, nil
}

const maxWatched = 20_000 // files and directories that are watched for changes

// A watch finds changed files of a project. The first look finds nothing. In projects with more than maxWatched
// entries, changes of the others are missed, unless they are open.
type watch struct {
	seen map[string]stamp // nil before the first look
}

// fileEvent is a change of a file.
type fileEvent struct {
	URI  string `json:"uri"`
	Type int    `json:"type"`
}

// Types of changes.
const (
	created = 1
	changed = 2
	deleted = 3
)

func (w *watch) changes(ctx context.Context, files tool.Files, root string, server Server) ([]fileEvent, error) {
	now := map[string]stamp{}
	left := maxWatched
	for dirs := []string{root}; len(dirs) > 0 && left > 0; dirs = dirs[1:] {
		below := look(ctx, files, dirs[0], server, now)
		left -= below.entries
		dirs = append(dirs, below.dirs...)
	}
	if err := ctx.Err(); err != nil {
		return nil, err // files that were not examined are not deleted
	}
	before := w.seen
	w.seen = now
	if before == nil {
		return nil, nil
	}
	return compare(before, now), nil
}

// level is the content of one directory.
type level struct {
	dirs    []string
	entries int
}

// look records the files in a directory that concern the server. Unreadable ones count as missing.
func look(ctx context.Context, files tool.Files, dir string, server Server, now map[string]stamp) level {
	var l level
	f, err := files.Open(ctx, dir)
	if err != nil {
		return l
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return l
	}
	entries, _ := d.ReadDir(maxWatched) // the readable ones suffice
	l.entries = len(entries)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() && watched(e.Name()) {
			l.dirs = append(l.dirs, path)
		}
		if !e.Type().IsRegular() || server.language(path) == "" && !slices.Contains(server.RootMarkers, e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil {
			now[path] = stamp{info.Size(), info.ModTime()}
		}
	}
	return l
}

// watched excludes directories with generated or downloaded files.
func watched(name string) bool {
	switch name {
	case "node_modules", "vendor", "target", "__pycache__":
		return false
	}
	return !strings.HasPrefix(name, ".")
}

func compare(before, now map[string]stamp) []fileEvent {
	var events []fileEvent
	for path, s := range now {
		switch old, ok := before[path]; {
		case !ok:
			events = append(events, fileEvent{uri(path), created})
		case old != s:
			events = append(events, fileEvent{uri(path), changed})
		}
	}
	for path := range before {
		if _, ok := now[path]; !ok {
			events = append(events, fileEvent{uri(path), deleted})
		}
	}
	return events
}
