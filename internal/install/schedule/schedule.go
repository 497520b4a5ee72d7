// Package schedule begins runs by themselves: at the times of a cron expression, when a webhook is
// called, or when a file changes. A schedule is one file in the state folder of a person. Whoever looks
// ([Set.Due]), a server or a timer of the system, claims what is due in that file before a run of it
// begins, so that nothing begins twice and a crash loses nothing.
//
//	cron.go      when the times of a cron expression are
//	schedule.go  what a schedule is
//	set.go       the files of all schedules
//	due.go       what is due, and how its runs begin
//	hook.go      calls of webhooks
//	files.go     files that change
//	timer.go     the timer of the system that looks
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

// Overlap is what is done with a run that is due while the one before goes on.
type Overlap string

// What can be done with it.
const (
	Skip     Overlap = "skip"     // it is left out
	Queue    Overlap = "queue"    // it begins after that
	Parallel Overlap = "parallel" // it begins
)

// CatchUp is what is done with times that came while nobody looked.
type CatchUp string

// What can be done with them.
const (
	None CatchUp = "none" // they are left out
	Once CatchUp = "once" // the last of them is made up for
	All  CatchUp = "all"  // the last ten of them are
)

const (
	mostMissed = 10              // times that are made up for
	mostPast   = 20              // occasions that are remembered
	onTime     = 2 * time.Minute // how late a time may be seen without having been missed
)

// Schedule is what begins by itself, when, and what has come of it. Texts are as they were typed.
type Schedule struct {
	ID   string    `json:"id"`
	Made time.Time `json:"made"`

	Cron  string `json:"cron,omitempty"`
	Zone  string `json:"zone,omitempty"`  // of the cron expression; empty: that of the machine
	Hook  *Hook  `json:"hook,omitempty"`  // that calls; nil: none
	Files string `json:"files,omitempty"` // glob below Root of files whose changes count; empty: none

	Root  string   `json:"root"` // where the runs work
	Flow  []string `json:"flow,omitempty"`
	Task  string   `json:"task,omitempty"`
	Flags []string `json:"flags,omitempty"` // of inspan run, such as --mode=auto
	// Inputs are the inputs of the workflow that an event brings: the path of the value in it, such as
	// issue.number; empty: all of it.
	Inputs     map[string]string `json:"inputs,omitempty"`
	Unattended bool              `json:"unattended,omitempty"` // calls that would ask are denied

	Jitter  time.Duration `json:"jitter,omitempty"` // runs begin up to so much later, each schedule's always as much
	Overlap Overlap       `json:"overlap"`
	CatchUp CatchUp       `json:"catch_up,omitempty"`
	Paused  bool          `json:"paused,omitempty"`

	Since time.Time         `json:"since"`          // times up to this one were seen
	Seen  map[string]string `json:"seen,omitempty"` // states of files, or times of calls, by what tells them apart
	Open  []Occasion        `json:"open,omitempty"` // that have come, and of which no run has begun
	Past  []Occasion        `json:"past,omitempty"` // the last ones, the oldest first
}

// Occasion is one time at which a run begins.
type Occasion struct {
	Key     string          `json:"key"` // by which it is known again
	At      time.Time       `json:"at"`
	Event   json.RawMessage `json:"event,omitempty"` // that has brought it, in the words of others
	Session string          `json:"session,omitempty"`
	Why     string          `json:"why,omitempty"`     // no run has begun; empty: one has
	Skipped bool            `json:"skipped,omitempty"` // it was left out, as the schedule has it
}

func (o Occasion) failed() bool { return o.Why != "" && !o.Skipped }

// Check reports what is wrong with a new schedule.
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
		return misused("--name: %q is no name; use up to 64 small letters, digits and dashes", words.OneLine(s.ID, 80))
	case !s.answers() && (len(s.Flow) == 0) == (s.Task == ""):
		return misused("say what is to be run: either --workflow NAME or --task TEXT")
	case !slices.Contains([]Overlap{Skip, Queue, Parallel}, s.Overlap):
		return misused("--overlap: unknown value %q; use skip, queue or parallel", s.Overlap)
	case s.Cron == "" && (s.CatchUp != "" || s.Zone != "" || s.Jitter != 0):
		return misused("--catch-up, --zone and --jitter belong to a cron expression")
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
		return misused("--zone: there is no time zone %q; use a name such as UTC or Europe/Berlin", words.OneLine(s.Zone, 80))
	case err != nil:
		return misused("%q: %v; use five fields such as \"0 7 * * 1-5\": minute, hour, day of the month, month, day of the week",
			words.OneLine(s.Cron, 80), err)
	}
	return nil
}

// answers reports whether the schedule begins nothing: its webhook answers steps that wait for it.
func (s *Schedule) answers() bool { return s.Hook != nil && len(s.Flow) == 0 && s.Task == "" }

func misused(format string, args ...any) error { return words.Misuse{Err: fmt.Errorf(format, args...)} }

// known reports whether a text can be the name of a schedule.
func known(id string) bool {
	return id != "" && len(id) <= 64 && id[0] != '-' && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// times are those of the cron expression.
func (s *Schedule) times() (Cron, error) {
	if s.Zone == "" {
		c, err := ParseCron(s.Cron, "UTC")
		c.loc = time.Local
		return c, err
	}
	return ParseCron(s.Cron, s.Zone)
}

// delay is how much later than its times the runs begin.
func (s *Schedule) delay() time.Duration {
	if s.Jitter <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(s.ID))
	whole := uint64(s.Jitter/time.Second) + 1
	return time.Duration(binary.BigEndian.Uint64(sum[:8])%whole) * time.Second
}

// Next are the next times at which runs begin; none without a cron expression.
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

// come notes the times that have come by now.
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

// mostOpen bounds the occasions that wait.
const mostOpen = 100

// add notes an occasion, unless it is known. It reports whether there was room for it.
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

// close moves an occasion to those that are over.
func (s *Schedule) close(o Occasion) {
	s.Open = slices.DeleteFunc(s.Open, func(other Occasion) bool { return other.Key == o.Key })
	o.Event = nil
	if s.Past = append(s.Past, o); len(s.Past) > mostPast {
		s.Past = s.Past[len(s.Past)-mostPast:]
	}
}

// flow are the words that run the workflow on an occasion.
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

// within is the value at a path in another one; nil: there is none.
func within(value any, path string) any {
	for path != "" && value != nil {
		var name string
		name, path, _ = strings.Cut(path, ".")
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

// typed is a value as a person types it.
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
