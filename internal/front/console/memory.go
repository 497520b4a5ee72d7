package console

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/memory"
	"github.com/inspan/inspan/internal/extend/recall"
	"github.com/inspan/inspan/internal/view/words"
)

// Memory prints what is remembered; complain gets what is wrong with it.
func Memory(out, complain io.Writer, s *memory.Store) error {
	index, err := s.Index()
	for _, e := range index.Entries {
		line := fmt.Sprintf("%-8s %s [%s] %s", e.Scope, e.ID, e.Kind, e.Text)
		if e.Topic != "" {
			line += " → topic " + e.Topic
		}
		if e.Untrusted {
			line += " (unverified)"
		}
		fmt.Fprintln(out, text.Visible(line))
		if from := origin(e.Entry); from != "" {
			fmt.Fprintln(out, text.Visible("         "+from))
		}
	}
	if len(index.Entries) == 0 && err == nil {
		fmt.Fprintln(complain, "The memory is empty. The model adds entries, and so can you: inspan memory add \"...\"")
	}
	if index.Unvouched > 0 {
		fmt.Fprintln(complain, "The team's entries count as unverified until you trust the file as it is: inspan trust")
	}
	for _, p := range index.Problems {
		fmt.Fprintln(complain, text.Visible(p.String()))
	}
	return err
}

// origin says where an entry is from and how long it holds.
func origin(e memory.Entry) string {
	var parts []string
	if e.Source != "" {
		parts = append(parts, e.Source)
	}
	if !e.Date.IsZero() {
		parts = append(parts, e.Date.Format(time.DateOnly))
	}
	if !e.Expires.IsZero() {
		parts = append(parts, "until "+e.Expires.Format(time.DateOnly))
	}
	if len(e.Supersedes) > 0 {
		parts = append(parts, "supersedes "+strings.Join(e.Supersedes, ", "))
	}
	return strings.Join(parts, " · ")
}

// Topics prints the topics of a memory.
func Topics(out io.Writer, s *memory.Store) error {
	for _, scope := range memory.Scopes() {
		names, err := s.Topics(scope)
		if err != nil && !errors.Is(err, memory.ErrNoScope) {
			return err
		}
		for _, name := range names {
			fmt.Fprintf(out, "%-8s %s\n", scope, name)
		}
	}
	return nil
}

// Past prints what is found in past sessions.
func Past(out, complain io.Writer, hits []recall.Hit, behind int) {
	for _, h := range hits {
		fmt.Fprintf(out, "%s#%d  %s  %s\n    %s\n", h.Session, h.Seq,
			h.Time.Local().Format("2006-01-02 15:04"), h.Kind, words.OneLine(h.Snippet, 300))
	}
	if len(hits) == 0 {
		fmt.Fprintln(complain, "Nothing was found.")
	}
	if behind > 0 {
		fmt.Fprintf(complain, "%s not in the index yet; search again to continue.\n", text.Count(behind, "session"))
	}
}

// Topic prints a topic of a scope.
func Topic(out io.Writer, s *memory.Store, scope, name string) error {
	t, err := s.Topic(memory.Scope(scope), name)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(out, text.VisibleLines(t.Text))
	return err
}

// Forgotten tells which entry was removed.
func Forgotten(out io.Writer, e memory.Entry) {
	fmt.Fprintf(out, "forgotten: [%s] %s\n", e.Kind, text.Visible(e.Text))
}

// MemoryPaths prints where the files of each scope are.
func MemoryPaths(out io.Writer, s *memory.Store) {
	for _, scope := range memory.Scopes() {
		fmt.Fprintf(out, "%-8s %s\n", scope, s.Path(scope, ""))
	}
}
