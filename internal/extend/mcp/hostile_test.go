package mcp_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/tool"
)

// TestServersThatFail checks that the error gives the reason, and comes at once if waiting can't help.
func TestServersThatFail(t *testing.T) {
	for mode, want := range map[string]string{
		"flood":   "MiB of other text to its standard output",
		"endless": "a message of more than 16 MiB",
		"huge":    "a message of more than 16 MiB",
		"mute":    "did not answer in 400ms",
		"deaf":    "did not answer in 400ms",
		"crash":   "exit code 3); it said: I can't go on with [secret:",
		"many":    "more than 1000 tools",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, self(t, "own", mode))
			if h.Patience = testkit.Patience; mode == "mute" || mode == "deaf" {
				h.Patience = 400 * time.Millisecond
			}
			s := h.begin("own", mcp.Failed)
			if !strings.Contains(s.Why, want) || strings.Contains(s.Why, "\x1b") || strings.Contains(s.Why, "ghp_") {
				t.Errorf("%q", s.Why)
			}
			if len(h.Tools()) > 0 {
				t.Error("it has tools")
			}
			h.closes()
		})
	}
}

func TestServersThatCanNotBe(t *testing.T) {
	for name, c := range map[string]struct {
		server mcp.Server
		want   string
	}{
		"absent":   {mcp.Server{Name: "x", Command: []string{"no-such-program-here"}}, "not installed"},
		"variable": {mcp.Server{Name: "x", Command: []string{"true", "${SOME_KEY}"}}, "it needs SOME_KEY, which is not set"},
		"name":     {mcp.Server{Name: "a b", Command: []string{"true"}}, "not a valid name of a server"},
		"command":  {mcp.Server{Name: "x"}, "no command"},
		"both":     {mcp.Server{Name: "x", Command: []string{"true"}, URL: "http://localhost"}, "a command and a url"},
		"env":      {mcp.Server{Name: "x", Command: []string{"true"}, Env: map[string]string{"A;touch x": "1"}}, "not the name of a variable"},
		"nul":      {mcp.Server{Name: "x", Command: []string{"true"}, Env: map[string]string{"A": "\x00"}}, "NUL"},
		"inside":   {mcp.Server{Name: "x", Kind: mcp.Inside}, "can't be dialled"},
		"kind":     {mcp.Server{Name: "x", URL: "http://localhost", Kind: "pigeon"}, "unknown kind of server"},
		"url":      {mcp.Server{Name: "x", URL: "file:///etc/passwd"}, "must be http, https, ws or wss"},
		"user":     {mcp.Server{Name: "x", URL: "http://a:b@localhost/"}, "without a user"},
		"no http":  {mcp.Server{Name: "x", URL: "http://localhost/"}, "can't be reached from here"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, c.server)
			s := h.begin(c.server.Name, mcp.Failed)
			if !strings.Contains(s.Why, c.want) || strings.Contains(s.Why, "tried again") {
				t.Errorf("%q", s.Why)
			}
		})
	}
	h := newHouse(t, self(t, "one", "honest"), mcp.Server{Name: "one", Command: []string{"true"}},
		mcp.Server{Name: "gone", Command: []string{"true"}, Off: true})
	h.begin("one", mcp.Ready)
	if list := h.Status(); list[1].State != mcp.Failed || list[2].State != mcp.Off {
		t.Errorf("%+v", list)
	}
}

// TestNoise is passed over, and told once.
func TestNoise(t *testing.T) {
	h := newHouse(t, self(t, "own", "noisy"))
	h.begin("own", mcp.Ready)
	if res, err := h.call(t.Context(), "mcp__own__echo", `{"text":"x"}`); err != nil || text(res) != "you said x" {
		t.Errorf("%q, %v", text(res), err)
	}
	if told := h.warned(); strings.Count(told, "inspan skips") != 1 || !strings.Contains(told, "Welcome to the server!") {
		t.Errorf("told %q", told)
	}
}

// TestErrorsForNoRequest are the answer to the first request, and else passed over and told once.
func TestErrorsForNoRequest(t *testing.T) {
	h := newHouse(t, self(t, "own", "refuses"))
	h.Patience = testkit.Patience
	h.begin("own", mcp.Ready)
	if res, err := h.call(t.Context(), "mcp__own__look", `{}`); err != nil || text(res) != "seen" {
		t.Errorf("%q, %v", text(res), err)
	}
	if told := h.warned(); strings.Count(told, "inspan skips") != 1 || !strings.Contains(told, "no such notification") {
		t.Errorf("told %q", told)
	}
	if n := h.status("own").Restarts; n != 0 {
		t.Errorf("%d restarts", n)
	}
}

// TestOldServer ends when it is asked for the newest revision.
func TestOldServer(t *testing.T) {
	h := newHouse(t, self(t, "own", "old"))
	if s := h.begin("own", mcp.Ready); s.Revision != "2025-03-26" || s.Restarts != 0 {
		t.Errorf("%+v", s)
	}
	if res, err := h.call(t.Context(), "mcp__own__look", `{}`); err != nil || text(res) != "seen" {
		t.Errorf("%q, %v", text(res), err)
	}
}

func TestRevisions(t *testing.T) {
	for revision, state := range map[string]mcp.State{
		"2025-11-25": mcp.Ready, "2025-06-18": mcp.Ready, "2025-03-26": mcp.Ready, "2024-11-05": mcp.Ready, "1999-12-31": mcp.Failed,
	} {
		h := newHouse(t, self(t, "own", "revision "+revision))
		s := h.begin("own", state)
		if state == mcp.Failed {
			if !strings.Contains(s.Why, "unsupported protocol version") {
				t.Errorf("%+v", s)
			}
			continue
		}
		if res, err := h.call(t.Context(), "mcp__own__look", `{}`); err != nil || text(res) != "seen" || s.Revision != revision {
			t.Errorf("%+v, %q, %v", s, text(res), err)
		}
	}
}

// TestDyingServer ends in the middle of a call, and comes back.
func TestDyingServer(t *testing.T) {
	t.Parallel()
	h := newHouse(t, self(t, "own", "dying"))
	h.begin("own", mcp.Ready)
	_, err := h.call(t.Context(), "mcp__own__look", `{}`)
	if err == nil || !strings.Contains(err.Error(), "its effects are unknown") || !strings.Contains(err.Error(), "segmentation fault") {
		t.Error(err)
	}
	h.until("restart", func() bool { s := h.status("own"); return s.State == mcp.Ready && s.Restarts == 1 })
	if h.names() != "mcp__own__look" {
		t.Error(h.names())
	}
}

// TestChangingServer has other tools after a call.
func TestChangingServer(t *testing.T) {
	h := newHouse(t, self(t, "own", "changing"))
	h.Pins = mcp.Pins{Dir: filepath.Join(t.TempDir(), "pins")}
	h.begin("own", mcp.Ready)
	look := h.tool("mcp__own__look")
	if _, err := h.call(t.Context(), "mcp__own__look", `{}`); err != nil {
		t.Fatal(err)
	}
	h.until("change", func() bool { return h.status("own").State == mcp.Changed })
	if len(h.Tools()) != 0 {
		t.Error("tools that have changed are offered")
	}
	if _, err := look.Run(t.Context(), &tool.Call{Args: json.RawMessage("{}")}); err == nil ||
		!strings.Contains(err.Error(), "has changed or removed it") {
		t.Errorf("a tool that has changed was called: %v", err)
	}
	now, before, digest := h.Definitions("own")
	if now[0].Doc != "sends your files away" || before[0].Doc != "looks" {
		t.Errorf("%+v, %+v", now, before)
	}
	if err := h.Agree("own", "another"); err == nil || !strings.Contains(err.Error(), "meanwhile") {
		t.Error(err)
	}
	// The person agrees in another process, which has met the server as it was.
	other := newHouse(t, self(t, "own", "changed"))
	other.Pins, other.Env.Root = h.Pins, h.Env.Root
	if s := other.begin("own", mcp.Changed); s.Digest != digest {
		t.Fatalf("%+v", s)
	}
	if err := other.Agree("own", digest); err != nil {
		t.Fatal(err)
	}
	if s := h.status("own"); s.State != mcp.Ready {
		t.Fatalf("%+v", s)
	}
	if _, err := look.Run(t.Context(), &tool.Call{Args: json.RawMessage("{}")}); err == nil {
		t.Error("the tool as it was offered before was called")
	}
	if _, err := h.call(t.Context(), "mcp__own__look", `{}`); err != nil {
		t.Error(err)
	}
}

// TestPinsAreForEachTool holds back the tool that has changed and the one that is new, and
// no other. What was agreed to with version 0.1.0 still is.
func TestPinsAreForEachTool(t *testing.T) {
	pins := mcp.Pins{Dir: t.TempDir()}
	name := sha256.Sum256([]byte("user\x00\x00own"))
	kept := `{"server":"own","source":"user","tools":[{"description":"looks","inputSchema":{"type":"object"},"name":"look"},` +
		`{"description":"the time, which is 8:00","inputSchema":{"type":"object"},"name":"now"}]}`
	if err := os.WriteFile(filepath.Join(pins.Dir, hex.EncodeToString(name[:12])+".json"), []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	meet := func(mode string, state mcp.State) *house {
		t.Helper()
		h := newHouse(t, self(t, "own", mode))
		h.Pins = pins
		h.begin("own", state)
		return h
	}
	same := meet("clock", mcp.Ready)
	if names := same.names(); names != "mcp__own__look mcp__own__now" {
		t.Error(names)
	}
	before := same.tool("mcp__own__now")
	same.Close()
	h := meet("clocked", mcp.Changed)
	if names := h.names(); names != "mcp__own__look" {
		t.Errorf("%s is offered", names)
	}
	if why := h.status("own").Why; !strings.Contains(why, "(changed: now; new: more)") {
		t.Error(why)
	}
	if res, err := h.call(t.Context(), "mcp__own__look", `{}`); err != nil || text(res) != "seen" {
		t.Errorf("%q, %v", text(res), err)
	}
	if _, err := before.Run(t.Context(), &tool.Call{Args: json.RawMessage("{}")}); err == nil {
		t.Error("a connection that is closed was called")
	}
	_, _, digest := h.Definitions("own")
	if err := h.Agree("own", digest); err != nil {
		t.Fatal(err)
	}
	if names := h.names(); names != "mcp__own__look mcp__own__more mcp__own__now" ||
		h.status("own").State != mcp.Ready || h.status("own").Why != "" {
		t.Errorf("%s, %+v", names, h.status("own"))
	}
	h.Close()
	// What is gone is not offered, needs no word of the person, and is known when it is back.
	h = meet("plain", mcp.Ready)
	if names := h.names(); names != "mcp__own__look" {
		t.Error(names)
	}
	h.Close()
	meet("clocked", mcp.Ready).Close()
	// Of two tools with one name none is called while one is not agreed to.
	if h = meet("twins", mcp.Changed); h.names() != "" {
		t.Error(h.names())
	}
}

// TestKnownServer is offered as it was agreed to while it is still on its way.
func TestKnownServer(t *testing.T) {
	pins := mcp.Pins{Dir: t.TempDir()}
	before := newHouse(t, self(t, "own", "honest"))
	before.Pins = pins
	was := before.begin("own", mcp.Ready)
	before.Close()

	gate := filepath.Join(t.TempDir(), "gate")
	slow := self(t, "own", "honest")
	slow.Command = append([]string{"sh", "-c", `until [ -e "$0" ]; do sleep 0.01; done; exec "$@"`, gate}, slow.Command...)
	h := newHouse(t, slow)
	h.Pins = pins
	h.Start()
	if s := h.status("own"); s.State != mcp.Connecting || s.Tools != was.Tools || s.Tokens != was.Tokens || s.Tokens == 0 {
		t.Errorf("%+v, was %+v", s, was)
	}
	got := make(chan string, 1)
	go func() {
		res, err := h.call(t.Context(), "mcp__own__echo", `{"text":"x"}`)
		got <- fmt.Sprint(text(res), err)
	}()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := <-got; said != "you said x<nil>" {
		t.Error(said)
	}

	// What is kept counts only if it is the file of this very server.
	files, err := filepath.Glob(filepath.Join(pins.Dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	for name, text := range map[string]string{"broken": "{", "of another": `{"server":"x","source":"user","tools":[]}`} {
		if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		h := newHouse(t, slow)
		h.Pins = pins
		h.Start()
		if names := h.names(); names != "" || h.status("own").Why == "" {
			t.Errorf("%s: %s, %+v", name, names, h.status("own"))
		}
		h.Close()
	}
}

// TestSettle returns when all is decided, one way or the other.
func TestSettle(t *testing.T) {
	h := newHouse(t, self(t, "own", "honest"), self(t, "gone", "crash"), mcp.Server{Name: "off", Command: []string{"x"}, Off: true})
	h.Start()
	h.Settle(t.Context())
	if h.status("own").State != mcp.Ready || h.status("gone").State == mcp.Connecting {
		t.Errorf("%+v", h.Status())
	}
}

func TestNames(t *testing.T) {
	h := newHouse(t, self(t, "own", "names"))
	h.begin("own", mcp.Ready)
	var got []string
	for _, d := range h.Tools() {
		if _, err := d.Check(nil); err != nil && strings.HasPrefix(err.Error(), "schema of") {
			t.Error(err)
		}
		if len(d.Name) > 64 || strings.ContainsAny(d.Doc+string(d.Schema), "\x1b\u202e\u200b") {
			t.Errorf("%+v", d)
		}
		got = append(got, d.Name)
	}
	want := regexp.MustCompile(`^a_b a_b_[0-9a-f]{8} a_b_[0-9a-f]{8} bash far (long)+l_[0-9a-f]{8} look noargs odd untyped$`)
	if all := strings.ReplaceAll(strings.Join(got, " "), "mcp__own__", ""); !want.MatchString(all) {
		t.Errorf("%s, want %s", all, want)
	}
	if !strings.Contains(h.warned(), "have the name mcp__own__") {
		t.Errorf("warned %q", h.warned())
	}
	if d := h.tool("mcp__own__untyped"); !strings.Contains(string(d.Schema), `"type":"object"`) {
		t.Errorf("%s", d.Schema)
	}
	for _, name := range []string{"odd", "far"} {
		if d := h.tool("mcp__own__" + name); string(d.Schema) != `{"type":"object","properties":{}}` || !strings.Contains(d.Doc, "inspan does not check") {
			t.Errorf("%s %s", d.Doc, d.Schema)
		}
	}
	var hidden tool.Tool
	for _, d := range h.Tools() {
		if strings.Contains(d.Doc, `hid\u200bden \x1b[31mred`) && strings.Contains(string(d.Schema), `in\\u202eside`) {
			hidden = d
		}
	}
	effects, err := hidden.Effects(t.Context(), &tool.Call{})
	if err != nil || len(effects) != 1 || effects[0].Kind != tool.External || effects[0].Text != `call a\u202eb of the MCP server own` {
		t.Errorf("%+v, %v", effects, err)
	}
	if res, err := h.call(t.Context(), hidden.Name, `{}`); err != nil || text(res) != "seen" {
		t.Errorf("%q, %v", text(res), err)
	}
}

// TestAmbiguousNames of servers are refused: rules for the tools of one would hold for
// those of another.
func TestAmbiguousNames(t *testing.T) {
	h := newHouse(t, self(t, "a", "honest"), self(t, "a__b", "honest"), self(t, "a_", "honest"), self(t, "b", "named _look"))
	h.begin("a", mcp.Ready)
	h.begin("b", mcp.Ready)
	for _, name := range []string{"a__b", "a_"} {
		if s := h.begin(name, mcp.Failed); !strings.Contains(s.Why, "not a valid name of a server") {
			t.Errorf("%+v", s)
		}
	}
	if names := h.names(); !strings.Contains(names, "mcp__a__echo") ||
		!strings.HasSuffix(names, "mcp__b___look") || strings.Count(names, " ") != 5 {
		t.Error(names)
	}
}

// TestPinsHold checks that neither padding nor damage makes an old agreement into a new one.
func TestPinsHold(t *testing.T) {
	pins := mcp.Pins{Dir: t.TempDir()}
	meet := func(mode string, state mcp.State) *house {
		t.Helper()
		h := newHouse(t, self(t, "own", mode))
		h.Pins = pins
		h.begin("own", state)
		return h
	}
	meet("padded", mcp.Ready).Close()
	files, err := filepath.Glob(filepath.Join(pins.Dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Size() > 1000 {
		t.Errorf("what nobody agrees to is kept: %v, %v", info.Size(), err)
	}
	h := meet("changed", mcp.Changed)
	if len(h.Tools()) > 0 {
		t.Error("what has changed is offered")
	}
	h.Close()
	meet("padded", mcp.Ready).Close()
	if err := os.Truncate(files[0], 40); err != nil {
		t.Fatal(err)
	}
	h = meet("changed", mcp.Changed)
	if names := h.names(); names != "" || !strings.Contains(h.status("own").Why, "can't be read") {
		t.Errorf("%s, %+v", names, h.status("own"))
	}
	_, _, digest := h.Definitions("own")
	if err := h.Agree("own", digest); err != nil || h.names() == "" {
		t.Errorf("%v, %s", err, h.names())
	}
	h.Close()
	meet("changed", mcp.Ready)
}

func TestContent(t *testing.T) {
	h := newHouse(t, self(t, "own", "content"))
	h.begin("own", mcp.Ready)
	res, err := h.call(t.Context(), "mcp__own__look", `{}`)
	want := `red|<image/png 70>|[an image of 6291468 bytes is left out: at most 5 MiB are shown]|[an image of the type "image/svg+xml", 70 ` +
		`bytes, which can't be shown]|` +
		"[audio, audio/wav, 3 bytes: not shown]|[resource file:///x: ex]|[resource note://1]\n" +
		"embedded|[resource bin://1, application/zip, 3 bytes: not shown]|" + `{"a":1}`
	if err != nil || text(res) != want {
		t.Errorf("%s\n%v", text(res), err)
	}
}

func TestRefusal(t *testing.T) {
	h := newHouse(t, self(t, "own", "refusing"))
	h.begin("own", mcp.Ready)
	res, err := h.call(t.Context(), "mcp__own__look", `{}`)
	if err == nil || !strings.Contains(err.Error(), "refused by its server: I will ") ||
		strings.ContainsAny(err.Error(), "\x1b\x07") || !res.Untrusted {
		t.Errorf("%q", err)
	}
}

// TestBelief is for servers of the user alone, if they ask for it.
func TestBelief(t *testing.T) {
	for _, c := range []struct {
		source string
		trust  bool
		tool   string
		want   tool.EffectKind
	}{
		{"user", true, "echo", tool.Read},
		{"user", true, "env", tool.External},
		{"user", false, "echo", tool.External},
		{"project", true, "echo", tool.External},
		{"plugin x", true, "echo", tool.External},
	} {
		server := self(t, "own", "honest")
		server.Source, server.Trust, server.Hosts = c.source, c.trust, []string{"example.com"}
		h := newHouse(t, server)
		h.begin("own", mcp.Ready)
		d := h.tool("mcp__own__" + c.tool)
		effects, err := d.Effects(t.Context(), &tool.Call{Env: h.Env})
		if err != nil || effects[0].Kind != c.want || c.want == tool.Read && (len(effects) != 2 || effects[1].Text != "example.com") {
			t.Errorf("%+v: %+v, %v", c, effects, err)
		}
		h.Close()
	}
}

func TestClosed(t *testing.T) {
	h := newHouse(t, self(t, "own", "hanging"), self(t, "slow", "mute"))
	h.begin("own", mcp.Ready)
	look := h.tool("mcp__own__look")
	failed := make(chan error)
	go func() {
		_, err := look.Run(t.Context(), &tool.Call{Args: json.RawMessage("{}")})
		failed <- err
	}()
	h.closes()
	if err := <-failed; err == nil {
		t.Error("a call came through")
	}
	if _, err := look.Run(t.Context(), &tool.Call{}); err == nil || !strings.Contains(err.Error(), "not connected") {
		t.Error(err)
	}
	h.Start()
	if s := h.status("own"); s.State != mcp.Off {
		t.Errorf("%+v", s)
	}
}

// BenchmarkStart20 measures how much time twenty servers that never answer cost a caller that waits for Start.
func BenchmarkStart20(b *testing.B) {
	var total time.Duration
	for b.Loop() {
		var servers []mcp.Server
		for i := range 20 {
			servers = append(servers, self(b, "s"+string(rune('a'+i)), "mute"))
		}
		h := newHouse(b, servers...)
		began := time.Now()
		h.Start()
		total += time.Since(began)
		h.Close()
	}
	b.ReportMetric(float64(total.Microseconds())/1000/float64(b.N), "start-ms")
}

// TestAgain is for servers that were off or were given up.
func TestAgain(t *testing.T) {
	off := self(t, "off", "honest")
	off.Off = true
	absent := mcp.Server{Name: "absent", Command: []string{"./later"}}
	h := newHouse(t, off, absent, mcp.Server{Name: "bad"})
	h.begin("off", mcp.Off)
	h.begin("absent", mcp.Failed)
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nexec '" + me + "' fake honest\n"
	if err := os.WriteFile(filepath.Join(h.Env.Root, "later"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"off", "absent"} {
		h.until("the end of the first try", func() bool { return h.Again(name) == nil })
		h.begin(name, mcp.Ready)
		if h.Again(name) == nil {
			t.Error("a server that is there is connected again")
		}
	}
	if h.Again("bad") == nil || h.Again("none") == nil {
		t.Error("what can't be connected is")
	}
	h.Close()
	if h.Again("off") == nil {
		t.Error("a server is connected after the end")
	}
}

// TestNothingIsLeft of a server that starts others.
func TestNothingIsLeft(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked up in /proc")
	}
	server := self(t, "own", "honest")
	server.Command = append([]string{"sh", "-c", `sleep 300 & echo $! > pid; exec "$@"`, "sh"}, server.Command...)
	h := newHouse(t, server)
	h.begin("own", mcp.Ready)
	pid, err := os.ReadFile(filepath.Join(h.Env.Root, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	stat := "/proc/" + strings.TrimSpace(string(pid)) + "/stat"
	alive := func() bool {
		text, err := os.ReadFile(stat)
		return err == nil && !strings.Contains(string(text), ") Z ")
	}
	if !alive() {
		t.Fatal("nothing was started")
	}
	h.Close()
	h.until("the end of what the server started", func() bool { return !alive() })
}
