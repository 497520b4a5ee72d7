//go:build unix

package equipment_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/extend/custom"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	if ran, code := equipment.Helper(); ran {
		os.Exit(code)
	}
	testkit.Main(m)
}

// shop is an installation in which models write tools.
type shop struct {
	*equipment.Set
	t        *testing.T
	root     string
	env      tool.Env
	sessions *store.Memory
	log      store.Log
	last     uint64 // event
	scripts  bool   // can be tools
}

// newShop is one where boxes can be built; else the test is left out.
func newShop(t *testing.T) *shop {
	t.Helper()
	dir := func() string {
		real, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return real
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	state := dir()
	h := &shop{t: t, root: dir(), sessions: &store.Memory{}, Set: &equipment.Set{
		Installation: &config.Installation{StateDir: state, Self: sandbox.Self(), ConfigPath: filepath.Join(dir(), "config.toml")},
		Consent:      &consent.Store{Dir: filepath.Join(state, "consent")},
		Env: func(root string) (tool.Env, error) {
			return sandbox.Local(root, nil, sandbox.Options{Self: self})
		},
	}}
	if h.env, err = h.Env(h.root); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.env.Close(); err != nil {
			t.Error(err)
		}
	})
	if !h.env.Walls.Workspace || !h.env.Walls.Read {
		t.Skip("no sandbox here:", h.env.Walls.Why)
	}
	if h.log, err = h.sessions.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.log.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.env.Blobs = h.log.Blobs()
	h.append(event.Opened{Format: event.Format, Root: h.root})
	return h
}

func (h *shop) append(bodies ...event.Body) {
	h.t.Helper()
	events, err := h.log.AppendAs(h.t.Context(), event.Driver{After: h.last}, bodies...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.last = events[len(events)-1].Seq
}

// args are the arguments of a call that makes a tool that echoes its input, except for some fields.
func args(fields map[string]any) map[string]any {
	all := map[string]any{
		"name": "own", "description": "Does it.",
		"schema": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string"}}},
		"code":   "#!/bin/sh\ncat\n", "tests": []any{map[string]any{"args": map[string]any{"a": "x"}, "expect": `{"a":"x"}`}},
	}
	for name, value := range fields {
		all[name] = value
	}
	return all
}

// running is a program of one line, tested by its output.
func running(line, expect string, fields map[string]any) map[string]any {
	out := args(fields)
	out["code"], out["tests"] = "#!/bin/sh\n"+line+"\n", []any{map[string]any{"args": map[string]any{}, "expect": expect}}
	return out
}

// make calls make_tool as the driver does, and stores the result. It returns the model's text.
func (h *shop) make(args map[string]any) (proposal *tool.Proposal, told string) {
	h.t.Helper()
	list := h.Maker(h.env, []tool.Tool{{Name: "theirs"}}, h.scripts)
	if len(list) != 1 {
		h.t.Fatal("no tool makes tools")
	}
	raw, err := json.Marshal(args)
	if err != nil {
		h.t.Fatal(err)
	}
	if raw, err = list[0].Check(raw); err != nil {
		return nil, err.Error()
	}
	res, err := list[0].Run(h.t.Context(), h.call(list[0], raw))
	told = res.Parts.Text()
	if err != nil {
		return nil, told + err.Error()
	}
	h.append(event.Replied{Route: "m/one", Stop: llm.StopCalls}, event.Ended{Call: "c", Outcome: event.OutcomeOK, Proposal: res.Proposal})
	return res.Proposal, told
}

func (h *shop) call(t tool.Tool, args json.RawMessage) *tool.Call {
	return &tool.Call{
		ID: "c", Key: "k", Name: t.Name, Args: args, Session: h.log.ID(), Env: h.env, Cwd: h.root, Mode: tool.ModeAuto, Progress: func(string) {},
	}
}

// written is the tool of a proposal as a later process of the session has it.
func (h *shop) written(p tool.Proposal) (tool.Tool, error) {
	return h.Written(h.log.Blobs(), func(list []tool.Tool) []tool.Tool { return list }, h.scripts)(h.t.Context(), p)
}

func (h *shop) proposed() []equipment.Proposed {
	h.t.Helper()
	list, err := h.Proposed(h.t.Context(), h.sessions, h.root)
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

// TestRefusedTools checks which tools a model can't make, and that the error gives the reason.
func TestRefusedTools(t *testing.T) {
	h := newShop(t)
	for want, fields := range map[string]map[string]any{
		"name of another tool":          {"name": "Bash"},
		"theirs is the name":            {"name": "theirs"},
		"letters of ASCII":              {"name": "../own"},
		"names that begin with mcp__":   {"name": "mcp__a__b"},
		`name is "program"`:             {"name": "program"},
		`name is "Run"`:                 {"name": "Run"},
		`name is "_x"`:                  {"name": "_x"},
		"does not begin with #!":        {"code": "cat"},
		"code has 5242":                 {"code": "#!/bin/sh\n" + strings.Repeat("x", 5<<20)},
		"description has the character": {"description": "Does it.\u202e nothing \u2066"},
		"code has the character U+001B": {"code": "#!/bin/sh\necho '\x1b[2J'\n"},
		"schema has the character":      {"schema": map[string]any{"type": "object", "description": "a\u200bb"}},
		"which is not a host":           {"effects": map[string]any{"network": []string{"a b"}}},
		"tests is empty":                {"tests": []any{}},
		"expected: other":               {"tests": []any{map[string]any{"args": map[string]any{}, "expect": "other"}}},
		"do not fit the schema":         {"tests": []any{map[string]any{"args": map[string]any{"a": []int{1}}, "expect": "1"}}},
		"scripts are switched off":      {"kind": "script", "code": "1"},
		`"type": "object"`:              {"schema": map[string]any{"type": "string"}},
	} {
		if p, told := h.make(args(fields)); p != nil || !strings.Contains(told, want) {
			t.Errorf("%q: made %v, told %.300q", want, p, told)
		}
	}
	h.env.Clean = func(io.Reader) io.Reader { return strings.NewReader("cleaned") }
	if p, told := h.make(args(nil)); p != nil || !strings.Contains(told, "holds a secret") {
		t.Errorf("a secret: made %v, told %q", p, told)
	}
	if len(h.proposed()) != 0 {
		t.Error("something is proposed")
	}
}

// TestTestsAreHeld checks that a model's code reaches neither the workspace nor a network while its tests run, whatever
// it declares, and later only what it has declared.
func TestTestsAreHeld(t *testing.T) {
	h := newShop(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	all := map[string]any{"effects": map[string]any{"read": true, "write": true, "network": []string{"*"}}}
	inside := filepath.Join(h.root, "victim")
	if err := os.WriteFile(inside, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, line := range map[string]string{
		"write in the workspace": "echo new > " + inside + " 2>/dev/null || echo held",
		"read of the workspace":  "cat " + inside + " 2>/dev/null || echo held",
		"network":                "(exec 3<>/dev/tcp/" + strings.Replace(l.Addr().String(), ":", "/", 1) + ") 2>/dev/null || echo held",
	} {
		made := running(line, "held", all)
		made["code"] = strings.Replace(made["code"].(string), "#!/bin/sh", "#!/bin/bash", 1)
		if p, told := h.make(made); p == nil {
			t.Errorf("%s: %s", name, told)
		}
	}
	if now, err := os.ReadFile(inside); err != nil || string(now) != "old" {
		t.Errorf("the workspace was changed: %q, %v", now, err)
	}
	if p, told := h.make(running("echo x > here && echo wrote", "wrote", all)); p == nil {
		t.Error("a test can't write its own folder:", told)
	}

	// It does not say that it writes, so it can't.
	p, told := h.make(running("echo new > "+inside+" 2>/dev/null; cat "+inside+" 2>/dev/null || echo nothing", "nothing", nil))
	if p == nil {
		t.Fatal(told)
	}
	own, err := h.written(*p)
	if err != nil {
		t.Fatal(err)
	}
	res, err := own.Run(t.Context(), h.call(own, json.RawMessage(`{}`)))
	if err != nil || res.Parts.Text() != "old" {
		t.Errorf("it says that it only reads: %q, %v", res.Parts.Text(), err)
	}
	effects, err := own.Effects(t.Context(), h.call(own, json.RawMessage(`{}`)))
	if err != nil || !tool.ReadOnly(effects) || len(effects) != 1 {
		t.Errorf("effects %v, %v", effects, err)
	}
}

// TestLogsAreNotBelieved checks that a forged log gives a session no tool of an existing name, none under another name
// than its own, and runs nothing.
func TestLogsAreNotBelieved(t *testing.T) {
	h := newShop(t)
	mark := filepath.Join(h.root, "ran")
	draft := func(name string) string {
		return `{"kind":"program","name":"` + name + `","description":"d","schema":{"type":"object"},"code":"#!/bin/sh\ntouch ` + mark +
			`","tests":[{"args":{},"expect":""}]}`
	}
	for _, c := range []struct{ name, content, want string }{
		{"bash", draft("bash"), "built-in"},
		{"make_tool", draft("make_tool"), "built-in"},
		{"fine", draft("other"), "calls itself other"},
		{"../up", draft("../up"), "letters of ASCII"},
		{"more", `{"kind":"program","more":1}`, "no field"},
		{"large", draft("large") + strings.Repeat(" ", 1<<20), "content has changed since"},
		{"fine", draft("fine"), ""},
	} {
		blob, err := h.log.Blobs().Put(t.Context(), strings.NewReader(c.content))
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.written(tool.Proposal{Name: c.name, Blob: blob})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := h.written(tool.Proposal{Name: "fine", Blob: "sha256-" + strings.Repeat("0", 64)}); err == nil {
		t.Error("a blob that is not there is a tool")
	}
	if _, err := os.Lstat(mark); err == nil {
		t.Error("something was run")
	}
}

// TestChangedFiles checks that a call runs the program in the log, whatever has happened to the files meanwhile.
func TestChangedFiles(t *testing.T) {
	h := newShop(t)
	p, told := h.make(args(nil))
	if p == nil {
		t.Fatal(told)
	}
	own, err := h.written(*p)
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(h.WrittenDir(), "*", "own", "program"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if err := os.WriteFile(found[0], []byte("#!/bin/sh\necho evil\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if res, err := own.Run(t.Context(), h.call(own, json.RawMessage(`{}`))); err == nil {
		t.Errorf("changed files ran: %q", res.Parts.Text())
	}
	if own, err = h.written(*p); err != nil {
		t.Fatal(err)
	}
	if res, err := own.Run(t.Context(), h.call(own, json.RawMessage(`{"a":"b"}`))); err != nil || res.Parts.Text() != `{"a":"b"}` {
		t.Errorf("%q, %v", res.Parts.Text(), err)
	}
}

// TestPromotion checks that the written and trusted content is what the person has seen, that nothing is written
// through a link or over existing files, and that nothing is approved without a question.
func TestPromotion(t *testing.T) {
	h := newShop(t)
	if p, told := h.make(args(nil)); p == nil {
		t.Fatal(told)
	}
	promotion := func(user bool) (equipment.Promotion, error) {
		list := h.proposed()
		if len(list) != 1 || list[0].Err != nil || list[0].Model != "m/one" || list[0].Session != h.log.ID() {
			t.Fatalf("proposed: %+v", list)
		}
		return h.Promotion(t.Context(), list[0], h.Shelf(h.root, user), time.Now())
	}
	shown, err := promotion(false)
	if err != nil || !custom.Passed(shown.Trials) {
		t.Fatal(err, shown.Trials)
	}

	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(h.root, ".inspan")); err != nil {
		t.Fatal(err)
	}
	if err := h.Promote(t.Context(), shown); err == nil {
		t.Error("it was written through a link")
	}
	if names, _ := os.ReadDir(outside); len(names) > 0 {
		t.Error("outside there is", names)
	}
	if err := os.Remove(filepath.Join(h.root, ".inspan")); err != nil {
		t.Fatal(err)
	}

	// The session makes another of that name while the person reads.
	if p, told := h.make(args(map[string]any{"code": "#!/bin/sh\ncat # another\n"})); p == nil {
		t.Fatal(told)
	}
	if err := h.Promote(t.Context(), shown); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(h.root, ".inspan", "tools", "own")
	for name, content := range shown.Files {
		if now, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(now) != string(content) {
			t.Errorf("%s is %q, and %q was shown", name, now, content)
		}
	}
	review, err := h.Consent.ReviewRunning(h.root, "")
	if err != nil || len(review.Trusted) != 1 || len(review.New)+len(review.Changed) > 0 || review.Trusted[0].Digest != shown.Digest() {
		t.Errorf("review %+v, %v", review, err)
	}
	if _, err := promotion(false); err == nil || !strings.Contains(err.Error(), "file already exists") {
		t.Error("over what is there:", err)
	}
	if names := h.tools(); !slices.Contains(names, "own") {
		t.Errorf("tools %q", names)
	}

	// One more file is not what was approved, and a file that says so makes nothing approved.
	if err := os.WriteFile(filepath.Join(dir, "more"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	kept := h.Promoted(h.root)
	if len(kept) != 1 || !kept[0].Changed || slices.Contains(h.tools(), "own") {
		t.Errorf("with one more file: %+v", kept)
	}
	if _, err := h.Again(t.Context(), kept[0]); err == nil {
		t.Error("what inspan has not written can be approved as if it had")
	}
	if err := h.Remove(t.Context(), kept[0]); err != nil {
		t.Fatal(err)
	}
	if err := shown.Write(h.root, ".inspan/tools"); err != nil {
		t.Fatal(err)
	}
	if kept := h.Promoted(h.root); len(kept) != 0 || slices.Contains(h.tools(), "own") {
		t.Errorf("a repository brings a tool that says it was approved: %+v", kept)
	}

	// It lies in the other folder, or under a name that differs by case: one of them would be off.
	if _, err := promotion(true); err == nil || !strings.Contains(err.Error(), "file already exists") {
		t.Error("beside that of the project:", err)
	}
	if err := os.Rename(dir, filepath.Join(filepath.Dir(dir), "OWN")); err != nil {
		t.Fatal(err)
	}
	for _, user := range []bool{false, true} {
		if _, err := promotion(user); err == nil || !strings.Contains(err.Error(), "file already exists") {
			t.Error("beside another case:", err)
		}
	}
	if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
		t.Fatal(err)
	}

	// A tool of the person's own is no longer one after a byte has changed.
	if shown, err = promotion(true); err == nil {
		err = h.Promote(t.Context(), shown)
	}
	if err != nil || !slices.Contains(h.tools(), "own") {
		t.Fatal(err, h.tools())
	}
	if err := os.WriteFile(filepath.Join(h.ToolsDir(), "own", "program"), []byte("#!/bin/sh\necho evil\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(h.tools(), "own") {
		t.Error("a changed tool of the person is offered")
	}
}

// tools are the program tools of a new session in the workspace.
func (h *shop) tools() (names []string) {
	come := h.Tools(equipment.Session{
		Root: h.root, Env: h.env, Wrap: func(list []tool.Tool) []tool.Tool { return list }, Warn: func(string) {}, Scripts: h.scripts,
	})
	for _, t := range come(h.t.Context()) {
		names = append(names, t.Name)
	}
	return names
}

// TestDroppedProposal checks that a withdrawn tool is proposed no longer, and that a failed call proposes nothing.
func TestDroppedProposal(t *testing.T) {
	h := newShop(t)
	p, told := h.make(args(nil))
	if p == nil {
		t.Fatal(told)
	}
	if h.proposed()[0].Untrusted {
		t.Error("a session that has seen nothing from outside is said to have")
	}
	h.append(event.Said{Parts: llm.Say("a page"), Taint: event.Taint{Untrusted: true}})
	if p, told := h.make(args(map[string]any{"description": "Does it anew."})); p == nil || !h.proposed()[0].Untrusted {
		t.Errorf("it is not said that the session had seen text from outside: %s", told)
	}
	h.append(event.Ended{Call: "x", Outcome: event.OutcomeFailed, Proposal: &tool.Proposal{Name: "not", Blob: p.Blob}})
	list := h.proposed()
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	if err := list[0].Drop(context.Background(), h.sessions); err != nil {
		t.Fatal(err)
	}
	if left := h.proposed(); len(left) != 0 {
		t.Error(fmt.Sprint(left))
	}
}

// TestScripts checks that a script is a tool whose calls are those of the session, and that its tests make none.
func TestScripts(t *testing.T) {
	h := newShop(t)
	script := args(map[string]any{
		"kind": "script", "code": "return (args.a || 'nothing') + '!'",
		"tests": []any{map[string]any{"args": map[string]any{"a": "x"}, "expect": "x!"}},
	})
	if p, told := h.make(script); p != nil || !strings.Contains(told, "switched off") {
		t.Errorf("with scripts off: %v, %s", p, told)
	}
	h.scripts = true
	p, told := h.make(script)
	if p == nil {
		t.Fatal(told)
	}
	own, err := h.written(*p)
	if err != nil || !own.Calls || own.Name != "own" {
		t.Fatal(own.Name, err)
	}
	for id, fine := range map[string]bool{"c": true, "c/1": true, "c/1/1": false} {
		c := &tool.Call{ID: id, Env: h.env, Args: json.RawMessage(`{"a":"x"}`), Progress: func(string) {}}
		c.Start = func(context.Context, string, json.RawMessage) func() (tool.Result, error) { return nil }
		if _, err := own.Run(t.Context(), c); (err == nil) != fine {
			t.Errorf("call %s: %v", id, err)
		}
	}
	h.scripts = false
	if _, err := h.written(*p); err == nil {
		t.Error("a script is a tool where they are switched off")
	}
	h.scripts = true
	if _, err := h.Promotion(t.Context(), h.proposed()[0], h.Shelf(h.root, false), time.Now()); err == nil {
		t.Error("a script is kept where none is offered")
	}
	h.Config.Levers.Script = "on"
	shown, err := h.Promotion(t.Context(), h.proposed()[0], h.Shelf(h.root, false), time.Now())
	if err == nil {
		err = h.Promote(t.Context(), shown)
	}
	if err != nil || !slices.Equal(h.tools(), []string{"own"}) {
		t.Errorf("kept: %v, tools %q", err, h.tools())
	}
	if h.scripts = false; len(h.tools()) > 0 {
		t.Errorf("with scripts off: %q", h.tools())
	}
	h.scripts = true
	if err := os.WriteFile(filepath.Join(h.root, ".inspan/tools/own/script.js"), []byte("return 'evil'"), 0o600); err != nil {
		t.Fatal(err)
	}
	if len(h.tools()) > 0 {
		t.Errorf("changed: %q", h.tools())
	}
	if again, err := h.Again(t.Context(), h.Promoted(h.root)[0]); err != nil || custom.Passed(again.Trials) {
		t.Errorf("changed: %+v, %v", again.Trials, err)
	}
	script["code"] = "return (await tools.bash({command: 'id'})).text"
	if p, told := h.make(script); p != nil || !strings.Contains(told, "a test can't call tools") {
		t.Errorf("a test that calls a tool: %v, %s", p, told)
	}
	calls := []map[string]any{{"tool": "bash", "brings": "uid=0"}, {"tool": "read_file", "brings": "x"}, {"tool": "bash", "brings": "uid=1"}}
	script["name"] = "whose"
	script["code"] = "const [a, b] = await Promise.all([tools.bash({command: 'id'}), tools.bash({command: 'id'})]);\nreturn a.text + b.text"
	for expect, fine := range map[string]bool{"uid=0uid=1": true, "uid=1uid=0": false} {
		script["tests"] = []map[string]any{{"args": map[string]any{}, "expect": expect, "calls": calls}}
		if p, told := h.make(script); (p != nil) != fine {
			t.Errorf("a test that says what calls bring: %v, %s", p, told)
		}
	}
	script["tests"] = []map[string]any{{"args": map[string]any{}, "expect": "uid=0uid=1", "calls": calls[:2]}}
	if p, told := h.make(script); p != nil || !strings.Contains(told, "have no result for this call of bash") {
		t.Errorf("a call that the test says nothing of: %v, %s", p, told)
	}
}
