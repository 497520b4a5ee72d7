package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for systems without time zones, such as small images

	cron "github.com/netresearch/go-cron"

	"github.com/inspan/inspan/internal/view/words"
)

// ErrZone says that the time zone does not exist.
var ErrZone = errors.New("unknown time zone")

// Cron is the times of a cron expression in a time zone. A local time that is skipped when clocks change occurs
// at the first moment after the gap. One that clocks show twice occurs once, the first time. If the hour field
// begins with *, each local time counts as shown.
type Cron struct {
	of    cron.Schedule
	loc   *time.Location
	every bool // the hour field begins with *
}

// mostExpression bounds the bytes of an expression.
const mostExpression = 256

// ParseCron parses five fields: minute, hour, day of the month, month, day of the week, each a list of numbers,
// names, ranges and steps. The zone is a name of the IANA database. The error wraps ErrZone if the zone is
// invalid.
func ParseCron(expression, zone string) (Cron, error) {
	loc, err := time.LoadLocation(zone)
	if err != nil || zone == "" || zone == "Local" {
		return Cron{}, ErrZone
	}
	fields := strings.Fields(expression)
	if len(fields) != 5 || len(expression) > mostExpression || strings.ContainsAny(expression, "?#@=") {
		return Cron{}, errors.New("it is not a cron expression")
	}
	if err := strict(fields); err != nil {
		return Cron{}, err
	}
	of, err := cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom).Parse(expression)
	if err != nil {
		return Cron{}, err
	}
	c := Cron{of, loc, strings.HasPrefix(fields[1], "*")}
	if c.After(time.Now()).IsZero() {
		return c, errors.New("that day never comes")
	}
	return c, nil
}

// strict rejects input that the parser accepts although it is not a valid field.
func strict(fields []string) error {
	const digits, letters = "0123456789", "abcdefghijklmnopqrstuvwxyz"
	isOf := func(text, of string) bool { return text != "" && strings.Trim(strings.ToLower(text), of) == "" }
	for one := range strings.SplitSeq(strings.Join(fields, ","), ",") {
		whole, step, steps := strings.Cut(one, "/")
		first, last, ranges := strings.Cut(whole, "-")
		if first != "*" && !isOf(first, digits+letters) || ranges && !isOf(last, digits+letters) || steps && !isOf(step, digits) {
			return fmt.Errorf("%q is not a part of a field", words.OneLine(one, 40))
		}
		from, none := strconv.Atoi(first)
		if to, open := strconv.Atoi(last); none == nil && open == nil && to < from {
			return fmt.Errorf("the range %s ends before it begins", one)
		}
	}
	return nil
}

// After returns the first time after another; zero means none.
func (c Cron) After(at time.Time) time.Time {
	if c.every {
		return c.nextShown(at.In(c.loc))
	}
	for shown := c.of.Next(shownAt(at.In(c.loc))); !shown.IsZero(); shown = c.of.Next(shown) {
		if real := firstReached(shown, c.loc); real.After(at) {
			return real.UTC()
		}
	}
	return time.Time{}
}

// nextShown returns the first moment after a time when clocks show a time of the expression.
func (c Cron) nextShown(at time.Time) time.Time {
	shown := shownAt(at)
	for {
		_, offset := at.Zone()
		_, change := at.ZoneBounds()
		next := c.of.Next(shown)
		if next.IsZero() {
			return next
		}
		if real := next.Add(-time.Duration(offset) * time.Second); change.IsZero() || real.Before(change) {
			return real
		}
		at = change.In(c.loc)
		shown = shownAt(at).Add(-time.Nanosecond) // the time shown at the change itself counts too
	}
}

// shownAt returns the local time as if it were UTC.
func shownAt(at time.Time) time.Time {
	_, offset := at.Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// firstReached returns the first moment when the clocks of a zone show a time, or a later one if they skip it.
func firstReached(shown time.Time, loc *time.Location) time.Time {
	at := time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), shown.Second(), 0, loc)
	from, to := at.ZoneBounds()
	switch is := shownAt(at); {
	case is.After(shown): // skipped; the offset is that before the change
		return from
	case is.Before(shown): // skipped; the offset is that after the change
		return to
	}
	if !from.IsZero() {
		_, before := from.Add(-1).Zone()
		if earlier := shown.Add(-time.Duration(before) * time.Second); earlier.Before(from) {
			return earlier
		}
	}
	return at
}

// Last returns the latest times after since and up to now, the oldest first, at most most.
func (c Cron) Last(since, now time.Time, most int) []time.Time {
	for step := time.Minute; ; step *= 2 {
		from := now.Add(-step)
		if !from.After(since) {
			from = since
		}
		var due []time.Time
		for at := c.After(from); !at.IsZero() && !at.After(now); at = c.After(at) {
			if due = append(due, at); len(due) > most {
				due = due[1:]
			}
		}
		if len(due) >= most || from.Equal(since) {
			return due
		}
	}
}

// Next returns the first times after another, at most most.
func (c Cron) Next(after time.Time, most int) (times []time.Time) {
	for at := c.After(after); !at.IsZero() && len(times) < most; at = c.After(at) {
		times = append(times, at)
	}
	return times
}
