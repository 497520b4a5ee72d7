//go:build unix

package acp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	wire "github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
)

// TestReplay checks that a loaded session shows the same as before.
func TestReplay(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil,
		script.Step{Parts: llm.Parts{
			llm.Reasoning{Text: "first"},
			llm.Text{Text: "Let me see."},
			llm.Call{Name: "bash", Args: []byte(`{"command":"echo hi > a; cat a"}`)},
		}},
		call("write_file", `{"path":"b","content":"one\n"}`),
		script.Step{Parts: llm.Say("It broke"), Stop: llm.StopLength},
		say("Done."),
	)
	e.permit = choose("y")
	e.prompt("go")
	e.prompt("/compact")
	seen, text, thoughts := e.calls(), e.text(), e.thoughts()
	if text == "" || thoughts == "" || len(seen) != 2 {
		t.Fatalf("%q %q %+v", text, thoughts, seen)
	}
	e.note(func() { e.updates = nil })
	if _, err := e.conn.LoadSession(t.Context(), wire.LoadSessionRequest{
		SessionId: e.session, Cwd: e.root,
		McpServers: []wire.McpServer{},
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{text, thoughts, "go"}, []string{e.text(), e.thoughts(), e.spoken()}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(seen, e.calls()); diff != "" {
		t.Error(diff)
	}
	e.note(func() { e.updates = nil })
	if _, err := e.conn.ResumeSession(t.Context(), wire.ResumeSessionRequest{SessionId: e.session, Cwd: e.root}); err != nil {
		t.Fatal(err)
	}
	for _, u := range e.told() {
		if u.AvailableCommandsUpdate == nil {
			t.Errorf("a resume tells %+v", u)
		}
	}
}

// TestReplayWithoutWhatWasRewound shows a conversation as it is, not as it was.
func TestReplayWithoutWhatWasRewound(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	e.prompt("say: one")
	at := lastEvent(t, e)
	e.prompt("say: two")
	undone := lastEvent(t, e)
	if _, err := e.conn.CloseSession(t.Context(), wire.CloseSessionRequest{SessionId: e.session}); err != nil {
		t.Fatal(err)
	}
	rewind := func(to uint64) {
		s, err := e.server.Host(app.Options{}, func(string) {}).Open(t.Context(), string(e.session))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Rewind(t.Context(), to, nil); err != nil {
			t.Fatal(err)
		}
	}
	load := func() string {
		e.note(func() { e.updates = nil })
		if _, err := e.conn.LoadSession(t.Context(), wire.LoadSessionRequest{
			SessionId: e.session, Cwd: e.root,
			McpServers: []wire.McpServer{},
		}); err != nil {
			t.Fatal(err)
		}
		text := e.text()
		e.prompt("say: then")
		if _, err := e.conn.CloseSession(t.Context(), wire.CloseSessionRequest{SessionId: e.session}); err != nil {
			t.Fatal(err)
		}
		return text
	}
	rewind(at)
	if got := load(); got != "one" {
		t.Errorf("replayed %q", got)
	}
	if got := load(); got != "onethen" {
		t.Errorf("replayed %q", got)
	}
	rewind(at) // over the first rewind
	if got := load(); got != "one" {
		t.Errorf("replayed %q", got)
	}
	rewind(undone) // before it
	if got := load(); got != "onetwo" {
		t.Errorf("replayed %q", got)
	}
}

func lastEvent(t *testing.T, e *editor) (seq uint64) {
	t.Helper()
	for ev, err := range e.server.App.Store().Events(t.Context(), string(e.session)) {
		if err != nil {
			t.Fatal(err)
		}
		seq = ev.Seq
	}
	return seq
}

func TestSaidByOthers(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	e.prompt("say: one")
	w, err := e.server.Host(app.Options{}, func(string) {}).Watch(t.Context(), string(e.session))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if err := w.Send(t.Context(), event.Said{Parts: llm.Say("say: from afar"), By: "Ann"}); err != nil {
		t.Fatal(err)
	}
	e.prompt("say: two")
	if e.spoken() != "Ann: say: from afar" || e.text() != "onefrom afartwo" {
		t.Errorf("%q, %q", e.spoken(), e.text())
	}
}

func TestSteer(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	if _, err := e.conn.CallExtension(t.Context(), "_inspan/steer", map[string]any{"sessionId": e.session, "prompt": "x"}); err == nil {
		t.Error("steered what does not go on")
	}
	done := e.going("bash: until [ -e told ]; do sleep 0.01; done")
	e.permit = choose("y")
	e.until("the command", func() bool { return e.last().Status == wire.ToolCallStatusInProgress })
	for method, prompt := range map[string]any{
		"_inspan/steer": "say: steered",
		"_inspan/queue": []wire.ContentBlock{wire.TextBlock("say: queued")},
	} {
		if _, err := e.conn.CallExtension(t.Context(), method, map[string]any{"sessionId": e.session, "prompt": prompt}); err != nil {
			t.Error(err)
		}
	}
	if _, err := e.conn.CallExtension(t.Context(), "_inspan/steer", map[string]any{"sessionId": e.session, "prompt": 7}); err == nil {
		t.Error("a number was taken")
	}
	put(t, filepath.Join(e.root, "told"), "")
	if r := done(); r.StopReason != wire.StopReasonEndTurn || e.text() != "steeredqueued" || e.spoken() != "" {
		t.Errorf("%s, %q, echoes %q", r.StopReason, e.text(), e.spoken())
	}
}

func TestBusy(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	done := e.going(`call: tick {"word":"x"}`)
	e.until("the call", func() bool { return e.last().Status == wire.ToolCallStatusInProgress })
	if _, err := e.ask("say: too"); err == nil || !strings.Contains(err.Error(), "at work") {
		t.Error(err)
	}
	if _, err := e.conn.LoadSession(t.Context(), wire.LoadSessionRequest{
		SessionId: e.session, Cwd: e.root,
		McpServers: []wire.McpServer{},
	}); err == nil || !strings.Contains(err.Error(), "at work") {
		t.Error(err)
	}
	if _, err := e.conn.CloseSession(t.Context(), wire.CloseSessionRequest{SessionId: e.session}); err != nil {
		t.Error(err)
	}
	if r := done(); r.StopReason != wire.StopReasonCancelled {
		t.Errorf("stopped as %s", r.StopReason)
	}
	if _, err := e.ask("say: gone"); err == nil || !strings.Contains(err.Error(), "no session") {
		t.Error(err)
	}
}

// TestSeveralSessions runs two over one connection at the same time.
func TestSeveralSessions(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	other, err := e.conn.NewSession(t.Context(), wire.NewSessionRequest{Cwd: folder(t), McpServers: []wire.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	done := e.going(`call: tick {"word":"x"}`)
	e.until("the call", func() bool { return e.last().Status == wire.ToolCallStatusInProgress })
	first := e.session
	e.session = other.SessionId
	e.prompt("say: meanwhile")
	if e.text() != "meanwhile" {
		t.Errorf("%q", e.text())
	}
	if err := e.conn.Cancel(t.Context(), wire.CancelNotification{SessionId: first}); err != nil {
		t.Fatal(err)
	}
	if r := done(); r.StopReason != wire.StopReasonCancelled {
		t.Errorf("stopped as %s", r.StopReason)
	}
}

// TestDrivenElsewhere names the process that drives a session.
func TestDrivenElsewhere(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	e.prompt("say: one")
	s, err := e.server.Host(app.Options{}, func(string) {}).Open(t.Context(), string(e.session))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for ev, err := range s.Run(t.Context(), event.Say(`call: tick {"word":"x"}`)) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := ev.Body.(event.Progress); ok && b.Call != "" {
			if _, err := e.ask("say: two"); err == nil || !strings.Contains(err.Error(), "inspan attach") {
				t.Error(err)
			}
			if err := s.Send(t.Context(), event.Cancelled{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.prompt("say: three")
	if e.spoken() != `call: tick {"word":"x"}` || e.text() != "onethree" {
		t.Errorf("%q, %q", e.spoken(), e.text())
	}
}

func TestListAndDelete(t *testing.T) {
	state, root := t.TempDir(), folder(t)
	s := serverIn(state, nil)
	host := s.Host(app.Options{}, func(string) {})
	elsewhere := folder(t)
	var ids []string
	for i := range 60 {
		at := root
		if i == 30 {
			at = elsewhere
		}
		made, err := host.New(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		if i != 31 { // nothing is said in that one
			if err := made.Send(t.Context(), event.Say(fmt.Sprintf("say: number %d", i))); err != nil {
				t.Fatal(err)
			}
		}
		ids = append(ids, made.ID())
		if err := made.Close(); err != nil {
			t.Fatal(err)
		}
	}
	e := start(t, s, root, wire.ClientCapabilities{})
	var listed []string
	pages := 0
	for p := (wire.ListSessionsRequest{Cwd: &root}); ; pages++ {
		page, err := e.conn.ListSessions(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.Sessions {
			if s.Cwd != root || !strings.HasPrefix(*s.Title, "say: number ") {
				t.Errorf("%+v", s)
			}
			listed = append(listed, string(s.SessionId))
		}
		if p.Cursor = page.NextCursor; p.Cursor == nil {
			break
		}
	}
	want := slices.Concat(ids[:30], ids[32:])
	if slices.Sort(want); pages != 1 || len(listed) != 58 {
		t.Errorf("%d sessions on %d pages", len(listed), pages+1)
	}
	got := slices.Clone(listed)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	for range 2 { // what is gone is deleted
		if _, err := e.conn.UnstableDeleteSession(t.Context(),
			wire.UnstableDeleteSessionRequest{SessionId: wire.SessionId(ids[30])}); err != nil {
			t.Error(err)
		}
	}
	if all, err := e.conn.ListSessions(t.Context(), wire.ListSessionsRequest{Cwd: &elsewhere}); err != nil || len(all.Sessions) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := e.conn.LoadSession(t.Context(), wire.LoadSessionRequest{
		SessionId: wire.SessionId(ids[0]), Cwd: elsewhere,
		McpServers: []wire.McpServer{},
	}); err == nil || !strings.Contains(err.Error(), "works in "+root) {
		t.Errorf("loaded in another folder: %v", err)
	}
}

// TestListAtOnce pages through sessions that changed last at the same moment.
func TestListAtOnce(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	e.prompt("say: one")
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(e.server.App.StateDir, "sessions")
	for i := range 120 {
		name := fmt.Sprintf("20261121-101010-%04d", i)
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(dir, string(e.session)))); err != nil {
			t.Fatal(err)
		}
	}
	next := start(t, e.server, e.root, wire.ClientCapabilities{})
	seen := map[wire.SessionId]bool{}
	for p := (wire.ListSessionsRequest{}); ; {
		page, err := next.conn.ListSessions(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.Sessions {
			seen[s.SessionId] = true
		}
		if p.Cursor = page.NextCursor; p.Cursor == nil {
			break
		}
	}
	if len(seen) != 121 {
		t.Errorf("%d are listed", len(seen))
	}
}

// TestNothingSaid leaves nothing behind of a session in which nothing was said.
func TestNothingSaid(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	if _, err := e.conn.SetSessionMode(t.Context(), wire.SetSessionModeRequest{SessionId: e.session, ModeId: "plan"}); err != nil {
		t.Fatal(err)
	}
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(e.server.App.StateDir, "sessions"))
	if err != nil || slices.ContainsFunc(left, func(d os.DirEntry) bool { return d.Name() == string(e.session) }) {
		t.Errorf("%v, %v", left, err)
	}
}

func TestFork(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	e.prompt("say: one")
	copied, err := e.conn.UnstableForkSession(t.Context(), wire.UnstableForkSessionRequest{SessionId: e.session, Cwd: e.root})
	if err != nil || copied.SessionId == e.session || copied.Modes.CurrentModeId != "ask" {
		t.Fatalf("%+v, %v", copied, err)
	}
	first := e.session
	e.session = copied.SessionId
	e.prompt("say: two")
	if e.text() != "two" || e.spoken() != "" {
		t.Errorf("%q, %q", e.text(), e.spoken())
	}
	e.session = first
	if e.text() != "one" {
		t.Errorf("%q", e.text())
	}
}

// TestModel opens a session again with the model that was chosen.
func TestModel(t *testing.T) {
	var made []string
	state := t.TempDir()
	s := serverIn(state, nil)
	inner := s.Host
	s.Host = func(o app.Options, warn func(string)) *inspan.Host {
		h := inner(o, warn)
		agent := h.Agent
		h.Agent = func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
			made = append(made, o.Model)
			if o.Model == "none/x" {
				return nil, fmt.Errorf("there is no such model")
			}
			a, err := agent(ctx, at)
			if err == nil && o.Model != "" {
				a.Model = &script.Model{ID: strings.TrimPrefix(o.Model, "script/")}
			}
			return a, err
		}
		return h
	}
	e := start(t, s, folder(t), wire.ClientCapabilities{})
	first, err := e.conn.NewSession(t.Context(), wire.NewSessionRequest{Cwd: e.root, McpServers: []wire.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	e.session = first.SessionId
	set := func(value string) (string, error) {
		r, err := e.conn.SetSessionConfigOption(t.Context(),
			wire.SetSessionConfigOptionRequest{ValueId: &wire.SetSessionConfigOptionValueId{
				SessionId: e.session,
				ConfigId:  "model", Value: wire.SessionConfigValueId(value),
			}})
		if err != nil {
			return "", err
		}
		return string(r.ConfigOptions[1].Select.CurrentValue), nil
	}
	if got, err := set("script/other"); err != nil || got != "script/other" {
		t.Errorf("%s, %v", got, err)
	}
	e.prompt("say: one")
	if got, err := set("none/x"); err == nil {
		t.Errorf("it works with %s", got)
	}
	e.prompt("say: two")
	if diff := cmp.Diff([]string{"", "script/other", "none/x", "script/other"}, made); diff != "" || e.text() != "onetwo" {
		t.Error(diff, e.text())
	}
	if st := routeInLog(t, e); st != "script/other" {
		t.Errorf("the log says %s", st)
	}
}

// TestKeepTrying shows the option to clients that show options which are on or off, and opens the session again with it,
// with the model and the mode that it has.
func TestKeepTrying(t *testing.T) {
	var made []string
	s := serverIn(t.TempDir(), nil)
	inner := s.Host
	s.Host = func(o app.Options, warn func(string)) *inspan.Host {
		h := inner(o, warn)
		agent := h.Agent
		h.Agent = func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
			made = append(made, fmt.Sprint(o.Limits.RetryLong))
			if o.Limits.RetryLong && len(made) > 5 {
				return nil, fmt.Errorf("a rule can't be read")
			}
			return agent(ctx, at)
		}
		return h
	}
	e := start(t, s, folder(t), wire.ClientCapabilities{})
	first, err := e.conn.NewSession(t.Context(), wire.NewSessionRequest{Cwd: e.root, McpServers: []wire.McpServer{}})
	if err != nil || len(first.ConfigOptions) != 3 {
		t.Fatalf("%v, %v", err, first.ConfigOptions)
	}
	e.session = first.SessionId
	set := func(id string, value any) (string, error) {
		p := wire.SetSessionConfigOptionRequest{}
		switch v := value.(type) {
		case bool:
			p.Boolean = &wire.SetSessionConfigOptionBoolean{SessionId: e.session, ConfigId: wire.SessionConfigId(id), Value: v}
		case string:
			p.ValueId = &wire.SetSessionConfigOptionValueId{SessionId: e.session, ConfigId: wire.SessionConfigId(id), Value: wire.SessionConfigValueId(v)}
		}
		r, err := e.conn.SetSessionConfigOption(t.Context(), p)
		if err != nil {
			return "", err
		}
		b := r.ConfigOptions[3].Boolean
		return fmt.Sprintln(r.ConfigOptions[0].Select.CurrentValue, b.Id, b.CurrentValue), nil
	}
	if got, err := set("patience", true); err == nil {
		t.Errorf("a client that does not show it has set it: %s", got)
	}
	fmt.Fprintln(e.in, `{"jsonrpc":"2.0","id":"again","method":"initialize","params":{"protocolVersion":1,`+
		`"clientCapabilities":{"session":{"configOptions":{"boolean":{}}}}}}`)
	testkit.WaitFor(t, "the option", func() bool { _, err := set("patience", false); return err == nil })
	for _, bad := range []struct {
		id    string
		value any
	}{{"patience", "true"}, {"mode", true}, {"model", false}, {"none", true}} {
		if got, err := set(bad.id, bad.value); err == nil {
			t.Errorf("%v is taken: %s", bad, got)
		}
	}
	e.prompt("say: one")
	if _, err := e.conn.SetSessionMode(t.Context(), wire.SetSessionModeRequest{SessionId: e.session, ModeId: "edit"}); err != nil {
		t.Fatal(err)
	}
	for _, on := range []bool{true, true, false} {
		want := fmt.Sprintln("edit patience", on)
		if got, err := set("patience", on); err != nil || got != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	e.prompt("say: two")
	if diff := cmp.Diff([]string{"false", "true", "false"}, made); diff != "" || e.text() != "onetwo" {
		t.Error(diff, e.text())
	}
	made = append(made, "", "")
	if got, err := set("patience", true); err == nil {
		t.Errorf("it works without rules: %s", got)
	}
	e.prompt("say: three") // as before
	if e.text() != "onetwothree" {
		t.Error(e.text())
	}
}

func routeInLog(t *testing.T, e *editor) string {
	t.Helper()
	w, err := e.server.Host(app.Options{}, func(string) {}).Watch(t.Context(), string(e.session))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	return w.Status().Route
}
