package schedule_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/install/schedule"
)

// change is a change of the clocks: when, and from which offset to which.
type change struct {
	at            time.Time
	before, after int
}

// changes are those of the clocks of a zone within ten years.
func changes(loc *time.Location) (out []change) {
	end := time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)
	for at := time.Date(2026, 1, 1, 0, 0, 0, 0, loc); ; {
		_, next := at.ZoneBounds()
		if next.IsZero() || next.After(end) {
			return out
		}
		_, before := at.Zone()
		at = next.In(loc)
		if _, after := at.Zone(); after != before {
			out = append(out, change{next.UTC(), before, after})
		}
	}
}

// clock is the local time of a zone, as a time in UTC.
func clock(at time.Time) time.Time {
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
}

// TestChangesOfClocks watches the clocks of every zone around each of their changes within ten years, minute by minute:
// a time comes when they first show it or a later one, and with any hour whenever they show it.
func TestChangesOfClocks(t *testing.T) {
	list, err := os.ReadFile("testdata/zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[change]bool{}
	zones := strings.Fields(string(list))
	for _, zone := range zones {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes(loc) {
			if seen[c] { // many zones change together
				continue
			}
			seen[c] = true
			from, to := c.at.Add(-4*time.Hour), c.at.Add(4*time.Hour)
			var first, each []time.Time
			latest := clock(from.In(loc))
			for at := from.Add(time.Minute); !at.After(to); at = at.Add(time.Minute) {
				now := clock(at.In(loc))
				if now.Minute()%15 == 0 {
					each = append(each, at)
				}
				if now.After(latest) { // and any quarter that lies between
					if latest.Truncate(15*time.Minute) != now.Truncate(15*time.Minute) {
						first = append(first, at)
					}
					latest = now
				}
			}
			for expression, want := range map[string][]time.Time{"*/15 0-23 * * *": first, "*/15 * * * *": each} {
				cron, err := schedule.ParseCron(expression, zone)
				if err != nil {
					t.Fatal(err)
				}
				var got []time.Time
				for at := cron.After(from); !at.After(to); at = cron.After(at) {
					got = append(got, at)
				}
				if !slices.EqualFunc(got, want, time.Time.Equal) {
					t.Errorf("%s in %s around %v: %v, want %v", expression, zone, c.at, got, want)
				}
			}
		}
	}
	if len(zones) < 500 || len(seen) < 100 {
		t.Errorf("%d zones with %d changes", len(zones), len(seen))
	}
}

// TestSkippedAndRepeated checks when single times come on days when the clocks change.
func TestSkippedAndRepeated(t *testing.T) {
	for _, c := range []struct{ expression, zone, after, want string }{
		{"0 0 14 3 *", "America/Havana", "2026-12-01T00:00:00Z", "2027-03-14T05:00:00Z"}, // midnight is skipped
		{"30 0 14 3 *", "America/Havana", "2026-12-01T00:00:00Z", "2027-03-14T05:00:00Z"},
		{"0 0 5 9 *", "America/Santiago", "2026-12-01T00:00:00Z", "2027-09-05T04:00:00Z"},
		{"30 2 28 3 *", "Europe/Berlin", "2026-12-01T00:00:00Z", "2027-03-28T01:00:00Z"},
		{"30 2 31 10 *", "Europe/Berlin", "2026-12-01T00:00:00Z", "2027-10-31T00:30:00Z"}, // comes twice
		{"30 2 31 10 *", "Europe/Berlin", "2027-10-31T00:30:00Z", "2028-10-31T01:30:00Z"},
		{"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}, // by half an hour
		{"0 7 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2028-02-29T07:00:00Z"},
	} {
		cron, err := schedule.ParseCron(c.expression, c.zone)
		if err != nil {
			t.Fatal(err)
		}
		after, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		if got := cron.After(after).Format(time.RFC3339); got != c.want {
			t.Errorf("%s in %s after %s: %s, want %s", c.expression, c.zone, c.after, got, c.want)
		}
	}
}
