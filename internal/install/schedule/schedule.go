// Package schedule starts runs automatically: at the times of a cron expression, when a webhook is called, or
// when a file changes. A schedule is one file in a person's state folder. A server or a system timer checks it
// with [Set.Due]. It claims due occasions in that file before their runs start, so that nothing starts twice
// and a crash loses nothing.
//
//	cron.go      times of a cron expression
//	schedule.go  a schedule
//	set.go       the files of all schedules
//	due.go       due occasions, and how their runs start
//	hook.go      webhook calls
//	files.go     changes of files
//	timer.go     the system timer that checks schedules
package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/view/words"
)

// Overlap determines how a due run is treated while the previous one is in progress.
type Overlap string

// Values of Overlap.
const (
	Skip     Overlap = "skip"     // skip it
	Queue    Overlap = "queue"    // start it after the previous run
	Parallel Overlap = "parallel" // start it at once
)

// CatchUp determines how times are treated that passed while no process checked.
type CatchUp string

// Values of CatchUp.
const (
	None CatchUp = "none" // skip them
	Once CatchUp = "once" // run the last one
	All  CatchUp = "all"  // run the last ten
)

const (
	mostMissed = 10              // missed times that are caught up
	mostPast   = 20              // occasions that are remembered
	onTime     = 2 * time.Minute // a time noticed within this delay was not missed
)

// Schedule is an automatic run: its trigger, its task and its recent outcomes. Texts are as typed.
type Schedule struct {
	ID   string    `json:"id"`
	Made time.Time `json:"made"`

	Cron  string `json:"cron,omitempty"`
	Zone  string `json:"zone,omitempty"`  // of the cron expression; empty: that of the machine
	Hook  *Hook  `json:"hook,omitempty"`  // nil: no webhook
	Files string `json:"files,omitempty"` // glob, below Root, of watched files; empty: none

	Root  string   `json:"root"` // folder of the runs
	Flow  []string `json:"flow,omitempty"`
	Task  string   `json:"task,omitempty"`
	Learn []string `json:"learn,omitempty"` // arguments of 'inspan eval learn night', in place of a workflow or a task
	Flags []string `json:"flags,omitempty"` // of inspan run, such as --mode=auto
	// Inputs maps workflow inputs to the path of the value in the event, such as issue.number; empty means the
	// whole event.
	Inputs     map[string]string `json:"inputs,omitempty"`
	Unattended bool              `json:"unattended,omitempty"` // calls that would ask are denied

	Jitter  time.Duration `json:"jitter,omitempty"` // upper bound of a fixed delay, different for each schedule
	Overlap Overlap       `json:"overlap"`
	CatchUp CatchUp       `json:"catch_up,omitempty"`
	Paused  bool          `json:"paused,omitempty"`

	Since time.Time         `json:"since"`          // times up to this one were handled
	Seen  map[string]string `json:"seen,omitempty"` // states of files, or times of calls, by key
	Open  []Occasion        `json:"open,omitempty"` // occasions whose run has not started
	Past  []Occasion        `json:"past,omitempty"` // recent ones, the oldest first
}

// Occasion is one time when a run starts.
type Occasion struct {
	Key     string          `json:"key"` // unique
	At      time.Time       `json:"at"`
	Event   json.RawMessage `json:"event,omitempty"` // that caused it; untrusted content
	Session string          `json:"session,omitempty"`
	Why     string          `json:"why,omitempty"`     // why no run began; empty: one did
	Skipped bool            `json:"skipped,omitempty"` // skipped because of Overlap
}

func (o Occasion) failed() bool { return o.Why != "" && !o.Skipped }

// Check returns an error if a new schedule is invalid.
func (s *Schedule) Check() error {
	ways := 0
	for _, way := range []bool{s.Cron != "", s.Hook != nil, s.Files != ""} {
		if way {
			ways++
		}
	}
	switch {
	case ways != 1:
		return misused("a schedule needs one of a cron expression and --on")
	case !known(s.ID):
		return misused("--name: %q is not a name; use up to 64 lower case letters, digits and dashes", words.OneLine(s.ID, 80))
	case !s.answers() && len(s.Learn) == 0 && (len(s.Flow) == 0) == (s.Task == ""):
		return misused("nothing to run; use either --workflow NAME or --task TEXT")
	case !slices.Contains([]Overlap{Skip, Queue, Parallel}, s.Overlap):
		return misused("--overlap: unknown value %q; use skip, queue or parallel", s.Overlap)
	case s.Cron == "" && (s.CatchUp != "" || s.Zone != "" || s.Jitter != 0):
		return misused("--catch-up, --zone and --jitter need a cron expression")
	case s.Hook != nil:
		return s.Hook.check()
	case s.Files != "":
		return checkGlob(s.Files)
	case !slices.Contains([]CatchUp{None, Once, All}, s.CatchUp):
		return misused("--catch-up: unknown value %q; use none, once or all", s.CatchUp)
	case s.Jitter < 0 || s.Jitter > 24*time.Hour:
		return misused("--jitter: %s is not between 0 and 24h", s.Jitter)
	}
	_, err := s.times()
	switch {
	case errors.Is(err, ErrZone):
		return misused("--zone: unknown time zone %q; use a name such as UTC or Europe/Berlin", words.OneLine(s.Zone, 80))
	case err != nil:
		return misused("%q: %v; use five fields such as \"0 7 * * 1-5\": minute, hour, day of the month, month, day of the week",
			words.OneLine(s.Cron, 80), err)
	}
	return nil
}

// answers reports whether the schedule starts no runs: its webhook answers steps that wait for it.
func (s *Schedule) answers() bool { return s.Hook != nil && len(s.Flow) == 0 && s.Task == "" }

func misused(format string, args ...any) error { return words.Misuse{Err: fmt.Errorf(format, args...)} }

// known reports whether a text is a valid name of a schedule.
func known(id string) bool {
	return id != "" && len(id) <= 64 && id[0] != '-' && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// times parses the cron expression.
func (s *Schedule) times() (Cron, error) {
	if s.Zone == "" {
		c, err := ParseCron(s.Cron, "UTC")
		c.loc = time.Local
		return c, err
	}
	return ParseCron(s.Cron, s.Zone)
}

// delay returns the delay of the runs after the times of the expression.
func (s *Schedule) delay() time.Duration {
	if s.Jitter <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(s.ID))
	whole := uint64(s.Jitter/time.Second) + 1
	return time.Duration(binary.BigEndian.Uint64(sum[:8])%whole) * time.Second
}

// Next returns the next start times of runs; none without a cron expression, or if paused.
func (s *Schedule) Next(now time.Time, most int) (times []time.Time) {
	c, err := s.times()
	if err != nil || s.Cron == "" || s.Paused {
		return nil
	}
	for _, at := range c.Next(now.Add(-s.delay()), most) {
		times = append(times, at.Add(s.delay()))
	}
	return times
}

// come records the times that have passed by now.
func (s *Schedule) come(now time.Time) error {
	if s.Cron == "" {
		return nil
	}
	c, err := s.times()
	if err != nil {
		return err
	}
	due := c.Last(s.Since.Add(-s.delay()), now.Add(-s.delay()), mostMissed)
	if n := len(due); n > 0 && s.CatchUp != All {
		due = due[n-1:]
	}
	if n := len(due); n > 0 && s.CatchUp == None && now.Sub(due[n-1].Add(s.delay())) > onTime {
		s.Since, due = due[n-1].Add(s.delay()), nil
	}
	for _, at := range due {
		s.Since = at.Add(s.delay())
		s.add(Occasion{Key: at.Format(time.RFC3339), At: s.Since})
	}
	return nil
}

// mostOpen bounds the waiting occasions.
const mostOpen = 100

// add records an occasion, unless it is known. It returns false if too many are waiting.
func (s *Schedule) add(o Occasion) bool {
	same := func(other Occasion) bool { return other.Key == o.Key }
	if slices.ContainsFunc(s.Open, same) || slices.ContainsFunc(s.Past, same) {
		return true
	}
	if len(s.Open) >= mostOpen {
		return false
	}
	s.Open = append(s.Open, o)
	return true
}

// close moves an occasion from Open to Past.
func (s *Schedule) close(o Occasion) {
	s.Open = slices.DeleteFunc(s.Open, func(other Occasion) bool { return other.Key == o.Key })
	o.Event = nil
	if s.Past = append(s.Past, o); len(s.Past) > mostPast {
		s.Past = s.Past[len(s.Past)-mostPast:]
	}
}

// flow returns the arguments that run the workflow on an occasion.
func (s *Schedule) flow(o Occasion) []string {
	out := slices.Clone(s.Flow)
	var event any
	if len(o.Event) == 0 || json.Unmarshal(o.Event, &event) != nil {
		return out
	}
	for _, name := range sortedKeys(s.Inputs) {
		if value := within(event, s.Inputs[name]); value != nil {
			out = append(out, name+"="+typed(value))
		}
	}
	return out
}

// within returns the value at a path in another; nil means missing.
func within(value any, path string) any {
	for path != "" && value != nil {
		var name string
		name, path, _ = strings.Cut(path, ".")
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

// typed returns a value as a person would type it.
func typed(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(raw)
}
