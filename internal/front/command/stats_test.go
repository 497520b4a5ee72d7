package command

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/store"
)

// TestPercentile checks that a percentile is one of the values, by the nearest rank.
func TestPercentile(t *testing.T) {
	var hundred []int64
	for i := range int64(100) {
		hundred = append(hundred, i+1)
	}
	for _, tc := range []struct {
		of   []int64
		p    int
		want int64
	}{
		{nil, 50, 0},
		{[]int64{7}, 50, 7},
		{[]int64{7}, 99, 7},
		{[]int64{1, 2, 3, 4}, 50, 2},
		{[]int64{1, 2, 3, 4, 5}, 50, 3},
		{[]int64{1, 2, 3}, 95, 3},
		{hundred, 50, 50},
		{hundred, 95, 95},
		{hundred, 99, 99},
		{hundred[:20], 95, 19},
	} {
		if got := percentile(tc.of, tc.p); got != tc.want {
			t.Errorf("the %dth percentile of %d values is %d, wanted %d", tc.p, len(tc.of), got, tc.want)
		}
	}
}

// TestStatsOfOneSession checks the help's statement about --since: all of a named session, otherwise the last days.
func TestStatsOfOneSession(t *testing.T) {
	var m store.Memory
	log, err := m.Create(t.Context())
	if err == nil {
		err = log.Lease(t.Context())
	}
	if err == nil {
		_, err = harnesstest.Write(t.Context(), log, event.Opened{Format: 1}, event.Say("go"), event.Asked{Route: "a/m"}, event.Replied{Route: "a/m"})
	}
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now().AddDate(0, 0, usualDays+1)
	for id, want := range map[string]string{"": "No request or call has ended since ", log.ID(): "MODEL "} {
		var out bytes.Buffer
		err := statistics{Session: id}.report(t.Context(), &out, &m, later, func(s string) { t.Error(s) })
		if err != nil || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%q: wanted %q, got %v, %s", id, want, err, &out)
		}
	}
	if _, out, _ := prints(t, "stats", "--help"); !strings.Contains(out, "default: 30 days ago; all of one session") {
		t.Error(out)
	}
}
