package teams_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
)

var (
	update = flag.Bool("update", false, "run all teams, and write the table of docs/SUBAGENTS.md anew")
	luck   = flag.Int("luck", 0, "luck of the teams")
)

// crewOf is the variable with the crew of a process that is to be killed.
const crewOf = "INSPAN_LAB_CREW"

func TestMain(m *testing.M) {
	if raw := os.Getenv(crewOf); raw != "" {
		var c crew
		err := json.Unmarshal([]byte(raw), &c)
		if err == nil {
			err = c.work(context.Background(), os.Args[1])
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// figures are what a team has used.
type figures struct {
	took      time.Duration
	conflicts int // claims that another had won, and edits of a file that had changed
	deaths    int
	tokens    int64
	cost      float64
}

// judge checks that no task was lost or done twice, that no edit was lost, and that the lead's log has all costs.
func (c crew) judge(t *testing.T, id string) (f figures) {
	t.Helper()
	w, err := c.host().Watch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	st := w.Status()
	if len(st.Tasks.List) != c.Tasks {
		t.Errorf("%d tasks, want %d", len(st.Tasks.List), c.Tasks)
	}
	for _, task := range st.Tasks.List {
		if !task.Done || task.Evidence == "" {
			t.Errorf("task %s is lost: %+v", task.ID, task)
		}
	}
	for i := range c.Files {
		text, err := os.ReadFile(filepath.Join(c.Root, c.file(i)))
		if err != nil {
			t.Fatal(err)
		}
		for n := i; n < c.Tasks; n += c.Files {
			if got := strings.Count(string(text), c.line(n)+"\n"); got != 1 {
				t.Errorf("%s is in %s %d times", c.line(n), c.file(n), got)
			}
		}
	}
	var list inspan.Tasks
	c.events(t, id, func(e event.Event) {
		before := list
		list = list.After(id, e)
		switch b := e.Body.(type) {
		case event.Tasked:
			if was, is := before.Find(b.ID), list.Find(b.ID); b.Action == loop.TaskClaim && was != nil && is.Holder != b.By {
				f.conflicts++
			}
		case event.Returned:
			if b.Reason != event.ReasonDone {
				f.deaths++
			}
		}
	})
	sum := 0.0
	for _, child := range st.Children {
		c.events(t, child.Child, func(e event.Event) {
			switch b := e.Body.(type) {
			case event.Replied:
				sum += b.Cost
			case event.Ended:
				if b.Outcome == event.OutcomeFailed && strings.Contains(b.Parts.Text(), "old_string") {
					f.conflicts++
				}
			}
		})
		if child.Open {
			t.Errorf("%s works still", child.Name)
		}
	}
	c.events(t, id, func(e event.Event) {
		if b, ok := e.Body.(event.Replied); ok {
			sum += b.Cost
		}
	})
	if diff := sum - st.Cost; diff > 1e-6 || diff < -1e-6 {
		t.Errorf("all logs have %f dollars, that of the lead %f", sum, st.Cost)
	}
	f.tokens, f.cost = int64(st.Usage.Prompt()+st.Usage.Output), st.Cost
	return f
}

func (c crew) events(t *testing.T, id string, on func(e event.Event)) {
	t.Helper()
	for e, err := range c.host().Events(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		on(e)
	}
}

// mostTime is how long a team may take: if it takes longer, it is in a deadlock.
const mostTime = 10 * time.Minute

// TestTeams checks teams whose members die, lie and edit the same files, in order and side by side.
func TestTeams(t *testing.T) {
	for i, members := range []int{2, 5, 12} {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			t.Parallel()
			c := crew{
				Seed: i + *luck, Members: members, Tasks: 24, Files: 3, Chain: 6, Takes: 4 * time.Millisecond, Dies: 0.02, Lies: 0.3,
				Dir: t.TempDir(), Root: t.TempDir(),
			}
			ctx, cancel := context.WithTimeout(t.Context(), mostTime)
			defer cancel()
			id := c.begin(t)
			if err := c.work(ctx, id); err != nil {
				t.Fatal(err)
			}
			f := c.judge(t, id)
			t.Logf("%d deaths, %d conflicts", f.deaths, f.conflicts)
		})
	}
}

// TestKilledTeams checks teams whose process is killed again and again, at random: five times, with -update fifty times.
func TestKilledTeams(t *testing.T) {
	kills := map[bool]int{false: 5, true: 50}[*update]
	for i, members := range []int{2, 5, 12} {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			t.Parallel()
			c := crew{
				Seed: i + *luck, Members: members, Tasks: 4 * kills, Files: 3, Chain: 20, Takes: 10 * time.Millisecond, Dies: 0.01, Lies: 0.2,
				Dir: t.TempDir(), Root: t.TempDir(),
			}
			id, killed := c.run(t, kills)
			f := c.judge(t, id)
			t.Logf("killed %d times, %d deaths, %d conflicts, $%.2f", killed, f.deaths, f.conflicts, f.cost)
		})
	}
}

// run lets processes work for the crew until one is done, and kills that many of them at random.
func (c crew) run(t *testing.T, kills int) (id string, killed int) {
	t.Helper()
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	id = c.begin(t)
	random := rand.New(rand.NewPCG(2, uint64(c.Seed)))
	for began := time.Now(); ; {
		if time.Since(began) > mostTime {
			t.Fatal("it does not end")
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], id)
		var said strings.Builder
		cmd.Stderr, cmd.Env = &said, append(os.Environ(), crewOf+"="+string(raw))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if killed < kills {
			timer := time.AfterFunc(time.Duration(100+random.IntN(500))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
		}
		err := cmd.Wait()
		if err == nil {
			return id, killed
		}
		if killed++; cmd.ProcessState.Exited() {
			t.Fatalf("%v: %s", err, said.String())
		}
	}
}

// TestTokens checks that members which idle hand a token on, message by message, while their process is killed
// again and again: each message arrives once, and no one waits for one that never comes.
func TestTokens(t *testing.T) {
	t.Parallel()
	kills := map[bool]int{false: 4, true: 50}[*update]
	c := crew{Seed: *luck, Members: 4, Hops: 15 * kills, Files: 1, Takes: 10 * time.Millisecond, Dir: t.TempDir(), Root: t.TempDir()}
	id, killed := c.run(t, kills)
	w, err := c.host().Watch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	arrived, keys := map[string]int{}, map[string]bool{}
	for _, child := range w.Status().Children {
		c.events(t, child.Child, func(e event.Event) {
			if m, ok := e.Body.(event.Steered); ok && m.Origin == event.OriginAgent && !keys[m.Message] {
				keys[m.Message] = true
				_, token, _ := strings.Cut(m.Parts.Text(), "token ")
				arrived[token]++
			}
		})
	}
	for n := range c.Hops + 1 {
		if got := arrived[fmt.Sprint(n, ".")]; got != 1 {
			t.Errorf("token %d arrived %d times", n, got)
		}
	}
	t.Logf("killed %d times", killed)
}

// TestTeamBudget checks that a team stops at the limit of its lead, with at most a request of each member more.
func TestTeamBudget(t *testing.T) {
	t.Parallel()
	c := crew{Seed: 3, Members: 8, Tasks: 100, Files: 2, Takes: time.Millisecond, Cost: 0.3, Dir: t.TempDir(), Root: t.TempDir()}
	id := c.begin(t)
	if err := c.work(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w, err := c.host().Watch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if st := w.Status(); st.Stopped == nil || st.Stopped.Reason != event.ReasonBudget || st.Cost > c.Cost*1.2 {
		t.Errorf("%+v, $%f", st.Stopped, st.Cost)
	}
}

// TestTable measures teams of 1 to 50 members on the same tasks.
func TestTable(t *testing.T) {
	if !*update {
		t.Skip("make teams measures the table of docs/SUBAGENTS.md, in minutes")
	}
	var out strings.Builder
	out.WriteString("| members | seconds | speed-up | conflicts | deaths | tokens | cost |\n|---|---|---|---|---|---|---|\n")
	var alone time.Duration
	for _, members := range []int{1, 2, 5, 10, 20, 50} {
		c := crew{
			Seed: 11, Members: members, Tasks: 150, Files: 5, Takes: 100 * time.Millisecond, Dies: 0.01, Lies: 0.1, Dir: t.TempDir(), Root: t.TempDir(),
		}
		id, began := c.begin(t), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), mostTime)
		if err := c.work(ctx, id); err != nil {
			t.Fatal(err)
		}
		cancel()
		f := c.judge(t, id)
		if f.took = time.Since(began); members == 1 {
			alone = f.took
		}
		fmt.Fprintf(&out, "| %d | %.0f | %.1f | %d | %d | %.1f M | $%.2f |\n", members, f.took.Seconds(), alone.Seconds()/f.took.Seconds(),
			f.conflicts, f.deaths, float64(f.tokens)/1e6, f.cost)
	}
	t.Log("\n" + out.String())
	const page = "../../../docs/SUBAGENTS.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), "<!-- teams -->\n")
	_, after, closed := strings.Cut(rest, "<!-- /teams -->\n")
	if !found || !closed {
		t.Fatal("the page has no place for the table")
	}
	if err := os.WriteFile(page, []byte(before+"<!-- teams -->\n"+out.String()+"<!-- /teams -->\n"+after), 0o600); err != nil {
		t.Fatal(err)
	}
}
