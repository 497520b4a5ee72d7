package lsp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

const (
	maxPushed      = 2000 // files with diagnostics
	maxDiagnostics = 300  // of one file
	// quiet is how long nothing new must come until a server counts as done.
	quiet = 250 * time.Millisecond
	// distant is how long a server has to report on a file after others changed. Most report nothing if nothing
	// is new.
	distant = time.Second
)

// Severities of diagnostics; others are "info" and "hint".
const (
	Error   = "error"
	Warning = "warning"
)

// Diagnostic is a problem that a server reports in a file.
type Diagnostic struct {
	Location Location
	Severity string
	Source   string // the tool that found it; may be empty
	Code     string // may be empty
	Message  string
}

// Report is the problems that a server reports in a file.
type Report struct {
	List []Diagnostic // by position
	More int          // left out
	// Settled says that the server has finished with the current file. Otherwise the time was over, and there
	// may be more.
	Settled bool
	// Loading says that the server has not read the whole project yet.
	Loading bool
}

// pushed is a server's unsolicited report on a file.
type pushed struct {
	at      time.Time
	version int // of the document; 0 means unknown
	list    []wireDiagnostic
	more    int
}

func (c *client) publish(params json.RawMessage) {
	var in struct {
		URI     string           `json:"uri"`
		Version int              `json:"version"`
		List    []wireDiagnostic `json:"diagnostics"`
	}
	if json.Unmarshal(params, &in) != nil {
		return
	}
	path, err := pathOf(in.URI)
	if err != nil {
		return
	}
	list, more := bounded(in.List)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.pushed[path]; !known && len(c.pushed) >= maxPushed {
		return
	}
	c.pushed[path] = pushed{time.Now(), in.Version, list, more}
	c.stir()
}

// bounded keeps the most severe ones.
func bounded(list []wireDiagnostic) ([]wireDiagnostic, int) {
	slices.SortStableFunc(list, func(a, b wireDiagnostic) int { return cmp.Compare(max(a.Severity, 1), max(b.Severity, 1)) })
	n := min(len(list), maxDiagnostics)
	kept := slices.Clone(list[:n])
	for i := range kept {
		kept[i].Message, kept[i].Source = endsOf(kept[i].Message, maxText), endsOf(kept[i].Source, 100)
	}
	return kept, len(list) - n
}

// Diagnostics returns the problems in the current file, and waits at most wait until the server has finished
// with it. A server that has not responded yet first reads the project, and gets at least as much time as for
// any other response.
func (m *Manager) Diagnostics(ctx context.Context, path string, wait time.Duration) (Report, error) {
	var out Report
	err := m.query(ctx, path, func(ctx context.Context, c *client) error {
		var err error
		if !c.answered.Load() {
			wait = max(wait, cmp.Or(m.answerIn, queryTime))
		}
		out, err = c.diagnose(ctx, path, wait)
		return err
	})
	return out, err
}

// News returns the problems in a file that a running server reports and did not report before the file changed:
// errors and warnings, or only errors if the file is new to the server. It waits at most wait. It returns false
// if no server is running for the file, and it starts none.
func (m *Manager) News(ctx context.Context, path string, wait time.Duration) (Report, bool) {
	c := m.running(ctx, path)
	if c == nil {
		return Report{}, false
	}
	limited, cancel := context.WithTimeout(ctx, wait+time.Second) // it may hang before it starts to wait
	defer cancel()
	old, known := c.known(path)
	r, err := c.diagnose(limited, path, wait)
	if err != nil {
		return Report{}, false
	}
	had := map[[3]string]int{}
	for _, d := range old {
		had[[3]string{severity(d.Severity), endsOf(d.Source, 100), d.Message}]++
	}
	r.List = slices.DeleteFunc(r.List, func(d Diagnostic) bool {
		k := [3]string{d.Severity, d.Source, d.Message}
		had[k]--
		return had[k] >= 0 || d.Severity != Error && (d.Severity != Warning || !known)
	})
	return r, true
}

// known returns the last reported problems of a file, if the server handles it.
func (c *client) known(path string) ([]wireDiagnostic, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.pushed[path]
	return p.list, ok
}

func (c *client) diagnose(ctx context.Context, path string, wait time.Duration) (Report, error) {
	o, err := c.sync(ctx, path)
	if err != nil {
		return Report{}, err
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	list, settled, err := c.pulled(limited, o)
	out := Report{Settled: settled, Loading: c.loading()}
	if err != nil && (!errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil) {
		return Report{}, err
	}
	c.mu.Lock()
	p := c.pushed[path]
	c.mu.Unlock()
	if p.version == 0 || p.version == o.version {
		list, out.More = append(list, p.list...), p.more
	}
	list, more := bounded(list)
	out.More += more
	for _, w := range list {
		out.List = append(out.List, Diagnostic{o.location(path, w.Range), severity(w.Severity), w.Source, code(w.Code), w.Message})
	}
	slices.SortStableFunc(out.List, func(a, b Diagnostic) int {
		return comparePositions(a.Location.Start, b.Location.Start)
	})
	out.List = slices.Compact(out.List)
	return out, nil
}

// pulled requests diagnostics until the server was not busy meanwhile: earlier ones may be based on part of the
// project.
func (c *client) pulled(ctx context.Context, o opened) (list []wireDiagnostic, settled bool, err error) {
	for {
		before, loads := c.loading(), c.begun()
		now, pulled, err := c.pull(ctx, o)
		if err != nil {
			return list, false, err
		}
		list = now
		if settled, err = c.settle(ctx, o, pulled); err != nil || !pulled || !before && loads == c.begun() {
			return list, settled, err
		}
	}
}

// pull requests diagnostics from servers that support it.
func (c *client) pull(ctx context.Context, o opened) (list []wireDiagnostic, pulled bool, err error) {
	if !c.offers("textDocument/diagnostic") {
		return nil, false, nil
	}
	var answer struct {
		Items []wireDiagnostic `json:"items"`
	}
	err = c.ask(ctx, "textDocument/diagnostic", map[string]any{"textDocument": o.id()}, &answer)
	list, _ = bounded(answer.Items)
	return list, true, err
}

// settle waits until the server has finished with a document.
func (c *client) settle(ctx context.Context, o opened, pulled bool) (bool, error) {
	for {
		c.mu.Lock()
		left, news := c.unsettled(o, pulled), c.news
		c.mu.Unlock()
		if left == 0 {
			return true, nil
		}
		if err := c.await(ctx, news, max(left, 0)); err != nil {
			return false, err
		}
	}
}

// unsettled returns how long a server must report nothing new until it counts as done; negative if it has not
// reported yet. The caller holds the lock.
func (c *client) unsettled(o opened, pulled bool) time.Duration {
	if len(c.busy) > 0 {
		return -1
	}
	quiet := quiet
	if !c.answered.Load() { // it may be about to report that it is busy
		quiet = distant
	}
	p, said := c.pushed[o.path]
	covers := said && (p.version >= o.version || p.version == 0 && !p.at.Before(o.changed))
	switch {
	case covers && !p.at.Before(c.touched):
		return remaining(p.at, quiet)
	case covers:
		return remaining(c.touched, distant)
	case pulled:
		return remaining(c.touched, quiet)
	}
	return -1
}

func remaining(since time.Time, d time.Duration) time.Duration {
	return max(d-time.Since(since), 0)
}
