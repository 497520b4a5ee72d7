package running_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// TestStale checks which sessions no retention removes, and in which order the others go.
func TestStale(t *testing.T) {
	r := newTable(t)
	opened, done := event.Opened{Format: 1, Root: "/w"}, event.Stopped{Reason: event.ReasonDone}
	first := past(t, r, opened, event.Say("first"), done)
	pinned := past(t, r, opened, event.Say("pinned"), event.Pinned{On: true}, done)
	past(t, r, opened, event.Say("waits"), event.Replied{Parts: asks()}, event.Judged{Call: "c", Action: tool.Ask}, event.Waiting{Call: "c"})
	held(t, r, opened, event.Say("open"))
	parent := past(t, r, opened, event.Say("with a child that is driven"), done)
	child(t, r, parent)
	damaged := past(t, r, opened, event.Say("damaged"), done)
	log := filepath.Join(r.Sessions.(*session.Store).Dir, damaged, "log.jsonl")
	if err := os.WriteFile(log, []byte("no log at all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := past(t, r, opened, event.Say("second"), event.Pinned{On: true}, event.Pinned{}, done)

	stale, left, err := r.Stale(t.Context(), time.Nanosecond, 0)
	if got := ids(stale); err != nil || !slices.Equal(got, []string{first, second}) {
		t.Errorf("by age: %q, %v; want %s and %s", got, err, first, second)
	}
	if stale, all, err := r.Stale(t.Context(), 0, 0); len(stale) > 0 || err != nil || all <= left {
		t.Errorf("without retention: %+v, %v; %d bytes stay, and %d by age", stale, err, all, left)
	}
	if stale, _, err := r.Stale(t.Context(), time.Hour, 0); len(stale) > 0 || err != nil {
		t.Errorf("none is an hour old: %+v, %v", stale, err)
	}
	_, all, err := r.Stale(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	stale, left, err = r.Stale(t.Context(), 0, all-1)
	if got := ids(stale); err != nil || !slices.Equal(got, []string{first}) || left != all-stale[0].Size || stale[0].Size == 0 {
		t.Errorf("by size: %q, %d of %d bytes stay, %v; want %s", got, left, all, err, first)
	}
	if stale, _, err = r.Stale(t.Context(), 0, 1); err != nil || slices.Contains(ids(stale), pinned) || len(stale) != 2 {
		t.Errorf("however small: %q, %v", ids(stale), err)
	}
}

// TestStaleInCopies checks that no retention removes a session whose copy of a folder has unmerged work, or can't be
// read, and that the last session of the folder may be one in a copy.
func TestStaleInCopies(t *testing.T) {
	r := newTable(t)
	r.Trees = trees(t)
	root := repository(t)
	apart := func(name string) (id, dir string) {
		tree, err := r.Trees.Make(t.Context(), root, name)
		if err != nil {
			t.Fatal(err)
		}
		opened := event.Opened{Format: 1, Root: tree.Root, Labels: map[string]string{running.CopyLabel: root}}
		return past(t, r, opened, event.Say(name), event.Stopped{Reason: event.ReasonDone}), tree.Root
	}
	merged, _ := apart("merged")
	unmerged, dir := apart("unmerged")
	fill(t, filepath.Join(dir, "work.txt"), "not merged yet")
	stale, _, err := r.Stale(t.Context(), time.Nanosecond, 0)
	if got := ids(stale); err != nil || !slices.Equal(got, []string{merged}) {
		t.Errorf("%q, %v; want %s, and not %s", got, err, merged, unmerged)
	}
	if last, err := r.LastIn(t.Context(), root); err != nil || last != unmerged {
		t.Errorf("the last session is %s, %v", last, err)
	}
	fill(t, filepath.Join(root, ".git", "config"), "[no settings of git")
	if stale, _, err := r.Stale(t.Context(), time.Nanosecond, 0); err != nil || len(stale) > 0 {
		t.Errorf("unreadable: %q, %v", ids(stale), err)
	}
	list, err := r.Copies(t.Context(), "")
	if err != nil || len(list) != 2 || list[0].Problem == "" || list[1].Problem == "" {
		t.Errorf("%+v, %v", list, err)
	}
}

// asks are the parts of a reply that calls a tool.
func asks() llm.Parts { return llm.Parts{llm.Call{ID: "c", Name: "bash"}} }

// child makes a driven child of the session.
func child(t *testing.T, r *running.Table, parent string) {
	t.Helper()
	log, _, err := r.Sessions.Child(t.Context(), parent, "call")
	if err == nil {
		err = log.Lease(t.Context())
	}
	if err == nil {
		_, err = harnesstest.Write(t.Context(), log, event.Opened{Format: 1, Root: "/w", Parent: parent}, event.Say("work"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
}

func ids(stale []running.Stale) (out []string) {
	for _, s := range stale {
		out = append(out, s.ID)
	}
	return out
}

// info is the entry of a session in the list.
func info(t *testing.T, r *running.Table, id string) store.Info {
	t.Helper()
	list, err := r.Sessions.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list[slices.IndexFunc(list, func(i store.Info) bool { return i.ID == id })]
}
