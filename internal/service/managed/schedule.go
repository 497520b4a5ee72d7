package managed

import (
	"errors"
	"time"

	times "github.com/inspan/inspan/internal/install/schedule"
)

// schedule is when a deployment runs.
type schedule struct {
	Type       string `json:"type"`
	Expression string `json:"expression"`
	Timezone   string `json:"timezone"`
}

const wantSchedule = `five fields such as "0 9 * * 1-5": minute, hour, day of the month, month, day of the week`

// read parses a schedule.
func (s schedule) read() (times.Cron, error) {
	if s.Type != "cron" {
		return times.Cron{}, invalid("schedule.type", "it is unknown", "cron")
	}
	c, err := times.ParseCron(s.Expression, s.Timezone)
	switch {
	case errors.Is(err, times.ErrZone):
		return c, invalid("schedule.timezone", err.Error(), "a name such as UTC or Europe/Berlin")
	case err != nil:
		return c, invalid("schedule.expression", err.Error(), wantSchedule)
	}
	return c, nil
}

// upcoming returns the next times.
func upcoming(c times.Cron, now time.Time) []string {
	out := []string{}
	for _, at := range c.Next(now, mostUpcoming) {
		out = append(out, stamp(at))
	}
	return out
}
