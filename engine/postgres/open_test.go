package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/event"
)

// TestMigrations opens a new schema by many at once, then one of a later version.
func TestMigrations(t *testing.T) {
	c := fresh(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			s, err := postgres.Open(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			l, err := s.Create(t.Context())
			if err == nil {
				err = l.Close()
			}
			if err := errors.Join(err, s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	sql(t, c, "INSERT INTO migrations (version, name) SELECT max(version) + 1, 'of tomorrow' FROM migrations")
	if s, err := postgres.Open(t.Context(), c); !errors.Is(err, postgres.ErrTooNew) {
		t.Errorf("a database of a later version was opened: %v, %v", s, err)
	}
}

// TestPasswords checks that no error tells a password.
func TestPasswords(t *testing.T) {
	const secret = "s3cr#t%40/:?"
	for _, url := range []string{
		"postgres://me:s3cr#t%40/:?@127.0.0.1:1/db",
		"postgres://me:s3cr%23t%2540%2F%3A%3F@127.0.0.1:1/db",
		"postgres://me:s3cr%23t%2540%2F%3A%3F@127.0.0.1:1/db?sslmode=no",
		"postgres://me:s3cr%zz@127.0.0.1:1/db",
		"postgres://me@127.0.0.1:1/db?password=s3cr%23t",
		"host=127.0.0.1 port=1 password='s3cr#t%40/:?' user=me",
		"host=127.0.0.1 port=s3cr password='s3cr#t%40/:?",
		"s3cr",
		"",
	} {
		s, err := postgres.Open(t.Context(), postgres.Config{URL: url})
		if err == nil {
			t.Fatalf("%q was opened: %v", url, s)
		}
		if strings.Contains(err.Error(), secret[:4]) {
			t.Errorf("the error tells of the password: %v", err)
		}
	}
}

// TestLines checks that the database has the bytes that event.Encode writes, and that a text that no column takes is
// kept in them.
func TestLines(t *testing.T) {
	c := fresh(t)
	s := open(t, c)
	l, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	as := drive(t, l, 1, 0)
	opened := event.Opened{Format: event.Format, Root: "/w\x00", Labels: map[string]string{"a\x00": "b\x00"}}
	events, err := l.AppendAs(t.Context(), as, opened, event.Titled{Title: "with \x00 and \xff"}, event.Say("\x00"),
		event.Unknown{Name: "odd \x00", Raw: []byte(`{"a" : "\u0000"}`)})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := connect(t, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		want, err := event.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		var line []byte
		if err := conn.QueryRow(t.Context(), "SELECT line FROM events WHERE seq = $1", e.Seq).Scan(&line); err != nil {
			t.Fatal(err)
		}
		if string(line) != string(want) {
			t.Errorf("event %d is kept as\n%s\nwant\n%s", e.Seq, line, want)
		}
	}
	list, err := s.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Title != "with \uFFFD and \uFFFD" || list[0].Labels["a\uFFFD"] != "b\uFFFD" {
		t.Errorf("List: %+v, %v", list, err)
	}
}

// TestDamage removes events from the database: a reader gets the events before the gap, and an error.
func TestDamage(t *testing.T) {
	for name, statement := range map[string]string{
		"a gap":        "DELETE FROM events WHERE seq = 3",
		"an end":       "DELETE FROM events WHERE seq >= 3",
		"another line": "UPDATE events SET line = (SELECT line FROM events WHERE seq = 2) WHERE seq = 3",
		"no event":     "UPDATE events SET line = 'x' WHERE seq = 3",
	} {
		t.Run(name, func(t *testing.T) {
			c := fresh(t)
			s := open(t, c)
			l, err := s.Create(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Append(t.Context(), event.Say("1"), event.Say("2"), event.Say("3"), event.Say("4")); err != nil {
				t.Fatal(err)
			}
			sql(t, c, statement)
			n := 0
			for e, bad := range l.Read(t.Context(), 0) {
				if err = bad; err == nil {
					n++
				}
				if e.Seq > 2 {
					t.Errorf("event %d is behind the damage", e.Seq)
				}
			}
			if n != 2 || err == nil || !strings.Contains(err.Error(), "damaged at event 3") {
				t.Errorf("read %d events, %v", n, err)
			}
		})
	}
}

// TestRemoved checks that a log does not write to a session that was made under the id of its own.
func TestRemoved(t *testing.T) {
	s := open(t, fresh(t))
	parent, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	old, _, err := s.Child(t.Context(), parent.ID(), "x")
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- old.Wait(context.WithoutCancel(t.Context()), 1) }()
	if err := s.Remove(t.Context(), old.ID()); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err == nil {
		t.Error("a wait for a session that is removed ended without an error")
	}
	again, isNew, err := s.Child(t.Context(), parent.ID(), "x")
	if err != nil || !isNew {
		t.Fatal(isNew, err)
	}
	if _, err := old.Append(t.Context(), event.Say("lost")); err == nil {
		t.Error("an input was acknowledged that nobody will find")
	}
	for e, err := range again.Read(t.Context(), 0) {
		t.Errorf("the new session has %v, %v", e, err)
	}
}
