package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/extend/memory"
	"github.com/inspan/inspan/internal/extend/recall"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/permission"
	"github.com/inspan/inspan/internal/install/providers"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// printed is the output of a function, each line without the blanks that align it.
func printed(t *testing.T, print func(io.Writer) error) []string {
	t.Helper()
	var out bytes.Buffer
	if err := print(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return lines
}

// holds fails unless each line is printed.
func holds(t *testing.T, lines []string, want ...string) {
	t.Helper()
	all := "\n" + strings.Join(lines, "\n") + "\n"
	for _, w := range want {
		if !strings.Contains(all, "\n"+w+"\n") {
			t.Errorf("no line %q in%s", w, all)
		}
	}
}

// hostile is a text that moves the cursor, colours, hides the rest, and looks like two rows and two cells.
const hostile = "evil\x1b[2J\x1b[31m\u202egnp\tcell\nrow \u200b\xff"

// TestTablesDriveNoTerminal has texts of servers and logs in each table: no invisible character of theirs reaches the
// terminal, and none makes a row of its own.
func TestTablesDriveNoTerminal(t *testing.T) {
	for name, c := range map[string]struct {
		lines int
		print func(io.Writer) error
	}{
		"models": {2, func(w io.Writer) error {
			return printModels(w, providers.Found{Provider: providers.Provider{Name: "p"}, Models: []llm.Info{{Model: hostile}}})
		}},
		"costs": {2, func(w io.Writer) error { return cost.Print(w, "model", []cost.Row{{Key: hostile}}) }},
		"spent": {6, func(w io.Writer) error {
			row := cost.Row{Key: hostile}
			return printSpent(w, cost.Report{By: "tool", Rows: []cost.Row{row}, Costliest: []cost.CostCause{{Row: row}}})
		}},
		"sessions": {2, func(w io.Writer) error { return printSessions(w, []store.Info{{ID: "s", Title: hostile}}) }},
		"running":  {2, func(w io.Writer) error { return printRunning(w, []running.Driven{{ID: "s", What: hostile}}) }},
		"past": {2, func(w io.Writer) error {
			printPast(w, w, []recall.Hit{{Snippet: hostile}}, 0)
			return nil
		}},
		"explained": {5, func(w io.Writer) error {
			plan := shell.Plan{
				Class: shell.Full, Segments: []shell.Segment{{Text: hostile, Why: hostile}},
				Effects: []tool.Effect{{Kind: tool.Write, Path: hostile}},
			}
			return printExplained(w, permission.Explained{
				Plan: plan, Mode: "ask", Rules: []string{hostile},
				Verdict: tool.Verdict{Action: tool.Ask, By: "policy"},
			})
		}},
		"servers": {2, func(w io.Writer) error { return printServers(w, []mcp.Status{{Name: "s", Source: hostile}}) }},
	} {
		var out bytes.Buffer
		if err := c.print(&out); err != nil {
			t.Fatal(err)
		}
		if text.Clean(out.String()) != out.String() || strings.Contains(out.String(), "\t") {
			t.Errorf("%s: %q", name, out.String())
		}
		if n := strings.Count(out.String(), "\n"); n != c.lines || !strings.Contains(out.String(), "evil") {
			t.Errorf("%s: %d lines, want %d:\n%s", name, n, c.lines, out.String())
		}
	}
}

func TestSessions(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.Local)
	list := []store.Info{
		{ID: "a", Title: "The title", Preview: "said first", Modified: at, Events: 12, Stop: event.ReasonDone},
		{ID: "b", Preview: "said first", Modified: at},
		{ID: "c", Empty: true, Modified: at},
		{ID: "d", Stop: event.ReasonDone, Damage: errors.New("line 3"), Modified: at},
		{ID: "a.1", Parent: "a", Modified: at},
	}
	lines := printed(t, func(w io.Writer) error { return printSessions(w, list) })
	holds(t, lines,
		"ID USED EVENTS ENDED WHAT",
		"a 2026-11-23 12:00 12 done The title", // the title goes before what was said
		"b 2026-11-23 12:00 0 open said first",
		"c 2026-11-23 12:00 0 empty",
		"d 2026-11-23 12:00 0 DAMAGED",
	)
	leads := leads(list)
	if len(leads) != 4 {
		t.Errorf("%d leads, want 4", len(leads))
	}
	for _, s := range leads {
		if s.Parent != "" {
			t.Errorf("%s works for %s", s.ID, s.Parent)
		}
	}
}

func TestReport(t *testing.T) {
	for want, r := range map[string]session.Report{
		"s: ok, 3 events, 99 bytes, index ok":       {ID: "s", Events: 3, Size: 99, Index: "ok"},
		"s: repaired, 3 events, 99 bytes, index ok": {ID: "s", Events: 3, Size: 99, Index: "ok", Repaired: true},
		"blob abc is missing":                       {ID: "s", Missing: []string{"abc"}},
		"blob abc does not match its name":          {ID: "s", Bad: []string{"abc"}},
		"s: torn, 3 events, 99 bytes, index ok":     {ID: "s", Events: 3, Size: 99, Index: "ok", Torn: 7},
		"s: DAMAGED, 0 events, 0 bytes, index ok":   {ID: "s", Index: "ok", Torn: 7, Repaired: true, Missing: []string{"abc"}},
		"the last 7 bytes are half written, as after a loss of power; nothing that was acknowledged is in them": {ID: "s", Torn: 7},
		"set them aside: inspan sessions fsck --repair s":                                                       {ID: "s", Torn: 7},
		"the events before it are usable: inspan sessions fork --at 3 s": {
			ID: "s", Events: 3, Damage: []*session.DamageError{{}},
		},
	} {
		holds(t, printed(t, func(w io.Writer) error { printReport(w, r); return nil }), want)
	}
}

func TestRunningIndentsChildren(t *testing.T) {
	var out bytes.Buffer
	err := printRunning(&out, []running.Driven{
		{ID: "s", PID: 7, State: running.StateRunning, Cost: 0.5}, {ID: "s.1", PID: 7, State: running.StateWaiting, Unpriced: true},
	})
	lines := strings.Split(out.String(), "\n")
	if err != nil || !strings.HasPrefix(lines[1], "s ") || !strings.HasPrefix(lines[2], "  s.1 ") || !strings.Contains(lines[2], "waiting") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if strings.Contains(lines[1], "?") || lines[1] == lines[2] {
		t.Errorf("a cost without a price looks like one:\n%s", out.String())
	}
}

// TestRunningElsewhere checks that sessions of a server have no process here.
func TestRunningElsewhere(t *testing.T) {
	lines := printed(t, func(w io.Writer) error {
		return printRunning(w, []running.Driven{{ID: "s", State: running.StateIdle, What: "a heron"}})
	})
	if lines[0] != "ID SINCE STATE COST WHAT" || !strings.HasSuffix(lines[1], " idle $0.0000 a heron") || strings.Contains(lines[1], " 0 ") {
		t.Error(lines)
	}
}

func TestCosts(t *testing.T) {
	lines := printed(t, func(w io.Writer) error {
		return cost.Print(w, "model", []cost.Row{
			{Key: "a/b", Replies: 2, Usage: llm.Usage{Input: 25, CacheRead: 75, Output: 9}, Dollars: cost.Of(0.12345)},
			{Key: "none"},
			{Key: "hinted", Unpriced: 1, Estimated: 2},
			{Key: "guessed", Estimated: 2},
		})
	})
	holds(t, lines,
		"MODEL REPLIES INPUT CACHED OUTPUT US $",
		"a/b 2 100 75% 9 0.1235",
		"none 0 0 0% 0 0.0000", // nothing divided by nothing
		"hinted 0 0 0% 0 0.0000 1 without a price, 2 estimated",
		"guessed 0 0 0% 0 0.0000 2 estimated",
	)
	if got := text.Share(1, 0); got != 0 {
		t.Errorf("a share of nothing is %v", got)
	}
}

func TestSpent(t *testing.T) {
	reply := cost.Row{Key: "reply", Replies: 2, Usage: llm.Usage{Output: 30}, Dollars: cost.Of(3)}
	memory := cost.Row{Key: "memory", Usage: llm.Usage{Input: 40, CacheRead: 20, CacheWrite: 10}, Dollars: cost.Of(1)}
	total := cost.Row{Key: "total", Replies: 2, Usage: reply.Usage.Add(memory.Usage), Dollars: cost.Of(4), Unpriced: 1}
	report := cost.Report{
		By: cost.Causes, Rows: []cost.Row{reply, memory}, Total: total,
		Costliest: []cost.CostCause{{Row: reply}, {Row: memory, Advice: "forget"}},
	}
	holds(t, printed(t, func(w io.Writer) error { return printSpent(w, report) }),
		"CAUSE FRESH CACHED WRITTEN OUTPUT US $ SHARE",
		"reply 0 0 0 30 3.0000 75.0%",
		"memory 40 20 10 0 1.0000 25.0%",
		"total 40 20 10 30 4.0000 100.0%",
		"The ten costliest, and how to avoid them:",
		"$3.00 reply",
		"$1.00 memory: forget",
		"Of 2 requests 1 without a price.",
	)
	free := cost.Row{Key: "memory", Usage: llm.Usage{Input: 1500}}
	report = cost.Report{By: cost.Causes, Rows: []cost.Row{free}, Total: cost.Row{Key: "total", Usage: llm.Usage{Input: 3000}}}
	report.Costliest = []cost.CostCause{{Row: free}}
	holds(t, printed(t, func(w io.Writer) error { return printSpent(w, report) }),
		"CAUSE FRESH CACHED WRITTEN OUTPUT US $ SHARE",
		"memory 1500 0 0 0 0.0000 50.0%", // without prices by tokens
		"total 3000 0 0 0 0.0000 100.0%",
		"The ten costliest, and how to avoid them:",
		"1,500 memory",
	)
}

func TestOutcomes(t *testing.T) {
	outcomes := []cost.Outcome{
		{Strategy: "as it was", Dollars: 1, Turns: 4},
		{Strategy: "cloud only", Dollars: 2, Turns: 4, Unpriced: 1},
		{Strategy: "hybrid", Dollars: 0.5, Turns: 4, Local: 3, Nobody: 1, Rules: []cost.Share{{Rule: "easy", Turns: 4, Cloud: 1}}},
	}
	lines := printed(t, func(w io.Writer) error { return printOutcomes(w, outcomes) })
	holds(t, lines, "as it was 1.0000 4 -", "hybrid 0.5000 4 75%", "easy 0.0000 4 25%")
	for _, o := range outcomes[1:] {
		if all := strings.Join(lines, "\n"); len(o.Warnings()) == 0 || !strings.Contains(all, o.Strategy+": "+o.Warnings()[0]) {
			t.Errorf("no warning %q of %s in\n%s", o.Warnings(), o.Strategy, all)
		}
	}
}

func TestProviders(t *testing.T) {
	lines := printed(t, func(w io.Writer) error {
		return printProviders(w, []providers.Provider{
			{Name: "lacks", Provider: config.Provider{Kind: "openai", KeyEnv: "LACKS_KEY"}, Need: "set LACKS_KEY"},
			{Name: "keyed", Provider: config.Provider{Kind: "anthropic", KeyEnv: "K", Default: "m"}, Ready: true},
			{Name: "home", Provider: config.Provider{Kind: "ollama", BaseURL: "http://localhost:1"}, Ready: true},
		})
	})
	holds(t, lines, "lacks openai set LACKS_KEY - -", "keyed anthropic ready m -",
		"home ollama no key needed - http://localhost:1", "script - offline commands -")
}

func TestModels(t *testing.T) {
	lines := printed(t, func(w io.Writer) error {
		return printModels(w,
			providers.Found{
				Provider: providers.Provider{Name: "home"},
				Models:   []llm.Info{{Model: "a", Window: 8192, Images: true}, {Model: "b", NoTools: true}},
			},
			providers.Found{Provider: providers.Provider{Name: "new"}})
	})
	holds(t, lines, "home/a 8192 yes yes", "home/b 64000, assumed - -", "new has no models yet")
}

func TestServers(t *testing.T) {
	list := []mcp.Status{
		{
			Name: "up", State: mcp.Ready, Kind: "stdio", Tools: 3, Tokens: 400,
			Latency: 2 * time.Second, Typical: 30 * time.Millisecond, Revision: "2025-06-18",
		},
		{Name: "down", State: mcp.Failed, Why: "it exited"},
		{Name: "other", State: mcp.Changed},
	}
	lines := printed(t, func(w io.Writer) error { return printServers(w, list) })
	holds(t, lines, "down: it exited", "'inspan mcp agree other' shows the changes, and asks")
	// What its calls usually take says more than one answer.
	if all := strings.Join(lines, "\n"); !strings.Contains(all, "30ms 2025-06-18") || strings.Contains(all, "'inspan mcp agree up'") {
		t.Error(all)
	}
	one := printed(t, func(w io.Writer) error { return printServer(w, list, "down") })
	if len(one) != 3 || !strings.HasPrefix(one[1], "down failed") {
		t.Errorf("one server: %q", one)
	}
}

func TestDifferences(t *testing.T) {
	define := func(name, doc, schema, says string) mcp.Definition {
		return mcp.Definition{Name: name, Tool: "mcp__s__" + name, Doc: doc, Schema: []byte(schema), Says: says}
	}
	before := []mcp.Definition{
		define("same", "d", "{}", ""), define("doc", "d", "{}", ""),
		define("says", "d", "{}", ""), define("gone", "d", "{}", ""),
	}
	now := []mcp.Definition{
		define("same", "d", "{}", ""), define("doc", "d2\n+ forged: line", "{}", ""),
		define("says", "d", "{}", `{"readOnlyHint":true}`), define("new", "n", "{}", ""),
	}
	got := differences(before, now)
	for _, want := range []string{"~ doc\n", "~ says\n", "+ new: n\n", "- gone\n"} {
		if !strings.Contains("\n"+got, "\n"+want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "same") || strings.Contains("\n"+got, "\n+ forged") {
		t.Error(got)
	}
	if got := differences(now, now); got != "" {
		t.Errorf("nothing has changed: %s", got)
	}
	lines := printed(t, func(w io.Writer) error { return printDefinitions(w, now) })
	holds(t, lines, "mcp__s__new", "n", "{}")
}

func TestExplained(t *testing.T) {
	ask := tool.Verdict{Action: tool.Ask, By: "policy"}
	plan := shell.Plan{Class: shell.Full, Git: true, Segments: []shell.Segment{
		{Text: "make", Class: shell.Full, Why: "not known"},
		{Text: "ls", Class: shell.Read, Depth: 1},
	}}
	findings := []policy.Finding{
		{Verdict: tool.Verdict{Action: tool.Allow, Reason: "fine"}},
		{Verdict: tool.Verdict{Action: tool.Ask, Reason: "why it asks"}},
	}
	lines := printed(t, func(w io.Writer) error {
		return printExplained(w, permission.Explained{
			Mode: "ask", Plan: plan,
			Verdict: ask, Findings: findings, Rules: []string{"bash(make)"},
		})
	})
	holds(t, lines, "In mode ask: ask, by policy", "ask: why it asks", `Narrowest rules that would allow it: allow = ["bash(make)"]`,
		"This holds if the repository's configuration names no program and hooks are off.")
	if strings.Contains(strings.Join(lines, "\n"), "fine") {
		t.Errorf("what is allowed needs no reason: %q", lines)
	}
	lines = printed(t, func(w io.Writer) error { return printExplained(w, permission.Explained{Mode: "ask", Verdict: ask}) })
	holds(t, lines, "No rule is safe for it; you can only approve it once.")
	deny := permission.Explained{Mode: "plan", Verdict: tool.Verdict{Action: tool.Deny, By: "policy"}, Rules: []string{"x"}}
	if all := strings.Join(printed(t, func(w io.Writer) error { return printExplained(w, deny) }), "\n"); strings.Contains(all, "rule") {
		t.Errorf("no rule allows what is denied:\n%s", all)
	}
}

func TestMemory(t *testing.T) {
	dir := t.TempDir()
	store := &memory.Store{
		Dirs: map[memory.Scope]string{memory.User: dir},
		Now:  func() time.Time { return time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC) },
	}
	var out, complain bytes.Buffer
	if err := printMemory(&out, &complain, store); err != nil || out.Len() > 0 ||
		!strings.Contains(complain.String(), "The memory is empty") {
		t.Errorf("%v, %q, %q", err, out.String(), complain.String())
	}
	old, err := store.Add(context.Background(), memory.User, memory.Entry{Text: "Tabs, not spaces.", Source: "person"}, "")
	if err != nil {
		t.Fatal(err)
	}
	e := memory.Entry{
		Text: "Build with make.", Topic: "build", Supersedes: []string{old.ID},
		Expires: time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC),
	}
	if _, err := store.Add(context.Background(), memory.User, e, "How to build."); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Add(context.Background(), memory.User, memory.Entry{Text: "Seen on a page.", Untrusted: true}, ""); err != nil {
		t.Fatal(err)
	}
	complain.Reset()
	if err := printMemory(&out, &complain, store); err != nil || complain.Len() > 0 {
		t.Errorf("%v, %q", err, complain.String())
	}
	for _, want := range []string{
		"Build with make. → topic build\n",
		"Seen on a page. (unverified)\n", "2026-01-02", "until 2030-01-02", "supersedes " + old.ID,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	holds(t, printed(t, func(w io.Writer) error { return printTopics(w, store) }), "user build")
}

func TestPast(t *testing.T) {
	var out, complain bytes.Buffer
	printPast(&out, &complain, nil, 2)
	if out.Len() > 0 || complain.String() != "Nothing was found.\n2 sessions not in the index yet; search again to continue.\n" {
		t.Errorf("%q, %q", out.String(), complain.String())
	}
	complain.Reset()
	at := time.Date(2026, 1, 2, 3, 4, 0, 0, time.Local)
	printPast(&out, &complain, []recall.Hit{{Doc: recall.Doc{Session: "s", Seq: 7, Time: at, Kind: recall.Said}, Snippet: "the words"}}, 0)
	if complain.Len() > 0 || out.String() != "s#7  2026-01-02 03:04  said\n    the words\n" {
		t.Errorf("%q, %q", out.String(), complain.String())
	}
}

func TestSkills(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name, "SKILL.md")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("good", "---\nname: good\ndescription: Does good things.\n---\nDo it.\n")
	write("manual", "---\nname: manual\ndescription: By hand.\ndisable-model-invocation: true\n---\nDo it.\n")
	write("bad", "---\nname: Other Name\n---\n")
	library := &skill.Library{Folders: []skill.Folder{{Path: dir, Source: "here"}}}
	var complain bytes.Buffer
	lines := printed(t, func(w io.Writer) error { return printSkills(w, &complain, library) })
	holds(t, lines, "good here Does good things.", "manual here, only by you By hand.")
	if !strings.Contains(complain.String(), "bad") {
		t.Errorf("nobody is told of what is wrong: %q", complain.String())
	}
	lines = printed(t, func(w io.Writer) error { return printSkillCosts(w, library, []string{"good"}) })
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "good ") ||
		strings.TrimPrefix(lines[1], "good ") != strings.TrimPrefix(lines[2], "all ") {
		t.Errorf("the sum of one: %q", lines)
	}
	if err := printSkillCosts(io.Discard, library, []string{"none"}); err == nil {
		t.Error("a skill that is not there has costs")
	}
	var out bytes.Buffer
	err := printValid(&out, []string{filepath.Join(dir, "good"), filepath.Join(dir, "bad")})
	if err == nil || err.Error() != "1 of 2 are not valid" || !strings.Contains(out.String(), filepath.Join(dir, "good")+": valid\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := printValid(io.Discard, []string{filepath.Join(dir, "good")}); err != nil {
		t.Error(err)
	}
}

func TestRoles(t *testing.T) {
	var complain bytes.Buffer
	lines := printed(t, func(w io.Writer) error {
		return printRoles(w, &complain, []skill.Role{
			{Name: "a", Model: "inherit", Source: "user", Description: "For a."},
			{Name: "b", Model: "small", Mode: "plan", Source: "x", Problems: []string{"one", "two"}},
		})
	})
	holds(t, lines, "a inherited inherited user For a.", "b small plan x")
	if complain.String() != "b: one; two\n" {
		t.Errorf("%q", complain.String())
	}
}
