package tools_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// memBlobs is a blob store in memory.
type memBlobs struct {
	mu    sync.Mutex
	blobs map[string][]byte
}

func (m *memBlobs) Put(_ context.Context, r io.Reader) (string, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	name := "sha256-" + hex.EncodeToString(sum[:])
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[name] = data
	return name, nil
}

func (m *memBlobs) Get(_ context.Context, name string) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.blobs[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// session plays the driver for the tools: it checks arguments, asks for effects and keeps the state in results.
type session struct {
	t     testing.TB
	env   tool.Env
	cwd   string
	mode  tool.Mode
	seen  map[string]string
	shell *tools.Shell
	tools map[string]tool.Tool
	ends  chan tool.JobEnd // of jobs
}

// seenIn returns the files of a map from paths to digests as those that a session has seen.
func seenIn(digests map[string]string) tool.Seen {
	return func(path string) (string, bool) {
		digest, ok := digests[path]
		return digest, ok
	}
}

func newSession(t testing.TB) *session {
	t.Helper()
	env, err := sandbox.Local(t.TempDir(), &memBlobs{blobs: map[string][]byte{}}, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{
		t: t, env: env, cwd: env.Root, seen: map[string]string{}, shell: &tools.Shell{Protected: []string{"main", "release/*"}},
		tools: map[string]tool.Tool{}, ends: make(chan tool.JobEnd, 100),
	}
	core := tools.Core(s.shell, "")
	patching, _ := tools.Patching(core)
	for _, tl := range slices.Concat(tools.Usual(core)[1:], patching, core) { // several calls need a driver
		s.tools[tl.Name] = tl
	}
	t.Cleanup(s.shell.Close)
	return s
}

// args is written as JSON into a call.
type args map[string]any

// call prepares a call as the driver does.
func (s *session) call(name string, a args) (tool.Tool, *tool.Call) {
	s.t.Helper()
	tl, ok := s.tools[name]
	if !ok {
		s.t.Fatalf("no tool %s", name)
	}
	raw, err := json.Marshal(a)
	if err != nil {
		s.t.Fatal(err)
	}
	checked, err := tl.Check(raw)
	if err != nil {
		s.t.Fatal(err)
	}
	return tl, &tool.Call{
		Name: name, Args: checked, Env: s.env, Cwd: s.cwd, Mode: s.mode, Answer: "the second", Seen: seenIn(s.seen),
		Progress: func(string) {}, Finished: func(end tool.JobEnd) { s.ends <- end },
	}
}

func (s *session) try(ctx context.Context, name string, a args) (tool.Result, error) {
	s.t.Helper()
	tl, c := s.call(name, a)
	if tl.Resolve != nil {
		another, inner, err := tl.Resolve(ctx, c)
		if err != nil {
			return tool.Result{}, err
		}
		if another != "" {
			var a args
			if err := json.Unmarshal(inner, &a); err != nil {
				s.t.Fatal(err)
			}
			return s.try(ctx, another, a)
		}
	}
	r, err := tl.Run(ctx, c)
	if r.Cwd != "" {
		s.cwd = r.Cwd
	}
	for _, f := range r.Files {
		if !f.Partial {
			s.seen[f.Path] = f.Digest
		}
	}
	return r, err
}

// run makes a call that must work and returns its text.
func (s *session) run(name string, a args) string {
	s.t.Helper()
	r, err := s.try(s.t.Context(), name, a)
	if err != nil {
		s.t.Fatalf("%s %v: %v", name, a, err)
	}
	return r.Parts.Text()
}

// fails makes a call that must not work, for a reason that holds all words.
func (s *session) fails(name string, a args, words ...string) {
	s.t.Helper()
	var r tool.Result
	raw, err := json.Marshal(a)
	if err == nil {
		_, err = s.tools[name].Check(raw)
	}
	if err == nil {
		r, err = s.try(s.t.Context(), name, a)
	}
	if err == nil {
		s.t.Errorf("%s %v worked: %s", name, a, r.Parts.Text())
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			s.t.Errorf("%s %v: error %q does not say %q", name, a, err, w)
		}
	}
}

// effects asks a tool for the effects of a call.
func (s *session) effects(name string, a args) []tool.Effect {
	s.t.Helper()
	tl, c := s.call(name, a)
	effects, err := tl.Effects(s.t.Context(), c)
	if err != nil {
		s.t.Fatal(err)
	}
	return effects
}

func (s *session) path(name string) string { return filepath.Join(s.env.Root, name) }

// put writes a file behind the session's back.
func (s *session) put(name, data string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), []byte(data), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// has checks the content of a file.
func (s *session) has(name, want string) {
	s.t.Helper()
	got, err := os.ReadFile(s.path(name))
	if err != nil || string(got) != want {
		s.t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
	}
}

// says checks that a text holds all words.
func says(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q\nis not in %q", w, text)
		}
	}
}

// said is a short history.
type said []tool.Passage

func (s said) Find(_ context.Context, limit int, match func(tool.Passage) bool) ([]tool.Passage, error) {
	var out []tool.Passage
	for _, p := range s {
		if match(p) {
			out = append(out, p)
		}
	}
	return out[max(0, len(out)-limit):], nil
}

// TestGolden is a table of calls as models write them, one that must work for
// each use of each tool. It runs them through Check and Run, in order.
func TestGolden(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.put("a.txt", "one\ntwo\nthree\n")
	s.put("sub/b.go", "package sub\n")
	s.repository()
	var picture bytes.Buffer
	if err := png.Encode(&picture, halves(2, 2)); err != nil {
		t.Fatal(err)
	}
	s.put("p.png", picture.String())
	s.put("n.ipynb", `{"cells":[{"cell_type":"code","source":"x = `+
		`1","outputs":[],"metadata":{},"execution_count":null}],"nbformat":4,"nbformat_minor":4,"metadata":{}}`)
	s.put("a.txt", "one\ntwo\nthree\n")
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	s.env.History = said{
		{Seq: 1, Time: at, Who: "person", Text: "which bird?"},
		{Seq: 2, Time: at, Who: "model", Text: "looking"},
		{Seq: 3, Time: at, Who: "bash", Call: "c1", Text: "the heron is blue"},
	}
	used := map[string]map[string]bool{}
	for _, g := range []struct{ tool, args, want string }{
		{"read_file", `{"path":"a.txt"}`, "     1\tone\n     2\ttwo\n     3\tthree"},
		{"read_file", `{"file_path":"a.txt","offset":"2","limit":1}`, "     2\ttwo\n[lines 2-2 of 3; read on with offset 3]"},
		{"write_file", `{"path":"new/c.txt","content":"hello\n"}`, "created new/c.txt: 6 B, 1 line"},
		{
			"edit_file", `{"path":"a.txt","edits":[{"old_string":"two","new_string":"2"},{"old_string":"e","new_string":"E","replace_all":true}]}`,
			"a.txt: 4 replacements",
		},
		{"edit_file", `{"path":"new/c.txt","old_str":"hello","new_str":"bye"}`, "new/c.txt: 1 replacement\n"},
		{"edit_file", `{"path":"new/c.txt","edits":[{"old_string":"bye","new_string":"hello"}],"undo":true}`, "new/c.txt: 1 replacement taken back\n"},
		{"edit_file", `{"path":"new/c.txt","old_str":"hello","new_str":"bye"}`, "new/c.txt: 1 replacement\n"},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Update File: new/c.txt\n@@\n-bye\n+bye\n+now\n*** End Patch"}`, "new/c.txt: 1 replacement"},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: new/c.txt\n@@\n-now\n*** End Patch"}`, "new/c.txt: 1 replacement"},
		{"list_files", `{}`, "a.txt  12 B"},
		{"list_files", `{"path":"sub","depth":1}`, "b.go  12 B"},
		{"find_files", `{"pattern":"*.go"}`, "sub/b.go"},
		{"find_files", `{"pattern":"*","path":"sub"}`, "sub/b.go"},
		{"search_files", `{"query":"packa?ge"}`, "sub/b.go\n1: package sub"},
		{"search_files", `{"pattern":"PACKAGE","path":"sub","glob":"*.go","ignore_case":true,"context":1,"max":5}`, "1: package sub"},
		{"bash", `{"command":"cd sub && ls"}`, "b.go\n[exit code 0]\n[now in "},
		{"bash", `{"cmd":"cat","background":true}`, "[still running as job 1;"},
		{"bash", `{"command":"echo hi","interactive":true}`, "hi\n"},
		{"bash", `{"command":"test -t 0 && echo terminal","tty":true}`, "terminal\n[exit code 0]"},
		{"bash", `{"command":"echo kept","keep":true}`, "kept\n[exit code 0]"},
		{"bash", `{"command":"echo x","timeout":"5"}`, "x\n[exit code 0]"},
		{"bash", `{"command":"echo y","network":"example.com","outside":true}`, "y\n[exit code 0]"},
		{"jobs", `{"action":"list"}`, "job 1: running"},
		{"jobs", `{"action":"feed","id":1,"input":"ping\n"}`, "ping\n[sent 5 bytes]\n[job 1 running"},
		{
			"jobs", `{"action":"wait","id":1,"pattern":"never","seconds":1}`,
			"[no new output]\n[waited 1s and the pattern has not come]\n[job 1 running",
		},
		{"bash", `{"command":"echo hello; read -r x","tty":true}`, "hello\n[still running as job 2;"},
		{"jobs", `{"action":"feed","id":2,"keys":["enter"]}`, "[job 2 ended after"},
		{"jobs", `{"action":"read","job_id":"1"}`, "[job 1 running"},
		{"jobs", `{"action":"kill","id":"1"}`, "[job 1 ended after"},
		{"delete_file", `{"path":"../new/c.txt"}`, "To bring it back: write_file with path new/c.txt and blob sha256-"},
		{"todo", `{"items":[{"text":"read  it","state":"done"},{"text":"mend it","state":"doing"}]}`, "0 open, 1 doing, 1 done."},
		{"view_image", `{"path":"../p.png","crop":[0,0,1,1]}`, "p.png: 2 by 2 pixels; shown is 1 by 1"},
		{
			"render", `{"title":"Sizes","markdown":"Some *text*.","table":{"head":["a","b"],"rows":[["1","2"]]},"chart":{"kind":"bar",` +
				`"labels":["x"],"series":[{"values":[3]}]},"image":"../p.png","save_to":"../new/r.html"}`,
			"The person sees it: text, a table of 1 row, a bar chart, an image. It is also in new/r.html.",
		},
		{"notebook_edit", `{"path":"../n.ipynb","action":"show"}`, "## Cell 1 (code)\nx = 1\n"},
		{"notebook_edit", `{"path":"../n.ipynb","action":"insert","cell":2,"type":"markdown","source":"# Then"}`, "cell 2: insert"},
		{"git", `{"action":"commit","paths":["../a.txt","."],"message":"Begin"}`, "Begin"},
		{"git", `{"action":"commit","message":"Start","amend":true}`, "Start"},
		{"git", `{"action":"diff","ref":"HEAD","to":"HEAD","stat":true,"staged":false}`, ""},
		{"git", `{"action":"log","max":3}`, "Ann: Start"},
		{"git", `{"action":"branch","name":"work"}`, "work"},
		{"git", `{"action":"push","remote":"origin","force":true}`, "work"},
		{"git", `{"action":"clone","url":"..","path":"../copied"}`, "copied"},
		{"ask_user", `{"question":"which?","options":["a","b"]}`, "The person answers: the second"},
		{"todo", `{"items":[]}`, "The list is empty."},
		{"history", `{"words":"Heron BLUE"}`, "#3 2026-11-22 10:00 bash:\nthe heron is blue"},
		{"history", `{"call":"c1"}`, "#3 2026-11-22 10:00 bash:\nthe heron is blue"},
		{"history", `{"at":3,"around":1}`, "#2 2026-11-22 10:00 model:\nlooking\n\n#3 "},
		{"history", `{"who":"model"}`, "#2 2026-11-22 10:00 model:\nlooking"},
		{
			"write_file", `{"path":"../new/c.txt","blob":"sha256-abc6fd595fc079d3114d4b71a4d84b1d1d0f79df1e70f8813212f2a65d8916df"}`,
			"created new/c.txt: 4 B",
		},
	} {
		tl := s.tools[g.tool]
		checked, err := tl.Check(json.RawMessage(g.args))
		if err != nil {
			t.Errorf("%s %s: %v", g.tool, g.args, err)
			continue
		}
		var a args
		if err := json.Unmarshal(checked, &a); err != nil {
			t.Fatal(err)
		}
		for field := range a {
			if used[g.tool] == nil {
				used[g.tool] = map[string]bool{}
			}
			used[g.tool][field] = true
		}
		if got := s.run(g.tool, a); !strings.Contains(got, g.want) {
			t.Errorf("%s %s: got %q, want %q", g.tool, g.args, got, g.want)
		}
	}
	s.has("new/c.txt", "bye\n")
	for name, tl := range s.tools {
		for field := range fields(t, tl.Schema) {
			if !used[name][field] {
				t.Errorf("no example of %s uses %s", name, field)
			}
		}
	}
}

// TestSchemas compares the schemas with the arguments of the tools.
func TestSchemas(t *testing.T) {
	want := map[string]struct{ required, optional []string }{
		"read_file":    {[]string{"path"}, []string{"offset", "limit"}},
		"write_file":   {[]string{"path"}, []string{"content", "blob"}},
		"edit_file":    {[]string{"path", "edits"}, []string{"undo"}},
		"delete_file":  {[]string{"path"}, nil},
		"list_files":   {nil, []string{"path", "depth"}},
		"find_files":   {[]string{"pattern"}, []string{"path"}},
		"search_files": {[]string{"pattern"}, []string{"path", "glob", "ignore_case", "context", "max"}},
		"bash":         {[]string{"command"}, []string{"timeout", "background", "keep", "interactive", "tty", "network", "outside"}},
		"jobs":         {[]string{"action"}, []string{"id", "input", "keys", "pattern", "seconds"}},
		"git": {[]string{"action"}, []string{
			"paths", "ref", "to", "name",
			"message", "remote", "url", "path", "staged", "stat", "max", "amend", "force",
		}},
		"view_image":    {[]string{"path"}, []string{"crop"}},
		"notebook_edit": {[]string{"path", "action"}, []string{"cell", "source", "type"}},
		"render":        {[]string{"title"}, []string{"markdown", "table", "chart", "image", "save_to"}},
		"todo":          {[]string{"items"}, nil},
		"ask_user":      {[]string{"question"}, []string{"options"}},
		"history":       {nil, []string{"words", "at", "call", "around", "who"}},
	}
	list := tools.Core(&tools.Shell{}, "")
	if len(list) != len(want) {
		t.Errorf("there are %d tools, want %d", len(list), len(want))
	}
	for _, tl := range list {
		w := want[tl.Name]
		var s struct {
			Type       string         `json:"type"`
			Required   []string       `json:"required"`
			Properties map[string]any `json:"properties"`
			Additional any            `json:"additionalProperties"`
		}
		if err := json.Unmarshal(tl.Schema, &s); err != nil {
			t.Fatal(err)
		}
		if s.Type != "object" || s.Additional != false || !slices.Equal(s.Required, w.required) {
			t.Errorf("%s: type %s, additional %v, required %q", tl.Name, s.Type, s.Additional, s.Required)
		}
		order := slices.Concat(w.required, w.optional)
		if len(order) != len(s.Properties) || !inOrder(string(tl.Schema), order) {
			t.Errorf("%s: fields %s, want %q", tl.Name, tl.Schema, order)
		}
		for name, p := range s.Properties {
			if p := p.(map[string]any); p["description"] == nil && p["enum"] == nil {
				t.Errorf("%s: field %s has no description", tl.Name, name)
			}
		}
		if len(strings.TrimSpace(tl.Doc)) < 40 || tl.Effects == nil && tl.Resolve == nil {
			t.Errorf("%s has no proper description or no effects", tl.Name)
		}
		for _, missing := range w.required {
			checkMissing(t, tl, w.required, missing)
		}
		if _, err := tl.Check(json.RawMessage(`{"no_such_field_at_all":1}`)); err == nil {
			t.Errorf("%s takes unknown fields", tl.Name)
		}
	}
}

// checkMissing checks that a call without one required field is refused.
func checkMissing(t *testing.T, tl tool.Tool, required []string, missing string) {
	t.Helper()
	a := args{}
	for _, name := range required {
		if name == missing {
			continue
		}
		a[name] = "x"
		if name == "edits" {
			a[name] = []any{args{"old_string": "a", "new_string": "b"}}
		}
	}
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if missing == "edits" { // the model is told of one edit
		missing = "old_string"
	}
	if _, err := tl.Check(raw); err == nil || !strings.Contains(err.Error(), missing+": missing") {
		t.Errorf("%s without %s: %v", tl.Name, missing, err)
	}
}

// inOrder reports whether a schema has its fields in this order.
func inOrder(schema string, fields []string) bool {
	at := strings.Index(schema, `"properties"`)
	for _, name := range fields {
		i := strings.Index(schema[at:], fmt.Sprintf("%q:{", name))
		if i < 0 {
			return false
		}
		at += i
	}
	return true
}

func fields(t *testing.T, schema json.RawMessage) map[string]any {
	t.Helper()
	var s struct {
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	return s.Properties
}

func TestEffects(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.put("real/f", "x")
	if err := os.Symlink("real", s.path("link")); err != nil {
		t.Fatal(err)
	}
	s.cwd = s.path("real")
	for _, tt := range []struct {
		tool string
		args args
		want []tool.Effect
	}{
		{"read_file", args{"path": "f"}, []tool.Effect{{Kind: tool.Read, Path: s.path("real/f")}}},
		{"read_file", args{"path": "../link/f"}, []tool.Effect{{Kind: tool.Read, Path: s.path("real/f")}}},
		{"read_file", args{"path": "blob:sha256-00"}, nil},
		{"write_file", args{"path": s.path("link/new"), "content": ""}, []tool.Effect{{Kind: tool.Write, Path: s.path("real/new")}}},
		{"edit_file", args{"path": "f", "edits": []any{}}, []tool.Effect{{Kind: tool.Write, Path: s.path("real/f")}}},
		{"delete_file", args{"path": "f"}, []tool.Effect{{Kind: tool.Write, Path: s.path("real/f")}}},
		{"list_files", args{}, []tool.Effect{{Kind: tool.Read, Path: s.path("real")}}},
		{"find_files", args{"pattern": "*"}, []tool.Effect{{Kind: tool.Read, Path: s.path("real")}}},
		{"find_files", args{"pattern": "/etc/*.conf"}, []tool.Effect{{Kind: tool.Read, Path: "/etc"}}},
		{"search_files", args{"pattern": "x", "path": ".."}, []tool.Effect{{Kind: tool.Read, Path: s.env.Root}}},
		{"bash", args{"command": "rm -rf x"}, []tool.Effect{
			{Kind: tool.Execute, Dir: s.path("real"), Text: "rm -rf x"},
			{Kind: tool.Write, Path: s.path("real/x")},
		}},
		{"bash", args{"command": "cat ../link/f"}, []tool.Effect{
			{Kind: tool.Execute, Dir: s.path("real"), Text: "cat ../link/f", Class: tool.ProvenRead},
			{Kind: tool.Read, Path: s.path("link/f")},
			{Kind: tool.Read, Path: s.path("real/f")},
		}},
		{"bash", args{"command": "mkdir d && ls", "network": []any{"example.com"}, "outside": true}, []tool.Effect{
			{Kind: tool.Execute, Dir: s.path("real"), Text: "mkdir d", Class: tool.ProvenInside},
			{Kind: tool.Write, Path: s.path("real/d")},
			{Kind: tool.Execute, Text: "ls", Class: tool.ProvenRead},
			{Kind: tool.Read, Path: s.path("real")},
			{Kind: tool.Network, Text: "example.com", FromArgument: true},
			{Kind: tool.External, Text: "run outside the sandbox"},
		}},
		{"bash", args{"command": "ls", "network": true}, []tool.Effect{
			{Kind: tool.Execute, Dir: s.path("real"), Text: "ls", Class: tool.ProvenRead},
			{Kind: tool.Read, Path: s.path("real")},
			{Kind: tool.Network, Text: "*", FromArgument: true},
		}},
		{"jobs", args{"action": "list"}, nil},
		{"jobs", args{"action": "kill", "id": "1"}, nil},
		{"jobs", args{"action": "feed", "id": "1", "input": "y\n"}, []tool.Effect{{Kind: tool.Execute, Text: "y\n"}}},
	} {
		got := s.effects(tt.tool, tt.args)
		for i := range got {
			got[i].Words = nil // the shell's own tests look at them
		}
		if !slices.Equal(got, tt.want) || got == nil {
			t.Errorf("%s %v: %+v, want %+v", tt.tool, tt.args, got, tt.want)
		}
	}
}
