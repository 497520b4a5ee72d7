package heal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// Fact is a part of requests that a server refuses for one model.
type Fact struct {
	// Field is the refused part: the name of a field at any depth, or "tool NAME" or "role NAME".
	Field string `json:"field"`
	// To replaces it: another name for a field or a role, behind "as ", or a JSON value; empty means it is removed.
	To   string    `json:"to,omitempty"`
	Said string    `json:"said"` // the refusal, for people
	At   time.Time `json:"at"`
}

// Words describes the effect of a fact for people.
func (f Fact) Words() string {
	what, other := f.Field, ""
	if strings.HasPrefix(f.To, "as ") {
		other = f.To[3:]
	}
	switch {
	case other != "" && strings.HasPrefix(what, "role "):
		return fmt.Sprintf("what would be said in the %s goes in the role %s", what, other)
	case other != "":
		return fmt.Sprintf("%s is sent as %s", what, other)
	case f.To != "":
		return fmt.Sprintf("%s is sent as %s", what, f.To)
	case strings.HasPrefix(what, "tool "):
		return "the " + what + " is left out"
	}
	return what + " is left out"
}

// fades is how long a fact is used: servers change.
const fades = 30 * 24 * time.Hour

// Facts are the facts about one model at one endpoint. Safe for concurrent use.
type Facts struct {
	// Path is the file that stores them; empty means they are lost when the program ends.
	Path string
	// Route is the name of the model, for people.
	Route string

	mu  sync.Mutex
	own []Fact
}

// stored is the content of a file.
type stored struct {
	Route string `json:"route"`
	Facts []Fact `json:"facts"`
}

// All returns the facts in the files of a folder, by model name.
func All(dir string) []*Facts {
	var out []*Facts
	paths, _ := filepath.Glob(filepath.Join(dir, "*.json")) // the pattern is valid
	for _, path := range paths {
		f := &Facts{Path: path}
		data, err := keep.Read(path)
		var s stored
		if err == nil && json.Unmarshal(data, &s) == nil && s.Route != "" {
			f.Route = s.Route
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b *Facts) int { return strings.Compare(a.Route, b.Route) })
	return out
}

// List returns the facts that have not faded, the oldest first. For a file that can't be read it returns none.
func (f *Facts) List() []Fact {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list()
}

func (f *Facts) list() []Fact {
	all := slices.Clone(f.own)
	if f.Path != "" {
		var s stored
		if data, err := keep.Read(f.Path); err == nil && json.Unmarshal(data, &s) == nil {
			all = s.Facts
		}
	}
	return slices.DeleteFunc(all, func(f Fact) bool { return time.Since(f.At) > fades })
}

// Learn adds a fact. It replaces an earlier one about the same field.
func (f *Facts) Learn(ctx context.Context, fact Fact) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Path != "" {
		if err := keep.MakeDir(filepath.Dir(f.Path)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		lock, err := keep.LockFile(ctx, f.Path+".lock", lockTime)
		if err != nil {
			return err
		}
		defer func() { _ = lock.Close() }() // it was opened for reading
	}
	fact.At = time.Now()
	all := append(slices.DeleteFunc(f.list(), func(old Fact) bool { return old.Field == fact.Field }), fact)
	if f.Path == "" {
		f.own = all
		return nil
	}
	data, err := json.MarshalIndent(stored{f.Route, all}, "", "\t")
	if err != nil {
		return err
	}
	return keep.Write(f.Path, data)
}

const lockTime = 5 * time.Second
