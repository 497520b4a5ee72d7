package postgres_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/engine/postgres"
)

// turnsOf returns the sessions whose turns a store takes.
func turnsOf(t *testing.T, s *postgres.Store, most int) map[string]postgres.Turn {
	t.Helper()
	list, err := s.Turns(t.Context(), most)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]postgres.Turn{}
	for _, turn := range list {
		out[turn.Session] = turn
	}
	return out
}

// woken makes sessions and wakes them.
func woken(t *testing.T, s *postgres.Store, many int) (ids []string) {
	t.Helper()
	for range many {
		l, err := s.Create(t.Context())
		if err == nil {
			err = s.Wake(t.Context(), l.ID())
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, l.ID())
	}
	return ids
}

func endTurn(t *testing.T, s *postgres.Store, turn postgres.Turn, end postgres.TurnEnd) {
	t.Helper()
	if err := s.EndTurn(t.Context(), turn, end); err != nil {
		t.Fatal(err)
	}
}

// TestTurns gives each turn to one process, until it is given back. A session that was woken meanwhile is due again.
func TestTurns(t *testing.T) {
	c := fresh(t)
	one, two := open(t, c), open(t, c)
	ids := woken(t, one, 5)
	<-two.Due() // it hears of wakes elsewhere
	a, b := turnsOf(t, one, 3), turnsOf(t, two, 9)
	if len(a) != 3 || len(b) != 2 {
		t.Fatalf("of 5 turns, the processes have %d and %d", len(a), len(b))
	}
	if more := turnsOf(t, one, 9); len(more) > 0 {
		t.Errorf("turns that are taken are taken again: %v", more)
	}
	for _, id := range ids {
		if _, twice := a[id]; twice == (b[id].Session != "") {
			t.Errorf("session %s has two turns, or none", id)
		}
	}
	var rests, late postgres.Turn
	for _, turn := range a {
		rests, late = late, turn
	}
	endTurn(t, one, rests, postgres.TurnEnd{})
	if err := two.Wake(t.Context(), late.Session); err != nil {
		t.Fatal(err)
	}
	endTurn(t, one, late, postgres.TurnEnd{Again: true, After: time.Hour}) // it has not seen the wake
	if got := turnsOf(t, two, 9); len(got) != 1 || got[late.Session].Session == "" {
		t.Errorf("after a wake during the turn, %v are due", got)
	}
	if err := one.Wake(t.Context(), "20260101-000000-none"); err == nil {
		t.Error("a session that is missing was woken")
	}
}

// TestTurnsFail counts the tries that fail, until the session is driven.
func TestTurnsFail(t *testing.T) {
	s := open(t, fresh(t))
	id := woken(t, s, 1)[0]
	for n := range 3 {
		turn := turnsOf(t, s, 1)[id]
		if turn.Tries != n {
			t.Errorf("after %d tries, the turn has %d", n, turn.Tries)
		}
		endTurn(t, s, turn, postgres.TurnEnd{Again: true, Failed: "no folder"})
	}
	if tries, why, err := s.Failing(t.Context(), id); tries != 3 || why != "no folder" || err != nil {
		t.Errorf("%d tries, %q, %v", tries, why, err)
	}
	endTurn(t, s, turnsOf(t, s, 1)[id], postgres.TurnEnd{Again: true})
	if tries, _, err := s.Failing(t.Context(), id); tries > 0 || err != nil {
		t.Errorf("%d tries after it was driven, %v", tries, err)
	}
	endTurn(t, s, turnsOf(t, s, 1)[id], postgres.TurnEnd{Again: true, Failed: "later", After: time.Hour})
	if turns := turnsOf(t, s, 1); len(turns) > 0 {
		t.Errorf("it is due an hour too early: %v", turns)
	}
	if err := s.Wake(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if turns := turnsOf(t, s, 1); len(turns) != 1 {
		t.Error("a wake does not end a pause")
	}
}

// asTaker has this program take a turn, by the URL and the schema of a store.
const asTaker = "INSPAN_TEST_TAKER"

// taker takes a turn, says so, and waits to be killed.
func taker(url, schema string) error {
	s, err := postgres.Open(context.Background(), postgres.Config{URL: url, Schema: schema, Lease: shortLease})
	if err != nil {
		return err
	}
	turns, err := s.Turns(context.Background(), 1)
	if err != nil || len(turns) != 1 {
		return fmt.Errorf("it has the turns %v, %w", turns, err)
	}
	fmt.Println("has it")
	select {}
}

// TestTurnOfTheDead kills a process that has a turn and no lease. Another takes the turn, once, and what the first one
// would do with it later changes nothing.
func TestTurnOfTheDead(t *testing.T) {
	c := fresh(t)
	c.Lease = shortLease
	s, other := open(t, c), open(t, c)
	id := woken(t, s, 1)[0]
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asTaker+"="+strings.Join([]string{c.URL, c.Schema}, "\n"))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it has the turn
		t.Fatal(err)
	}
	if turns := turnsOf(t, s, 1); len(turns) > 0 {
		t.Errorf("a turn that is taken is taken again: %v", turns)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for lost, err := range s.Lost(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		turn, ok, err := s.Rescue(t.Context(), lost)
		if err != nil || !ok || turn.Session != id {
			t.Fatalf("rescued %+v, %v, %v", turn, ok, err)
		}
		if _, again, err := other.Rescue(t.Context(), lost); again || err != nil {
			t.Errorf("two processes have rescued it, %v", err)
		}
		endTurn(t, other, turn, postgres.TurnEnd{}) // it is not theirs
		endTurn(t, s, turn, postgres.TurnEnd{Again: true})
		break
	}
	if turns := turnsOf(t, other, 1); len(turns) != 1 {
		t.Error("the turn is gone")
	}
}

// TestTurnCut cuts the connection while a turn is taken. Whether or not the database has given it, the process has it in
// the end.
func TestTurnCut(t *testing.T) {
	_, s, _, p := proxied(t)
	for answer := -1; answer <= 100; answer += 10 {
		id := woken(t, s, 1)[0]
		cut := p.Arm(id, -1, answer)
		turn, ok, err := s.Rescue(t.Context(), id)
		<-cut.Done
		for end := time.Now().Add(time.Minute); err != nil && !ok && time.Now().Before(end); {
			turn, ok = turnsOf(t, s, 1)[id]
		}
		if !ok || turn.Session != id {
			t.Fatalf("cut at %d: %+v, %v, %v", answer, turn, ok, err)
		}
		endTurn(t, s, turn, postgres.TurnEnd{})
	}
}
