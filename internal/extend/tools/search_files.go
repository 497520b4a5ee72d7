package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

//go:embed search_files.md
var searchFilesDoc string

const (
	defaultMatches = 200
	maxMatches     = 1000
	maxContext     = 20
	maxShownLine   = 300 // bytes of a line in the result
)

type searchArgs struct {
	Pattern    string `json:"pattern" jsonschema:"regular expression"`
	Path       string `json:"path,omitempty" jsonschema:"directory or file"`
	Glob       string `json:"glob,omitempty" jsonschema:"files such as *.go or src/**/*.ts"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"any case"`
	Context    int    `json:"context,omitempty" jsonschema:"lines around each match"`
	Max        int    `json:"max,omitempty" jsonschema:"most matches; 200 if not given"`
}

func searchFiles() tool.Tool {
	t := tool.New("search_files", searchFilesDoc, runSearch)
	t.Effects = pathEffect(tool.Read, func(in searchArgs) string { return in.Path })
	return t
}

func runSearch(ctx context.Context, c *tool.Call, in searchArgs) (tool.Result, error) {
	s, err := newSearch(in)
	if err != nil {
		return tool.Result{}, err
	}
	path, err := Resolve(ctx, c, in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	list, err := s.candidates(ctx, c, path)
	if err != nil {
		return tool.Result{}, err
	}
	text, err := s.run(ctx, c, list)
	return tool.Text(text), err
}

// search is one search, ready to run.
type search struct {
	scanner
	matches func(rel string) bool // by glob
	max     int
	unread  int
}

func newSearch(in searchArgs) (*search, error) {
	if in.Pattern == "" || strings.Contains(in.Pattern, "\n") {
		return nil, errors.New("pattern must be a regular expression for one line")
	}
	expr := in.Pattern
	if in.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("%w (RE2 syntax: no look-around, no back-references; escape ( [ { . * with a backslash to match them)", err)
	}
	s := &search{
		scanner: scanner{re: re, literal: requiredLiteral(expr), context: min(max(in.Context, 0), maxContext)},
		matches: func(string) bool { return true },
		max:     min(in.Max, maxMatches),
	}
	if in.Max <= 0 {
		s.max = defaultMatches
	}
	if in.Glob != "" {
		s.matches, err = Matcher(in.Glob)
	}
	return s, err
}

// candidates lists the files to search, in the order of their paths.
func (s *search) candidates(ctx context.Context, c *tool.Call, path string) ([]string, error) {
	f, err := c.Env.Files.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(ctx, c, path, err)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	f.Close()
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var list []string
	s.unread, err = Below(ctx, c, path, func(file string) error {
		if rel, err := filepath.Rel(path, file); err == nil && s.matches(filepath.ToSlash(rel)) {
			list = append(list, file)
		}
		return nil
	})
	return list, err
}

// run searches the files, a batch at a time with all processors, and stops after the batch that has enough
// matches. The result depends only on the order of the files, never on timing.
func (s *search) run(ctx context.Context, c *tool.Call, list []string) (string, error) {
	var r report
	for len(list) > 0 && r.matches < s.max {
		batch := list[:min(len(list), 256)]
		list = list[len(batch):]
		found := make([]scanned, len(batch))
		s.scanAll(ctx, c, batch, found)
		if err := ctx.Err(); err != nil {
			return "", err
		}
		for i, f := range found {
			r.add(Shown(c, batch[i]), f, s.max)
		}
	}
	r.more = r.more || r.matches >= s.max && len(list) > 0
	r.skipped += s.unread
	return r.text(), nil
}

// scanAll fills found, one for each path of the batch.
func (s *search) scanAll(ctx context.Context, c *tool.Call, batch []string, found []scanned) {
	todo := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 8, len(batch)) {
		workers.Go(func() {
			var buf []byte
			for i := range todo {
				found[i], buf = s.scanFile(ctx, c.Env.Files, batch[i], buf, s.max)
			}
		})
	}
	for i := range batch {
		todo <- i
	}
	close(todo)
	workers.Wait()
}

// report collects the matches, file by file.
type report struct {
	out      strings.Builder
	searched int
	binary   int
	skipped  int // unreadable or too large
	matches  int
	more     bool // there are matches beyond those in out
}

func (r *report) add(name string, f scanned, most int) {
	switch {
	case f.binary:
		r.binary++
		return
	case f.failed:
		r.skipped++
		return
	}
	r.searched++
	if len(f.hits) == 0 {
		return
	}
	if r.matches >= most {
		r.more = true
		return
	}
	if room := most - r.matches; len(f.hits) > room {
		f.hits, r.more = f.hits[:room], true
	}
	r.more = r.more || f.more
	r.matches += len(f.hits)
	if r.out.Len() > 0 {
		r.out.WriteByte('\n')
	}
	r.out.WriteString(name + "\n")
	writeHits(&r.out, f.hits)
}

// writeHits writes matching lines with a colon and those around with a dash.
// Lines that belong to two matches are written once.
func writeHits(b *strings.Builder, hits []hit) {
	last := 0
	for i, h := range hits {
		start := h.line - len(h.before)
		if i > 0 && start > last+1 && (len(h.before) > 0 || len(hits[i-1].after) > 0) {
			b.WriteString("--\n")
		}
		for j, text := range h.before {
			if n := start + j; n > last {
				fmt.Fprintf(b, "%d- %s\n", n, text)
			}
		}
		fmt.Fprintf(b, "%d: %s\n", h.line, h.text)
		last = h.line
		for j, text := range h.after {
			n := h.line + 1 + j
			if i+1 < len(hits) && n >= hits[i+1].line {
				break
			}
			fmt.Fprintf(b, "%d- %s\n", n, text)
			last = n
		}
	}
}

func (r *report) text() string {
	var notes []string
	if r.matches == 0 {
		notes = append(notes, "no match in "+text.Count(r.searched, "file")+"; ignored files are not searched")
	}
	if r.more {
		notes = append(notes, fmt.Sprintf("stopped after %s; narrow the pattern, path or glob", text.Count(r.matches, "matching line")))
	}
	if r.binary > 0 {
		notes = append(notes, text.Count(r.binary, "binary file")+" skipped")
	}
	if r.skipped > 0 {
		notes = append(notes, fmt.Sprintf("%d could not be read or are too big", r.skipped))
	}
	text := r.out.String()
	if notes != nil {
		text += "[" + strings.Join(notes, "; ") + "]"
	}
	return strings.TrimSuffix(text, "\n")
}
