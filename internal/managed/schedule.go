package managed

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"

	"github.com/inspan/inspan/internal/words"
)

// zones is the archive of package time/tzdata, compressed, which makes it a quarter; make update
// writes it.
//
//go:embed zoneinfo.zip.gz
var zones string

// schedule says when a deployment runs.
type schedule struct {
	Type       string `json:"type"`
	Expression string `json:"expression"`
	Timezone   string `json:"timezone"`
}

// times are those of a schedule.
type times struct {
	of    cron.Schedule
	loc   *time.Location
	every bool // the hour is any, or every so many
}

const wantSchedule = `five fields such as "0 9 * * 1-5": minute, hour, day of the month, month, day of the week`

// check reports what is wrong with a schedule that a client gives.
func (s schedule) check() error {
	_, err := s.read()
	fields := strings.Fields(s.Expression)
	if s.Type != "cron" || len(fields) != 5 {
		return err
	}
	const digits, letters = "0123456789", "abcdefghijklmnopqrstuvwxyz"
	isOf := func(text, of string) bool { return text != "" && strings.Trim(strings.ToLower(text), of) == "" }
	for one := range strings.SplitSeq(strings.Join(fields, ","), ",") {
		whole, step, steps := strings.Cut(one, "/")
		first, last, ranges := strings.Cut(whole, "-")
		if first != "*" && !isOf(first, digits+letters) || ranges && !isOf(last, digits+letters) || steps && !isOf(step, digits) {
			return invalid("schedule.expression", strconv.Quote(words.OneLine(one, 40))+" is no part of a field", wantSchedule)
		}
		from, none := strconv.Atoi(first)
		if to, open := strconv.Atoi(last); none == nil && open == nil && to < from {
			return invalid("schedule.expression", "the range "+one+" ends before it begins", wantSchedule)
		}
	}
	return err
}

// read reads a schedule.
func (s schedule) read() (times, error) {
	if s.Type != "cron" {
		return times{}, invalid("schedule.type", "it is unknown", "cron")
	}
	loc, err := zone(s.Timezone)
	if err != nil || s.Timezone == "" || s.Timezone == "Local" {
		return times{}, invalid("schedule.timezone", "there is no such time zone", "a name such as UTC or Europe/Berlin")
	}
	fields := strings.Fields(s.Expression)
	if len(fields) != 5 || len(s.Expression) > mostName || strings.ContainsAny(s.Expression, "?#@=") {
		return times{}, invalid("schedule.expression", "it is not a cron expression", wantSchedule)
	}
	of, err := cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom).Parse(s.Expression)
	if err != nil {
		return times{}, invalid("schedule.expression", err.Error(), wantSchedule)
	}
	t := times{of, loc, strings.HasPrefix(fields[1], "*")}
	if t.after(time.Now()).IsZero() {
		return t, invalid("schedule.expression", "that day never comes", wantSchedule)
	}
	return t, nil
}

// zone is a time zone of the system, or of ours where the system has none, as in small images.
func zone(name string) (*time.Location, error) {
	loc, err := time.LoadLocation(name)
	if err != nil {
		return ownZone(name)
	}
	return loc, nil
}

// ownZone is a time zone of the archive.
func ownZone(name string) (*time.Location, error) {
	unpacked, err := gzip.NewReader(strings.NewReader(zones))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(unpacked)
	if err != nil {
		return nil, err
	}
	archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return nil, err
	}
	data, err := fs.ReadFile(archive, name)
	if err != nil {
		return nil, err
	}
	return time.LoadLocationFromTZData(name, data)
}

// after is the first time behind another one; zero: there is none. A time that the clocks skip in
// spring comes as much later. One that comes twice in autumn counts once, unless the hour is any.
func (t times) after(at time.Time) time.Time {
	for {
		at = t.of.Next(at.In(t.loc))
		if at.IsZero() || t.every || !repeated(at) {
			return at.UTC()
		}
	}
}

// repeated reports whether the clocks have shown a time before, on the same day.
func repeated(at time.Time) bool {
	change, _ := at.ZoneBounds()
	if change.IsZero() {
		return false
	}
	_, before := change.Add(-1).Zone()
	_, now := at.Zone()
	return at.Sub(change) < time.Duration(before-now)*time.Second
}

// last is the last time that has come by now, behind another one; zero: none has.
func (t times) last(since, now time.Time) time.Time {
	for step := time.Minute; ; step *= 2 {
		from := now.Add(-step)
		if !from.After(since) {
			from = since
		}
		due := t.after(from)
		if due.IsZero() || due.After(now) {
			if from.Equal(since) {
				return time.Time{}
			}
			continue
		}
		for next := t.after(due); !next.IsZero() && !next.After(now); next = t.after(due) {
			due = next
		}
		return due
	}
}

// upcoming are the next times.
func (t times) upcoming(now time.Time, most int) []string {
	out := []string{}
	for at := t.after(now); !at.IsZero() && len(out) < most; at = t.after(at) {
		out = append(out, stamp(at))
	}
	return out
}
