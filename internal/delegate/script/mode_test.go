package script_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/delegate/script"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	scripted "github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// modeTask is a task that is done twice: by calls, as a good model makes them (side by side where it
// can), and by one script.
type modeTask struct {
	name  string
	files map[string]string
	calls [][]string // replies, each with its calls
	code  string
	want  string            // what the script returns, and the last reply of the other says
	left  map[string]string // files as they are to be in the end
}

func toolCall(name string, args any) string {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("call: %s %s", name, raw)
}

func read(path string) string { return toolCall("read_file", map[string]string{"path": path}) }

// modeTasks are twenty: five kinds of work, each in four sizes.
func modeTasks() (list []modeTask) {
	filler := func(n int) string { return strings.Repeat("a line that nobody needs to see\n", n) }
	for _, n := range []int{5, 10, 20, 40} {
		sum := modeTask{name: fmt.Sprintf("sum of %d files", n), files: map[string]string{}}
		sum.calls = [][]string{{toolCall("bash", map[string]string{"command": "ls data"})}, nil}
		total := 0
		for i := range n {
			path := fmt.Sprintf("data/%02d.txt", i)
			sum.files[path] = filler(20) + fmt.Sprintf("amount: %d\n", i*i)
			sum.calls[1] = append(sum.calls[1], read(path))
			total += i * i
		}
		sum.want = fmt.Sprint(total)
		sum.code = `const {lines} = await tools.bash({command: "ls data"});
			const all = await Promise.all(lines.map(f => tools.read_file({path: "data/" + f})));
			return String(all.reduce((n, r) => n + Number(/amount: (\d+)/.exec(r.text)[1]), 0))`

		rename := modeTask{name: fmt.Sprintf("rename in %d files", n), files: map[string]string{}, left: map[string]string{}}
		rename.calls = [][]string{{toolCall("search_files", map[string]string{"pattern": "oldName"})}, nil, nil}
		for i := range n {
			path := fmt.Sprintf("src/f%02d.go", i)
			rename.files[path] = fmt.Sprintf("package src\n\n// f%d\n", i) + filler(5) + "var x = oldName\n"
			rename.left[path] = strings.ReplaceAll(rename.files[path], "oldName", "newName")
			rename.calls[1] = append(rename.calls[1], read(path))
			rename.calls[2] = append(rename.calls[2], toolCall("edit_file", map[string]any{
				"path": path, "edits": []map[string]string{{"old_string": "oldName", "new_string": "newName"}},
			}))
		}
		rename.want = fmt.Sprintf("%d files", n)
		rename.code = `const {lines} = await tools.bash({command: "grep -rl oldName src"});
			for (const path of lines) {
				const {text} = await tools.read_file({path});
				await tools.write_file({path, content: text.replaceAll("oldName", "newName")});
			}
			return lines.length + " files"`

		look := modeTask{name: fmt.Sprintf("%d users behind errors", n), files: map[string]string{}}
		look.calls = [][]string{{toolCall("bash", map[string]string{"command": "grep ERROR app.log"})}, nil}
		var log, mails []string
		for i := range n {
			log = append(log, filler(30)+fmt.Sprintf("ERROR user=u%d: no", i))
			path := fmt.Sprintf("users/u%d.json", i)
			look.files[path] = fmt.Sprintf(`{"name": "User %d", "about": %q, "mail": "u%d@example.com"}`, i, filler(20), i)
			look.calls[1] = append(look.calls[1], read(path))
			mails = append(mails, fmt.Sprintf("u%d@example.com", i))
		}
		look.files["app.log"], look.want = strings.Join(log, "\n")+"\n", strings.Join(mails, " ")
		look.code = `const {lines} = await tools.bash({command: "grep ERROR app.log"});
			const users = await Promise.all(lines.map(l => tools.read_file({path: "users/" + /user=(\w+)/.exec(l)[1] + ".json"})));
			return users.map(u => u.data.mail).join(" ")`

		check := modeTask{name: fmt.Sprintf("ports of %d services", n), files: map[string]string{}}
		check.calls = [][]string{{toolCall("bash", map[string]string{"command": "ls conf"})}, nil}
		for i := range n {
			path := fmt.Sprintf("conf/s%02d.json", i)
			check.files[path] = fmt.Sprintf(`{"service": "s%02d", "about": %q, "port": %d}`, i, filler(10), 8000+i%(n-1))
			check.calls[1] = append(check.calls[1], read(path))
		}
		check.want = fmt.Sprintf("8000: s00 s%02d", n-1)
		check.code = `const {lines} = await tools.bash({command: "ls conf"});
			const by = {};
			for (const r of await Promise.all(lines.map(f => tools.read_file({path: "conf/" + f})))) (by[r.data.port] ??= []).push(r.data.service);
			return Object.entries(by).filter(([, s]) => s.length > 1).map(([p, s]) => p + ": " + s.join(" ")).join("; ")`

		build := modeTask{name: fmt.Sprintf("%d builds and their logs", n), files: map[string]string{}, calls: [][]string{nil, nil}}
		var causes []string
		for i := range n {
			path := fmt.Sprintf("pkg%02d/build.sh", i)
			body := "echo building; exit 0\n"
			if i%5 == 4 {
				body = "echo building; exit 1\n"
				build.files[fmt.Sprintf("pkg%02d/build.log", i)] = filler(50) + fmt.Sprintf("cause: number %d\n", i)
				build.calls[1] = append(build.calls[1], read(fmt.Sprintf("pkg%02d/build.log", i)))
				causes = append(causes, fmt.Sprintf("pkg%02d number %d", i, i))
			}
			build.files[path] = body
			build.calls[0] = append(build.calls[0], toolCall("bash", map[string]string{"command": "sh " + path}))
		}
		build.want = strings.Join(causes, "; ")
		build.code = `const {lines} = await tools.bash({command: "ls"}), out = [];
			for (const dir of lines) {
				if ((await tools.bash({command: "sh " + dir + "/build.sh"})).exit === 0) continue;
				const {text} = await tools.read_file({path: dir + "/build.log"});
				out.push(dir + " " + /cause: (.*)/.exec(text)[1]);
			}
			return out.join("; ")`
		list = append(list, sum, rename, look, check, build)
	}
	return list
}

// counting counts the requests to a model.
type counting struct {
	llm.Model
	turns  int
	tokens int // of all requests, without the descriptions of tools
}

func (c *counting) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	own := req
	own.Tools = nil
	c.turns++
	c.tokens += own.Tokens()
	return c.Model.Stream(ctx, req)
}

// perform has a model do a task in a workspace of its own, and returns the requests.
func (m modeTask) perform(t testing.TB, replies ...string) (asked *counting, results string) {
	t.Helper()
	root := t.TempDir()
	for path, text := range m.files {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, err := (&store.Memory{}).Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	env, err := sandbox.Local(root, log.Blobs(), sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	model, err := scripted.Parse([]byte("-- reply --\n" + strings.Join(replies, "\n-- reply --\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	shell := &tools.Shell{}
	defer shell.Close()
	asked = &counting{Model: model}
	a := &inspan.Agent{Model: asked, Mode: "yolo", Env: env, Tools: append(tools.Core(shell, ""), script.Tool(sandbox.Self()))}
	for e, err := range a.Run(t.Context(), m.name) {
		if err != nil {
			t.Fatal(err)
		}
		if end, ok := e.Body.(event.Ended); ok && end.Parent == "" && end.Outcome != event.OutcomeOK {
			t.Fatalf("%s: %s %s", m.name, end.Outcome, end.Parts.Text())
		} else if ok && end.Parent == "" {
			results += end.Parts.Text() + "\n"
		}
	}
	for path, want := range m.left {
		if got, err := os.ReadFile(filepath.Join(root, path)); err != nil || string(got) != want {
			t.Errorf("%s: %s is %q: %v", m.name, path, got, err)
		}
	}
	return asked, results
}

// TestCodeMode does twenty tasks by calls and by a script. Both do the same; the script takes fewer turns
// and tokens.
func TestCodeMode(t *testing.T) {
	var turns, tokens [2]int
	for _, m := range modeTasks() {
		var replies []string
		for _, calls := range m.calls {
			replies = append(replies, strings.Join(calls, "\n"))
		}
		plain, _ := m.perform(t, append(replies, m.want)...)
		coded, results := m.perform(t, toolCall("script", map[string]string{"code": m.code}), "Done.")
		if strings.TrimSpace(results) != m.want {
			t.Errorf("%s: the script brought %q, want %q", m.name, results, m.want)
		}
		t.Logf("%-26s %d turns and %6d tokens by calls, %d and %5d by a script", m.name, plain.turns, plain.tokens, coded.turns, coded.tokens)
		if coded.turns >= plain.turns {
			t.Errorf("%s: the script takes %d turns, calls %d", m.name, coded.turns, plain.turns)
		}
		turns[0], tokens[0], turns[1], tokens[1] = turns[0]+plain.turns, tokens[0]+plain.tokens, turns[1]+coded.turns, tokens[1]+coded.tokens
	}
	t.Logf("in all %d turns and %d tokens by calls, %d and %d by scripts", turns[0], tokens[0], turns[1], tokens[1])
	if tokens[1]*2 > tokens[0] {
		t.Errorf("scripts take %d tokens, calls %d", tokens[1], tokens[0])
	}
}

// perform runs a script whose calls a function answers.
func perform(t *testing.T, code string, answer func(name, args string) (tool.Result, error)) (string, error) {
	t.Helper()
	call := &tool.Call{Key: "k", Mode: tool.ModeYolo, Progress: func(string) {}}
	call.Start = func(_ context.Context, name string, args json.RawMessage) func() (tool.Result, error) {
		return func() (tool.Result, error) { return answer(name, string(args)) }
	}
	res, err := script.Perform(t.Context(), call, sandbox.Self(), code, nil, script.Limits{})
	return res.Parts.Text(), err
}

// TestDenialsReachTheModel checks that a script can't hide a person's no and its reason from the model, and that a
// script that keeps asking is stopped.
func TestDenialsReachTheModel(t *testing.T) {
	no := func(_, args string) (tool.Result, error) {
		if strings.Contains(args, "fine") {
			return tool.Text("done"), nil
		}
		return tool.Result{}, &tool.CallError{Name: "write_file", Outcome: string(event.OutcomeDenied), Text: "leave that file"}
	}
	got, err := perform(t, `for (const path of ["a", "fine"]) try { await tools.write_file({path}) } catch {}
		return "all files were written"`, no)
	if want := "[denied: write_file {\"path\":\"a\"}: leave that file]\nall files were written"; err != nil || got != want {
		t.Errorf("got %q and %v, want %q", got, err, want)
	}
	got, err = perform(t, `for (let i = 0; ; i++) try { await tools.write_file({path: "a" + i}) } catch {}`, no)
	if err == nil || !strings.Contains(err.Error(), "3 calls of the script were denied") || strings.Count(got, "leave that file") != 3 {
		t.Errorf("got %q and %v", got, err)
	}
}

// TestWhatScriptsMove checks that arguments and results of calls can't fill the disk.
func TestWhatScriptsMove(t *testing.T) {
	if testkit.Race {
		t.Skip("with the race detector the engine computes too long for 64 MB")
	}
	big := strings.Repeat("x", 1<<20)
	_, err := perform(t, `for (;;) await tools.read_file({path: "a"})`, func(string, string) (tool.Result, error) { return tool.Text(big), nil })
	if err == nil || !strings.Contains(err.Error(), "more than 64 MB") {
		t.Error(err)
	}
}

func TestStoreIsBounded(t *testing.T) {
	got, err := perform(t, `try { store.set("a", "x".repeat(300000)) } catch (e) { print(e.name) }
		store.set("b", "y".repeat(200000)); store.set("b", 1); store.set("c", "z".repeat(200000)); return store.keys()`, nil)
	if err != nil || got != "RangeError\n[\"b\",\"c\"]" {
		t.Errorf("got %q and %v", got, err)
	}
}

// TestScriptsGetAllOfAnOutput checks that a script never takes a part of an output for the whole.
func TestScriptsGetAllOfAnOutput(t *testing.T) {
	for command, want := range map[string]string{"seq 1 60000": "60000", "seq 1 900000": "its output has more than"} {
		m := modeTask{name: command, want: want}
		code := fmt.Sprintf(`try { return String((await tools.bash({command: %q})).lines.length) } catch (e) { return e.message }`, command)
		if _, got := m.perform(t, toolCall("script", map[string]string{"code": code}), "Done."); !strings.Contains(got, want) {
			t.Errorf("%s: %q", command, got)
		}
	}
}
