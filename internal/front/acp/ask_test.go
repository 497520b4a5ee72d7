//go:build unix

package acp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	wire "github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

func TestConsent(t *testing.T) {
	refuse := func(wire.RequestPermissionRequest) (wire.RequestPermissionResponse, error) {
		return wire.RequestPermissionResponse{}, errors.New("no window")
	}
	dismiss := func(wire.RequestPermissionRequest) (wire.RequestPermissionResponse, error) {
		return wire.RequestPermissionResponse{Outcome: wire.RequestPermissionOutcome{Cancelled: &wire.RequestPermissionOutcomeCancelled{}}}, nil
	}
	for name, tc := range map[string]struct {
		permit func(wire.RequestPermissionRequest) (wire.RequestPermissionResponse, error)
		made   bool
		asked  int // for the same once more
		reason wire.StopReason
		scope  event.Scope
	}{
		"once":        {choose("y"), true, 2, wire.StopReasonEndTurn, ""},
		"session":     {choose("s"), true, 1, wire.StopReasonEndTurn, event.ScopeSession},
		"project":     {choose("p"), true, 1, wire.StopReasonEndTurn, event.ScopeProject},
		"always":      {choose("a"), true, 1, wire.StopReasonEndTurn, event.ScopeAlways},
		"no":          {choose("n"), false, 2, wire.StopReasonEndTurn, ""},
		"not offered": {choose("please"), false, 2, wire.StopReasonEndTurn, ""},
		"fails":       {refuse, false, 2, wire.StopReasonEndTurn, ""},
		"dismissed":   {dismiss, false, 1, wire.StopReasonCancelled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var scope event.Scope
			e := edit(t, wire.ClientCapabilities{}, func(a *inspan.Agent) {
				a.Approvals.Remember = func(_ context.Context, s event.Scope, _ []string) error { scope = s; return nil }
			})
			e.permit = tc.permit
			r := e.prompt("bash: touch a b\nbash: touch a b")
			_, err := os.Stat(filepath.Join(e.root, "a"))
			if made := err == nil; made != tc.made || r.StopReason != tc.reason || len(e.questions()) != tc.asked {
				t.Errorf("made %v, %s, asked %d times", made, r.StopReason, len(e.questions()))
			}
			if tc.scope != event.ScopeSession && scope != tc.scope {
				t.Errorf("remembered for %q", scope)
			}
		})
	}
}

// TestConsentShows checks that a person sees all that a call would do.
func TestConsentShows(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	e.permit = choose("n")
	put(t, filepath.Join(e.root, "a.txt"), "one\ntwo\nthree")
	e.prompt("read: a.txt\n" +
		`call: edit_file {"path":"a.txt","edits":[{"old_string":"three","new_string":"3\u200b"}]}` + "\n" +
		`call: write_file {"path":"sub/new.txt","content":"new\n"}` + "\n" +
		"call: bash {\"command\":\"echo '```' && touch \\u202ex\",\"network\":[\"example.com\"]}")
	asked := e.questions()
	if len(asked) != 3 {
		t.Fatalf("asked %d times", len(asked))
	}
	edit := asked[0].ToolCall.Content
	if d := edit[0].Diff; d == nil || d.Path != filepath.Join(e.root, "a.txt") || d.OldText == nil || *d.OldText != "one\ntwo\nthree" || d.NewText != "one\ntwo\n3\u200b" {
		t.Errorf("diff %+v", d)
	}
	if text := edit[1].Content; text == nil || !strings.Contains(text.Content.Text.Text, `+3\u200b`) {
		t.Errorf("what nobody can see is not spelled out: %+v", edit)
	}
	if d := asked[1].ToolCall.Content[0].Diff; d == nil || d.Path != filepath.Join(e.root, "sub", "new.txt") || d.OldText != nil || d.NewText != "new\n" {
		t.Errorf("diff %+v", d)
	}
	text := asked[2].ToolCall.Content[0].Content.Content.Text.Text
	for _, want := range []string{"````\n$ echo '```' && touch \\u202ex\n", `{"network":["example.com"]}`, "talks to example.com", "("} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	var offers []string
	for _, o := range asked[1].Options {
		offers = append(offers, string(o.Kind)+" "+o.Name)
	}
	if diff := cmp.Diff([]string{
		"allow_once Yes", "allow_always Yes, and don't ask again for changes to sub/new.txt in this session",
		"allow_always Yes, and allow edits until this session ends: files of the workspace, except guarded ones",
		"allow_always Yes, and don't ask again for changes to sub/new.txt in this project",
		"allow_always Yes, and don't ask again for changes to sub/new.txt in any project", "reject_once No",
	}, offers); diff != "" {
		t.Error(diff)
	}
}

// TestSeveralAtOnce asks for all waiting calls at once, and runs the approved ones.
func TestSeveralAtOnce(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	both := make(chan struct{})
	e.permit = func(p wire.RequestPermissionRequest) (wire.RequestPermissionResponse, error) {
		if len(e.questions()) == 2 {
			close(both)
		}
		<-both
		return choose(map[bool]string{true: "y", false: "n"}[strings.Contains(*p.ToolCall.Title, "touch a")])(p)
	}
	e.prompt("bash: touch a\n+ bash: touch b")
	_, a := os.Stat(filepath.Join(e.root, "a"))
	_, b := os.Stat(filepath.Join(e.root, "b"))
	if a != nil || b == nil {
		t.Error(a, b)
	}
}

// TestDecidedElsewhere answers the editor's question from another process.
func TestDecidedElsewhere(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	done := e.going("bash: touch a")
	e.until("the question", func() bool { return len(e.questions()) == 1 })
	w, err := e.server.Host(app.Options{}, func(string) {}).Watch(t.Context(), string(e.session))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if err := w.Send(t.Context(), event.Decided{Call: w.Status().Waiting[0].Call.ID, Allow: true, By: "Ann"}); err != nil {
		t.Fatal(err)
	}
	if r := done(); r.StopReason != wire.StopReasonEndTurn || e.last().Status != wire.ToolCallStatusCompleted {
		t.Errorf("%s, %+v", r.StopReason, e.last())
	}
	e.until("the question to be taken back", func() bool { e.mu.Lock(); defer e.mu.Unlock(); return e.dropped == 1 })
}

// TestGoneWhileItAsks leaves the question open for the next client when the editor goes.
func TestGoneWhileItAsks(t *testing.T) {
	state, root := t.TempDir(), folder(t)
	e := start(t, serverIn(state, nil), root, wire.ClientCapabilities{})
	made, err := e.conn.NewSession(t.Context(), wire.NewSessionRequest{Cwd: root, McpServers: []wire.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	e.session = made.SessionId
	done := e.going("bash: touch a")
	e.until("the question", func() bool { return len(e.questions()) == 1 })
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	done()
	next := start(t, serverIn(state, nil), root, wire.ClientCapabilities{})
	next.session, next.permit = made.SessionId, choose("y")
	if _, err := next.conn.LoadSession(t.Context(), wire.LoadSessionRequest{
		SessionId: made.SessionId, Cwd: root,
		McpServers: []wire.McpServer{},
	}); err != nil {
		t.Fatal(err)
	}
	if c := next.last(); c.Status != wire.ToolCallStatusPending {
		t.Errorf("%+v", c)
	}
	next.prompt("say: after that")
	if _, err := os.Stat(filepath.Join(root, "a")); err != nil || len(next.questions()) != 1 || !strings.Contains(next.text(), "after that") {
		t.Errorf("%v, asked %d times, %q", err, len(next.questions()), next.text())
	}
}

// TestGoneWhileItWorks ends the run when the editor goes, and keeps its text.
func TestGoneWhileItWorks(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	done := e.going(`say: as far as here` + "\n" + `call: tick {"word":"x"}`)
	e.until("the call to run", func() bool { return e.last().Status == wire.ToolCallStatusInProgress })
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	done()
	var last event.Body
	for ev, err := range e.server.App.Store().Events(t.Context(), string(e.session)) {
		if err != nil {
			t.Fatal(err)
		}
		last = ev.Body
	}
	if s, ok := last.(event.Stopped); !ok || s.Reason != event.ReasonCancelled {
		t.Errorf("the last event is %+v", last)
	}
}

func TestQuestions(t *testing.T) {
	for name, tc := range map[string]struct{ choose, call, want string }{
		"an option": {"2", `{"question":"Which?","options":["red","blue"]}`, "The person answers: blue"},
		"none":      {"n", `{"question":"Which?","options":["red","blue"]}`, "Denied by the user"},
	} {
		t.Run(name, func(t *testing.T) {
			e := edit(t, wire.ClientCapabilities{}, nil)
			e.permit = choose(tc.choose)
			e.prompt("call: ask_user " + tc.call)
			if got := shown(e.last()); !strings.Contains(got, tc.want) {
				t.Errorf("%s", got)
			}
			if q := e.questions(); len(q) != 1 || *q[0].ToolCall.Title != "Which?" || len(q[0].Options) != 3 {
				t.Errorf("%+v", q)
			}
		})
	}
	t.Run("in words", func(t *testing.T) {
		e := edit(t, wire.ClientCapabilities{}, nil)
		r := e.prompt(`call: ask_user {"question":"Who?"}`)
		if r.StopReason != wire.StopReasonEndTurn || e.text() != "Who?" || e.last().Status != wire.ToolCallStatusPending {
			t.Errorf("%s, %q, %+v", r.StopReason, e.text(), e.last())
		}
		if e.prompt("Ann"); !strings.Contains(shown(e.last()), "The person answers: Ann") {
			t.Errorf("%s", shown(e.last()))
		}
	})
}

// TestRaised asks the question of a running call, on behalf of the session it works for.
func TestRaised(t *testing.T) {
	asker := tool.New("survey", "asks", func(ctx context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
		answer, err := c.Ask(ctx, "Which?", []string{"red", "blue"})
		if err != nil {
			return tool.Result{}, err
		}
		more, err := c.Ask(ctx, "In words?", nil)
		return tool.Text("it is " + answer + more), err
	})
	asker.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return []tool.Effect{}, nil }
	e := edit(t, wire.ClientCapabilities{}, func(a *inspan.Agent) { a.Tools = append(a.Tools, asker) })
	e.permit = choose("1")
	e.prompt("call: survey {}")
	var all string
	for _, c := range e.calls() {
		all += string(c.Status) + " " + shown(c) + "\n"
	}
	if !strings.Contains(all, "it is red") || len(e.questions()) != 1 ||
		strings.Count(all, "completed") != 2 || strings.Count(all, "failed") != 1 {
		t.Errorf("asked %d times:\n%s", len(e.questions()), all)
	}
}

// TestVisit sends the person to an address through the client, and asks for it in a form only what a form may ask for.
func TestVisit(t *testing.T) {
	const address = "https://bank.example/login?x=1"
	question, options, _ := words.VisitQuestion("The MCP server bank asks: log in", address)
	for name, tc := range map[string]struct {
		ways         wire.ElicitationCapabilities
		visit, want  string
		opened, asks int
	}{
		"accepted":       {wire.ElicitationCapabilities{Url: &wire.ElicitationUrlCapabilities{}}, "accept", "it is done", 1, 0},
		"declined":       {wire.ElicitationCapabilities{Url: &wire.ElicitationUrlCapabilities{}}, "decline", "it is no", 1, 0},
		"cancelled":      {wire.ElicitationCapabilities{Url: &wire.ElicitationUrlCapabilities{}}, "cancel", `it is\n`, 1, 0},
		"fails":          {wire.ElicitationCapabilities{Url: &wire.ElicitationUrlCapabilities{}}, "", `it is\n`, 1, 0},
		"only forms":     {wire.ElicitationCapabilities{Form: &wire.ElicitationFormCapabilities{}}, "accept", "it is done", 0, 1},
		"no elicitation": {wire.ElicitationCapabilities{}, "accept", "it is done", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			asker := tool.New("bank", "asks", func(ctx context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
				answer, err := c.Ask(ctx, question, options)
				return tool.Text("it is " + answer), err
			})
			asker.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return []tool.Effect{}, nil }
			e := edit(t, wire.ClientCapabilities{Elicitation: &tc.ways}, func(a *inspan.Agent) { a.Tools = append(a.Tools, asker) })
			e.permit, e.visit = choose("1"), tc.visit
			e.prompt("call: bank {}")
			if got := shown(e.calls()[0]); !strings.Contains(got, tc.want) || len(e.sent) != tc.opened || len(e.questions()) != tc.asks {
				t.Errorf("asked %d times, sent %+v: %s", len(e.questions()), e.sent, got)
			}
			for _, sent := range e.sent {
				if sent.Url != address || sent.Message != "The MCP server bank asks: log in" || sent.ElicitationId == "" {
					t.Errorf("sent %+v", sent)
				}
			}
			for _, q := range e.questions() {
				if !strings.Contains(shown(wire.SessionUpdateToolCall{Content: q.ToolCall.Content}), address) {
					t.Errorf("the address is not shown: %+v", q)
				}
			}
		})
	}
}
