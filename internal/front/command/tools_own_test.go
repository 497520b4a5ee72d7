//go:build unix

package command

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/extend/custom"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// ownShop is an installation with a workspace, its output, and a person's answers.
type ownShop struct {
	ownTools
	out    *strings.Builder
	answer bool
	asked  int
}

func newOwnShop(t *testing.T) *ownShop {
	t.Helper()
	state, root := keep.Real(t.TempDir()), keep.Real(t.TempDir())
	a := app.New(&config.Installation{StateDir: state, ConfigPath: filepath.Join(state, "config", "config.toml"), Self: sandbox.Self()})
	o := &ownShop{out: &strings.Builder{}}
	o.ownTools = ownTools{App: a, Root: root, Out: o.out, Ask: func(string) (bool, error) { o.asked++; return o.answer, nil }}
	return o
}

func echoing(name string) custom.Draft {
	return custom.Draft{
		Kind: custom.KindProgram, Name: name, Description: "Echoes.", Schema: json.RawMessage(`{"type":"object"}`), Code: "#!/bin/sh\ncat\n",
		Tests: []custom.Test{{Args: json.RawMessage(`{}`), Expect: "{}"}},
	}
}

// session stores a session of the workspace.
func (o *ownShop) session(t *testing.T, bodies ...event.Body) {
	t.Helper()
	log, err := o.App.Store().Create(t.Context())
	if err == nil {
		err = log.Lease(t.Context())
	}
	if err == nil {
		_, err = log.AppendAs(t.Context(), event.Driver{}, append([]event.Body{event.Opened{Format: event.Format, Root: o.Root}}, bodies...)...)
	}
	if err = errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
}

// propose stores a session whose model has written a tool.
func (o *ownShop) propose(t *testing.T, d custom.Draft) {
	t.Helper()
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	log, err := o.App.Store().Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	blob, err := log.Blobs().Put(t.Context(), strings.NewReader(string(data)))
	if err == nil {
		err = log.Lease(t.Context())
	}
	if err == nil {
		_, err = log.AppendAs(t.Context(), event.Driver{}, event.Opened{Format: event.Format, Root: o.Root},
			event.Ended{Call: "c", Outcome: event.OutcomeOK, Proposal: &tool.Proposal{Name: d.Name, Blob: blob}})
	}
	if err = errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestReviewerOfTools checks that the reviewer model sees the code of a tool that is to be kept, that its no keeps it
// out before a person is asked, and that a person decides all else.
func TestReviewerOfTools(t *testing.T) {
	for verdict, want := range map[string]struct {
		asked int
		err   string
	}{
		"deny": {0, "the reviewer refuses it"}, "ask": {1, ""}, "allow": {1, ""},
	} {
		o := newOwnShop(t)
		env, err := o.App.Permission.Env(o.Root)
		if err != nil {
			t.Fatal(err)
		}
		if !env.Walls.Workspace {
			t.Skip("no sandbox here:", env.Walls.Why)
		}
		model := &reader{Model: script.Model{Steps: []script.Step{{Parts: llm.Say(`{"verdict":"` + verdict + `","reason":"so it is"}`)}}}}
		o.App.Config.Reviewer = &config.Reviewer{Model: "m"}
		o.App.Permission.Model = func(context.Context, string) (llm.Model, error) { return model, nil }
		o.propose(t, echoing("own"))
		err = o.promote(t.Context(), "own", "", false)
		if o.asked != want.asked || (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%s: asked %d times, %v", verdict, o.asked, err)
		}
		if !strings.Contains(o.out.String(), verdict+": so it is") || !strings.Contains(model.read, `#!/bin/sh\ncat`) {
			t.Errorf("%s: printed %q, read %q", verdict, o.out, model.read)
		}
		if len(o.App.Extensions.Promoted(o.Root)) != 0 {
			t.Errorf("%s: kept without a yes", verdict)
		}
	}
}

// TestDropSaysWhat checks that dropping names the removed tool, even one that a link has replaced, and that there is
// nothing to drop under another name.
func TestDropSaysWhat(t *testing.T) {
	o := newOwnShop(t)
	o.answer = true
	o.propose(t, echoing("own"))
	if err := o.drop(t.Context(), "own", "", false); err != nil || !strings.Contains(o.out.String(), "Took back the proposal own") {
		t.Errorf("%q, %v", o.out, err)
	}
	if err := o.drop(t.Context(), "own", "", false); err == nil || !strings.Contains(err.Error(), "no tool own is proposed") {
		t.Error(err)
	}
	dir, outside := filepath.Join(o.Root, ".inspan", "tools"), t.TempDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kept", "foreign"} {
		if err := os.Symlink(outside, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	in, err := echoing("kept").Install(nil)
	if err == nil {
		err = o.App.Consent.Trust(t.Context(), o.Root, []consent.Item{{Path: ".inspan/tools/kept/", Digest: in.Digest()}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := o.drop(t.Context(), "kept", "", false); err != nil || !strings.Contains(o.out.String(), "Removed kept from "+dir) {
		t.Errorf("%q, %v", o.out, err)
	}
	if err := o.drop(t.Context(), "foreign", "", false); err == nil {
		t.Error("what inspan has not put there is removed")
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Error(names, err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

// reader keeps the requests to a model.
type reader struct {
	script.Model
	read string
}

func (r *reader) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	r.read = req.Messages[0].Parts.Text()
	return r.Model.Stream(ctx, req)
}

// TestReportOfTools checks the figures about kept tools, and which ones are proposed for removal.
func TestReportOfTools(t *testing.T) {
	o, now := newOwnShop(t), time.Now()
	if err := o.report(t.Context(), now, func(string) {}); err != nil || !strings.Contains(o.out.String(), "No tool") {
		t.Errorf("%q, %v", o.out, err)
	}
	approved := map[string]time.Time{
		"fine": now.AddDate(0, -2, 0), "failing": now, "unlucky": now, "idle": now.AddDate(0, -2, 0), "fresh": now,
	}
	sums := map[string]string{}
	for name, at := range approved {
		origin, err := json.Marshal(equipment.Origin{Session: "s", Event: 1, Approved: at})
		if err != nil {
			t.Fatal(err)
		}
		in, err := echoing(name).Install(origin)
		if err == nil {
			err = in.Write(o.Root, ".inspan/tools")
		}
		if err == nil {
			err = o.App.Consent.Trust(t.Context(), o.Root, []consent.Item{{Path: ".inspan/tools/" + name + "/", Digest: in.Digest()}})
		}
		if err != nil {
			t.Fatal(err)
		}
		sums[name] = in.Digest()
	}
	var bodies []event.Body
	call := func(name, sum string, calls, failed int) {
		for i := range calls {
			id := name + sum + string(rune('a'+i))
			outcome := event.OutcomeOK
			if i < failed {
				outcome = event.OutcomeFailed
			}
			bodies = append(bodies, event.Replied{Parts: llm.Parts{llm.Call{ID: id, Name: name, Args: json.RawMessage(`{}`)}}, Stop: llm.StopCalls},
				event.Judged{Call: id, Action: tool.Allow}, event.Started{Call: id, Sum: sum}, event.Ended{Call: id, Outcome: outcome, Parts: llm.Say("x")})
		}
	}
	call("fine", sums["fine"], 5, 2)
	call("fine", "that of one which was dropped", 9, 9)
	call("fresh", "", 9, 9) // a proposal, or a version that did not write it down
	call("failing", sums["failing"], 6, 3)
	call("unlucky", sums["unlucky"], 4, 4)
	o.session(t, append([]event.Body{event.Say("go")}, bodies...)...)

	o.out.Reset()
	if err := o.report(t.Context(), now.Add(time.Minute), func(text string) { t.Error(text) }); err != nil {
		t.Fatal(err)
	}
	var rows, remove []string
	for line := range strings.Lines(o.out.String()) {
		if fields := strings.Fields(line); approved[fields[0]] != (time.Time{}) {
			rows = append(rows, fields[0]+" "+fields[3]+" "+fields[4]+" "+fields[5])
		} else if name, why, is := strings.Cut(line, ": "); is {
			remove = append(remove, name+": "+strings.SplitN(why, ";", 2)[0])
		}
	}
	slices.Sort(rows)
	if want := []string{"failing 6 3 10", "fine 5 2 10", "fresh 0 0 0", "idle 0 0 0", "unlucky 4 4 0"}; !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
	slices.Sort(remove)
	if want := []string{"failing: 3 of 6 calls failed in 30 days", "idle: no calls in 30 days"}; !slices.Equal(remove, want) {
		t.Errorf("to remove %q, want %q\n%s", remove, want, o.out)
	}
}
