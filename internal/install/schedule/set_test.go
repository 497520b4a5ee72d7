package schedule_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/install/schedule"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/view/words"
)

// desk is the schedules of a person with a clock that the test sets. The runs end at once and fail, so the outcome of
// an occasion shows that a run was begun.
type desk struct {
	*testing.T
	*schedule.Set
	at   time.Time
	root string
}

func newDesk(t *testing.T, at string) *desk {
	t.Helper()
	program, err := exec.LookPath("false")
	if err != nil {
		t.Skip(err)
	}
	set := &config.Installation{StateDir: t.TempDir()}
	d := &desk{T: t, root: t.TempDir()}
	d.Set = &schedule.Set{
		Table:   &running.Table{Installation: set, Sessions: &session.Store{Dir: set.SessionsDir()}},
		Program: program, Now: func() time.Time { return d.at },
	}
	d.is(at)
	return d
}

// is sets the clock.
func (d *desk) is(at string) {
	d.Helper()
	var err error
	if d.at, err = time.Parse(time.RFC3339, at); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) add(one schedule.Schedule) schedule.Schedule {
	d.Helper()
	one, err := d.Add(d.Context(), d.filled(one))
	if err != nil {
		d.Fatal(err)
	}
	return one
}

// filled returns a schedule with the required fields.
func (d *desk) filled(one schedule.Schedule) schedule.Schedule {
	one.Root, one.Overlap = d.root, cmp.Or(one.Overlap, schedule.Skip)
	if one.Cron != "" {
		one.CatchUp = cmp.Or(one.CatchUp, schedule.Once)
	}
	if len(one.Flow) == 0 {
		one.Task = cmp.Or(one.Task, "work")
	}
	return one
}

// due begins due runs and returns their times.
func (d *desk) due() (times []string) {
	d.Helper()
	past, err := d.Due(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	for _, o := range past {
		times = append(times, o.At.Format(time.RFC3339))
		if !strings.Contains(o.Why, "ended with code 1 ") || o.Session != "" {
			d.Errorf("no run was tried: %+v", o)
		}
	}
	return times
}

func (d *desk) comes(want ...string) {
	d.Helper()
	if diff := gocmp.Diff(want, d.due()); diff != "" {
		d.Errorf("at %v: %s", d.at, diff)
	}
}

// find is a schedule as it is kept.
func (d *desk) find(id string) *schedule.Schedule {
	d.Helper()
	one, err := d.Find(id)
	if err != nil {
		d.Fatal(err)
	}
	return &one
}

// TestCatchUp has no scheduler run for a while.
func TestCatchUp(t *testing.T) {
	october := []string{
		"2026-10-21T05:00:00Z", "2026-10-22T05:00:00Z", "2026-10-23T05:00:00Z", "2026-10-24T05:00:00Z",
		"2026-10-25T06:00:00Z", "2026-10-26T06:00:00Z", "2026-10-27T06:00:00Z", "2026-10-28T06:00:00Z",
	}
	for _, c := range []struct {
		name, cron, zone, from, to string
		catchUp                    schedule.CatchUp
		want                       []string
	}{
		{"none", "0 7 * * *", "Europe/Berlin", "2026-10-20T12:00:00Z", "2026-10-28T12:00:00Z", schedule.None, nil},
		{"none, but on time", "0 7 * * *", "Europe/Berlin", "2026-10-20T12:00:00Z", "2026-10-28T06:02:00Z", schedule.None, october[7:]},
		{"none, and late", "0 7 * * *", "Europe/Berlin", "2026-10-20T12:00:00Z", "2026-10-28T06:02:01Z", schedule.None, nil},
		{"once", "0 7 * * *", "Europe/Berlin", "2026-10-20T12:00:00Z", "2026-10-28T12:00:00Z", schedule.Once, october[7:]},
		{"all", "0 7 * * *", "Europe/Berlin", "2026-10-20T12:00:00Z", "2026-10-28T12:00:00Z", schedule.All, october},
		{
			"all, at most ten", "0 * * * *", "UTC", "2026-01-01T00:30:00Z", "2026-10-28T12:30:00Z", schedule.All, []string{
				"2026-10-28T03:00:00Z", "2026-10-28T04:00:00Z", "2026-10-28T05:00:00Z", "2026-10-28T06:00:00Z", "2026-10-28T07:00:00Z",
				"2026-10-28T08:00:00Z", "2026-10-28T09:00:00Z", "2026-10-28T10:00:00Z", "2026-10-28T11:00:00Z", "2026-10-28T12:00:00Z",
			},
		},
		{
			"a time that comes twice", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z", schedule.All,
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		},
		{
			"a time that is skipped", "30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", "2026-03-30T12:00:00Z", schedule.All,
			[]string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		},
		{
			"any hour, also one that comes twice", "30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T02:40:00Z", schedule.All,
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"},
		},
		{"nothing was missed", "0 7 * * *", "UTC", "2026-10-20T07:00:00Z", "2026-10-21T06:59:59Z", schedule.All, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, c.from)
			d.add(schedule.Schedule{Cron: c.cron, Zone: c.zone, CatchUp: c.catchUp})
			d.is(c.to)
			d.comes(c.want...)
			d.comes() // and never again
		})
	}
}

// TestJitter checks that runs begin later by an amount that is the schedule's own.
func TestJitter(t *testing.T) {
	const jitter = time.Hour
	d := newDesk(t, "2026-10-20T12:00:00Z")
	delays := map[time.Duration]bool{}
	for _, name := range []string{"a", "b", "c", "d"} {
		one := d.add(schedule.Schedule{ID: name, Cron: "0 7 * * *", Zone: "UTC", Jitter: jitter})
		next := one.Next(d.at, 3)
		delay := next[0].Sub(time.Date(2026, 10, 21, 7, 0, 0, 0, time.UTC))
		if delay < 0 || delay > jitter || next[1].Sub(next[0]) != 24*time.Hour || next[2].Sub(next[1]) != 24*time.Hour {
			t.Errorf("%s: %v", name, next)
		}
		delays[delay] = true
	}
	if len(delays) < 3 {
		t.Errorf("the delays are the same: %v", delays)
	}
	next := d.find("a").Next(d.at, 1)[0]
	for _, other := range []string{"b", "c", "d"} {
		if err := d.Remove(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	d.at = next.Add(-time.Second)
	d.comes()
	d.at = next
	d.comes(next.Format(time.RFC3339))
	d.comes()
}

// TestPause checks that missed runs are not made up for, and that a person can still begin a run.
func TestPause(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	one := d.add(schedule.Schedule{Cron: "0 7 * * *", Zone: "UTC", CatchUp: schedule.All})
	pause := func(paused bool) {
		t.Helper()
		if _, err := d.Pause(t.Context(), one.ID, paused); err != nil {
			t.Fatal(err)
		}
	}
	pause(true)
	d.is("2026-10-23T12:00:00Z")
	d.comes()
	if next := d.find(one.ID).Next(d.at, 1); next != nil {
		t.Errorf("it says that it begins at %v", next)
	}
	o, err := d.Set.Run(t.Context(), one.ID)
	if err != nil || !o.At.Equal(d.at) || o.Why == "" {
		t.Fatalf("%+v, %v", o, err)
	}
	if past := d.find(one.ID).Past; len(past) != 1 {
		t.Errorf("a run by hand has begun others: %+v", past)
	}
	pause(false)
	d.comes()
	pause(false) // of one that is not paused changes nothing
	d.is("2026-10-24T07:00:00Z")
	pause(false)
	d.comes("2026-10-24T07:00:00Z")
}

// TestFailed checks that an occasion on which no run could begin is reported once.
func TestFailed(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	var told []string
	d.Failed = func(_ context.Context, s schedule.Schedule, o schedule.Occasion) { told = append(told, s.ID+" "+o.Why) }
	d.add(schedule.Schedule{ID: "x", Cron: "0 7 * * *", Zone: "UTC"})
	d.is("2026-10-21T08:00:00Z")
	d.due()
	d.due()
	if want := []string{"x the process ended with code 1 before the run began"}; !slices.Equal(told, want) {
		t.Errorf("%q", told)
	}
	if left, err := d.Table.Sessions.List(t.Context()); len(left) != 0 || err != nil {
		t.Errorf("an empty session is left: %v, %v", left, err)
	}
}

// TestBusy has the process of an occasion find its session driven, by one that has ended since. Its turn
// comes again.
func TestBusy(t *testing.T) {
	d := newDesk(t, "2026-01-01T00:00:00Z")
	d.Program = filepath.Join(d.root, "busy")
	if err := os.WriteFile(d.Program, []byte("#!/bin/sh\nexit 4\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	one := d.add(schedule.Schedule{Cron: "* * * * *"})
	d.is("2026-01-01T00:01:00Z")
	if past, err := d.Due(t.Context()); len(past) > 0 || err != nil {
		t.Errorf("it came to %+v, %v", past, err)
	}
	if one := d.find(one.ID); len(one.Open) != 1 || one.Open[0].Session == "" {
		t.Errorf("%+v", one)
	}
}

// TestPast checks that past occasions are remembered, up to a limit.
func TestPast(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	d.Program = "/nowhere/inspan"
	one := d.add(schedule.Schedule{Cron: "0 * * * *", Zone: "UTC", CatchUp: schedule.All})
	for range 3 {
		d.at = d.at.Add(10 * time.Hour)
		if _, err := d.Due(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	past := d.find(one.ID).Past
	if len(past) != 20 || past[19].At.Format(time.RFC3339) != "2026-10-21T18:00:00Z" || !strings.Contains(past[19].Why, "/nowhere/inspan") {
		t.Errorf("%d: %+v", len(past), past[len(past)-1])
	}
}

// TestCheck has each field be wrong once.
func TestCheck(t *testing.T) {
	good := schedule.Schedule{ID: "x", Cron: "0 7 * * *"}
	for _, c := range []struct {
		want   string
		change func(s *schedule.Schedule)
	}{
		{"needs one of a cron expression and --on", func(s *schedule.Schedule) { s.Cron = "" }},
		{"needs one of a cron expression and --on", func(s *schedule.Schedule) { s.Files = "*.csv" }},
		{`--name: "Big" is not a name; use up to 64 lower case letters`, func(s *schedule.Schedule) { s.ID = "Big" }},
		{`--name: "../up" is not a name`, func(s *schedule.Schedule) { s.ID = "../up" }},
		{`--name: "-x" is not a name`, func(s *schedule.Schedule) { s.ID = "-x" }},
		{"is not a name", func(s *schedule.Schedule) { s.ID = strings.Repeat("x", 65) }},
		{"either --workflow NAME or --task TEXT", func(s *schedule.Schedule) { s.Task = "" }},
		{"either --workflow NAME or --task TEXT", func(s *schedule.Schedule) { s.Flow = []string{"piv"} }},
		{`--overlap: unknown value "twice"; use skip, queue or parallel`, func(s *schedule.Schedule) { s.Overlap = "twice" }},
		{`--catch-up: unknown value "most"; use none, once or all`, func(s *schedule.Schedule) { s.CatchUp = "most" }},
		{"--jitter: -1s is not between 0 and 24h", func(s *schedule.Schedule) { s.Jitter = -time.Second }},
		{"--jitter: 24h0m1s is not between 0 and 24h", func(s *schedule.Schedule) { s.Jitter = 24*time.Hour + time.Second }},
		{`--zone: unknown time zone "Mars/Olympus"; use a name such as UTC`, func(s *schedule.Schedule) { s.Zone = "Mars/Olympus" }},
		{`--zone: unknown time zone "Local"`, func(s *schedule.Schedule) { s.Zone = "Local" }},
		{`"7 * * *": it is not a cron expression; use five fields such as "0 7 * * 1-5"`, func(s *schedule.Schedule) { s.Cron = "7 * * *" }},
		{`"@daily": it is not a cron expression`, func(s *schedule.Schedule) { s.Cron = "@daily" }},
		{`"0 25 * * *": `, func(s *schedule.Schedule) { s.Cron = "0 25 * * *" }},
		{"the range 30-10 ends before it begins", func(s *schedule.Schedule) { s.Cron = "30-10 7 * * *" }},
		{`"1-" is not a part of a field`, func(s *schedule.Schedule) { s.Cron = "0 7 * * 1-" }},
		{"that day never comes", func(s *schedule.Schedule) { s.Cron = "0 7 31 2 *" }},
		{"need a cron expression", func(s *schedule.Schedule) { s.Cron, s.Files, s.CatchUp = "", "*.csv", schedule.All }},
		{"need a cron expression", func(s *schedule.Schedule) { s.Cron, s.Files, s.CatchUp, s.Zone = "", "*.csv", "", "UTC" }},
		{"need a cron expression", func(s *schedule.Schedule) { s.Cron, s.Files, s.CatchUp, s.Jitter = "", "*.csv", "", 1 }},
		{`--on: "/etc/*" is not a glob below the folder; use one such as inbox/*.csv`, onFiles("/etc/*")},
		{`--on: "../*.csv" is not a glob below the folder`, onFiles("../*.csv")},
		{`--on: "a/../../b" is not a glob below the folder`, onFiles("a/../../b")},
		{`--on: "[a" is not a glob below the folder`, onFiles("[a")},
		{`--on: "Push" is not an event of GitHub; use one such as push or issues.opened`, onEvents("push", "Push")},
		{`--on: "issues." is not an event of GitHub`, onEvents("issues.")},
		{`--on: "" is not an event of GitHub`, onEvents("")},
	} {
		d := newDesk(t, "2026-10-20T12:00:00Z")
		one := d.filled(good)
		c.change(&one)
		_, err := d.Add(t.Context(), one)
		if _, misuse := errors.AsType[words.Misuse](err); !misuse || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
		if list, err := d.List(t.Context()); len(list) > 0 || err != nil {
			t.Errorf("%s: it was kept all the same: %v, %v", c.want, list, err)
		}
	}
	d := newDesk(t, "2026-10-20T12:00:00Z")
	d.add(good)
}

func onFiles(glob string) func(*schedule.Schedule) {
	return func(s *schedule.Schedule) { s.Cron, s.CatchUp, s.Files = "", "", glob }
}

func onEvents(events ...string) func(*schedule.Schedule) {
	return func(s *schedule.Schedule) { s.Cron, s.CatchUp, s.Hook = "", "", &schedule.Hook{Events: events} }
}

// TestOn reads the typed occasions that begin a run.
func TestOn(t *testing.T) {
	for typed, want := range map[string]schedule.Schedule{
		"webhook":                   {Hook: &schedule.Hook{}},
		"github":                    {Hook: &schedule.Hook{}},
		"github:push,issues.opened": {Hook: &schedule.Hook{Events: []string{"push", "issues.opened"}}},
		"file:a/*.csv":              {Files: "a/*.csv"},
	} {
		var one schedule.Schedule
		if err := one.On(typed); err != nil {
			t.Error(err)
		}
		if one.Hook != nil {
			if !strings.HasPrefix(one.Hook.Secret, "whsec_") || len(one.Hook.Secret) < 40 {
				t.Errorf("%s: the secret is %q", typed, one.Hook.Secret)
			}
			one.Hook.Secret = ""
		}
		if diff := gocmp.Diff(want, one); diff != "" {
			t.Error(typed, diff)
		}
	}
	for _, typed := range []string{"", "webhook:x", "file", "file:", "email"} {
		err := (&schedule.Schedule{}).On(typed)
		if err == nil || !strings.Contains(err.Error(), "use webhook, github:issues.opened,push or file:GLOB") {
			t.Errorf("%q: %v", typed, err)
		}
	}
}

// TestNames checks that each schedule gets one of its own.
func TestNames(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	for _, c := range []struct {
		flow string
		want string
	}{
		{"", "task"},
		{"", "task-2"},
		{"piv", "piv"},
		{"piv", "piv-2"},
		{"/somewhere/else/piv.yaml", "piv-3"},
		{"Größe.yaml", "workflow"},
		{strings.Repeat("x", 60), "workflow-2"},
	} {
		one := schedule.Schedule{Cron: "0 7 * * *"}
		if c.flow != "" {
			one.Flow = []string{c.flow}
		}
		if got := d.add(one).ID; got != c.want {
			t.Errorf("%q is named %q, want %q", c.flow, got, c.want)
		}
	}
	_, err := d.Add(t.Context(), d.filled(schedule.Schedule{ID: "piv", Cron: "0 8 * * *"}))
	if err == nil || err.Error() != "schedule piv already exists; remove it first: inspan schedule remove piv" {
		t.Error(err)
	}
	if one := d.find("piv"); one.Cron != "0 7 * * *" {
		t.Errorf("it was replaced: %+v", one)
	}
	list, err := d.List(t.Context())
	var names []string
	for _, one := range list {
		names = append(names, one.ID)
	}
	if want := []string{"piv", "piv-2", "piv-3", "task", "task-2", "workflow", "workflow-2"}; !slices.Equal(names, want) || err != nil {
		t.Errorf("%q, %v", names, err)
	}
}

// TestDamaged has unreadable files of schedules next to a good one.
func TestDamaged(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	d.add(schedule.Schedule{ID: "good", Cron: "0 7 * * *", Zone: "UTC"})
	folder := filepath.Join(d.Table.StateDir, "schedules")
	for name, text := range map[string]string{"bad.json": "{", "else.json": `{"id":"good"}`, "notes.txt": "{", "No Name.json": "{"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := d.List(t.Context())
	if len(list) != 1 || list[0].ID != "good" || err == nil {
		t.Fatalf("%v, %v", list, err)
	}
	for _, want := range []string{"bad.json: ", "else.json: another schedule has it"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "notes") || strings.Contains(err.Error(), "No Name") {
		t.Error(err)
	}
	d.is("2026-10-21T07:00:00Z")
	past, err := d.Due(t.Context())
	if len(past) != 1 || err == nil || !strings.Contains(err.Error(), "bad.json") {
		t.Errorf("%v, %v", past, err)
	}
	d.add(schedule.Schedule{Cron: "0 7 * * *"})
	if _, err := d.Add(t.Context(), d.filled(schedule.Schedule{ID: "bad", Cron: "0 7 * * *"})); err == nil {
		t.Error("a file that can't be read was written over")
	}
	for _, id := range []string{"bad", "else"} {
		if err := d.Remove(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if list, err := d.List(t.Context()); len(list) != 2 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// TestUnknown asks for schedules that there are not.
func TestUnknown(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	if past, err := d.Due(t.Context()); len(past) != 0 || err != nil {
		t.Errorf("%v, %v", past, err)
	}
	for _, id := range []string{"gone", "../up", ""} {
		_, paused := d.Pause(t.Context(), id, true)
		_, ran := d.Set.Run(t.Context(), id)
		for _, err := range []error{paused, ran, d.Remove(t.Context(), id)} {
			if !errors.Is(err, schedule.ErrNone) || !strings.Contains(err.Error(), "see 'inspan schedule list'") {
				t.Errorf("%q: %v", id, err)
			}
		}
	}
}
