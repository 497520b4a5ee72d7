package schedule

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

// clock formats a time for people.
func clock(at time.Time) string { return at.Local().Format("2006-01-02 15:04 MST") }

// Told writes a list of schedules for people, one per line.
func Told(out io.Writer, list []Schedule, now time.Time) error {
	if len(list) == 0 {
		return nil
	}
	w := text.NewTable(out, "NAME", "NEXT", "LAST", "RUNS")
	for _, s := range list {
		w.Row(s.ID, s.waits(now), s.lately(), words.OneLine(s.runs(), 80))
	}
	return w.Flush()
}

// Added describes the trigger of a new schedule.
func (s *Schedule) Added(out io.Writer, now time.Time) (err error) {
	switch {
	case s.Hook != nil:
		_, err = fmt.Fprintf(out, "%s waits for POST /hooks/%s at 'inspan serve', signed with this secret, which is shown only now:\n%s\n",
			s.ID, s.ID, s.Hook.Secret)
	case s.Files != "":
		_, err = fmt.Fprintf(out, "%s waits for files that are new or change: %s\n", s.ID, filepath.Join(s.Root, s.Files))
	default:
		_, err = fmt.Fprintf(out, "%s runs next at %s\n", s.ID, s.waits(now))
	}
	return err
}

// waits describes the trigger of a schedule in words.
func (s *Schedule) waits(now time.Time) string {
	switch {
	case s.Paused:
		return "paused"
	case s.Hook != nil && len(s.Hook.Events) > 0:
		return "on " + strings.Join(s.Hook.Events, ", ")
	case s.Hook != nil:
		return "on webhook"
	case s.Files != "":
		return "on " + s.Files
	case len(s.Open) > 0:
		return "soon"
	}
	for _, at := range s.Next(now, 1) {
		return clock(at)
	}
	return "never"
}

// lately returns the outcome of the last occasion, in words.
func (s *Schedule) lately() string {
	if len(s.Past) == 0 {
		return "never"
	}
	switch last := s.Past[len(s.Past)-1]; {
	case last.Skipped:
		return clock(last.At) + " left out: " + words.OneLine(last.Why, 80)
	case last.Why != "":
		return clock(last.At) + " failed: " + words.OneLine(last.Why, 160)
	default:
		return clock(last.At) + " " + last.Session
	}
}

// runs describes the work of a schedule in words.
func (s *Schedule) runs() string {
	switch {
	case len(s.Flow) > 0:
		return "workflow " + strings.Join(s.Flow, " ")
	case len(s.Learn) > 0:
		return "inspan eval learn night " + strings.Join(s.Learn, " ")
	case s.Task == "":
		return "answers steps that wait for it"
	}
	return s.Task
}

// Fill returns the workflow inputs that an event sets. Inputs that were not typed get the field of their name,
// and the input event gets the whole event, unless mapped names another field.
func (s *Schedule) Fill(inputs []string, mapped map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range inputs {
		if out[name] = name; name == "event" {
			out[name] = ""
		}
		if path, ok := mapped[name]; ok {
			out[name] = path
		}
	}
	for name := range mapped {
		if !slices.Contains(inputs, name) {
			return nil, misused("--map: %s has no input %q", s.Flow[0], name)
		}
	}
	for _, typed := range s.Flow[1:] {
		name, _, _ := strings.Cut(typed, "=")
		if !slices.Contains(inputs, name) {
			return nil, misused("%s has no input %q; write it as INPUT=VALUE", s.Flow[0], name)
		}
		delete(out, name)
	}
	return out, nil
}
