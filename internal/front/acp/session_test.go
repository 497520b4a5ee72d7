//go:build unix

package acp_test

import (
	"context"
	"encoding/base64"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	wire "github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
)

func TestConversation(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil,
		script.Step{Parts: llm.Parts{
			llm.Reasoning{Text: "hm"},
			llm.Text{Text: "I'll look \x1b[31mhere"},
			llm.Call{Name: "read_file", Args: []byte(`{"path":"a.txt","offset":2}`)},
		}},
		call("todo", `{"items":[{"text":"one","state":"done"},{"text":"two","state":"doing"},{"text":"three","state":"open"}]}`),
		call("read_file", `{"path":"gone.txt"}`),
		call("nothing", `{}`),
		call("bash", `{"command":"echo out; exit 3"}`),
		say("All done."),
	)
	put(t, filepath.Join(e.root, "a.txt"), "one\ntwo\n")
	e.permit = choose("y")
	r := e.prompt("go")
	if r.StopReason != wire.StopReasonEndTurn || r.Usage == nil || r.Usage.TotalTokens == 0 {
		t.Errorf("%+v", r)
	}
	if got := e.text(); got != "I'll look [31mhereAll done." {
		t.Errorf("text %q", got)
	}
	if got := e.thoughts(); got != "hm" {
		t.Errorf("thoughts %q", got)
	}
	if e.spoken() != "" {
		t.Errorf("it repeats what the person said: %q", e.spoken())
	}
	type row struct {
		Title  string
		Kind   wire.ToolKind
		Status wire.ToolCallStatus
	}
	var rows []row
	for _, c := range e.calls() {
		rows = append(rows, row{c.Title, c.Kind, c.Status})
	}
	if diff := cmp.Diff([]row{
		{"read_file a.txt", wire.ToolKindRead, wire.ToolCallStatusCompleted},
		{"todo one · two · three", wire.ToolKindThink, wire.ToolCallStatusCompleted},
		{"read_file gone.txt", wire.ToolKindRead, wire.ToolCallStatusFailed},
		{"nothing", wire.ToolKindOther, wire.ToolCallStatusFailed},
		{"bash echo out; exit 3", wire.ToolKindExecute, wire.ToolCallStatusFailed},
	}, rows); diff != "" {
		t.Error(diff)
	}
	read := e.calls()[0]
	if len(read.Locations) != 1 || read.Locations[0].Path != filepath.Join(e.root, "a.txt") ||
		read.Locations[0].Line == nil || *read.Locations[0].Line != 2 {
		t.Errorf("locations %+v", read.Locations)
	}
	if got := shown(read); !strings.Contains(got, "two") || strings.Contains(got, "one") {
		t.Errorf("content %s", got)
	}
	if got := shown(e.last()); !strings.Contains(got, "out") || !strings.Contains(got, "```") {
		t.Errorf("content %s", got)
	}
	var plan []string
	for _, u := range e.told() {
		if u.Plan != nil {
			for _, p := range u.Plan.Entries {
				plan = append(plan, p.Content+" "+string(p.Status))
			}
		}
	}
	if diff := cmp.Diff([]string{"one completed", "two in_progress", "three pending"}, plan); diff != "" {
		t.Error(diff)
	}
}

// TestTold checks the notifications beyond the conversation.
func TestTold(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	e.prompt("say: hello")
	var title string
	var used, size int
	for _, u := range e.told() {
		if u.SessionInfoUpdate != nil {
			title = *u.SessionInfoUpdate.Title
		}
		if u.UsageUpdate != nil {
			used, size = u.UsageUpdate.Used, u.UsageUpdate.Size
		}
	}
	if title != "say: hello" || used == 0 || size != 200_000 {
		t.Errorf("title %q, %d of %d", title, used, size)
	}
	if log := e.log.String(); log != "there are no walls here\n" {
		t.Errorf("log %q", log)
	}
}

func TestProgress(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	done := e.going(`call: tick {"word":"blue"}`)
	e.until("progress", func() bool { return strings.Contains(shown(e.last()), "blue 1") })
	if s := e.last().Status; s != wire.ToolCallStatusInProgress {
		t.Errorf("status %s", s)
	}
	if err := e.conn.Cancel(t.Context(), wire.CancelNotification{SessionId: e.session}); err != nil {
		t.Fatal(err)
	}
	if r := done(); r.StopReason != wire.StopReasonCancelled {
		t.Errorf("stopped as %s", r.StopReason)
	}
	if s := e.last().Status; s != wire.ToolCallStatusFailed {
		t.Errorf("status %s", s)
	}
	if r := e.prompt("say: again"); r.StopReason != wire.StopReasonEndTurn {
		t.Errorf("then stopped as %s", r.StopReason)
	}
}

// TestCancelBeforeItRuns interrupts a prompt whose run has not begun.
func TestCancelBeforeItRuns(t *testing.T) {
	var e *editor
	e = edit(t, wire.ClientCapabilities{}, func(a *inspan.Agent) {
		a.Lifecycle.Started = func(*inspan.Session) { // nothing is in the log yet
			if err := e.conn.Cancel(t.Context(), wire.CancelNotification{SessionId: e.session}); err != nil {
				t.Error(err)
			}
			if _, err := e.conn.ListSessions(t.Context(), wire.ListSessionsRequest{}); err != nil { // it is read by then
				t.Error(err)
			}
		}
	})
	if r := e.prompt(`call: tick {"word":"x"}`); r.StopReason != wire.StopReasonCancelled {
		t.Errorf("stopped as %s", r.StopReason)
	}
}

// TestCancelAtOnce interrupts a prompt that has hardly been read.
func TestCancelAtOnce(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	for range 20 {
		done := make(chan wire.StopReason, 1)
		go func() {
			r, err := e.conn.Prompt(t.Context(), wire.PromptRequest{SessionId: e.session, Prompt: []wire.ContentBlock{wire.TextBlock(`call: tick {"word":"x"}`)}})
			if err != nil {
				t.Error(err)
			}
			done <- r.StopReason
		}()
		for stopped := false; !stopped; {
			if err := e.conn.Cancel(t.Context(), wire.CancelNotification{SessionId: e.session}); err != nil {
				t.Fatal(err)
			}
			select {
			case reason := <-done:
				stopped = true
				if reason != wire.StopReasonCancelled {
					t.Errorf("stopped as %s", reason)
				}
			case <-time.After(time.Millisecond):
			}
		}
	}
}

func TestStopReasons(t *testing.T) {
	for name, tc := range map[string]struct {
		prompt string
		limit  func(*inspan.Agent)
		want   wire.StopReason
		says   string
	}{
		"done":       {"say: hi", nil, wire.StopReasonEndTurn, "hi"},
		"refused":    {"say: no\nstop: refusal", nil, wire.StopReasonRefusal, "The run stopped: refused"},
		"max turns":  {"call: todo {\"items\":[]}\ncall: todo {\"items\":[]}", func(a *inspan.Agent) { a.Limits.Turns = 1 }, wire.StopReasonMaxTurnRequests, "The run stopped: max turns"},
		"max tokens": {"call: todo {\"items\":[]}\nsay: x", func(a *inspan.Agent) { a.Limits.Tokens = 1 }, wire.StopReasonMaxTokens, "The run stopped: max tokens"},
		"failed":     {"fail: 400\nsay: x", nil, wire.StopReasonEndTurn, "The run stopped: failed, "},
	} {
		t.Run(name, func(t *testing.T) {
			e := edit(t, wire.ClientCapabilities{}, tc.limit)
			r := e.prompt(tc.prompt)
			if r.StopReason != tc.want || !strings.Contains(e.text(), tc.says) {
				t.Errorf("stopped as %s, with %q", r.StopReason, e.text())
			}
		})
	}
}

func TestPromptBlocks(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n"))
	kind, uri := "image/png", "file://"+filepath.ToSlash(filepath.Join(e.root, "src", "a b.go"))
	block := wire.ResourceBlock
	_, err := e.conn.Prompt(t.Context(), wire.PromptRequest{SessionId: e.session, Prompt: []wire.ContentBlock{
		wire.TextBlock("say: look at "), wire.ResourceLinkBlock("x", uri), wire.TextBlock(" and "), wire.ResourceLinkBlock("y", "https://example.com/x"), wire.TextBlock(" and "),
		wire.ImageBlock(png, kind), block(wire.EmbeddedResourceResource{TextResourceContents: &wire.TextResourceContents{Uri: uri + "#L1", Text: "a ``` b"}}),
		block(wire.EmbeddedResourceResource{BlobResourceContents: &wire.BlobResourceContents{Uri: uri, MimeType: &kind, Blob: png}}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	var said llm.Parts
	for ev, err := range e.server.App.Store().Events(t.Context(), string(e.session)) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := ev.Body.(event.Said); ok {
			said = b.Parts
		}
	}
	images := 0
	for _, p := range said {
		if i, ok := p.(llm.Image); ok && i.Digest != "" {
			images++
		}
	}
	path := filepath.Join("src", "a b.go")
	want := "say: look at @" + path + " and https://example.com/x and @" + path + "#L1@" + path + "\n\n" + path + "#L1, as it is in the person's editor:\n````\na ``` b\n````"
	if got := said.Text(); got != want || images != 2 {
		t.Errorf("said %q\nwant %q, %d images", got, want, images)
	}
	for name, blocks := range map[string][]wire.ContentBlock{
		"nothing":     {},
		"blank":       {wire.TextBlock(" \n")},
		"no image":    {wire.ImageBlock("!", kind)},
		"odd image":   {wire.ImageBlock(png, "image/tiff")},
		"sound":       {wire.AudioBlock(png, "audio/wav")},
		"no resource": {{Resource: &wire.ContentBlockResource{Type: "resource"}}},
	} {
		if r, err := e.conn.Prompt(t.Context(), wire.PromptRequest{SessionId: e.session, Prompt: blocks}); err == nil {
			t.Errorf("%s: taken, %+v", name, r)
		}
	}
	if r := e.prompt("say: still there"); r.StopReason != wire.StopReasonEndTurn {
		t.Errorf("then %+v", r)
	}
}

func TestSlashCommands(t *testing.T) {
	e := start(t, serverIn(t.TempDir(), nil), folder(t), wire.ClientCapabilities{})
	put(t, filepath.Join(e.root, ".inspan", "commands", "compact.md"), "say: not this one\n")
	put(t, filepath.Join(e.root, ".inspan", "commands", "git", "log.md"), "---\ndescription: the log\n---\nsay: log of $ARGUMENTS end\n")
	made, err := e.conn.NewSession(t.Context(), wire.NewSessionRequest{Cwd: e.root, McpServers: []wire.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	e.note(func() { e.session = made.SessionId })
	e.until("the commands", func() bool {
		n := 0
		for _, u := range e.told() {
			if u.AvailableCommandsUpdate == nil {
				continue
			}
			list := names(u.AvailableCommandsUpdate.AvailableCommands)
			if strings.HasPrefix(list, "compact continue ") && strings.Contains(list, " review ") && strings.HasSuffix(list, " git:log ") && strings.Count(list, "compact") == 1 {
				n++
			}
		}
		return n == 1
	})
	e.prompt(" /git:log\nmain branch ")
	if !strings.Contains(e.text(), "log of main branch end") {
		t.Errorf("text %q", e.text())
	}
	e.prompt("/nothing say: x")
	e.prompt("/compact")
	if strings.Contains(e.text(), "not this one") || !strings.Contains(e.thoughts(), "compacted") {
		t.Errorf("text %q, thoughts %q", e.text(), e.thoughts())
	}
}

func names(list []wire.AvailableCommand) string {
	var b strings.Builder
	for _, c := range list {
		b.WriteString(c.Name + " ")
	}
	return b.String()
}

func TestModesAndOptions(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	set := func(id, value string) ([]wire.SessionConfigOption, error) {
		r, err := e.conn.SetSessionConfigOption(t.Context(), wire.SetSessionConfigOptionRequest{ValueId: &wire.SetSessionConfigOptionValueId{
			SessionId: e.session, ConfigId: wire.SessionConfigId(id), Value: wire.SessionConfigValueId(value),
		}})
		return r.ConfigOptions, err
	}
	for _, bad := range [][2]string{{"mode", "wild"}, {"mode", ""}, {"effort", "much"}, {"size", "x"}} {
		if got, err := set(bad[0], bad[1]); err == nil {
			t.Errorf("%v was taken: %v", bad, got)
		}
	}
	if got := modeInLog(t, e); got != "ask" {
		t.Errorf("mode %s", got)
	}
	options, err := set("mode", "edit") // nothing was said yet, so it waits for that
	if err != nil || options[0].Select.CurrentValue != "edit" {
		t.Errorf("%v %v", options, err)
	}
	e.prompt(`call: write_file {"path":"a","content":"x"}`)
	if e.last().Status != wire.ToolCallStatusCompleted || len(e.questions()) > 0 || modeInLog(t, e) != "edit" {
		t.Errorf("%+v, mode %s", e.last(), modeInLog(t, e))
	}
	if _, err := e.conn.SetSessionMode(t.Context(), wire.SetSessionModeRequest{SessionId: e.session, ModeId: "plan"}); err != nil || modeInLog(t, e) != "plan" {
		t.Errorf("%v, mode %s", err, modeInLog(t, e)) // at once, because nothing goes on
	}
	e.prompt(`call: write_file {"path":"b","content":"x"}`)
	if e.last().Status != wire.ToolCallStatusFailed {
		t.Errorf("%+v", e.last())
	}
	if options, err = set("effort", "low"); err != nil || options[2].Select.CurrentValue != "low" || len(*options[2].Select.Options.Ungrouped) != 5 {
		t.Errorf("%v %v", options, err)
	}
	if options, err = set("model", "other/model"); err != nil || options[1].Select.CurrentValue == "other/model" && e.prompt("say: x").StopReason != wire.StopReasonEndTurn {
		t.Errorf("%v %v", options, err)
	}
}

// TestModeMeanwhile chooses a mode while a call waits: the next calls run in it.
func TestModeMeanwhile(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, nil)
	e.permit = func(wire.RequestPermissionRequest) (wire.RequestPermissionResponse, error) {
		if _, err := e.conn.SetSessionMode(t.Context(), wire.SetSessionModeRequest{SessionId: e.session, ModeId: "edit"}); err != nil {
			t.Error(err)
		}
		return choose("y")(wire.RequestPermissionRequest{})
	}
	e.prompt("call: write_file {\"path\":\"a\",\"content\":\"x\"}\ncall: write_file {\"path\":\"b\",\"content\":\"x\"}")
	if n := len(e.questions()); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if _, err := os.Stat(filepath.Join(e.root, "b")); err != nil {
		t.Error(err)
	}
}

// modeInLog is the mode in which another process would continue.
func modeInLog(t *testing.T, e *editor) string {
	t.Helper()
	w, err := e.server.Host(e.server.Options, func(string) {}).Watch(t.Context(), string(e.session))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	return string(w.Status().Mode)
}

// breaks is a model whose first reply breaks off.
type breaks struct {
	llm.Model
	broke bool
}

func (b *breaks) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	if b.broke {
		return b.Model.Stream(ctx, req)
	}
	b.broke = true
	return func(yield func(llm.Chunk, error) bool) {
		if yield(llm.Chunk{Text: "First"}, nil) {
			yield(llm.Chunk{}, &llm.Error{Kind: llm.KindStreamCut, Message: "gone"})
		}
	}
}

// TestReplyThatBreaksOffIsSaidTo checks that a client that has shown a part of a voided reply learns of that.
func TestReplyThatBreaksOffIsSaidTo(t *testing.T) {
	e := edit(t, wire.ClientCapabilities{}, func(a *inspan.Agent) { a.Model, a.Limits.Retry = &breaks{Model: a.Model}, time.Minute }, say("Second."))
	e.prompt("go")
	if got, want := e.text(), "First\n\n(the reply broke off; it begins again)\n\nSecond."; got != want {
		t.Errorf("text %q", got)
	}
}
