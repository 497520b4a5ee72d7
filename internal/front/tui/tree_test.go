package tui

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
)

// TestMembersAreATree checks that each subagent is listed below the one that it works for, and that sessions of others
// are not listed.
func TestMembersAreATree(t *testing.T) {
	a := app.New(&config.Installation{StateDir: t.TempDir()})
	ctx := t.Context()
	begin := func(parent, name string, bodies ...event.Body) string {
		log, err := a.Store().Create(ctx)
		if parent != "" {
			log, _, err = a.Store().Child(ctx, parent, name)
		}
		if err == nil {
			err = log.Lease(ctx)
		}
		if err == nil {
			_, err = harnesstest.Write(ctx, log, append([]event.Body{event.Opened{Format: 1, Root: "/w"}}, bodies...)...)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		return log.ID()
	}
	own, others := begin("", "", event.Say("lead")), begin("", "", event.Say("another"))
	two := begin(own, "two", event.Say("second"))
	one := begin(own, "one", event.Say("first"), event.Stopped{Reason: event.ReasonMaxTurns})
	deep := begin(one, "deep", event.Say("deep"), event.Titled{Title: "Deep work"})
	begin(others, "one", event.Say("another's"))
	all, err := listMembers(ctx, a, own, []string{two})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]choice{}
	at := map[string]int{}
	for i, m := range all {
		got[m.id], at[m.id] = m.line(), i
	}
	name := func(id string) string { return id[strings.LastIndexByte(id, '.')+1:] }
	want := map[string]choice{
		one:  {name(one) + "  first", "max turns · " + one},
		deep: {"  " + name(deep) + "  Deep work", "open · " + deep},
		two:  {name(two) + "  second", "running · " + two},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(choice{})); diff != "" || at[deep] != at[one]+1 {
		t.Error(at, diff)
	}
}
