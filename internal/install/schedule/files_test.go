package schedule_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/install/schedule"
)

// writes has a file have this content since a while ago.
func (d *desk) writes(name, text string, ago time.Duration) {
	d.Helper()
	path := filepath.Join(d.root, name)
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600),
		os.Chtimes(path, d.at.Add(-ago), d.at.Add(-ago)))
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) removes(name string) {
	d.Helper()
	if err := os.Remove(filepath.Join(d.root, name)); err != nil {
		d.Fatal(err)
	}
}

// watches holds which files begin runs now.
func (d *desk) watches(id string, want ...string) {
	d.Helper()
	var got []string
	past, err := d.Due(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	for _, o := range past {
		name, _, _ := strings.Cut(o.Key, " ")
		got = append(got, name)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		d.Errorf("runs begin for %q, want %q", got, want)
	}
	if open := d.find(id).Open; len(open) > 0 {
		d.Errorf("%+v waits", open)
	}
}

// TestFiles has files of all kinds come, change and go.
func TestFiles(t *testing.T) {
	const old = time.Minute
	d := newDesk(t, "2026-10-20T12:00:00Z")
	d.writes("in/known.csv", "known", old)
	d.writes("in/fresh.csv", "fresh", 0)
	one := d.add(schedule.Schedule{Files: "in/**/*.csv"})
	d.watches(one.ID)
	d.at = d.at.Add(time.Hour)
	d.watches(one.ID) // what was there is known, even if it had just been written

	d.writes("in/new.csv", "new", old)
	d.writes("in/deep/new.csv", "new", old) // of two, each counts
	d.writes("in/new.txt", "new", old)
	d.writes("new.csv", "new", old)
	d.watches(one.ID, "in/deep/new.csv", "in/new.csv")
	d.watches(one.ID)

	d.writes("in/new.csv", "changed", 1999*time.Millisecond)
	d.watches(one.ID) // it may still change
	d.at = d.at.Add(time.Millisecond)
	d.watches(one.ID, "in/new.csv")
	d.at = d.at.Add(time.Hour)
	d.writes("in/new.csv", "changed", old) // the same again
	d.writes("in/known.csv", "known", old)
	d.watches(one.ID)
	d.writes("in/known.csv", "changed", old)
	d.watches(one.ID, "in/known.csv")
	d.at = d.at.Add(time.Hour)
	d.writes("in/known.csv", "known", old) // and back
	d.watches(one.ID, "in/known.csv")

	d.removes("in/known.csv")
	d.watches(one.ID)
	d.at = d.at.Add(time.Hour)
	d.writes("in/known.csv", "known", old) // it is new
	d.watches(one.ID, "in/known.csv")
}

// TestLinks checks that no file is looked at through a link, but for a folder that the glob names, and nothing outside
// of the schedule's folder.
func TestLinks(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	d.writes("real/a.csv", "a", time.Minute)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "b.csv"), []byte("b"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, to := d.add(schedule.Schedule{ID: "in", Files: "in/**/*.csv"}), d.add(schedule.Schedule{ID: "to", Files: "to/*.csv"})
	near := d.add(schedule.Schedule{ID: "near", Files: "near/*.csv"})
	d.writes("in/kept.csv", "kept", time.Minute)
	for at, target := range map[string]string{
		"in/file.csv": "../real/a.csv", "in/out.csv": filepath.Join(outside, "b.csv"), "in/dir": "../real",
		"in/away": outside, "to": outside, "near": "real",
	} {
		if err := os.Symlink(target, filepath.Join(d.root, at)); err != nil {
			t.Skip(err)
		}
	}
	d.at = time.Now().Add(time.Hour) // the links were made just now
	d.watches(in.ID, "in/kept.csv", "near/a.csv")
	d.watches(to.ID)
	d.watches(near.ID)
}

// TestPausedFiles checks that changes during a pause begin nothing after it.
func TestPausedFiles(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	one := d.add(schedule.Schedule{Files: "*.csv"})
	for _, paused := range []bool{true, false} {
		d.writes("a.csv", fmt.Sprint(paused), time.Minute)
		if _, err := d.Pause(t.Context(), one.ID, paused); err != nil {
			t.Fatal(err)
		}
		d.watches(one.ID)
	}
	d.at = d.at.Add(time.Hour)
	d.writes("a.csv", "more", time.Minute)
	d.watches(one.ID, "a.csv")
}

// TestManyFiles has more files come at once than can wait, and holds that each begins its run later.
func TestManyFiles(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	one := d.add(schedule.Schedule{Files: "*.csv"})
	for n := range 101 {
		d.writes(fmt.Sprintf("%03d.csv", n), "x", time.Minute)
	}
	first, err := d.Due(t.Context())
	if len(first) != 100 || err != nil {
		t.Fatal(len(first), err)
	}
	d.watches(one.ID, "100.csv")
	d.watches(one.ID)
}
