//go:build unix

package custom_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/custom"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/tool"
)

func TestFind(t *testing.T) {
	b := newBench(t)
	b.write(t, "plain", declare("plain", "", ""))
	b.write(t, "_left", declare("left", "", ""))
	b.write(t, ".hidden", declare("hidden", "", ""))
	b.write(t, "named/named", declare("named", "", ""))
	b.write(t, "named/run", declare("not_this", "", ""))
	b.write(t, "runs/run", declare("runs", "", ". \"${0%/*}/lib\""))
	b.write(t, "runs/lib", "echo from the library")
	b.write(t, "library/other", declare("other", "", ""))
	for _, name := range []string{"README.md", "data.json"} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("plain", filepath.Join(b.dir, "_link")); err != nil {
		t.Fatal(err)
	}
	b.write(t, "_target", declare("linked", "", ""))
	if err := os.Symlink("_target", filepath.Join(b.dir, "linked")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, want := b.names(t), "linked named plain runs"; got != want {
		t.Errorf("tools %q, want %q", got, want)
	}
	has(t, "warned", b.warned())
	res, err := b.run(t, b.one(t, "runs"), `{}`)
	if err != nil || res.Parts.Text() != "from the library" {
		t.Errorf("%q, %v", res.Parts.Text(), err)
	}
	for _, f := range []custom.Folder{{Dir: filepath.Join(b.dir, "nowhere")}, {}} {
		if tools := (&custom.Set{Env: b.Env, Folders: []custom.Folder{f}, Warn: b.warn}).Tools(t.Context()); len(tools) > 0 {
			t.Errorf("%v has tools", f)
		}
	}
	has(t, "warned", b.warned())
}

func TestProblems(t *testing.T) {
	outside := write(t, t.TempDir(), "evil", declare("evil", "", ""))
	deep := strings.Repeat(`"not":{`, 70) + strings.Repeat("}", 70)
	bomb := `"$defs":{"d30":{"type":"string"}`
	for i := range 30 {
		bomb += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1)
	}
	bomb += `},"properties":{"a":{"$ref":"#/$defs/d0"}}`
	schema := func(more string) string {
		return "#!/bin/sh\ncat <<'END'\n" + `{"name":"x","description":"d","schema":` + more + "}\nEND\n"
	}
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"fails":       {"#!/bin/sh\necho first >&2\necho no idea >&2\nexit 1", []string{"exit code 1", "(no idea)", "executable bit"}},
		"floods":      {"#!/bin/sh\nexec yes", []string{"more than 64 KiB"}},
		"binary":      {"#!/bin/sh\nhead -c 5000 /dev/urandom", []string{"does not describe itself"}},
		"silent":      {"#!/bin/sh\n", []string{"want one JSON object"}},
		"chatty":      {"#!/bin/sh\necho hello; " + strings.TrimPrefix(declare("chatty", "", ""), "#!/bin/sh\n"), []string{`got "hello`}},
		"twice":       {"#!/bin/sh\necho '{}{}'", []string{"something follows"}},
		"typo":        {declare("x", `"efects":{}`, ""), []string{`"efects"`, `did you mean "effects"`}},
		"typo inside": {declare("x", `"effects":{"reads":true}`, ""), []string{"effects", `"reads"`, `did you mean "read"`}},
		"case":        {declare("x", `"Name":"y"`, ""), []string{`"Name"`}},
		"same twice":  {declare("x", `"name":"y"`, ""), []string{"name is there twice"}},
		"name":        {declare("a b", "", ""), []string{"name is", "64 letters"}},
		"long name":   {declare(strings.Repeat("a", 65), "", ""), []string{"name is"}},
		"null":        {declare("x", `"secrets":null`, ""), []string{"secrets is null"}},
		"type":        {declare("x", `"timeout_seconds":"60"`, ""), []string{"timeout_seconds", "a whole number"}},
		"time":        {declare("x", `"timeout_seconds":0`, ""), []string{"timeout_seconds is 0"}},
		"url":         {declare("x", `"effects":{"network":["https://slack.com"]}`, ""), []string{"https://slack.com", "not a host"}},
		"newline":     {declare("x", `"effects":{"external":"a\nb"}`, ""), []string{"more than one line"}},
		"empty":       {declare("x", `"effects":{"external":" "}`, ""), []string{"external is missing or empty"}},
		"variable":    {declare("x", `"secrets":["A=B"]`, ""), []string{"A=B", "name of a variable"}},
		"ours":        {declare("x", `"secrets":["INSPAN_KEY"]`, ""), []string{"INSPAN_"}},
		"no schema":   {"#!/bin/sh\necho '" + `{"name":"x","description":"d"}` + "'", []string{"schema is missing"}},
		"no text":     {"#!/bin/sh\necho '" + `{"name":"x","schema":{}}` + "'", []string{"description is missing"}},
		"long text":   {"#!/bin/sh\necho '" + `{"name":"x","description":"` + strings.Repeat("d", 2001) + `"}` + "'", []string{"2001 bytes"}},
		"array":       {schema(`{"type":"array"}`), []string{`"type": "object"`}},
		"bad schema":  {schema(`{"type":"object","properties":{"a":{"type":"strin"}}}`), []string{`schema has the unknown type "strin"`}},
		"bad data": {
			schema(`{"type":"object","properties":{"a":{"default":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}}}`),
			[]string{"nested more than 64 deep"},
		},
		"bad pattern":  {schema(`{"type":"object","properties":{"a":{"pattern":"("}}}`), []string{"a pattern that can't be used"}},
		"deep":         {schema(`{"type":"object",` + deep + `}`), []string{"nested more than 64 deep"}},
		"exponential":  {schema(`{"type":"object",` + bomb + `}`), []string{"too big"}},
		"ring":         {schema(`{"type":"object","$ref":"#"}`), []string{"refers to itself"}},
		"remote":       {schema(`{"type":"object","$ref":"https://example.com/s"}`), []string{"only references that begin with #/"}},
		"lost":         {schema(`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}}}`), []string{"which does not exist"}},
		"megabyte":     {"#!/bin/sh\necho '{\"name\":\"x\",\"schema\":'; head -c 1000000 /dev/zero | tr '\\0' '['", []string{"more than 64 KiB"}},
		"interpreter":  {"#!/nowhere/sh\n", []string{"exit code 12"}},
		"self":         {"#!/bin/sh\necho >> \"$0\"\necho '{}'", []string{"it changed meanwhile"}},
		"not a script": {"\x7fELF junk", []string{"tool "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			path := b.write(t, "prog", tt.text)
			began := time.Now()
			if names := b.names(t); names != "" {
				t.Errorf("tools %q", names)
			}
			has(t, "warned", b.warned(), append(tt.want, "tool "+path)...)
			if d := time.Since(began); d > 40*time.Second {
				t.Errorf("it took %v", d)
			}
			if name != "self" {
				b.names(t)
				has(t, "warned again", b.warned())
			}
		})
	}
	t.Run("files", func(t *testing.T) {
		b := newBench(t)
		for name, target := range map[string]string{"out": outside, "dangling": "nowhere", "folder": "_dir"} {
			if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		b.write(t, "_dir/run", declare("x", "", ""))
		b.write(t, "holds/run", declare("holds", "", ""))
		if err := os.Symlink(outside, filepath.Join(b.dir, "holds", "lib")); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(b.write(t, "forgotten", declare("forgotten", "", "")), 0o644); err != nil {
			t.Fatal(err)
		}
		if names := b.names(t); names != "" {
			t.Errorf("tools %q", names)
		}
		has(t, "warned", b.warned(), "/out is a link that leads out", "/dangling is a link", "/folder is a link to a folder",
			"/holds has the link holds/lib", "chmod +x")
	})
}

func TestNeverAnswers(t *testing.T) {
	b := newBench(t)
	b.Patience = 5 * time.Second // one that answers may need it on a busy machine
	mark := filepath.Join(t.TempDir(), "pid")
	b.write(t, "hangs", "#!/bin/sh\necho $$ > "+mark+"\nsleep 1000 & echo $! >> "+mark+"\nsleep 1000")
	b.write(t, "good", declare("good", "", ""))
	if names := b.names(t); names != "good" {
		t.Errorf("tools %q", names)
	}
	has(t, "warned", b.warned(), "hangs did not answer --describe within")
	gone(t, mark)
	b.names(t)
	has(t, "warned again", b.warned())
}

// TestDescribingLeavesNothing checks that nothing is left of a program that was asked.
func TestDescribingLeavesNothing(t *testing.T) {
	b := newBench(t)
	mark := filepath.Join(t.TempDir(), "pid")
	start := "\nsleep 1000 & echo $! > " + mark + "\nsetsid sleep 1000 & echo $! >> " + mark + "\n"
	b.write(t, "x", strings.Replace(declare("x", "", ""), "\n", start, 1))
	if got := b.names(t); got != "x" {
		t.Errorf("tools %q", got)
	}
	gone(t, mark)
}

// gone waits until no process whose number a file has is there any more.
func gone(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pids := strings.Fields(string(data))
	if len(pids) != 2 {
		t.Fatalf("pids %q", pids)
	}
	for _, pid := range pids {
		testkit.WaitFor(t, "process "+pid+" to end", func() bool { return !alive(pid) })
	}
}

// alive reports whether a process runs; one that only waits to be collected does not.
func alive(pid string) bool {
	var n int
	if _, err := fmt.Sscan(pid, &n); err != nil || syscall.Kill(n, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// TestHotReload changes, adds and removes programs. Those that stay are not
// asked again.
func TestHotReload(t *testing.T) {
	b := newBench(t)
	log := filepath.Join(t.TempDir(), "log")
	counted := func(name, body string) string {
		return strings.Replace(declare(name, "", body), "\n", "\necho "+name+" >> "+log+"\n", 1)
	}
	asked := func() string {
		data, _ := os.ReadFile(log)
		_ = os.Remove(log)
		return strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", " ")
	}
	b.write(t, "one", counted("one", "echo first"))
	for _, step := range []struct {
		do          func()
		tools, asks string
	}{
		{func() {}, "one", "one"},
		{func() {}, "one", ""},
		{func() { b.write(t, "two", counted("two", "")) }, "one two", "two"},
		{func() { b.write(t, "one", counted("uno", "echo second")) }, "two uno", "uno"},
		{func() { os.Remove(filepath.Join(b.dir, "two")) }, "uno", ""},
		{func() { b.write(t, "lib/run", counted("lib", "")) }, "lib uno", "lib"},
		{func() { b.write(t, "lib/data", "more") }, "lib uno", "lib"},
		{func() { b.write(t, "data", "more") }, "lib uno", ""}, // not a program
	} {
		step.do()
		if got := b.names(t); got != step.tools {
			t.Errorf("tools %q, want %q", got, step.tools)
		}
		if got := asked(); got != step.asks {
			t.Errorf("asked %q, want %q", got, step.asks)
		}
	}
	res, err := b.run(t, b.one(t, "uno"), `{}`)
	if err != nil || res.Parts.Text() != "second" {
		t.Errorf("%q, %v", res.Parts.Text(), err)
	}
}

func TestToldAgainWhenItComesBack(t *testing.T) {
	b := newBench(t)
	for range 2 {
		b.write(t, "bad", "#!/bin/sh\nexit 3")
		b.names(t)
		has(t, "warned", b.warned(), "exit code 3")
		b.names(t)
		has(t, "warned again", b.warned())
		os.Remove(filepath.Join(b.dir, "bad"))
		b.names(t)
	}
}

func TestNames(t *testing.T) {
	b := newBench(t)
	second := t.TempDir()
	b.Folders = append(b.Folders, custom.Folder{Dir: second, Source: "project"})
	b.Reserved = []string{"BASH"}
	b.write(t, "b", declare("same", "", "echo first"))
	b.write(t, "c", declare("SAME", "", ""))
	b.write(t, "d", declare("Bash", "", ""))
	write(t, second, "a", declare("same", "", "echo project"))
	if got := b.names(t); got != "same" {
		t.Errorf("tools %q", got)
	}
	has(t, "warned", b.warned(), "/c calls itself SAME, like "+b.dir+"/b", "/a calls itself same, like "+b.dir+"/b",
		"/d calls itself Bash, which is the name of a built-in")
	if res, err := b.run(t, b.one(t, "same"), `{}`); err != nil || res.Parts.Text() != "first" {
		t.Errorf("%q, %v", res.Parts.Text(), err)
	}
}

// TestTrust checks that the digests are those that people trust, and that nothing runs before.
func TestTrust(t *testing.T) {
	b := newBench(t)
	root := b.Env.Root
	dir := filepath.Join(root, ".inspan", "tools")
	mark := filepath.Join(t.TempDir(), "ran")
	hostile := strings.Replace(declare("file", "", ""), "\n", "\ntouch "+mark+"\n", 1)
	write(t, dir, "file", hostile)
	write(t, dir, "folder/run", declare("folder", "", ""))
	write(t, dir, "folder/sub/data", "x y\n\"z\"")
	write(t, dir, "folder/a b", "1")
	for name, target := range map[string]string{"link": "file", "folder/sub/up": "../run"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]string{}
	b.Folders = []custom.Folder{{Dir: dir, Source: "project", Trusted: func(path, digest string) bool {
		seen[path] = digest
		return false
	}}}
	if got := b.names(t); got != "" {
		t.Errorf("tools %q", got)
	}
	has(t, "warned", b.warned(), "/file is not trusted with its current content", "inspan trust")
	if _, err := os.Lstat(mark); err == nil {
		t.Error("a program ran that is not trusted")
	}
	items, err := consent.Find(root)
	if err != nil || len(items) != 3 || len(seen) != 3 {
		t.Fatalf("%v, %v, seen %v", items, err, seen)
	}
	for _, it := range items {
		path := filepath.Join(root, filepath.FromSlash(strings.TrimSuffix(it.Path, "/")))
		if it.Digest == "" || seen[path] != it.Digest {
			t.Errorf("%s has the digest %q here, %q there", it.Path, seen[path], it.Digest)
		}
	}
	want := seen[filepath.Join(dir, "file")]
	b.Folders[0].Trusted = func(path, digest string) bool { return filepath.Base(path) == "file" && digest == want }
	fresh := &bench{Set: &custom.Set{Env: b.Env, Folders: b.Folders, Warn: b.warn}}
	if got := fresh.names(t); got != "file" {
		t.Errorf("tools %q", got)
	}
	write(t, dir, "file", hostile+"#")
	if got := fresh.names(t); got != "" {
		t.Errorf("tools %q after a change", got)
	}
}

// TestAtOnce uses one set from many goroutines.
func TestAtOnce(t *testing.T) {
	b := newBench(t)
	log := filepath.Join(t.TempDir(), "log")
	for i := range 10 {
		name := fmt.Sprintf("t%d", i)
		b.write(t, name, strings.Replace(declare(name, "", "cat"), "\n", "\n[ \"$1\" = --describe ] && echo >> "+log+"\n", 1))
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			tools := b.Tools(t.Context())
			if len(tools) != 10 {
				t.Errorf("%d tools", len(tools))
				return
			}
			args := fmt.Sprintf(`{"a":"%d"}`, i)
			res, err := tools[i].Run(t.Context(), b.call(tools[i], args, nil))
			if err != nil || res.Parts.Text() != args {
				t.Errorf("%q, %v", res.Parts.Text(), err)
			}
		})
	}
	all.Wait()
	if data, err := os.ReadFile(log); err != nil || len(data) != 10 {
		t.Errorf("asked %d times, %v", len(data), err)
	}
	has(t, "warned", b.warned())
}

func TestCancelled(t *testing.T) {
	b := newBench(t)
	b.write(t, "good", declare("good", "", ""))
	b.names(t)
	b.write(t, "slow", "#!/bin/sh\nsleep 1000")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if tools := b.Tools(ctx); len(tools) > 1 {
		t.Errorf("tools %v", tools)
	}
	has(t, "warned", b.warned())
	b.write(t, "slow", declare("slow", "", ""))
	if got := b.names(t); got != "good slow" {
		t.Errorf("tools %q", got)
	}
}

func TestNoProcesses(t *testing.T) {
	b := newBench(t)
	env := b.Env
	b.write(t, "x", declare("x", "", ""))
	b.Env = tool.Env{Root: env.Root}
	if got := b.names(t); got != "" {
		t.Errorf("tools %q", got)
	}
	has(t, "warned", b.warned(), "this host can't start processes")
	b.Env = env
	x := b.one(t, "x") // it is tried again
	c := b.call(x, "{}", nil)
	c.Env.Procs = nil
	if _, err := x.Run(t.Context(), c); err == nil {
		t.Error("it ran")
	}
}
